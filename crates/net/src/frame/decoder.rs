//! The receiving side of a direction.

use super::{Frame, FrameError, HEADER_LEN, Header, Kind, MAX_CHUNK, checksum, parse_header, printable};

/// Bytes behind a frame's payload and name; see [`Decoder::roomy`].
const SLACK: usize = 1;
/// Used buffers kept for large frames.
const SPARE_BUFFERS: usize = 8;

/// How much of the message under way is still to come.
#[derive(Debug, Default)]
struct Progress {
    total: u64,
    left: u64,
}

impl Progress {
    /// Accepts the next data frame if it has the one payload size that is due.
    fn advance(&mut self, header: &Header) -> Result<(), FrameError> {
        if header.first != (self.left == 0) || (!header.first && header.total != self.total) {
            return Err(FrameError::Interleaved);
        }
        if header.first {
            *self = Self { total: header.total, left: header.total };
        }
        let due = self.left.min(MAX_CHUNK as u64);
        if u64::from(header.len) != due {
            return Err(FrameError::Chunk { found: header.len, due });
        }
        self.left -= due;
        Ok(())
    }
}

/// Turns the bytes of one direction back into frames, however they are cut up in transit.
///
/// The caller fills [`Decoder::space`] and reports how much; no byte is copied twice, and nothing is
/// allocated beyond one frame.
#[derive(Debug)]
pub struct Decoder {
    seq: u64,
    message: Progress,
    head: [u8; HEADER_LEN],
    parsed: Option<Header>,
    body: Vec<u8>,
    filled: usize,
    spare: Vec<Vec<u8>>,
}

impl Default for Decoder {
    fn default() -> Self {
        let (body, spare) = (Vec::new(), Vec::new());
        let message = Progress::default();
        Self { seq: 0, message, head: [0; HEADER_LEN], parsed: None, body, filled: 0, spare }
    }
}

impl Decoder {
    /// Where the next bytes of the stream belong; never empty.
    pub fn space(&mut self) -> &mut [u8] {
        match self.parsed {
            None => &mut self.head[self.filled..],
            Some(_) => {
                let end = self.body.len() - SLACK;
                &mut self.body[self.filled..end]
            }
        }
    }

    /// The same place with a byte behind it that may be overwritten and counts for nothing: a TLS record's content ends with
    /// its type. Empty where a header is due.
    pub(crate) fn roomy(&mut self) -> &mut [u8] {
        match self.parsed {
            None => &mut [],
            Some(_) => &mut self.body[self.filled..],
        }
    }

    /// Accepts the next `n` bytes, written to [`Decoder::space`]; returns the frame they complete, if any.
    pub fn filled(&mut self, n: usize) -> Result<Option<Frame>, FrameError> {
        self.filled += n;
        if self.parsed.is_none() {
            if self.filled < HEADER_LEN {
                return Ok(None);
            }
            let header = parse_header(&self.head)?;
            self.filled = 0;
            self.parsed = Some(header);
            let size = header.len as usize + usize::from(header.name_len);
            // A small message keeps its buffer, so it must not get a large one.
            self.body = if size >= MAX_CHUNK / 2 { self.spare.pop().unwrap_or_default() } else { Vec::new() };
            self.body.resize(size + SLACK, 0);
        }
        if self.filled + SLACK < self.body.len() {
            return Ok(None);
        }
        self.complete().map(Some)
    }

    fn complete(&mut self) -> Result<Frame, FrameError> {
        let Some(header) = self.parsed.take() else { return Err(FrameError::Truncated) };
        self.filled = 0;
        let mut payload = std::mem::take(&mut self.body);
        payload.truncate(payload.len() - SLACK);
        let (chunk, name) = payload.split_at(header.len as usize);
        let chunk = if header.summed { chunk } else { &[] };
        if checksum(&self.head, chunk, name, header.seq).to_le_bytes() != self.head[32..40] {
            return Err(FrameError::Checksum { seq: header.seq });
        }
        if header.seq != self.seq {
            return Err(FrameError::Sequence { expected: self.seq, found: header.seq });
        }
        self.seq += 1;
        if header.kind == Kind::Data {
            self.message.advance(&header)?;
        }
        let name = printable(name);
        payload.truncate(header.len as usize);
        Ok(Frame { header, name, payload })
    }

    /// Feeds `bytes` and hands each completed frame to `sink`.
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(Frame)) -> Result<(), FrameError> {
        while !bytes.is_empty() {
            let space = self.space();
            let n = space.len().min(bytes.len());
            space[..n].copy_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if let Some(frame) = self.filled(n)? {
                sink(frame);
            }
        }
        Ok(())
    }

    /// Gives used payload buffers back for later large frames, which saves clearing fresh memory; a few are kept.
    pub fn recycle(&mut self, buffers: Vec<Vec<u8>>) {
        self.spare.extend(buffers.into_iter().filter(|b| b.capacity() >= MAX_CHUNK / 2));
        self.spare.truncate(SPARE_BUFFERS);
    }

    /// Whether the stream may end here.
    pub fn at_boundary(&self) -> bool {
        self.parsed.is_none() && self.filled == 0
    }
}
