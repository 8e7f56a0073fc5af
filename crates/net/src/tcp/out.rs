//! Bytes that wait for the socket.

use std::io::{self, Write};

/// A buffer that is filled at its end and sent from its start. It is used again once all of it is sent.
#[derive(Default)]
pub(super) struct Out {
    bytes: Vec<u8>,
    sent: usize,
    end: usize,
}

impl Out {
    /// The next `n` bytes, with any contents.
    pub fn room(&mut self, n: usize) -> &mut [u8] {
        let start = self.end;
        self.end += n;
        if self.bytes.len() < self.end {
            self.bytes.resize(self.end, 0);
        }
        &mut self.bytes[start..self.end]
    }

    /// Takes back the last `n` bytes of what [`Out::room`] gave.
    pub fn give_back(&mut self, n: usize) {
        self.end -= n;
    }

    /// Appends these.
    pub fn append(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.end - self.sent
    }

    /// Hands all of them to a stream that blocks.
    pub fn send_all(&mut self, stream: impl Write) -> io::Result<()> {
        self.flush(stream)?;
        if self.len() > 0 { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    /// Hands them to `socket` until none waits or it takes no more now; gives their number.
    pub fn flush(&mut self, mut socket: impl Write) -> io::Result<usize> {
        let before = self.sent;
        while self.sent < self.end {
            match socket.write(&self.bytes[self.sent..self.end]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => self.sent += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(self.sent - before),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        let sent = self.sent - before;
        (self.sent, self.end) = (0, 0);
        Ok(sent)
    }
}
