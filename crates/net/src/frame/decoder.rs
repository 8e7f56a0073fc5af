//! The receiving side of a direction.

use super::{
    Frame, FrameError, HEADER_LEN, Header, Kind, LARGE, MAX_CHUNK, checksum, parse_header, printable,
};

/// Used buffers kept for large frames.
const SPARE_BUFFERS: usize = 4;

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

/// Turns the bytes of one direction back into frames, however they are cut up in transit. Nothing is allocated beyond one frame.
#[derive(Debug, Default)]
pub struct Decoder {
    seq: u64,
    message: Progress,
    head: Vec<u8>,
    parsed: Option<Header>,
    /// Payload and step name.
    body: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

impl Decoder {
    /// Takes `bytes` in and hands each completed frame to `sink`.
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(Frame)) -> Result<(), FrameError> {
        while !bytes.is_empty() {
            let Some(header) = self.parsed else {
                self.head.extend_from_slice(take(&mut bytes, HEADER_LEN - self.head.len()));
                if self.head.len() == HEADER_LEN {
                    self.begin(parse_header(&self.head)?, sink)?;
                }
                continue;
            };
            self.body.extend_from_slice(take(&mut bytes, header.body_len() - self.body.len()));
            self.end(header, sink)?;
        }
        Ok(())
    }

    fn begin(&mut self, header: Header, sink: &mut dyn FnMut(Frame)) -> Result<(), FrameError> {
        let len = header.body_len();
        self.body = if len >= LARGE { self.spare.pop().unwrap_or_default() } else { Vec::new() };
        self.body.clear();
        self.body.reserve_exact(len);
        self.parsed = Some(header);
        self.end(header, sink)
    }

    /// Hands the frame over, if it is whole.
    fn end(&mut self, header: Header, sink: &mut dyn FnMut(Frame)) -> Result<(), FrameError> {
        if self.body.len() == header.body_len() {
            sink(self.complete(header)?);
        }
        Ok(())
    }

    fn complete(&mut self, header: Header) -> Result<Frame, FrameError> {
        self.parsed = None;
        let head: [u8; HEADER_LEN] = std::array::from_fn(|i| self.head[i]);
        self.head.clear();
        let mut payload = std::mem::take(&mut self.body);
        let (chunk, name) = payload.split_at(header.len as usize);
        let chunk = if header.summed { chunk } else { &[] };
        if checksum(&head, chunk, name, header.seq).to_le_bytes() != head[32..40] {
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

    /// Gives used payload buffers back for later large frames, which saves fresh memory; a few are kept.
    pub fn recycle(&mut self, buffers: Vec<Vec<u8>>) {
        self.spare.extend(buffers.into_iter().filter(|b| b.capacity() >= LARGE));
        self.spare.truncate(SPARE_BUFFERS);
    }

    /// Whether the stream may end here.
    pub fn at_boundary(&self) -> bool {
        self.parsed.is_none() && self.head.is_empty()
    }
}

/// The first `n` of `bytes`, or all there are, which leave it.
fn take<'a>(bytes: &mut &'a [u8], n: usize) -> &'a [u8] {
    let (first, rest) = bytes.split_at(n.min(bytes.len()));
    *bytes = rest;
    first
}
