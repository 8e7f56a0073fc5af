//! Bytes between frames and the socket: TLS records, or nothing in between.

use std::io;
use std::io::Read;
use std::net::TcpStream;

use super::out::Out;
use super::records::{Record, Records};
use crate::frame::{Decoder, Frame, FrameError};

/// Bytes that are taken off a socket without TLS at a time.
const PLAIN_BUFFER: usize = 64 * 1024;

/// A read of less has emptied the socket, most likely.
const SHORT_READ: usize = 16 * 1024;

/// One connection's transformation of bytes.
pub(super) struct Wire {
    out: Out,
    tls: Option<Box<Records>>,
    /// Decrypted bytes that came before the first frame was wanted.
    early: Vec<u8>,
}

/// Why reading stopped.
pub(super) enum ReadError {
    Frame(FrameError),
    Tls(rustls::Error),
    /// Reset or otherwise broken.
    Lost,
}

/// What one turn of reading brought.
pub(super) struct Taken {
    /// Bytes taken off the socket.
    pub bytes: usize,
    /// The peer will send no more.
    pub end: bool,
}

impl Wire {
    /// Goes on where a line's greetings ended.
    pub fn tls(records: Records, out: Out, early: Vec<u8>) -> Self {
        Self { out, tls: Some(Box::new(records)), early }
    }

    pub fn plain() -> Self {
        Self { out: Out::default(), tls: None, early: Vec::new() }
    }

    /// Whether every bit is authenticated.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Queues the parts, in order, for [`Wire::flush`].
    pub fn write(&mut self, parts: [&[u8]; 3]) -> io::Result<()> {
        match &mut self.tls {
            None => parts.iter().for_each(|p| self.out.append(p)),
            Some(records) => records.seal(parts, &mut self.out).map_err(io::Error::other)?,
        }
        Ok(())
    }

    /// Bytes that wait for the socket.
    pub fn waiting(&self) -> usize {
        self.out.len()
    }

    /// Whether bytes wait for the socket.
    pub fn pending(&self) -> bool {
        self.waiting() > 0
    }

    /// Writes until nothing is pending or the socket is full; returns bytes written.
    pub fn flush(&mut self, socket: &TcpStream) -> io::Result<usize> {
        self.out.flush(socket)
    }

    /// Reads what is there, up to about `budget` bytes, and hands complete frames to `sink`.
    pub fn read(
        &mut self,
        socket: &TcpStream,
        decoder: &mut Decoder,
        budget: usize,
        sink: &mut dyn FnMut(Frame),
    ) -> Result<Taken, ReadError> {
        let Some(records) = &mut self.tls else { return read_plain(socket, decoder, budget, sink) };
        decoder.feed(&std::mem::take(&mut self.early), sink).map_err(ReadError::Frame)?;
        let result = read_tls(records, &mut self.out, socket, decoder, budget, sink);
        if let Err(ReadError::Tls(_)) = &result {
            records.refuse(&mut self.out);
        }
        result
    }

    /// Tells the TLS peer that the stream ends here on purpose.
    pub fn close(&mut self) {
        if let Some(records) = &mut self.tls {
            records.close(&mut self.out);
        }
    }
}

/// What the socket has, up to the buffer's length: 0 at its end, none where there is nothing now.
fn read_some(mut socket: &TcpStream, buffer: &mut [u8]) -> Result<Option<usize>, ReadError> {
    loop {
        match socket.read(buffer) {
            Ok(n) => return Ok(Some(n)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(ReadError::Lost),
        }
    }
}

fn read_plain(
    socket: &TcpStream,
    decoder: &mut Decoder,
    budget: usize,
    sink: &mut dyn FnMut(Frame),
) -> Result<Taken, ReadError> {
    let mut buffer = [0u8; PLAIN_BUFFER];
    let mut bytes = 0;
    while bytes < budget {
        let Some(n) = read_some(socket, &mut buffer)? else { break };
        if n == 0 {
            return Ok(Taken { bytes, end: true });
        }
        bytes += n;
        decoder.feed(&buffer[..n], sink).map_err(ReadError::Frame)?;
    }
    Ok(Taken { bytes, end: false })
}

fn read_tls(
    records: &mut Records,
    out: &mut Out,
    socket: &TcpStream,
    decoder: &mut Decoder,
    budget: usize,
    sink: &mut dyn FnMut(Frame),
) -> Result<Taken, ReadError> {
    let (mut bytes, mut more) = (0, true);
    loop {
        match records.next(out).map_err(ReadError::Tls)? {
            Record::Content(content) => decoder.feed(content, sink).map_err(ReadError::Frame)?,
            Record::End => return Ok(Taken { bytes, end: true }),
            Record::Incomplete if !more || bytes >= budget => return Ok(Taken { bytes, end: false }),
            // All whole records are opened: nobody wakes this thread for what waits here.
            Record::Incomplete => match read_some(socket, records.space())? {
                None => return Ok(Taken { bytes, end: false }),
                Some(0) => return Ok(Taken { bytes, end: true }),
                Some(n) => {
                    records.filled(n);
                    bytes += n;
                    more = n >= SHORT_READ;
                }
            },
        }
    }
}
