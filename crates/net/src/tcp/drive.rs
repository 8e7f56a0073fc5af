//! Who drives a connection: its I/O thread, or the protocol's thread while that sends a small message.
//!
//! To wake a thread costs more than to encrypt and send little. So where the I/O thread sleeps and nothing waits, the protocol's thread sends
//! by itself. Large messages are the I/O thread's: it encrypts them while the protocol computes. It alone receives.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::driver::{Driver, Next};
use super::poll;
use super::queues::{Farewell, LinkState};
use crate::NetError;
use crate::framed::Names;

/// A connection's driver. Whoever has the lock drives; nobody has it while the I/O thread sleeps.
pub(super) struct Drive {
    /// None once the connection is over and closed.
    driver: Mutex<Option<Driver>>,
    shared: Arc<LinkState>,
    names: Arc<Names>,
}

impl Drive {
    pub fn new(driver: Driver, shared: Arc<LinkState>, names: Arc<Names>) -> Self {
        Self { driver: Mutex::new(Some(driver)), shared, names }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Driver>> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The I/O thread: runs until the connection is over, and closes it.
    pub fn run(&self) {
        let _end = End(self);
        let result = self.serve();
        if let Err(error) = &result {
            // The protocol learns it first; telling the peer may take a moment.
            self.shared.fail(error.clone());
        }
        if let Some(driver) = &mut *self.lock() {
            match result {
                Ok(Farewell::Bye | Farewell::Sever) => {}
                Ok(Farewell::Abort(reason)) => driver.abort(&reason),
                Err(error) => driver.part(&error),
            }
        }
    }

    fn drive<T>(&self, f: impl FnOnce(&mut Driver) -> Result<T, NetError>) -> Result<T, NetError> {
        self.lock().as_mut().map_or_else(|| Err(self.names.closed()), f)
    }

    fn serve(&self) -> Result<Farewell, NetError> {
        let mut next = self.drive(Driver::begin)?;
        let socket = self.drive(|driver| Ok(driver.socket()))?;
        loop {
            let wait = match next {
                Next::Farewell(farewell) => return Ok(farewell),
                Next::Wait(wait) => wait,
            };
            let ready = poll::wait(&*socket, wait.read, wait.write, &self.shared.waker, wait.time)
                .map_err(|e| NetError::Io { doing: "waiting for the socket".into(), what: e.to_string() })?;
            next = self.drive(|driver| driver.go_on(wait.read, ready))?;
        }
    }

    /// The protocol's thread, which has queued a small message while the I/O thread slept: sends it. Gives whether nothing is left to be
    /// done; else the I/O thread is to be woken.
    pub fn send_now(&self) -> bool {
        // the I/O thread has the lock where it has just woken up, or is about to sleep, and sees the waker then
        let driver = self.driver.try_lock();
        driver.is_ok_and(|mut driver| driver.as_mut().is_some_and(Driver::send_queued))
    }
}

/// The end of the I/O thread. Nobody may wait for one that is gone, whatever ended it; and the connection is closed.
struct End<'a>(&'a Drive);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.shared.fail(self.0.names.closed());
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framed::{Link, Message};
    use crate::tcp::Options;
    use crate::tcp::link::SocketLink;
    use crate::tcp::wire::Wire;
    use crate::{Meter, Step};
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::thread;
    use std::time::{Duration, Instant};

    fn with_small_buffers(socket: &TcpStream) {
        for buffer in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
            let (bytes, len): (libc::c_int, _) = (4096, size_of::<libc::c_int>() as libc::socklen_t);
            let value = (&raw const bytes).cast();
            // SAFETY: reads the given number of bytes of a live local.
            let rc = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, buffer, value, len) };
            assert_eq!(rc, 0);
        }
    }

    /// A link, and the socket of a peer that reads when it is told to.
    fn link() -> (SocketLink, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        [&socket, &peer].into_iter().for_each(with_small_buffers);
        socket.set_nonblocking(true).unwrap();
        let shared = Arc::new(LinkState::new(None).unwrap());
        let names = Arc::new(Names { me: "a".into(), peer: "b".into(), address: "here".into() });
        let meter = Arc::new(Meter::default());
        // nothing but orders and the socket wakes the I/O thread
        let rarely = Duration::from_secs(600);
        let options = Options { heartbeat: rarely, silence: rarely, ..Options::default() };
        let driver = Driver::new(socket, Wire::plain(), shared.clone(), names.clone(), meter, options);
        let drive = Arc::new(Drive::new(driver, shared.clone(), names.clone()));
        let io = drive.clone();
        let io_thread = thread::spawn(move || io.run());
        (SocketLink::new(shared, drive, io_thread, false, names), peer)
    }

    fn push(link: &mut SocketLink, byte: u8, len: usize) {
        let message = Message {
            step: Step::new(1, "open"),
            payload: vec![byte; len],
            phase: 0,
            queued: Instant::now(),
        };
        link.push(message).unwrap();
    }

    /// What the socket does not take of the last message is sent by the I/O thread, which nobody calls again; and nothing of a message that
    /// waits is lost by the next one.
    #[test]
    fn what_a_full_socket_does_not_take_is_sent_later() {
        const LEN: usize = 40_000;
        for messages in [1, 2] {
            let (mut link, mut peer) = link();
            thread::sleep(Duration::from_millis(20)); // the I/O thread falls asleep
            for i in 0..messages {
                push(&mut link, 1 << i, LEN);
                thread::sleep(Duration::from_millis(5));
            }
            peer.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let mut came = vec![0; messages * LEN];
            peer.read_exact(&mut came).expect("all of it, without another message");
            for i in 0..messages {
                let bytes = came.iter().filter(|byte| **byte == 1 << i).count();
                // heads and names are not counted
                assert!(bytes > LEN - 500, "{bytes} of message {i} of {messages}");
            }
            link.sever(NetError::Io { doing: "ending".into(), what: "a test".into() });
        }
    }
}
