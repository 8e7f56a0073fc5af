//! Runs a worker process and turns its death, or its silence, into a saved input and an error.

use crate::worker::Slot;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::xxh3_64;

/// How long one input may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// An input on which a target failed.
pub struct Finding {
    /// What happened.
    pub how: String,
    /// Where the input was saved.
    pub input: PathBuf,
}

/// Run `command`, which works on inputs in `slot`. A finding is saved below `folder`.
pub fn watch(command: &mut Command, slot: &Slot, folder: &Path, name: &str) -> io::Result<Option<Finding>> {
    let mut child = command.stdin(Stdio::null()).spawn()?;
    let Some(how) = wait(&mut child, slot)? else { return Ok(None) };
    let (_, bytes) = slot.get()?;
    let artifacts = folder.join("artifacts");
    std::fs::create_dir_all(&artifacts)?;
    let input = artifacts.join(format!("{name}-{:016x}", xxh3_64(&bytes)));
    std::fs::write(&input, bytes)?;
    Ok(Some(Finding { how, input }))
}

/// Wait for the worker; what went wrong, if something did.
fn wait(child: &mut Child, slot: &Slot) -> io::Result<Option<String>> {
    let (mut run, mut since) = (0, Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(death(status));
        }
        std::thread::sleep(Duration::from_millis(20));
        match slot.get() {
            Ok((now, _)) if now != run => (run, since) = (now, Instant::now()),
            _ if since.elapsed() < PATIENCE => {}
            _ => {
                child.kill()?;
                child.wait()?;
                return Ok(Some(format!("no end after {} s", PATIENCE.as_secs())));
            }
        }
    }
}

fn death(status: ExitStatus) -> Option<String> {
    (!status.success()).then(|| format!("the worker died: {status}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(script: &str, folder: &Path) -> Option<Finding> {
        let slot = Slot::open(&folder.join("slot")).unwrap();
        slot.put(1, b"the input", &mut Vec::new()).unwrap();
        watch(Command::new("sh").args(["-c", script]), &slot, folder, "target").unwrap()
    }

    #[test]
    fn a_worker_that_dies_leaves_its_input() {
        let folder = std::env::temp_dir().join(format!("privet-fuzz-test-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for script in ["exit 101", "kill -9 $$"] {
            let finding = watched(script, &folder).expect("a finding");
            assert_eq!(std::fs::read(finding.input).unwrap(), b"the input", "{script}");
        }
        assert!(watched("exit 0", &folder).is_none());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
