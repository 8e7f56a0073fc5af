//! What parts of a transfer take by themselves, in processor seconds for 10^9 bytes, measured in this process.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, LessSafeKey, Nonce, UnboundKey};
use serde_json::{Value, json};

const RECORD: usize = 16 << 10;
const CHUNK: usize = 256 << 10;
const BYTES: usize = 1 << 30;

/// Processor seconds of this process so far, of the system's work for it as well.
pub fn cpu_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec to a live local.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// As `privet` has it: memory that is new each time would cost more than what is measured.
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: tuning parameters of the C allocator, set while no other thread runs.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 30);
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        libc::mallopt(libc::M_TOP_PAD, 64 << 20);
    }
}

/// To three digits behind the point.
pub fn rounded(x: f64) -> f64 {
    (x * 1e3).round() / 1e3
}

fn per_gb(step: usize, mut work: impl FnMut()) -> f64 {
    work();
    let (start, times) = (cpu_s(), BYTES / step);
    (0..times).for_each(|_| work());
    rounded((cpu_s() - start) / ((times * step) as f64 / 1e9))
}

/// One line with all of them.
pub fn measure() -> Value {
    json!({
        "processor_s_per_gb_of": {
            "seal_aes_128_gcm": seal(&AES_128_GCM),
            "seal_aes_256_gcm": seal(&AES_256_GCM),
            "copy_in_cache": copy(CHUNK),
            "copy_in_memory": copy(256 << 20),
            "fresh_pages": fresh(),
            "socket": socket(None),
            "socket_unpaced": socket(Some(b"reno")),
            "file": file(),
        }
    })
}

/// Records from one place in a cache to another.
fn seal(algorithm: &'static Algorithm) -> f64 {
    let Ok(key) = UnboundKey::new(algorithm, &vec![7; algorithm.key_len()]) else { return f64::NAN };
    let (key, content) = (LessSafeKey::new(key), vec![1; CHUNK]);
    let (mut sealed, mut tag, mut number) = (vec![0; CHUNK], [0; 16], 0u64);
    per_gb(CHUNK, || {
        for (from, to) in content.chunks(RECORD).zip(sealed.chunks_mut(RECORD)) {
            number += 1;
            let mut nonce = [0; 12];
            nonce[..8].copy_from_slice(&number.to_le_bytes());
            let nonce = Nonce::assume_unique_for_key(nonce);
            let done = key.seal_out_of_place_scatter(nonce, Aad::empty(), from, to, &[], &mut tag);
            assert!(done.is_ok());
        }
    })
}

fn copy(len: usize) -> f64 {
    let (from, mut to) = (vec![1u8; len], vec![0u8; len]);
    per_gb(len, || std::hint::black_box(&mut to).copy_from_slice(std::hint::black_box(&from)))
}

/// Memory that the system has to find and clear.
fn fresh() -> f64 {
    per_gb(1 << 20, || {
        let mut map = std::ptr::null_mut();
        // SAFETY: a private mapping of the kernel's choice, written within its length and undone.
        unsafe {
            let (protection, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            map = libc::mmap(map, 1 << 20, protection, flags, -1, 0);
            if map != libc::MAP_FAILED {
                (0..1 << 20).step_by(4096).for_each(|at| *map.cast::<u8>().add(at) = 1);
                libc::munmap(map, 1 << 20);
            }
        }
    })
}

/// Loopback TCP, both ends, with the system's control of congestion or another, which has to be chosen before they connect.
fn socket(control: Option<&[u8]>) -> f64 {
    let choose = |socket: &TcpListener| {
        let Some(name) = control else { return };
        let (level, option, len) = (libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.len() as libc::socklen_t);
        // SAFETY: reads the given number of bytes of a live slice.
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, name.as_ptr().cast(), len) };
    };
    let run = || -> std::io::Result<f64> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        choose(&listener);
        let mut near = TcpStream::connect(listener.local_addr()?)?;
        let (mut far, _) = listener.accept()?;
        let start = cpu_s();
        let reader = thread::spawn(move || {
            let mut buffer = vec![0; CHUNK];
            while near.read(&mut buffer).is_ok_and(|n| n > 0) {}
        });
        let bytes = vec![1; CHUNK];
        (0..BYTES / CHUNK).try_for_each(|_| far.write_all(&bytes))?;
        drop(far);
        let _ = reader.join();
        Ok(rounded((cpu_s() - start) / (BYTES as f64 / 1e9)))
    };
    run().unwrap_or(f64::NAN)
}

/// A new file, into the page cache.
fn file() -> f64 {
    let path = std::env::temp_dir().join(format!("net_bench.{}", std::process::id()));
    let bytes = vec![1; CHUNK];
    let seconds = File::create(&path).map(|mut file| {
        let _ = std::fs::remove_file(&path);
        per_gb(CHUNK, || assert!(file.write_all(&bytes).is_ok()))
    });
    seconds.unwrap_or(f64::NAN)
}
