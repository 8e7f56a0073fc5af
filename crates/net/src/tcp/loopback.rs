//! Connections within a machine, without pacing.
//!
//! Some systems send by BBR, which paces what it sends. On loopback there is no link that could be congested, and each byte takes
//! three times the processor time so. A socket that was ever paced stays so: the choice comes before it connects.
//! Where the system does not offer it, all goes on with what there is.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// The control of congestion that every process may choose.
const RENO: &[u8] = b"reno";

/// Whoever calls a listener on loopback is answered without pacing.
pub(super) fn unpaced_calls(listener: &TcpListener) {
    if listener.local_addr().is_ok_and(|here| here.ip().is_loopback()) {
        unpaced(listener);
    }
}

/// Connects to `address`.
pub(super) fn connect(address: &SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    match address {
        SocketAddr::V4(address) if address.ip().is_loopback() => connect_here(address, timeout),
        _ => TcpStream::connect_timeout(address, timeout),
    }
}

fn unpaced(socket: &impl AsRawFd) {
    let (level, option, len) = (libc::IPPROTO_TCP, libc::TCP_CONGESTION, RENO.len() as libc::socklen_t);
    // SAFETY: reads the given number of bytes of a constant.
    unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, RENO.as_ptr().cast(), len) };
}

fn connect_here(address: &SocketAddrV4, timeout: Duration) -> io::Result<TcpStream> {
    // SAFETY: no memory arguments; a non-negative result is a descriptor that nobody else owns.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: fd was just opened and is owned by nothing else.
    let socket = TcpStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    unpaced(&socket);
    let place = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    };
    // It bounds the call as well.
    socket.set_write_timeout(Some(timeout))?;
    let len = size_of_val(&place) as libc::socklen_t;
    // SAFETY: reads one address, a live local, of the given length.
    let done = unsafe { libc::connect(socket.as_raw_fd(), (&raw const place).cast(), len) };
    if done < 0 {
        let error = io::Error::last_os_error();
        let late = error.raw_os_error() == Some(libc::EINPROGRESS);
        return Err(if late { ErrorKind::TimedOut.into() } else { error });
    }
    socket.set_write_timeout(None)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(socket: &TcpStream) -> Vec<u8> {
        let (mut name, mut len) = ([0u8; 16], 16);
        // SAFETY: writes at most the given number of bytes to a live local.
        let rc = unsafe {
            let (level, option) = (libc::IPPROTO_TCP, libc::TCP_CONGESTION);
            libc::getsockopt(socket.as_raw_fd(), level, option, name.as_mut_ptr().cast(), &mut len)
        };
        assert_eq!(rc, 0);
        name.split(|&b| b == 0).next().unwrap().to_vec()
    }

    #[test]
    fn both_ends_of_a_connection_within_the_machine_are_unpaced() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        unpaced_calls(&listener);
        let address = listener.local_addr().unwrap();
        let near = connect(&address, Duration::from_secs(5)).unwrap();
        let (far, _) = listener.accept().unwrap();
        assert_eq!([control(&near), control(&far)], [RENO, RENO]);
        drop(listener);
        let refused = connect(&address, Duration::from_secs(5)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    }
}
