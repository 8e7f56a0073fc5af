//! How the dealer sends records: in chunks, at the pace of the slower party.

use super::messages::DealReply;
use super::{Deals, Session};
use crate::session::control::{Id, Talk, TalkError, say};
use crate::store::format::RecordSink;
use privet_family::keys::KeyError;
use privet_net::{Channel, NetError};
use std::io::{self, Write};

/// Bytes of a key message.
pub const CHUNK_BYTES: usize = 1 << 20;
/// Frames of so many bytes are sent by themselves; smaller ones together.
const OWN_MESSAGE: usize = 64 << 10;
/// Key messages between two credits; at most twice as many are on the way.
pub const CREDIT_CHUNKS: u64 = 16;

/// Send all parties the session's keys and `runs` further records, each once all have said that they have room for it:
/// the slowest party sets the pace. `between` waits for that before each record but the first.
pub fn send_session<C: Channel, D: Deals>(
    channels: &mut [C],
    session: &Session<D>,
    runs: u64,
    between: &mut dyn FnMut(&mut [C]) -> Result<(), NetError>,
    progress: &mut dyn FnMut(usize),
) -> Result<(), TalkError> {
    let indices = session.take_indices(runs);
    let name = Id(session.session);
    for (channel, file) in channels.iter_mut().zip(session.files()) {
        say(channel, Talk::Deal, &DealReply::Dealing { session: name, indices: indices.clone() })?;
        channel.send(&Talk::Keys.step(), file.encode().to_vec())?;
    }
    for (i, index) in indices.into_iter().enumerate() {
        if i > 0 {
            between(channels)?;
        }
        for channel in channels.iter_mut() {
            channel.recv(&Talk::Credit.step(), 0)?;
        }
        let writers =
            channels.iter_mut().map(|channel| ChunkWriter { channel, buffer: Vec::new(), sent: 0 }).collect();
        // The channels have threads that encrypt and send; further ones would only move frames between caches.
        let writers = session.deal_directly(index, writers, progress).map_err(|e| match e {
            KeyError::Io(e) => broken(e),
            KeyError::Corrupt(e) => broken(io::Error::other(e)),
        })?;
        for writer in writers {
            writer.finish().map_err(broken)?;
        }
    }
    Ok(())
}

/// What a writer's error says of the connection behind it.
fn broken(e: io::Error) -> TalkError {
    e.downcast::<NetError>().map_or_else(
        |e| TalkError::Garbled {
            peer: "this process".into(),
            what: "record of keys".into(),
            cause: e.to_string(),
        },
        TalkError::Net,
    )
}

/// Sends a record in chunks and waits for credits, so that a slow party bounds the dealer's memory.
struct ChunkWriter<'a> {
    channel: &'a mut dyn Channel,
    buffer: Vec<u8>,
    sent: u64,
}

impl ChunkWriter<'_> {
    fn send(&mut self) -> io::Result<()> {
        // An empty message would mean the end.
        if self.buffer.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::take(&mut self.buffer);
        self.channel.send(&Talk::Keys.step(), chunk).map_err(io::Error::other)?;
        self.sent += 1;
        if self.sent.is_multiple_of(CREDIT_CHUNKS) && self.sent > CREDIT_CHUNKS {
            self.channel.recv(&Talk::Credit.step(), 0).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Send what is left, an empty chunk as the end mark, and wait until all is stored.
    fn finish(mut self) -> io::Result<()> {
        self.send()?;
        self.channel.send(&Talk::Keys.step(), Vec::new()).map_err(io::Error::other)?;
        // One credit is outstanding once the first stretch was sent; the last one says "stored".
        let outstanding = u64::from(self.sent >= CREDIT_CHUNKS) + 1;
        for _ in 0..outstanding {
            self.channel.recv(&Talk::Credit.step(), 0).map_err(io::Error::other)?;
        }
        Ok(())
    }
}

impl Write for ChunkWriter<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let n = data.len().min(CHUNK_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&data[..n]);
        if self.buffer.len() == CHUNK_BYTES {
            self.send()?;
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RecordSink for ChunkWriter<'_> {
    /// A large frame is a message of its own: it is not copied here, and an evaluator that holds it in memory reads it where
    /// it lies.
    fn put(&mut self, frame: &mut Vec<u8>) -> io::Result<()> {
        if !(OWN_MESSAGE..=CHUNK_BYTES).contains(&frame.len()) {
            return self.write_all(frame);
        }
        self.send()?;
        self.buffer = std::mem::replace(frame, self.channel.spare());
        self.send()
    }
}
