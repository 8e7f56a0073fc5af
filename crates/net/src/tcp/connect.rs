//! Making connections: dial, TLS handshake, greeting.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::drive::Drive;
use super::driver::Driver;
use super::handshake::Side;
use super::link::SocketLink;
use super::loopback;
use super::out::Out;
use super::queues::LinkState;
use super::records::{Record, Records};
use super::seats::Seat;
use super::tls::{self, PinnedPeers};
use super::wire::Wire;
use super::{Options, Pin, Protection, TcpChannel};
use crate::frame::{Encoder, Kind};
use crate::framed::{Framed, Names};
use crate::hello::MAX_HELLO;
use crate::{Fingerprint, Hello, Meter, NetError};

/// The most that one handshake may take.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);

/// Connects to the peer `expected` at `address`, retrying until `timeout` while nobody listens there yet.
///
/// Returns the channel and the peer's greeting, which equals `hello` but for the role.
pub fn dial(
    address: &str,
    protection: &Protection,
    expected: &Pin,
    hello: &Hello,
    options: Options,
    timeout: Duration,
) -> Result<(TcpChannel, Hello), NetError> {
    let socket = connect(address, timeout)?;
    let at = socket.peer_addr().map_or_else(|_| address.to_owned(), |a| a.to_string());
    let verifier = PinnedPeers::new(std::slice::from_ref(expected));
    let cipher = match protection {
        Protection::Tls(identity) => {
            Some((tls::client(identity, &verifier).map_err(|e| setup(&e))?, identity.fingerprint()))
        }
        Protection::InsecurePlain => None,
    };
    // The peer may be busy before it takes the call from its queue.
    let mut line = Line::new(socket, Some(&expected.name), at, cipher, verifier, timeout.max(HANDSHAKE))?;
    line.say(hello)?;
    let theirs = line.hear()?;
    if theirs.role != expected.name {
        let error = NetError::WrongRole { claimed: theirs.role, pinned: expected.name.clone() };
        line.refuse(&error.to_string());
        return Err(error);
    }
    hello.check(&theirs)?;
    let channel = line.into_channel(hello, &theirs, options, None)?;
    Ok((channel, theirs))
}

/// Opens the TCP connection, again and again while the peer is not up.
fn connect(address: &str, timeout: Duration) -> Result<TcpStream, NetError> {
    let start = Instant::now();
    let deadline = start + timeout;
    let mut nap = Duration::from_millis(10);
    loop {
        let resolved = address
            .to_socket_addrs()
            .map_err(|e| NetError::Address { address: address.into(), what: e.to_string() })?;
        let mut last: Option<io::Error> = None;
        for candidate in resolved {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            match loopback::connect(&candidate, left) {
                Ok(socket) => return Ok(socket),
                Err(e) => last = Some(e),
            }
        }
        if Instant::now() + nap >= deadline {
            let seconds = start.elapsed().as_secs();
            return Err(match last {
                Some(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
                    NetError::Refused { address: address.into(), seconds }
                }
                Some(e) if e.kind() != io::ErrorKind::TimedOut => {
                    failed(&format!("connecting to {address}"), &e)
                }
                _ => NetError::Timeout { doing: format!("connecting to {address}"), seconds },
            });
        }
        thread::sleep(nap);
        nap = (nap * 2).min(Duration::from_millis(250));
    }
}

/// A connection before its I/O thread: blocking, with a deadline.
pub(super) struct Line {
    stream: Timed,
    /// The peer's expected name; none before a caller has said its own.
    name: Option<String>,
    pub address: String,
    /// What this side showed, over TLS.
    certificate: Option<Fingerprint>,
    secure: Option<Secure>,
    pub verifier: Arc<PinnedPeers>,
}

/// TLS on a line.
struct Secure {
    records: Records,
    out: Out,
    /// Decrypted bytes that nobody has read.
    read: Vec<u8>,
}

impl Line {
    pub fn new(
        socket: TcpStream,
        name: Option<&str>,
        address: String,
        tls: Option<(Side, Fingerprint)>,
        verifier: Arc<PinnedPeers>,
        patience: Duration,
    ) -> Result<Self, NetError> {
        let ready = socket.set_nonblocking(false).and_then(|()| socket.set_nodelay(true));
        ready.map_err(|e| failed("preparing the socket", &e))?;
        let stream = Timed { socket, deadline: Instant::now() + patience, patience };
        let name = name.map(str::to_owned);
        let (side, certificate) = tls.unzip();
        let mut line = Self { stream, name, address, certificate, secure: None, verifier };
        if let Some(side) = side {
            line.handshake(side)?;
        }
        Ok(line)
    }

    /// What the peer is called in errors: its expected name, or only its address.
    fn label(&self) -> String {
        let address = &self.address;
        self.name.as_ref().map_or_else(|| address.clone(), |name| format!("{name} at {address}"))
    }

    fn handshake(&mut self, side: Side) -> Result<(), NetError> {
        match side.shake_hands(&mut self.stream) {
            Ok(records) => {
                self.secure = Some(Secure { records, out: Out::default(), read: Vec::new() });
                Ok(())
            }
            Err(error) => {
                self.drain();
                Err(self.explain("the TLS handshake", &error))
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(Secure { records, out, .. }) = &mut self.secure else { return self.stream.write_all(bytes) };
        records.seal([bytes, &[], &[]], out).map_err(tls::io_error)?;
        out.send_all(&mut self.stream)
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let Some(Secure { records, out, read }) = &mut self.secure else {
            return self.stream.read_exact(buffer);
        };
        while read.len() < buffer.len() {
            match records.next(out) {
                Ok(Record::Content(bytes)) => read.extend_from_slice(bytes),
                Ok(Record::Incomplete) => match self.stream.read(records.space())? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    n => records.filled(n),
                },
                Ok(Record::End) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) => {
                    records.refuse(out);
                    out.flush(&mut self.stream)?;
                    return Err(tls::io_error(error));
                }
            }
        }
        buffer.copy_from_slice(&read[..buffer.len()]);
        read.drain(..buffer.len());
        Ok(())
    }

    pub fn say(&mut self, hello: &Hello) -> Result<(), NetError> {
        let body = hello.encode();
        let mut message = (body.len() as u16).to_be_bytes().to_vec();
        message.extend_from_slice(&body);
        self.write(&message).map_err(|e| self.explain("the greeting", &e))
    }

    pub fn hear(&mut self) -> Result<Hello, NetError> {
        let peer = self.label();
        let mut prefix = [0; 2];
        self.read_exact(&mut prefix).map_err(|e| self.explain("the greeting", &e))?;
        // TLS records (handshake, alert) start like this; no greeting is that long.
        if matches!(prefix, [0x14..=0x17, 0x03]) {
            return Err(NetError::NotTls { peer, what: "it speaks TLS, this party does not".into() });
        }
        let size = usize::from(u16::from_be_bytes(prefix));
        if size > MAX_HELLO {
            return Err(NetError::BadHello { peer, what: "its greeting is too long".into() });
        }
        let mut body = vec![0; size];
        self.read_exact(&mut body).map_err(|e| self.explain("the greeting", &e))?;
        Hello::decode(&body).map_err(|what| NetError::BadHello { peer, what: what.into() })
    }

    /// Says why the conversation ends, in a frame that the peer's I/O thread reads first.
    pub fn refuse(&mut self, reason: &str) {
        let reason = crate::frame::cut(reason, 2000).as_bytes();
        let header = Encoder::default().control(Kind::Abort, reason);
        if self.write(&header).is_ok() && self.write(reason).is_ok() {
            self.drain();
        }
    }

    /// Lets the peer read what was sent before the socket closes: closing with unread data would reset the connection and
    /// could destroy the TLS alert that tells the peer what is wrong.
    pub fn drain(&mut self) {
        let socket = &self.stream.socket;
        let until = Instant::now() + Duration::from_millis(500);
        let _ = socket.shutdown(Shutdown::Write);
        let mut sink = [0; 4096];
        for _ in 0..64 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || socket.set_read_timeout(Some(left)).is_err() {
                return;
            }
            if !matches!((&*socket).read(&mut sink), Ok(n) if n > 0) {
                return;
            }
        }
    }

    fn explain(&self, what: &str, error: &io::Error) -> NetError {
        let peer = &self.label();
        if let (Some(ours), Some(error)) = (self.certificate, tls::tls_error(error)) {
            return self.verifier.explain(error, peer, ours);
        }
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let doing = format!("waiting for {peer} during {what}");
                NetError::Timeout { doing, seconds: self.stream.patience.as_secs() }
            }
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => {
                let name = self.name.clone().unwrap_or_else(|| "the peer".into());
                NetError::Closed { peer: name, address: self.address.clone(), step: format!("0 ({what})") }
            }
            _ => failed(&format!("{what} with {peer}"), error),
        }
    }

    pub fn into_channel(
        self,
        ours: &Hello,
        theirs: &Hello,
        options: Options,
        seat: Option<Seat>,
    ) -> Result<TcpChannel, NetError> {
        let starting = |e: io::Error| failed("starting the connection", &e);
        let socket = self.stream.socket;
        socket.set_read_timeout(None).map_err(starting)?;
        socket.set_write_timeout(None).map_err(starting)?;
        socket.set_nonblocking(true).map_err(starting)?;
        let names = Names { me: ours.role.clone(), peer: theirs.role.clone(), address: self.address };
        let (names, meter) = (Arc::new(names), Arc::new(Meter::default()));
        let shared = Arc::new(LinkState::new(seat).map_err(starting)?);
        let encrypted = self.secure.is_some();
        let wire = self.secure.map_or_else(Wire::plain, |s| Wire::tls(s.records, s.out, s.read));
        let driver = Driver::new(socket, wire, shared.clone(), names.clone(), meter.clone(), options);
        let drive = Arc::new(Drive::new(driver, shared.clone(), names.clone()));
        let io = drive.clone();
        let io_thread =
            thread::Builder::new().name("privet-net".into()).spawn(move || io.run()).map_err(starting)?;
        Ok(Framed { link: SocketLink::new(shared, drive, io_thread, encrypted, names.clone()), names, meter })
    }
}

/// A blocking socket on which everything together must be done by a deadline.
struct Timed {
    socket: TcpStream,
    deadline: Instant,
    patience: Duration,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        self.socket.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn failed(doing: &str, error: &io::Error) -> NetError {
    NetError::Io { doing: doing.into(), what: error.to_string() }
}

pub(super) fn setup(error: &rustls::Error) -> NetError {
    NetError::Io { doing: "setting up TLS".into(), what: error.to_string() }
}
