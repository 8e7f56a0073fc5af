//! Threads of a service, each with a name, and what a panic of one means.
//!
//! A *vital* thread is one without which the process would stand there and serve nobody: the service itself, the door
//! that takes calls, and the wait for party 0's next order. Its panic ends the process with an error
//! ([`Crew::first_death`]), so that whoever supervises it starts it again.
//!
//! A thread *aside* serves one connection and owns nothing else. Its panic is an event and drops that connection alone:
//! otherwise one peer that finds a way to such a panic would end the service for everybody.

use crate::events::{ErrorKind, Event, Events, Reason, ThreadName, reason};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

/// The vital threads of a process.
#[derive(Clone)]
pub struct Crew {
    deaths: Sender<String>,
}

/// Where the end of a vital thread is heard of.
pub struct Watch {
    deaths: Receiver<String>,
}

/// Tells of a thread's end, however it ends.
struct Death(String, Sender<String>);

impl Drop for Death {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.1.send(std::mem::take(&mut self.0));
        }
    }
}

impl Crew {
    /// A crew without threads, and its watch.
    pub fn new() -> (Crew, Watch) {
        let (sender, receiver) = channel();
        (Crew { deaths: sender }, Watch { deaths: receiver })
    }

    /// Start a thread whose panic ends the process. An error where the system gives no thread.
    pub fn vital(&self, name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let (name, deaths) = (name.to_owned(), self.deaths.clone());
        let builder = Builder::new().name(name.clone());
        let body = move || {
            let _death = Death(name, deaths);
            body();
        };
        builder.spawn(body).map(drop)
    }
}

impl Watch {
    /// Wait until a vital thread has panicked; gives its name. What it said stands on standard error, where the
    /// panic was reported.
    pub fn first_death(self) -> String {
        // An end of every thread is an end as well.
        self.end().unwrap_or_else(|| "all threads".into())
    }

    /// Wait until a vital thread has panicked, or until all have ended, and with them all who could start another; then there is no
    /// name.
    pub fn end(self) -> Option<String> {
        self.deaths.recv().ok()
    }
}

/// Start a thread that serves one connection, which `body` owns. Where it panics, or the system gives no thread, the
/// connection is dropped and an event says so.
pub fn aside(name: &'static str, events: &Events, body: impl FnOnce() + Send + 'static) {
    let (thread, told) = (ThreadName(name), events.clone());
    let guarded = move || {
        // Nothing that `body` owns is used after a panic.
        if catch_unwind(AssertUnwindSafe(body)).is_err() {
            told.emit(Event::ThreadPanicked { thread });
        }
    };
    if let Err(e) = Builder::new().name(name.to_owned()).spawn(guarded) {
        events.emit(Event::NoThread { thread, reason: no_thread(&e) });
    }
}

/// That the system gives no thread.
pub fn no_thread(e: &io::Error) -> Reason {
    reason!(
        "system.no_thread",
        "{kind}: raise the limits of this user (`ulimit -u`)",
        kind = ErrorKind::from(e)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::testing::recorded;
    use std::time::Duration;

    #[test]
    fn the_first_vital_thread_that_panics_is_named() {
        let (crew, watch) = Crew::new();
        let (hold, held) = channel::<()>();
        crew.vital("steady", move || {
            let _ = held.recv();
        })
        .unwrap();
        crew.vital("done", || {}).unwrap();
        crew.vital("broken", || panic!("on purpose")).unwrap();
        assert_eq!(watch.first_death(), "broken");
        drop(hold);
        let (crew, watch) = Crew::new();
        crew.vital("done", || {}).unwrap();
        drop(crew);
        assert_eq!(watch.end(), None);
    }

    #[test]
    fn a_panic_aside_is_logged_and_drops_what_it_owns() {
        let (events, seen) = recorded();
        let (owned, dropped) = channel::<()>();
        aside("a caller", &events, move || {
            let _owned = owned;
            panic!("on purpose")
        });
        // Its end of the channel is gone, so this is no time-out.
        assert!(
            dropped.recv_timeout(Duration::from_secs(20)).is_err_and(|e| e.to_string().contains("closed"))
        );
        while seen.lock().unwrap().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(*seen.lock().unwrap(), [Event::ThreadPanicked { thread: ThreadName("a caller") }]);
    }
}
