//! The one door for long calls: the interpreter lock is released, Ctrl-C is heard, panics stay inside.

use crate::errors::Failure;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// How often Ctrl-C is looked for.
const LISTEN: Duration = Duration::from_millis(50);

/// Do `work` on a thread of its own and wait for it. On Ctrl-C the caller gets `KeyboardInterrupt` at once; the
/// thread finishes what it is doing and its result is dropped.
pub fn pass<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let (tell, mut result) = sync_channel(1);
    std::thread::spawn(move || {
        let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Failure::Panic));
        let _ = tell.send(done);
    });
    loop {
        let waited;
        (waited, result) = py.detach(move || (result.recv_timeout(LISTEN), result));
        match waited {
            Ok(done) => return done.map_err(|failure| failure.raise(py)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::Panic.raise(py)),
        }
    }
}
