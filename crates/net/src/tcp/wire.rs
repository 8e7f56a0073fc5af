//! Bytes between frames and the socket: TLS records, or nothing in between.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;

use rustls::Connection;

use crate::frame::{Decoder, Frame, FrameError};

/// Small reads are gathered in a buffer of this size; larger ones go straight to their place.
const PLAIN_BUFFER: usize = 64 * 1024;

/// Encrypted bytes that are taken off the socket at a time. (`rustls` reads 4,096 by itself: a call of the system for each quarter of a record.)
const TLS_BUFFER: usize = 128 * 1024;

/// One connection's transformation of bytes.
pub(super) enum Wire {
    Tls { connection: Box<Connection>, read: Box<[u8]> },
    Plain { out: Vec<u8>, sent: usize },
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
    pub fn tls(mut connection: Connection) -> Self {
        // The driver bounds what it queues here.
        connection.set_buffer_limit(None);
        Self::Tls { connection: Box::new(connection), read: vec![0; TLS_BUFFER].into() }
    }

    pub fn plain() -> Self {
        Self::Plain { out: Vec::new(), sent: 0 }
    }

    /// Whether every bit is authenticated.
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tls { .. })
    }

    /// Queues the parts, in order, for [`Wire::flush`].
    pub fn write(&mut self, parts: [&[u8]; 3]) -> io::Result<()> {
        match self {
            Self::Plain { out, .. } => parts.iter().for_each(|p| out.extend_from_slice(p)),
            Self::Tls { connection: tls, .. } => {
                let size: usize = parts.iter().map(|p| p.len()).sum();
                let n = tls.writer().write_vectored(&parts.map(IoSlice::new))?;
                if n != size {
                    return Err(io::Error::other("the TLS buffer took a part of a frame only"));
                }
            }
        }
        Ok(())
    }

    /// Whether bytes wait for the socket.
    pub fn pending(&self) -> bool {
        match self {
            Self::Plain { out, .. } => !out.is_empty(),
            Self::Tls { connection, .. } => connection.wants_write(),
        }
    }

    /// Writes until nothing is pending or the socket is full; returns bytes written.
    pub fn flush(&mut self, mut socket: &TcpStream) -> io::Result<usize> {
        let mut total = 0;
        while self.pending() {
            let result = match self {
                Self::Plain { out, sent } => socket.write(&out[*sent..]).inspect(|n| {
                    *sent += n;
                    if *sent == out.len() {
                        out.clear();
                        *sent = 0;
                    }
                }),
                Self::Tls { connection, .. } => connection.write_tls(&mut socket),
            };
            match result {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => total += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(total)
    }

    /// Reads what is there, up to about `budget` bytes, and hands complete frames to `sink`.
    pub fn read(
        &mut self,
        socket: &TcpStream,
        decoder: &mut Decoder,
        budget: usize,
        sink: &mut dyn FnMut(Frame),
    ) -> Result<Taken, ReadError> {
        match self {
            Self::Plain { .. } => read_plain(socket, decoder, budget, sink),
            Self::Tls { connection, read } => read_tls(connection, read, socket, decoder, budget, sink),
        }
    }

    /// Tells the TLS peer that the stream ends here on purpose.
    pub fn close(&mut self) {
        if let Self::Tls { connection, .. } = self {
            connection.send_close_notify();
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
        let space = decoder.space();
        let direct = space.len() >= PLAIN_BUFFER;
        let Some(n) = read_some(socket, if direct { space } else { &mut buffer })? else { break };
        if n == 0 {
            return Ok(Taken { bytes, end: true });
        }
        bytes += n;
        if direct {
            decoder.filled(n).map_err(ReadError::Frame)?.into_iter().for_each(&mut *sink);
        } else {
            decoder.feed(&buffer[..n], sink).map_err(ReadError::Frame)?;
        }
    }
    Ok(Taken { bytes, end: false })
}

fn read_tls(
    tls: &mut Connection,
    buffer: &mut [u8],
    socket: &TcpStream,
    decoder: &mut Decoder,
    budget: usize,
    sink: &mut dyn FnMut(Frame),
) -> Result<Taken, ReadError> {
    // Decrypted bytes first: some may have come along with the handshake.
    let mut end = take_decrypted(tls, decoder, sink)?;
    let mut bytes = 0;
    while bytes < budget && !end {
        let Some(n) = read_some(socket, buffer)? else { break };
        bytes += n;
        end = n == 0;
        // All of it: nobody wakes this thread for what waits here.
        let mut encrypted = &buffer[..n];
        while !encrypted.is_empty() && !end {
            match tls.read_tls(&mut encrypted) {
                Ok(0) => end = true,
                Ok(_) => {}
                Err(_) => return Err(ReadError::Lost),
            }
            tls.process_new_packets().map_err(ReadError::Tls)?;
            end |= take_decrypted(tls, decoder, sink)?;
        }
    }
    Ok(Taken { bytes, end })
}

/// Hands over what is decrypted; whether it was the last.
fn take_decrypted(
    tls: &mut Connection,
    decoder: &mut Decoder,
    sink: &mut dyn FnMut(Frame),
) -> Result<bool, ReadError> {
    loop {
        match tls.reader().read(decoder.space()) {
            Ok(0) => return Ok(true),
            Ok(n) => decoder.filled(n).map_err(ReadError::Frame)?.into_iter().for_each(&mut *sink),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(true),
            Err(_) => return Err(ReadError::Lost),
        }
    }
}
