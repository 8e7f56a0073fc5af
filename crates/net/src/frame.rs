//! Frames: how a message looks on the wire.
//!
//! A message is cut into chunks of at most [`MAX_CHUNK`] bytes, each in its own frame, so that the receiver
//! works on one chunk while the next is on its way. A message has exactly one way to be cut: every chunk but the last is
//! full, and only an empty message has an empty chunk, one. Anything else is refused, so that the number of frames is
//! bounded by the bytes they carry. All integers are little-endian:
//!
//! | bytes | field |
//! |---|---|
//! | 0..2 | magic `pv` |
//! | 2 | format version, 1 |
//! | 3 | kind: 1 data, 2 heartbeat, 3 abort, 4 bye |
//! | 4 | flags: bit 0, first frame of its message; bit 1, the payload is in the checksum |
//! | 5 | bytes of the step name that follow the payload (first frame only), at most 96 |
//! | 6..8 | zero |
//! | 8..12 | step id |
//! | 12..16 | bytes of payload in this frame |
//! | 16..24 | sequence number of the frame in its direction |
//! | 24..32 | bytes of the whole message |
//! | 32..40 | checksum: XXH3-64, keyed by the sequence number, over bytes 0..32, payload (flag bit 1) and step name |
//!
//! The checksum finds accidents (and sender bugs); against an attacker on the wire there is TLS. Inside TLS the payload is
//! left out of it: the record's AES-GCM tag covers every bit already, and hashing it twice more would cost
//! a fifth of the processor time of a transfer.

mod decoder;

pub use decoder::Decoder;

use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Step;

/// Bytes of a frame header.
pub const HEADER_LEN: usize = 40;
/// Largest payload of one frame, in bytes. Also the most that a peer can make the receiver allocate at a time.
pub const MAX_CHUNK: usize = 1 << 20;
/// Frames from which on payload buffers are used again. A small message keeps its buffer, so it must not get a large one.
pub(crate) const LARGE: usize = MAX_CHUNK / 2;
/// Largest step name on the wire, in bytes; longer names are cut.
pub const MAX_NAME: usize = 96;

const MAGIC: [u8; 2] = *b"pv";
const VERSION: u8 = 1;
const FLAG_FIRST: u8 = 1;
const FLAG_SUMMED: u8 = 2;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A chunk of a message.
    Data,
    /// Nothing but a sign of life.
    Heartbeat,
    /// The sender gives up; the payload is its reason.
    Abort,
    /// The sender is done and closes.
    Bye,
}

/// Why bytes are not the next frame.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Fewer bytes than a header.
    #[error("the header has {found} of {HEADER_LEN} bytes")]
    Short {
        /// Bytes given.
        found: usize,
    },
    /// Not a privet frame.
    #[error("it does not start like a privet frame")]
    Magic,
    /// A format this build does not know.
    #[error("its format version is {found}, this build reads {VERSION}")]
    Version {
        /// The version in the header.
        found: u8,
    },
    /// Unknown kind, flag, or a non-zero reserved byte.
    #[error("its header has an unknown kind or flag")]
    Fields,
    /// Larger than any frame may be, or larger than its message.
    #[error("it claims {found} bytes of payload, the most possible is {max}")]
    Length {
        /// Bytes claimed.
        found: u64,
        /// Bytes possible.
        max: u64,
    },
    /// The content does not match the checksum.
    #[error("the checksum of frame {seq} does not match: bytes changed on the way")]
    Checksum {
        /// Sequence number of the frame.
        seq: u64,
    },
    /// A frame was lost, repeated, or overtaken.
    #[error("frame {expected} was due, frame {found} came: a frame was lost, repeated or overtaken")]
    Sequence {
        /// The number that was due.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// A payload of another size than its place in the message has.
    #[error("it has {found} bytes of payload, its place in the message has {due}")]
    Chunk {
        /// Bytes found.
        found: u32,
        /// Bytes due.
        due: u64,
    },
    /// Frames of different messages are mixed.
    #[error("a frame of another message came in the middle of a message")]
    Interleaved,
    /// The stream ended inside a frame.
    #[error("the connection ended in the middle of a frame")]
    Truncated,
}

/// A parsed frame header; see the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the frame is for.
    pub kind: Kind,
    /// Whether it starts a message.
    pub first: bool,
    /// Whether the checksum covers the payload.
    pub summed: bool,
    /// Bytes of step name after the payload.
    pub name_len: u8,
    /// Step id of the message.
    pub step: u32,
    /// Bytes of payload in this frame.
    pub len: u32,
    /// Sequence number in this direction.
    pub seq: u64,
    /// Bytes of the whole message.
    pub total: u64,
}

impl Header {
    /// Bytes that follow the header.
    fn body_len(&self) -> usize {
        self.len as usize + usize::from(self.name_len)
    }

    /// The header bytes for this payload and step name.
    pub fn encode(&self, payload: &[u8], name: &[u8]) -> [u8; HEADER_LEN] {
        let mut out = [0u8; HEADER_LEN];
        out[0..2].copy_from_slice(&MAGIC);
        out[2] = VERSION;
        out[3] = match self.kind {
            Kind::Data => 1,
            Kind::Heartbeat => 2,
            Kind::Abort => 3,
            Kind::Bye => 4,
        };
        out[4] = if self.first { FLAG_FIRST } else { 0 } | if self.summed { FLAG_SUMMED } else { 0 };
        out[5] = self.name_len;
        out[8..12].copy_from_slice(&self.step.to_le_bytes());
        out[12..16].copy_from_slice(&self.len.to_le_bytes());
        out[16..24].copy_from_slice(&self.seq.to_le_bytes());
        out[24..32].copy_from_slice(&self.total.to_le_bytes());
        let sum = checksum(&out, if self.summed { payload } else { &[] }, name, self.seq);
        out[32..40].copy_from_slice(&sum.to_le_bytes());
        out
    }
}

/// XXH3 over the payload, then over header, name and that hash: two passes, so that no copy is needed.
fn checksum(header: &[u8; HEADER_LEN], payload: &[u8], name: &[u8], seq: u64) -> u64 {
    let mut buf = [0u8; 32 + MAX_NAME + 8];
    buf[..32].copy_from_slice(&header[..32]);
    buf[32..32 + name.len()].copy_from_slice(name);
    let end = 32 + name.len() + 8;
    buf[end - 8..end].copy_from_slice(&xxh3_64_with_seed(payload, seq).to_le_bytes());
    xxh3_64_with_seed(&buf[..end], seq)
}

/// Parses a frame header without its body, bounding every length; the checksum is checked by [`Decoder`].
pub fn parse_header(bytes: &[u8]) -> Result<Header, FrameError> {
    let head: &[u8; HEADER_LEN] = bytes
        .get(..HEADER_LEN)
        .and_then(|b| b.try_into().ok())
        .ok_or(FrameError::Short { found: bytes.len() })?;
    if head[0..2] != MAGIC {
        return Err(FrameError::Magic);
    }
    if head[2] != VERSION {
        return Err(FrameError::Version { found: head[2] });
    }
    let kind = match head[3] {
        1 => Kind::Data,
        2 => Kind::Heartbeat,
        3 => Kind::Abort,
        4 => Kind::Bye,
        _ => return Err(FrameError::Fields),
    };
    if head[4] & !(FLAG_FIRST | FLAG_SUMMED) != 0 || head[5] as usize > MAX_NAME || head[6..8] != [0, 0] {
        return Err(FrameError::Fields);
    }
    let header = Header {
        kind,
        first: head[4] & FLAG_FIRST != 0,
        summed: head[4] & FLAG_SUMMED != 0,
        name_len: head[5],
        step: u32_at(head, 8),
        len: u32_at(head, 12),
        seq: u64_at(head, 16),
        total: u64_at(head, 24),
    };
    let max = header.total.min(MAX_CHUNK as u64);
    if u64::from(header.len) > max {
        return Err(FrameError::Length { found: header.len.into(), max });
    }
    Ok(header)
}

fn u32_at(b: &[u8; HEADER_LEN], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

fn u64_at(b: &[u8; HEADER_LEN], at: usize) -> u64 {
    u64::from(u32_at(b, at)) | u64::from(u32_at(b, at + 4)) << 32
}

/// A frame that passed every check a single frame can pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its header.
    pub header: Header,
    /// The sender's name for the step, printable; empty on later frames of a message.
    pub name: String,
    /// Its part of the message.
    pub payload: Vec<u8>,
}

/// Numbers and writes the frames of one direction.
#[derive(Debug)]
pub struct Encoder {
    seq: u64,
    summed: bool,
}

impl Default for Encoder {
    /// With the payload in the checksum.
    fn default() -> Self {
        Self { seq: 0, summed: true }
    }
}

impl Encoder {
    /// For a carrier that authenticates every bit itself: the checksum leaves the payload out.
    pub fn inside_tls() -> Self {
        Self { seq: 0, summed: false }
    }

    /// Header and step name for the chunk of `message` that starts at `offset`; see [`chunk_at`].
    pub fn data<'a>(
        &mut self,
        step: &'a Step,
        message: &[u8],
        offset: usize,
    ) -> ([u8; HEADER_LEN], &'a [u8]) {
        let chunk = chunk_at(message, offset);
        let first = offset == 0;
        let name = if first { cut(&step.name, MAX_NAME).as_bytes() } else { &[] };
        (self.header(Kind::Data, first, step.id, chunk, name, message.len() as u64), name)
    }

    /// Header of a frame that is no part of a message.
    pub fn control(&mut self, kind: Kind, payload: &[u8]) -> [u8; HEADER_LEN] {
        self.header(kind, true, 0, payload, &[], payload.len() as u64)
    }

    fn header(
        &mut self,
        kind: Kind,
        first: bool,
        step: u32,
        chunk: &[u8],
        name: &[u8],
        total: u64,
    ) -> [u8; 40] {
        let (len, name_len) = (chunk.len() as u32, name.len() as u8);
        let header = Header { kind, first, summed: self.summed, name_len, step, len, seq: self.seq, total };
        self.seq += 1;
        header.encode(chunk, name)
    }
}

/// The chunk of a message that starts at `offset`.
pub fn chunk_at(message: &[u8], offset: usize) -> &[u8] {
    &message[offset..message.len().min(offset + MAX_CHUNK)]
}

/// The longest prefix of `text` with at most `max` bytes.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Text from a peer, made safe for a terminal or a log: no control characters.
pub(crate) fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
