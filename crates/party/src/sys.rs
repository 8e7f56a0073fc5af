//! What the operating system knows: memory, disks, limits, processor.

use std::ffi::CString;
use std::path::Path;

/// Peak resident memory of this process so far, bytes.
pub fn peak_rss_bytes() -> Option<u64> {
    proc_kib("/proc/self/status", "VmHWM")
}

/// The same of another process of this user.
pub fn peak_rss_bytes_of(pid: u32) -> Option<u64> {
    proc_kib(&format!("/proc/{pid}/status"), "VmHWM")
}

/// Processor time that a process has used so far, of its own and of the system for it, seconds. Of a child that has not been
/// waited for, or of this process.
pub fn cpu_seconds(pid: u32) -> Option<f64> {
    // not /proc/PID/stat, which counts in hundredths of a second
    #[cfg(target_os = "linux")]
    // SAFETY: both functions write what they are given a place for, and the clock is used only where there is one.
    unsafe {
        let mut clock: libc::clockid_t = 0;
        let mut time: libc::timespec = std::mem::zeroed();
        if libc::clock_getcpuclockid(pid.try_into().ok()?, &mut clock) != 0
            || libc::clock_gettime(clock, &mut time) != 0
        {
            return None;
        }
        Some(time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        None
    }
}

/// Memory of the machine, bytes.
pub fn total_memory_bytes() -> Option<u64> {
    proc_kib("/proc/meminfo", "MemTotal")
}

/// Memory that can be had without swapping, bytes.
pub fn available_memory_bytes() -> Option<u64> {
    proc_kib("/proc/meminfo", "MemAvailable")
}

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// The processor's name.
pub fn cpu_name() -> String {
    cpuinfo("model name").unwrap_or_else(|| std::env::consts::ARCH.into())
}

/// Those of `wanted` that the processor has (names as in Linux's `/proc/cpuinfo`).
pub fn cpu_features(wanted: &[&'static str]) -> Vec<&'static str> {
    let flags = cpuinfo("flags").unwrap_or_default();
    let flags: Vec<&str> = flags.split_whitespace().collect();
    wanted.iter().filter(|w| flags.contains(w)).copied().collect()
}

/// Bytes that this user can still write on the disk of `path`.
pub fn disk_free_bytes(path: &Path) -> Option<u64> {
    let path = CString::new(path.as_os_str().as_encoded_bytes()).ok()?;
    let mut stat = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: `path` ends in a zero byte, `stat` is writable and large enough, and zeroed bytes are a valid value.
    let stat = unsafe {
        if libc::statvfs(path.as_ptr(), stat.as_mut_ptr()) != 0 {
            return None;
        }
        stat.assume_init()
    };
    #[allow(clippy::unnecessary_cast, reason = "the fields have other widths on other systems")]
    Some((stat.f_bavail as u64).saturating_mul(stat.f_frsize as u64))
}

/// Files and sockets that this process may have open at once.
pub fn open_file_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the answer.
    let ok = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
    #[allow(clippy::unnecessary_cast, reason = "rlim_t has other widths on other systems")]
    ok.then_some(limit.rlim_cur as u64)
}

/// Whether something (NTP, the hypervisor) keeps the clock right, as far as the system knows.
pub fn clock_synchronised() -> Option<bool> {
    // SAFETY: all-zero bytes are a valid `timex`, which asks for the state and changes nothing.
    let state = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        libc::adjtimex(&mut timex)
    };
    (state >= 0).then_some(state != libc::TIME_ERROR)
}

/// True when the CUDA driver's library can be loaded.
pub fn cuda_present() -> bool {
    // SAFETY: the name is a valid C string; loading the driver library runs only its own constructors. The
    // handle is kept, because the driver does not support being unloaded.
    unsafe { !libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL).is_null() }
}

fn proc_kib(file: &str, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn cpuinfo(key: &str) -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|l| l.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

/// Have the allocator keep what is freed instead of giving it back to the system each time.
///
/// A run allocates and frees tensors of the same sizes over and over; fresh pages cost a fault and zeroing
/// by the kernel each, which is as much time as many gates take. Peak memory stays the same. All threads share one heap: what one
/// freed another may have, where heaps of their own took a party 100 MB more of 2 GB.
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: tuning parameters of the C allocator, set before other threads start.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 30);
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        libc::mallopt(libc::M_TOP_PAD, 64 << 20);
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Give back what is free now all the same: once much was freed that nothing of its size follows.
pub fn give_back_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the C allocator looks for whole pages that are free, and locks what it looks through.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_plausible() {
        assert!(cores() >= 1);
        let used = cpu_seconds(std::process::id());
        assert!(used.is_some_and(|s| s > 0.0) || !cfg!(target_os = "linux"), "{used:?}");
        if cfg!(target_os = "linux") {
            let peak = peak_rss_bytes().unwrap();
            assert!(peak > 100_000 && peak < total_memory_bytes().unwrap(), "{peak}");
            assert!(available_memory_bytes().unwrap() <= total_memory_bytes().unwrap());
        }
        assert!(disk_free_bytes(Path::new("/")).is_some());
        assert_eq!(disk_free_bytes(Path::new("/no/such/place")), None);
        assert!(open_file_limit().unwrap() > 3);
    }
}
