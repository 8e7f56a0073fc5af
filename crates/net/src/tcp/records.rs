//! Records of TLS after the handshake, between the socket's bytes and the frames. All of TLS is `rustls`'s: its unbuffered connections open
//! records where they came, and write new ones where they wait for the socket.

#[cfg(test)]
mod tests;

use rustls::Error;
use rustls::unbuffered::{ConnectionState, EncryptError, UnbufferedStatus, WriteTraffic};

use super::handshake::{Side, Unbuffered, encode};
use super::out::Out;

/// Most bytes of content in a record.
pub(super) const CONTENT: usize = 1 << 14;
/// Most bytes of a record: its head, content, type, padding and tag.
const SEALED: usize = 5 + CONTENT + 256;
/// What a record has beside its content, nearly.
const BESIDE: usize = 64;
/// Encrypted bytes that are taken off the socket at a time.
const READ: usize = 256 * 1024;

/// What comes next.
pub(super) enum Record<'a> {
    /// Bytes for the protocol.
    Content(&'a [u8]),
    /// Not all of a record has come yet.
    Incomplete,
    /// The peer sends nothing more.
    End,
}

/// Both directions of a connection, and the encrypted bytes that came and are not opened.
pub(super) struct Records {
    side: Side,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// What was opened last, or on the way of something else.
    content: Vec<u8>,
    /// Whether `content` was handed on.
    taken: bool,
    /// The parts of a small message.
    small: Vec<u8>,
    ended: bool,
    closed: bool,
}

/// What a connection waits for.
enum Waits<T> {
    /// Something was opened.
    Content,
    /// The peer's next bytes.
    Peer(T),
    /// The peer has closed.
    Ended,
}

/// Lets `rustls` do what it has to do before it waits. Opened bytes are appended to `content`, records of its own to `out`. Where the peer's next
/// bytes are waited for, `send` may write more. Gives the bytes of `came` that are used up.
fn pass<H: Unbuffered, T>(
    connection: &mut H,
    came: &mut [u8],
    content: &mut Vec<u8>,
    out: &mut Out,
    mut send: impl FnMut(Option<WriteTraffic<'_, H::Data>>, &mut Out) -> Result<T, Error>,
) -> (usize, Result<Waits<T>, Error>) {
    let mut used = 0;
    loop {
        let UnbufferedStatus { mut discard, state } = connection.process(&mut came[used..]);
        let waits = match state {
            Ok(ConnectionState::ReadTraffic(mut read)) => loop {
                match read.next_record() {
                    None => break Ok(Some(Waits::Content)),
                    Some(Err(error)) => break Err(error),
                    Some(Ok(record)) => {
                        discard += record.discard;
                        content.extend_from_slice(record.payload);
                    }
                }
            },
            Ok(ConnectionState::EncodeTlsData(data)) => encode(data, out).map(|()| None),
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                Ok(None)
            }
            Ok(ConnectionState::WriteTraffic(write)) => {
                send(Some(write), out).map(|done| Some(Waits::Peer(done)))
            }
            Ok(ConnectionState::BlockedHandshake) => send(None, out).map(|done| Some(Waits::Peer(done))),
            Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Ok(Some(Waits::Ended)),
            Ok(_) => Err(Error::General("a record that no peer of this release sends".into())),
            Err(error) => Err(error),
        };
        used += discard;
        match waits {
            Ok(None) => {}
            Ok(Some(waits)) => return (used, Ok(waits)),
            Err(error) => return (used, Err(error)),
        }
    }
}

/// Appends records to `out`, which take about so many bytes.
fn append(
    out: &mut Out,
    about: usize,
    mut seal: impl FnMut(&mut [u8]) -> Result<usize, EncryptError>,
) -> Result<(), Error> {
    let mut room = about;
    loop {
        let sealed = seal(out.room(room));
        out.give_back(room - sealed.as_ref().map_or(0, |n| *n));
        match sealed {
            Ok(_) => return Ok(()),
            Err(EncryptError::InsufficientSize(size)) => room = size.required_size,
            Err(_) => return Err(Error::EncryptError),
        }
    }
}

/// Seals this content, in as many records as it takes.
fn seal_all<D>(write: Option<WriteTraffic<'_, D>>, content: &[u8], out: &mut Out) -> Result<(), Error> {
    let mut write = write.ok_or_else(|| Error::General("nothing may be sent before the handshake".into()))?;
    let about = content.len() + content.len().div_ceil(CONTENT) * BESIDE;
    append(out, about, |place| write.encrypt(content, place))
}

/// Tells the peer that nothing more comes.
fn say_goodbye<D>(write: Option<WriteTraffic<'_, D>>, out: &mut Out) -> Result<(), Error> {
    let Some(mut write) = write else { return Ok(()) };
    append(out, BESIDE, |place| write.queue_close_notify(place))
}

impl Records {
    /// Continues after a handshake, behind which `rest` came.
    pub fn new(side: Side, rest: &[u8]) -> Self {
        let (mut buffer, end) = (rest.to_vec(), rest.len());
        buffer.resize(READ.max(end + SEALED), 0);
        let (content, small) = (Vec::with_capacity(CONTENT), Vec::new());
        Self { side, buffer, start: 0, end, content, taken: true, small, ended: false, closed: false }
    }

    /// Appends records with the bytes of all `parts`, in order: one if they fit, else those of each part by themselves, so that
    /// large ones are encrypted from where they lie.
    pub fn seal(&mut self, parts: [&[u8]; 3], out: &mut Out) -> Result<(), Error> {
        if parts.iter().map(|part| part.len()).sum::<usize>() > CONTENT {
            return parts.iter().try_for_each(|part| self.seal_part(part, out));
        }
        let mut small = std::mem::take(&mut self.small);
        small.clear();
        parts.iter().for_each(|part| small.extend_from_slice(part));
        let sealed = self.seal_part(&small, out);
        self.small = small;
        sealed
    }

    fn seal_part(&mut self, content: &[u8], out: &mut Out) -> Result<(), Error> {
        if self.closed {
            return Err(Error::General("nothing may be sent after the goodbye".into()));
        }
        while !self.pass(out, Send::Content(content))? {}
        Ok(())
    }

    /// Tells the peer that nothing more comes.
    pub fn close(&mut self, out: &mut Out) {
        if !std::mem::replace(&mut self.closed, true) {
            // Without it the peer sees the connection end.
            while let Ok(false) = self.pass(out, Send::Goodbye) {}
        }
    }

    /// Tells the peer what was wrong with its records, if this side does.
    pub fn refuse(&mut self, out: &mut Out) {
        self.closed = true;
        let came = &mut self.buffer[self.start..self.end];
        // Without it the peer sees the connection end.
        match &mut self.side {
            Side::Client(connection) => say_why(connection, came, out),
            Side::Server(connection) => say_why(connection, came, out),
        }
    }

    /// Lets `rustls` do what there is; whether it waits for the peer and so has sent this.
    fn pass(&mut self, out: &mut Out, what: Send<'_>) -> Result<bool, Error> {
        if std::mem::take(&mut self.taken) {
            self.content.clear();
        }
        let (came, content) = (&mut self.buffer[self.start..self.end], &mut self.content);
        let (used, waits) = match &mut self.side {
            Side::Client(connection) => {
                pass(connection, came, content, out, |write, out| what.by(write, out))
            }
            Side::Server(connection) => {
                pass(connection, came, content, out, |write, out| what.by(write, out))
            }
        };
        self.start += used;
        let waits = waits?;
        self.ended |= matches!(waits, Waits::Ended);
        Ok(matches!(waits, Waits::Peer(())))
    }

    /// Where the next encrypted bytes belong; never empty once [`Records::next`] said `Incomplete`.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start > 0 {
            // Less than a record.
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.buffer[self.end..]
    }

    /// So many bytes came.
    pub fn filled(&mut self, n: usize) {
        self.end += n;
    }

    /// Opens what comes next. What the peer has to hear of it is appended to `out`.
    pub fn next(&mut self, out: &mut Out) -> Result<Record<'_>, Error> {
        let mut waits = self.ended;
        while !waits && (self.taken || self.content.is_empty()) {
            waits = self.pass(out, Send::Nothing)? || self.ended;
        }
        if !self.taken && !self.content.is_empty() {
            self.taken = true;
            return Ok(Record::Content(&self.content));
        }
        Ok(if self.ended { Record::End } else { Record::Incomplete })
    }
}

/// What is sent where something may be.
#[derive(Clone, Copy)]
enum Send<'a> {
    Nothing,
    Content(&'a [u8]),
    Goodbye,
}

impl Send<'_> {
    fn by<D>(self, write: Option<WriteTraffic<'_, D>>, out: &mut Out) -> Result<(), Error> {
        match self {
            Send::Nothing => Ok(()),
            Send::Content(content) => seal_all(write, content, out),
            Send::Goodbye => say_goodbye(write, out),
        }
    }
}

/// The alert of a connection that failed, if there is one.
pub(super) fn say_why<H: Unbuffered>(connection: &mut H, came: &mut [u8], out: &mut Out) {
    if let Ok(ConnectionState::EncodeTlsData(data)) = connection.process(came).state {
        // Without it the peer sees the connection end.
        let _ = encode(data, out);
    }
}
