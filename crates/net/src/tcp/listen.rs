//! Taking calls: a listening port, and handshakes with several callers at once.
//!
//! Until its handshake is through, a caller may be anybody. So each gets a thread of its own and [`HANDSHAKE`] to
//! finish, and there are at most [`CALLERS`] of them; beyond that one has to go, the oldest of the address that has the
//! most. A stranger that fills the places from one machine thus only drops its own calls. In IPv6 an address here is the
//! network of 2^64 that one machine gets.
//!
//! Afterwards a caller is known, and has at most [`CONNECTIONS`] connections at a time (`seats`).

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::connect::{HANDSHAKE, Line, failed, setup};
use super::loopback;
use super::poll::{self, Waker};
use super::seats::{CONNECTIONS, Seats};
use super::tls::{self, PinnedPeers};
use super::{Options, Pins, Protection, TcpChannel};
use crate::{Fingerprint, Hello, NetError};

/// Callers of one listener that are not authenticated yet, at most. Each costs a thread and two descriptors.
const CALLERS: usize = 32;
/// A pause after the system could not give another descriptor, so that a service that goes on listening does not spin.
const SHORTAGE: Duration = Duration::from_millis(100);

/// A port that peers connect to.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    terms: Arc<Terms>,
    door: Arc<Door>,
}

/// Whom to let in, and how.
#[derive(Debug)]
struct Terms {
    protection: Protection,
    pins: Mutex<Arc<Pins>>,
    seats: Arc<Seats>,
}

impl Terms {
    fn pins(&self) -> MutexGuard<'_, Arc<Pins>> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    /// Listens on `address` (`host:port`; port 0 picks a free one) for the pinned peers.
    pub fn bind(address: &str, protection: Protection, pins: Pins) -> Result<Self, NetError> {
        let refuse = |e: io::Error| match e.kind() {
            io::ErrorKind::AddrInUse => NetError::PortInUse { address: address.into() },
            _ => NetError::Address { address: address.into(), what: e.to_string() },
        };
        let socket = TcpListener::bind(address).map_err(refuse)?;
        loopback::unpaced_calls(&socket);
        if protection.is_encrypted() {
            tls::warm_up();
        }
        socket.set_nonblocking(true).map_err(refuse)?;
        let door = Door { state: Mutex::default(), waker: Waker::new().map_err(refuse)? };
        let terms = Terms { protection, pins: Mutex::new(Arc::new(pins)), seats: Arc::default() };
        Ok(Self { socket, terms: Arc::new(terms), door: Arc::new(door) })
    }

    /// From now on these peers are let in, and no others. Whoever is connected stays so; a call that is being taken is judged by the
    /// pins from before.
    pub fn admit(&self, pins: Pins) {
        *self.terms.pins() = Arc::new(pins);
    }

    /// The address listened on, with the port that was chosen.
    pub fn local_address(&self) -> Result<String, NetError> {
        let address = self.socket.local_addr().map_err(|e| failed("asking for the port", &e))?;
        Ok(address.to_string())
    }

    /// Waits for a peer that is authenticated and has sent its greeting; the caller answers with [`Incoming::answer`].
    /// Callers do not wait for each other: whoever is through first is returned first, and those still at it are
    /// left for the next call.
    ///
    /// An error about one caller (a wrong certificate, no TLS) leaves the listener usable.
    pub fn accept(&self, timeout: Duration) -> Result<Incoming, NetError> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(result) = self.door.lock().finished.pop_front() {
                return result;
            }
            match self.socket.accept() {
                Ok((socket, address)) => {
                    self.door.greet(socket, address, &self.terms)?;
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e)
                    if matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) =>
                {
                    continue;
                }
                Err(e) => {
                    thread::sleep(SHORTAGE);
                    return Err(failed("accepting a connection", &e));
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let doing = "waiting for a peer to connect".into();
                return Err(NetError::Timeout { doing, seconds: timeout.as_secs() });
            }
            poll::wait(&self.socket, true, false, &self.door.waker, left)
                .map_err(|e| failed("waiting for a peer", &e))?;
        }
    }

    /// Accepts a peer that must send the same greeting, apart from its role.
    pub fn accept_as(
        &self,
        hello: &Hello,
        options: Options,
        timeout: Duration,
    ) -> Result<(TcpChannel, Hello), NetError> {
        let incoming = self.accept(timeout)?;
        let theirs = incoming.hello().clone();
        Ok((incoming.answer(hello, options)?, theirs))
    }
}

/// Hangs up on everybody who is not through, and waits for their threads, which then end at once.
impl Drop for Listener {
    fn drop(&mut self) {
        let callers = std::mem::take(&mut self.door.lock().callers);
        for caller in callers {
            caller.hang_up();
        }
    }
}

/// Callers between their call and [`Listener::accept`].
struct Door {
    state: Mutex<AtDoor>,
    waker: Waker,
}

#[derive(Default)]
struct AtDoor {
    /// Not through yet, the oldest first; at most [`CALLERS`].
    callers: Vec<Caller>,
    calls: u64,
    finished: VecDeque<Result<Incoming, NetError>>,
}

struct Caller {
    number: u64,
    address: SocketAddr,
    socket: TcpStream,
    thread: JoinHandle<()>,
}

impl Caller {
    /// Its thread waits for nothing but the socket, so it ends as soon as that does.
    fn hang_up(self) {
        let _ = self.socket.shutdown(Shutdown::Both);
        let _ = self.thread.join();
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        write!(f, "Door({} at it, {} through)", state.callers.len(), state.finished.len())
    }
}

impl Door {
    fn lock(&self) -> MutexGuard<'_, AtDoor> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a caller in, on a thread of its own.
    fn greet(
        self: &Arc<Self>,
        socket: TcpStream,
        address: SocketAddr,
        terms: &Arc<Terms>,
    ) -> Result<(), NetError> {
        self.make_room(neighbourhood(address.ip()));
        let starting = |e: io::Error| failed("taking in a caller", &e);
        let copy = socket.try_clone().map_err(starting)?;
        // Held until the caller is entered, so that its thread cannot be through before.
        let mut state = self.lock();
        state.calls += 1;
        let number = state.calls;
        let (door, terms) = (self.clone(), terms.clone());
        let body = move || {
            let result = greet(socket, address.to_string(), &terms);
            let mut state = door.lock();
            // Whoever hung up on the caller has taken it out, and knows.
            if let Some(place) = state.callers.iter().position(|c| c.number == number) {
                state.callers.remove(place);
                state.finished.push_back(result);
                door.waker.wake();
            }
        };
        let thread = thread::Builder::new().name("privet-greet".into()).spawn(body).map_err(starting)?;
        state.callers.push(Caller { number, address, socket: copy, thread });
        Ok(())
    }

    /// Sees to it that one more caller, from `address`, can be taken in.
    fn make_room(&self, address: IpAddr) {
        let gone = {
            let mut state = self.lock();
            if state.callers.len() < CALLERS {
                return;
            }
            let waiting = state.callers.iter().map(|c| neighbourhood(c.address.ip()));
            let place = most_crowded(waiting, address);
            state.callers.remove(place)
        };
        let peer = gone.address.to_string();
        gone.hang_up();
        self.lock().finished.push_back(Err(NetError::Crowded { peer, callers: CALLERS as u64 }));
    }
}

/// What one machine may be assumed to have to itself: an IPv4 address, or an IPv6 network of prefix length 64, in which a
/// machine takes any address it likes.
fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

/// The first of the address that occurs most often, counting the one that comes; of two alike the one that was there
/// first.
fn most_crowded(waiting: impl Iterator<Item = IpAddr>, comes: IpAddr) -> usize {
    let mut seen: HashMap<IpAddr, (usize, usize)> = HashMap::new();
    for (place, address) in waiting.enumerate() {
        let entry = seen.entry(address).or_insert((usize::from(address == comes), place));
        entry.0 += 1;
    }
    seen.into_values().max_by_key(|&(count, first)| (count, usize::MAX - first)).map_or(0, |(_, first)| first)
}

/// Authenticates a caller and hears its greeting.
fn greet(socket: TcpStream, address: String, terms: &Terms) -> Result<Incoming, NetError> {
    let pins = terms.pins().clone();
    let verifier = PinnedPeers::new(&pins);
    let cipher = match &terms.protection {
        Protection::Tls(identity) => {
            Some((tls::server(identity, &verifier).map_err(|e| setup(&e))?, identity.fingerprint()))
        }
        Protection::InsecurePlain => None,
    };
    let mut line = Line::new(socket, None, address, cipher, verifier, HANDSHAKE)?;
    let hello = line.hear()?;
    let names: Vec<&str> = match &terms.protection {
        Protection::Tls(_) => line.verifier.names(),
        Protection::InsecurePlain => pins.iter().map(|p| p.name.as_str()).collect(),
    };
    if !names.contains(&hello.role.as_str()) {
        let (claimed, pinned) = (hello.role.clone(), names.join("`, `"));
        let error = NetError::WrongRole { claimed, pinned };
        line.refuse(&error.to_string());
        return Err(error);
    }
    Ok(Incoming { line, hello, seats: terms.seats.clone() })
}

/// A peer that is authenticated and has said what it wants.
pub struct Incoming {
    line: Line,
    hello: Hello,
    seats: Arc<Seats>,
}

impl Incoming {
    /// The peer's greeting; its role is one that is pinned for its certificate.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// The certificate that the peer has shown; none on a plain connection.
    pub fn certificate(&self) -> Option<Fingerprint> {
        self.line.verifier.accepted()
    }

    /// The peer's address.
    pub fn address(&self) -> &str {
        &self.line.address
    }

    /// Whose connections are counted together: peers may have a name alike, and never a certificate.
    fn whose(&self) -> String {
        let name = &self.hello.role;
        self.certificate().map_or_else(|| name.clone(), |certificate| format!("{name} {certificate}"))
    }

    /// Greets back. Where the greetings differ, both sides get the same error. A place that has [`CONNECTIONS`] already is
    /// turned away.
    pub fn answer(mut self, hello: &Hello, options: Options) -> Result<TcpChannel, NetError> {
        let Some(seat) = self.seats.take(&self.whose()) else {
            let error = NetError::TooMany { peer: self.hello.role.clone(), most: CONNECTIONS as u64 };
            self.refuse(hello, &error.to_string());
            return Err(error);
        };
        self.line.say(hello)?;
        if let Err(error) = hello.check(&self.hello) {
            self.line.drain();
            return Err(error);
        }
        self.line.into_channel(hello, &self.hello, options, Some(seat))
    }

    /// Turns the peer away; `reason` must be public.
    pub fn refuse(mut self, hello: &Hello, reason: &str) {
        // The greeting repeats the peer's own terms, so that it reads on to the reason.
        let echo = Hello { role: hello.role.clone(), ..self.hello.clone() };
        if self.line.say(&echo).is_ok() {
            self.line.refuse(reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_the_most_crowded_address_goes() {
        let address = |n: u8| IpAddr::from([10, 0, 0, n]);
        let picked =
            |waiting: &[u8], comes| most_crowded(waiting.iter().map(|&n| address(n)), address(comes));
        assert_eq!(picked(&[1, 2, 2, 1, 2], 3), 1);
        assert_eq!(picked(&[1, 2, 2, 1], 1), 0, "the one that comes counts");
        assert_eq!(picked(&[1, 2, 2, 1], 2), 1);
        assert_eq!(picked(&[1, 2, 3], 4), 0, "of as many addresses as callers the oldest");
        assert_eq!(picked(&[3, 2, 1], 1), 2);
    }

    #[test]
    fn a_machine_with_a_whole_ipv6_network_counts_once() {
        let of = |text: &str| neighbourhood(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"), "IPv4 through a socket for both");
        assert_ne!(of("::ffff:10.0.0.1"), of("::ffff:10.0.0.2"));
        let strangers = (1..=8).map(|n| of(&format!("2001:db8::{n}")));
        let waiting: Vec<IpAddr> = [of("10.0.0.1")].into_iter().chain(strangers).collect();
        assert_eq!(most_crowded(waiting.iter().copied(), of("10.0.0.2")), 1, "the first of the eight");
    }
}
