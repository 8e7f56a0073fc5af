//! Hints that nobody needs for now: in memory while they are few, beyond that in a file without a name. They are no secret of whoever
//! holds them: each client is sent the same.

use crate::mutation;
use privet_family::keys::KeyError;
use privet_prg::Seed;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Bytes that stay in memory.
const HELD: usize = 64 << 20;

/// How a file for hints is made: empty, for reading and writing, and gone when it is closed.
type Make = dyn Fn() -> io::Result<File> + Send + Sync;

/// Where the hints of a set rest.
#[derive(Default)]
pub struct Spool {
    file: Option<Filed>,
    used: Mutex<Used>,
}

struct Filed {
    make: Box<Make>,
    made: OnceLock<File>,
    /// Bytes that come before.
    held: usize,
}

#[derive(Default)]
struct Used {
    memory: usize,
    file: u64,
}

/// A layer's hint, at rest.
pub(crate) enum Resting {
    Here(Vec<u8>),
    File { at: u64, len: usize },
}

impl Spool {
    /// With a file for what is too large for memory; `make` is asked once. Without one ([`Spool::default`]) all stays in memory.
    pub fn new(make: impl Fn() -> io::Result<File> + Send + Sync + 'static) -> Spool {
        Spool::holding(HELD, make)
    }

    /// The same with so many bytes in memory.
    pub(crate) fn holding(held: usize, make: impl Fn() -> io::Result<File> + Send + Sync + 'static) -> Spool {
        let file = Filed { make: Box::new(make), made: OnceLock::new(), held };
        Spool { file: Some(file), used: Mutex::default() }
    }

    /// Lay a hint down.
    pub(crate) fn put(&self, bytes: Vec<u8>) -> Result<Resting, KeyError> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(to) = self.file.as_ref().filter(|to| used.memory + bytes.len() > to.held) else {
            used.memory += bytes.len();
            return Ok(Resting::Here(bytes));
        };
        let file = match to.made.get() {
            Some(file) => file,
            None => {
                let new = (to.make)()?;
                to.made.get_or_init(|| new)
            }
        };
        let (at, len) = (used.file, bytes.len());
        file.write_all_at(&bytes, at)?;
        used.file += len as u64;
        Ok(Resting::File { at, len })
    }

    /// A hint that was laid down here, byte by byte as it was.
    pub(crate) fn get(&self, resting: &Resting) -> Result<Vec<u8>, KeyError> {
        let mut bytes = match resting {
            Resting::Here(bytes) => bytes.clone(),
            Resting::File { at, len } => {
                let file = self.file.as_ref().and_then(|file| file.made.get());
                let file = file.ok_or_else(|| KeyError::Corrupt("a hint of another set".into()))?;
                let mut bytes = vec![0; *len];
                file.read_exact_at(&mut bytes, *at)?;
                bytes
            }
        };
        if mutation::active("hints-change-at-rest") {
            bytes.iter_mut().take(1).for_each(|byte| *byte ^= Seed::random().expose()[0] | 1);
        }
        Ok(bytes)
    }
}

impl std::fmt::Debug for Spool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Spool")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_memory_does_not_hold_comes_back_from_the_file() {
        const HELD: usize = 1 << 10;
        let spool = Spool::holding(HELD, tempfile::tempfile);
        let hint = |i: usize, len: usize| (0..len).map(|at| (at * 31 + i) as u8).collect::<Vec<u8>>();
        let lens = [HELD - 3, 4, 0, 1 << 16, 2, 5];
        let put = |(i, len): (usize, &usize)| spool.put(hint(i, *len)).unwrap();
        let laid: Vec<Resting> = lens.iter().enumerate().map(put).collect();
        let in_file = laid.iter().filter(|resting| matches!(resting, Resting::File { .. })).count();
        assert_eq!(in_file, 3, "three fit");
        for _ in 0..2 {
            for (i, (resting, len)) in laid.iter().zip(lens).enumerate().rev() {
                assert_eq!(spool.get(resting).unwrap(), hint(i, len), "hint {i}");
            }
        }
        assert!(Spool::default().get(&laid[3]).is_err(), "of another set");
    }

    #[test]
    fn without_a_file_all_stays_in_memory_and_a_disk_that_fails_is_named() {
        let spool = Spool::default();
        let laid = [spool.put(vec![1; HELD]).unwrap(), spool.put(vec![2; 3]).unwrap()];
        assert_eq!(spool.get(&laid[1]).unwrap(), [2; 3]);
        let full = Spool::new(|| Err(io::Error::other("the disk is full")));
        let error = full.put(vec![0; HELD + 1]).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "the disk is full");
        assert!(full.put(vec![0; HELD]).is_ok(), "what fits needs none");
    }
}
