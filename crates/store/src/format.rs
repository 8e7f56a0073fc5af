//! The record format: what a party is given for one run, in a file or down a channel, and reads once.
//!
//! ```text
//! header   128 bytes  magic, version, party, session, index, plan hash, the party's seed, name of the set, checksum
//! frames              each: checksum (8 bytes), then the bytes; lengths follow from the plan
//! trailer   32 bytes  magic, frames, bytes before the trailer, checksum
//! ```
//! All numbers are little endian. Checksums are CRC-64/NVME; a frame's is XORed with a number made of the
//! header's checksum and the frame's place, so that they find damage, and a frame moved within a record or
//! between records. They are no authentication: records travel over TLS and rest in the party's own
//! directory, mode 0600.

use crate::held::Pieces;
pub use crate::mapped::Frames;
use crate::mapped::{Buffered, Mapped};

use crate::names::{SessionName, hex};
use crate::space::Unnamed;
use crc_fast::{CrcAlgorithm, checksum};
use privet_prg::Seed;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use thiserror::Error;
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"PRIVKEY\0";
const TRAILER: &[u8; 8] = b"PRIVEND\0";
const VERSION: u32 = 3;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 128;
/// Bytes of the trailer.
pub const TRAILER_BYTES: usize = 32;

/// What a record belongs to. Two records never share all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordId {
    /// The session.
    pub session: SessionName,
    /// Number within the session.
    pub index: u64,
    /// The party it is for.
    pub party: u8,
    /// The plan it was dealt for.
    pub plan: [u8; 32],
}

/// Why a record is refused.
#[derive(Debug, Error)]
pub enum FormatError {
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Not a record at all.
    #[error("this is no key record of privet (it starts with other bytes)")]
    NotARecord,
    /// Made by another version.
    #[error("the key record has format {found}, this version reads {read}: deal new keys with this version")]
    Version {
        /// Its format.
        found: u32,
        /// What this version reads.
        read: u32,
    },
    /// The header or trailer does not match its checksum.
    #[error("the key record's {0} is damaged: deal new keys")]
    Damaged(&'static str),
    /// The end is missing.
    #[error("the key record is truncated ({found} bytes): writing it was cut off; deal new keys")]
    Truncated {
        /// Bytes there are.
        found: u64,
    },
    /// Fewer frames, or shorter ones, than are asked for.
    #[error("the key record ends before the plan does: deal new keys")]
    EndsEarly,
    /// A frame does not match its checksum.
    #[error("frame {0} of the key record is damaged: the disk or a copy changed it; deal new keys")]
    Frame(u64),
    /// A record of something else.
    #[error(
        "the key record belongs to another {what} (found {found}, wanted {wanted}): put back the right file"
    )]
    Foreign {
        /// What differs.
        what: &'static str,
        /// What the record says.
        found: String,
        /// What is wanted.
        wanted: String,
    },
}

/// Header of a record: its identity and the secret seed that goes with it.
pub struct Header {
    /// Whose it is.
    pub id: RecordId,
    /// Public name of the set it belongs to: the same in the records of all parties that were made together, and in no other
    /// record. Parties compare it before they use theirs.
    pub set: [u8; 16],
    /// A secret seed of this party for this record; what is drawn from it is the family's.
    pub seed: Seed,
}

impl Header {
    /// The 128 bytes. Hold a secret.
    pub fn encode(&self) -> Zeroizing<[u8; HEADER_BYTES]> {
        let mut h = Zeroizing::new([0; HEADER_BYTES]);
        h[..8].copy_from_slice(MAGIC);
        h[8..12].copy_from_slice(&VERSION.to_le_bytes());
        h[12] = self.id.party;
        h[16..32].copy_from_slice(&self.id.session);
        h[32..40].copy_from_slice(&self.id.index.to_le_bytes());
        h[40..72].copy_from_slice(&self.id.plan);
        h[72..88].copy_from_slice(self.seed.expose());
        h[88..104].copy_from_slice(&self.set);
        let sum = crc(&h[..120]);
        h[120..].copy_from_slice(&sum.to_le_bytes());
        h
    }

    /// Parse untrusted bytes.
    pub fn decode(h: &[u8; HEADER_BYTES]) -> Result<Header, FormatError> {
        if &h[..8] != MAGIC {
            return Err(FormatError::NotARecord);
        }
        let found = u32::from_le_bytes(array(&h[8..12]));
        if found != VERSION {
            return Err(FormatError::Version { found, read: VERSION });
        }
        if crc(&h[..120]) != u64::from_le_bytes(array(&h[120..])) {
            return Err(FormatError::Damaged("header"));
        }
        let id = RecordId {
            session: array(&h[16..32]),
            index: u64::from_le_bytes(array(&h[32..40])),
            party: h[12],
            plan: array(&h[40..72]),
        };
        Ok(Header { id, set: array(&h[88..104]), seed: Seed::from_bytes(array(&h[72..88])) })
    }
}

fn array<const N: usize>(b: &[u8]) -> [u8; N] {
    let mut a = [0; N];
    a.copy_from_slice(b);
    a
}

fn crc(data: &[u8]) -> u64 {
    checksum(CrcAlgorithm::Crc64Nvme, data)
}

/// The checksum that a header states of its first 120 bytes. (Of all 128 bytes it would be useless: the CRC of bytes
/// that end with their own CRC is the same for all.)
fn stated_crc(h: &[u8; HEADER_BYTES]) -> u64 {
    u64::from_le_bytes(array(&h[120..]))
}

/// Checksum of frame number `frame` of the record whose header has checksum `base`. The factor (2^64 over
/// the golden ratio) spreads neighbouring numbers over all bits.
fn frame_crc(base: u64, frame: u64, data: &[u8]) -> u64 {
    crc(data) ^ base ^ (frame + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// A writer that can keep a frame's buffer instead of copying it.
pub trait RecordSink: Write {
    /// Take a frame's bytes; leaves a buffer with any contents.
    fn put(&mut self, frame: &mut Vec<u8>) -> std::io::Result<()>;
}

/// Writes one record.
pub struct RecordWriter<W> {
    out: W,
    base: u64,
    frames: u64,
    bytes: u64,
}

impl<W: Write> RecordWriter<W> {
    /// Start a record.
    pub fn new(mut out: W, header: &Header) -> std::io::Result<Self> {
        let h = header.encode();
        out.write_all(&h[..])?;
        Ok(RecordWriter { out, base: stated_crc(&h), frames: 0, bytes: HEADER_BYTES as u64 })
    }

    /// Append a frame.
    pub fn frame(&mut self, data: &[u8]) -> std::io::Result<()> {
        self.frame_head(data)?;
        self.out.write_all(data)
    }

    /// What comes before a frame's bytes.
    fn frame_head(&mut self, data: &[u8]) -> std::io::Result<()> {
        let sum = frame_crc(self.base, self.frames, data);
        self.frames += 1;
        self.bytes += 8 + data.len() as u64;
        self.out.write_all(&sum.to_le_bytes())
    }

    /// Write the trailer and give back the sink.
    pub fn finish(mut self) -> std::io::Result<W> {
        let mut t = [0; TRAILER_BYTES];
        t[..8].copy_from_slice(TRAILER);
        t[8..16].copy_from_slice(&self.frames.to_le_bytes());
        t[16..24].copy_from_slice(&self.bytes.to_le_bytes());
        let sum = frame_crc(self.base, u64::MAX - 1, &t[..24]);
        t[24..].copy_from_slice(&sum.to_le_bytes());
        self.out.write_all(&t)?;
        Ok(self.out)
    }
}

impl<W: RecordSink> RecordWriter<W> {
    /// Append a frame whose buffer the sink may keep.
    pub fn keep_frame(&mut self, data: &mut Vec<u8>) -> std::io::Result<()> {
        self.frame_head(data)?;
        self.out.put(data)
    }
}

/// Reads one record, front to back.
pub struct RecordReader<F> {
    input: F,
    /// The record's header.
    pub header: Header,
    base: u64,
    frame: u64,
    frames: u64,
}

/// Where a claimed record's bytes come from.
pub enum Source {
    /// A file that nobody else can reach.
    File(Mapped, Option<Unnamed>),
    /// This process.
    Memory(Pieces),
}

impl Frames for Source {
    fn next(&mut self, len: usize) -> std::io::Result<&[u8]> {
        match self {
            Source::File(mapped, _) => mapped.next(len),
            Source::Memory(pieces) => pieces.next(len),
        }
    }
}

impl RecordReader<Source> {
    /// Like [`RecordReader::open`], through windows of a file; see [`Mapped`] for what the file must be by
    /// the time the first frame is taken.
    pub fn open_mapped(file: File, wanted: Option<&RecordId>) -> Result<Self, FormatError> {
        let (header, base, frames, end) = check(&file, wanted)?;
        let input = Source::File(Mapped::new(file, HEADER_BYTES as u64, end), None);
        Ok(RecordReader { input, header, base, frame: 0, frames })
    }

    /// The same for a record in memory.
    pub fn open_pieces(mut pieces: Pieces, wanted: &RecordId) -> Result<Self, FormatError> {
        let found = pieces.len();
        let tail = pieces.tail();
        if found < HEADER_BYTES as u64 {
            return Err(FormatError::Truncated { found });
        }
        let head = Zeroizing::new(array(pieces.next(HEADER_BYTES)?));
        let (header, base, frames, _) = check_ends(found, &head, tail.as_ref(), Some(wanted))?;
        let input = Source::Memory(pieces.without_end(TRAILER_BYTES as u64));
        Ok(RecordReader { input, header, base, frame: 0, frames })
    }

    /// Until the record is dropped, what its file takes counts as used.
    pub(crate) fn counted(mut self, unnamed: Unnamed) -> Self {
        if let Source::File(_, count) = &mut self.input {
            *count = Some(unnamed);
        }
        self
    }
}

impl<R: Read + Seek> RecordReader<Buffered<R>> {
    /// Check header and trailer, and that the record is the `wanted` one; nothing else is read yet.
    pub fn open(mut input: R, wanted: Option<&RecordId>) -> Result<Self, FormatError> {
        let (header, base, frames, _) = check(&mut input, wanted)?;
        input.seek(SeekFrom::Start(HEADER_BYTES as u64))?;
        Ok(RecordReader { input: Buffered::new(input), header, base, frame: 0, frames })
    }
}

/// What both ends say: header, its checksum, the number of frames, and where they end.
type Ends = (Header, u64, u64, u64);

fn check(mut input: impl Read + Seek, wanted: Option<&RecordId>) -> Result<Ends, FormatError> {
    let found = input.seek(SeekFrom::End(0))?;
    input.seek(SeekFrom::Start(0))?;
    let mut h = Zeroizing::new([0; HEADER_BYTES]);
    if found < HEADER_BYTES as u64 {
        return Err(FormatError::Truncated { found });
    }
    input.read_exact(&mut h[..])?;
    let mut t = [0; TRAILER_BYTES];
    let tail = match found < TRAILER_BYTES as u64 {
        true => None,
        false => {
            input.seek(SeekFrom::End(-(TRAILER_BYTES as i64)))?;
            input.read_exact(&mut t)?;
            Some(&t)
        }
    };
    check_ends(found, &h, tail, wanted)
}

/// Check both ends of a record of `found` bytes.
fn check_ends(
    found: u64,
    h: &[u8; HEADER_BYTES],
    tail: Option<&[u8; TRAILER_BYTES]>,
    wanted: Option<&RecordId>,
) -> Result<Ends, FormatError> {
    let header = Header::decode(h)?;
    if let Some(wanted) = wanted {
        refuse_foreign(&header.id, wanted)?;
    }
    let base = stated_crc(h);
    let t = tail.filter(|t| found >= (HEADER_BYTES + TRAILER_BYTES) as u64 && &t[..8] == TRAILER);
    let t = t.ok_or(FormatError::Truncated { found })?;
    let bytes = u64::from_le_bytes(array(&t[16..24]));
    if frame_crc(base, u64::MAX - 1, &t[..24]) != u64::from_le_bytes(array(&t[24..]))
        || bytes.checked_add(TRAILER_BYTES as u64) != Some(found)
    {
        return Err(FormatError::Damaged("trailer"));
    }
    Ok((header, base, u64::from_le_bytes(array(&t[8..16])), bytes))
}

pub(crate) fn refuse_foreign(found: &RecordId, wanted: &RecordId) -> Result<(), FormatError> {
    let short = |b: &[u8]| hex(&b[..6]);
    let pairs = [
        ("plan", short(&found.plan), short(&wanted.plan), found.plan == wanted.plan),
        ("session", short(&found.session), short(&wanted.session), found.session == wanted.session),
        ("party", found.party.to_string(), wanted.party.to_string(), found.party == wanted.party),
        ("run", found.index.to_string(), wanted.index.to_string(), found.index == wanted.index),
    ];
    match pairs.into_iter().find(|p| !p.3) {
        Some((what, found, wanted, _)) => Err(FormatError::Foreign { what, found, wanted }),
        None => Ok(()),
    }
}

impl<F: Frames> RecordReader<F> {
    /// The next frame, which must have `len` bytes; each is given once.
    pub fn take(&mut self, len: usize) -> Result<&[u8], FormatError> {
        if self.frame == self.frames {
            return Err(FormatError::EndsEarly);
        }
        let failed = |e: std::io::Error| match e.kind() {
            ErrorKind::UnexpectedEof => FormatError::EndsEarly,
            _ => e.into(),
        };
        // One after the other: in memory they may lie in different pieces.
        let sum = u64::from_le_bytes(array(self.input.next(8).map_err(failed)?));
        let data = self.input.next(len).map_err(failed)?;
        if frame_crc(self.base, self.frame, data) != sum {
            return Err(FormatError::Frame(self.frame));
        }
        self.frame += 1;
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn record(index: u64, frames: &[&[u8]]) -> Vec<u8> {
        let id = RecordId { session: [1; 16], index, party: 0, plan: [2; 32] };
        let header = Header { id, set: [4; 16], seed: Seed::from_bytes([3; 16]) };
        let mut writer = RecordWriter::new(Vec::new(), &header).unwrap();
        frames.iter().for_each(|f| writer.frame(f).unwrap());
        writer.finish().unwrap()
    }

    fn first_frame(bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
        RecordReader::open(Cursor::new(bytes), None).unwrap().take(5).map(<[u8]>::to_vec)
    }

    #[test]
    fn a_frame_moved_within_or_between_records_is_refused() {
        let (one, other) = (record(1, &[b"first", b"other"]), record(2, &[b"first", b"other"]));
        assert_eq!(first_frame(&one).unwrap(), b"first");
        let frames = HEADER_BYTES..HEADER_BYTES + 13;
        let mut moved = one.clone();
        moved[frames.clone()].copy_from_slice(&other[frames.clone()]);
        assert!(first_frame(&moved).is_err(), "from another record");
        let mut moved = one.clone();
        moved.copy_within(frames.end..frames.end + 13, frames.start);
        assert!(first_frame(&moved).is_err(), "from another place");
        let body = HEADER_BYTES..one.len();
        let mut swapped = one.clone();
        swapped[body.clone()].copy_from_slice(&other[body]);
        assert!(RecordReader::open(Cursor::new(&swapped), None).is_err(), "another record's body");
    }
}
