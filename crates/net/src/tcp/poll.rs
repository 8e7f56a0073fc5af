//! Waiting for a socket or a wake-up, without spinning.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// An eventfd that another thread signals to interrupt a wait.
#[derive(Debug)]
pub(super) struct Waker(File);

impl Waker {
    pub fn new() -> io::Result<Self> {
        // SAFETY: eventfd has no memory arguments; a non-negative result is a descriptor nobody else owns.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: fd was just opened and is owned by nothing else.
        Ok(Self(File::from(unsafe { OwnedFd::from_raw_fd(fd) })))
    }

    /// Ends the current or next wait.
    pub fn wake(&self) {
        // The counter can only be full after 2^64 - 2 unread wake-ups, in which case the waiter wakes anyway.
        let _ = (&self.0).write(&1u64.to_ne_bytes());
    }

    fn clear(&self) {
        let _ = (&self.0).read(&mut [0; 8]);
    }
}

/// Waits until the socket is readable (if `read`), writable (if `write`) or broken, the waker was used, or the time
/// is over. Returns whether the socket wants to be read: data, end of stream or an error.
pub(super) fn wait(
    socket: &impl AsRawFd,
    read: bool,
    write: bool,
    waker: &Waker,
    timeout: Duration,
) -> io::Result<bool> {
    let events = if read { libc::POLLIN } else { 0 } | if write { libc::POLLOUT } else { 0 };
    let mut fds = [
        libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 },
        libc::pollfd { fd: waker.0.as_raw_fd(), events: libc::POLLIN, revents: 0 },
    ];
    let time = libc::timespec {
        tv_sec: timeout.as_secs().min(3600) as libc::time_t,
        tv_nsec: timeout.subsec_nanos() as libc::c_long,
    };
    // SAFETY: both pointers are to live locals, the count is the array's length, and no signal mask is given.
    let n = unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, &time, std::ptr::null()) };
    if n < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) };
    }
    if fds[1].revents != 0 {
        waker.clear();
    }
    Ok(fds[0].revents & (libc::POLLIN | libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0)
}

/// Bytes written to the socket that the peer's host has not acknowledged.
pub(super) fn unacknowledged(socket: &TcpStream) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ writes one int to the given live local.
    let rc = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) };
    if rc == 0 { bytes.max(0) as usize } else { 0 }
}
