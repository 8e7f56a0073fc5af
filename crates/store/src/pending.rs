//! Files that get their name when they are complete, and only where no other file has it.

use crate::error::{StoreError, io_at};
use crate::space::{Place, Space};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whether whoever wrote an unfinished file is gone. An empty one may have been made just now and not locked yet; it takes
/// no room.
pub(crate) fn is_abandoned(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    file.metadata().is_ok_and(|m| m.len() > 0) && file.try_lock().is_ok()
}

/// A file under a temporary name, removed when dropped before [`PendingFile::commit`].
pub struct PendingFile {
    file: Option<File>,
    path: PathBuf,
    what: String,
    space: Option<Arc<Space>>,
    written: u64,
}

impl PendingFile {
    fn temporary(path: &Path) -> PathBuf {
        path.with_extension("part")
    }

    /// Create beside its final name, mode 0600. `what` it is, for errors.
    pub(crate) fn create(
        path: &Path,
        what: String,
        space: Option<Arc<Space>>,
    ) -> Result<PendingFile, StoreError> {
        let temporary = Self::temporary(path);
        let file = match own_file(&temporary).map_err(io_at(&temporary))? {
            Some(file) => file,
            None => return Err(StoreError::Occupied { what: format!("an unfinished {what}") }),
        };
        space.iter().for_each(|s| s.begin_writing());
        Ok(PendingFile { file: Some(file), path: path.to_owned(), what, space, written: 0 })
    }

    /// Give it its final name, unless a file has that name: then it is dropped. The directory entry is synced so that it
    /// survives a crash; the contents carry checksums, and a damaged record is refused rather than used.
    pub fn commit(mut self) -> Result<(), StoreError> {
        if !name_once(&Self::temporary(&self.path), &self.path).map_err(io_at(&self.path))? {
            return Err(StoreError::Occupied { what: std::mem::take(&mut self.what) });
        }
        self.file = None; // it stays, and keeps its room
        let dir = self.path.parent().unwrap_or(Path::new("."));
        File::open(dir).and_then(|d| d.sync_all()).map_err(io_at(dir))
    }
}

/// An empty file at `path` that this process alone writes; none where another one does. What a dead process left there is
/// overwritten, but never a file that has another name as well: that one is complete.
fn own_file(path: &Path) -> io::Result<Option<File>> {
    loop {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600).open(path)?;
        // Shows that somebody is writing; see `is_abandoned`.
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            // A file system without locks: the journal's lock keeps other stores away.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let (ours, named) = (file.metadata()?, fs::metadata(path));
        if named.is_ok_and(|named| (named.dev(), named.ino()) == (ours.dev(), ours.ino())) {
            if ours.nlink() == 1 {
                // A file cut to nothing is written out when it is closed (ext4): keys need not be, and a new file is empty.
                if ours.len() > 0 {
                    file.set_len(0)?;
                }
                return Ok(Some(file));
            }
            fs::remove_file(path)?;
        }
        // Its writer named it before this process had the lock, or died between its two names: not this file.
    }
}

/// Rename a file or directory, unless something has the name `to`: then false, and nothing changed.
pub(crate) fn name_once(from: &Path, to: &Path) -> io::Result<bool> {
    match rename_noreplace(from, to) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(e) if unsupported(&e) => name_once_portably(from, to),
        other => other.map(|()| true),
    }
}

/// The same where the system cannot rename without replacing. Both ways claim the name in one step, which fails where it is
/// taken: a file by a second link to it, a directory by an empty one that a rename may replace (and only an empty one).
fn name_once_portably(from: &Path, to: &Path) -> io::Result<bool> {
    let directory = fs::symlink_metadata(from)?.is_dir();
    match if directory { fs::create_dir(to) } else { fs::hard_link(from, to) } {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => return Ok(false),
        other => other?,
    }
    if directory {
        fs::rename(from, to)?
    } else {
        fs::remove_file(from)?
    }
    Ok(true)
}

#[cfg(target_os = "linux")]
fn rename_noreplace(from: &Path, to: &Path) -> io::Result<()> {
    use std::ffi::CString;
    let [from, to] = [from, to].map(|path| CString::new(path.as_os_str().as_encoded_bytes()));
    let (from, to) = (from?, to?);
    // The call itself and not the C library's function, which older libraries lack.
    // SAFETY: both paths end in a zero byte and live until the call returns.
    let done = unsafe {
        let (here, flags) = (libc::AT_FDCWD, libc::RENAME_NOREPLACE);
        libc::syscall(libc::SYS_renameat2, here, from.as_ptr(), here, to.as_ptr(), flags)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
fn rename_noreplace(_: &Path, _: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// The kernel or the file system does not know the call or its flag.
fn unsupported(e: &io::Error) -> bool {
    let unknown = [libc::ENOSYS, libc::EINVAL, libc::ENOTSUP, libc::EPERM];
    e.kind() == ErrorKind::Unsupported || e.raw_os_error().is_some_and(|code| unknown.contains(&code))
}

impl Write for PendingFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let Some(space) = &self.space else { return file.write(buf) };
        let wanted = buf.len() as u64;
        space.take_disk(wanted)?;
        let result = file.write(buf);
        let written = *result.as_ref().unwrap_or(&0) as u64;
        if written < wanted {
            space.give_back(Place::Disk, wanted - written);
        }
        self.written += written;
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = fs::remove_file(Self::temporary(&self.path));
            self.space.iter().for_each(|s| s.give_back(Place::Disk, self.written));
        }
        self.space.iter().for_each(|s| s.end_writing());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(path: &Path, bytes: &[u8]) -> PendingFile {
        let mut file = PendingFile::create(path, "record 1".into(), None).unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn a_name_is_given_once_by_either_way_to_files_and_directories() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        for once in [name_once as fn(&Path, &Path) -> io::Result<bool>, name_once_portably] {
            fs::write(&to, "old").unwrap();
            fs::write(&from, "new").unwrap();
            assert!(!once(&from, &to).unwrap());
            assert_eq!((fs::read(&from).unwrap(), fs::read(&to).unwrap()), (b"new".into(), b"old".into()));
            fs::remove_file(&to).unwrap();
            assert!(once(&from, &to).unwrap());
            assert_eq!((from.exists(), fs::read(&to).unwrap()), (false, b"new".to_vec()));
            fs::remove_file(&to).unwrap();

            for empty in [true, false] {
                fs::create_dir(&from).unwrap();
                fs::write(from.join("x"), "new").unwrap();
                fs::create_dir(&to).unwrap();
                if !empty {
                    fs::write(to.join("x"), "old").unwrap();
                }
                assert!(!once(&from, &to).unwrap());
                assert!(from.join("x").exists() && to.join("x").exists() != empty);
                fs::remove_dir_all(&to).unwrap();
                assert!(once(&from, &to).unwrap());
                assert_eq!((from.exists(), fs::read(to.join("x")).unwrap()), (false, b"new".to_vec()));
                fs::remove_dir_all(&to).unwrap();
            }
            assert!(once(&from, &to).is_err(), "there is nothing to name");
        }
    }

    #[test]
    fn a_committed_file_is_never_replaced_or_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.keys");
        let first = written(&path, b"first");
        let busy = PendingFile::create(&path, "record 1".into(), None).err().unwrap();
        assert!(matches!(busy, StoreError::Occupied { .. }), "{busy}");
        first.commit().unwrap();
        let error = written(&path, b"second").commit().unwrap_err();
        assert!(matches!(error, StoreError::Occupied { .. }) && error.to_string().contains("record 1"));
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert!(!path.with_extension("part").exists());
        // A crash of the portable way between its two names leaves both.
        fs::hard_link(&path, path.with_extension("part")).unwrap();
        drop(written(&path, b"third"));
        assert_eq!(fs::read(&path).unwrap(), b"first");
        // What a dead process left unfinished is in nobody's way.
        fs::remove_file(&path).unwrap();
        fs::write(path.with_extension("part"), "longer than what comes").unwrap();
        written(&path, b"fourth").commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"fourth");
    }
}
