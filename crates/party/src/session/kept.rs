//! Whose checkpoints stay: nobody says that a training is over, so those of old ones go when a new one begins.

use super::checkpoint::trainings;
use super::control::Id;
use crate::store::hex;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// When a training was last heard of. In order, those that can be missed first: whatever took no step has nothing that could
/// not be begun again, however new it is.
fn worth(files: &[PathBuf]) -> (bool, SystemTime) {
    let step = |f: &PathBuf| f.file_stem()?.to_str()?.parse::<u64>().ok();
    let written = |f: &PathBuf| fs::metadata(f)?.modified();
    let last = files.iter().filter_map(|f| written(f).ok()).max();
    (files.iter().filter_map(step).any(|step| step > 0), last.unwrap_or(SystemTime::UNIX_EPOCH))
}

/// Remove checkpoints below `dir` until those of `kept` trainings are left, with `running`, which always stays. Gives whose
/// were removed. A crash leaves some of them, for the next time.
pub fn forget_old(dir: &Path, running: Id, kept: usize) -> io::Result<Vec<Id>> {
    let mut others = trainings(dir)?;
    others.retain(|(training, _)| *training != running);
    others.sort_by_cached_key(|(_, files)| worth(files));
    let beyond = others.len().saturating_sub(kept.saturating_sub(1));
    let mut removed = Vec::new();
    for (training, _) in others.drain(..beyond) {
        remove(dir, training)?;
        removed.push(training);
    }
    Ok(removed)
}

/// Remove the checkpoints of a training below `dir`.
pub fn remove(dir: &Path, training: Id) -> io::Result<()> {
    fs::remove_dir_all(dir.join(hex(&training.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const NOW: Duration = Duration::from_secs(1_700_000_000);

    /// A training's files, by step and age in seconds.
    fn written(dir: &Path, training: u8, files: &[(u64, u64)]) {
        let dir = dir.join(hex(&[training; 16]));
        fs::create_dir(&dir).unwrap();
        for (step, age) in files {
            let path = dir.join(format!("{step}.checkpoint"));
            let file = fs::File::create(path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + NOW - Duration::from_secs(*age)).unwrap();
        }
    }

    fn left(dir: &Path) -> Vec<u8> {
        trainings(dir).unwrap().into_iter().map(|(training, _)| training.0[0]).collect()
    }

    #[test]
    fn those_without_a_step_go_first_then_the_oldest_and_never_the_running_one() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        fs::create_dir(dir.join("other things")).unwrap();
        written(dir, 1, &[(4, 500), (6, 100)]);
        written(dir, 2, &[(4, 300), (6, 200)]);
        written(dir, 3, &[(0, 5)]);
        // What a crash left of one that was being removed.
        written(dir, 4, &[]);
        written(dir, 5, &[(0, 900)]);
        written(dir, 6, &[(2, 400)]);
        let running = Id([5; 16]);
        let forget = |kept| -> Vec<u8> {
            forget_old(dir, running, kept).unwrap().into_iter().map(|training| training.0[0]).collect()
        };
        assert_eq!((forget(6), left(dir)), (vec![], vec![1, 2, 3, 4, 5, 6]));
        assert_eq!((forget(4), left(dir)), (vec![4, 3], vec![1, 2, 5, 6]));
        assert_eq!((forget(2), left(dir)), (vec![6, 2], vec![1, 5]));
        assert_eq!((forget(1), left(dir)), (vec![1], vec![5]));
        assert_eq!((forget(1), left(dir)), (vec![], vec![5]));
        assert!(dir.join("other things").exists(), "what is no training's stays");
    }
}
