//! What the disk reads in a second.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Instant;

/// Bytes of the file that is read.
const BYTES: usize = 512 << 20;

/// Bytes a second that a file in `dir` is read with, after the system was told to forget it.
pub(super) fn rate(dir: &Path) -> std::io::Result<f64> {
    let path = dir.join(format!("privet-calibrate-{}", std::process::id()));
    let measured = write_and_read(&path);
    std::fs::remove_file(&path)?;
    measured
}

fn write_and_read(path: &Path) -> std::io::Result<f64> {
    let mut block = vec![0x5a_u8; 4 << 20];
    let mut file = File::create(path)?;
    for _ in 0..BYTES / block.len() {
        file.write_all(&block)?;
    }
    file.sync_all()?;
    let mut file = File::open(path)?;
    #[cfg(target_os = "linux")]
    // SAFETY: it reads and writes no memory of this process, and the descriptor is open.
    unsafe {
        libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED);
    }
    let start = Instant::now();
    while file.read(&mut block)? > 0 {}
    Ok(BYTES as f64 / start.elapsed().as_secs_f64())
}
