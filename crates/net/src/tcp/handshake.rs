//! The handshake of TLS over a blocking stream, record by record, so that nothing behind it is opened here.

use std::io::{self, ErrorKind, Read, Write};

use rustls::Error;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};

use super::out::Out;
use super::records::{Records, say_why};
use super::tls::io_error;

/// Most bytes of handshake that wait for their end.
const MOST: usize = 64 << 10;

/// One side of a connection.
pub(super) enum Side {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

impl Side {
    /// Makes the handshake. An alert that tells the peer what is wrong is on its way when this fails.
    pub fn shake_hands(mut self, stream: &mut (impl Read + Write)) -> io::Result<Records> {
        let rest = match &mut self {
            Side::Client(connection) => shake_hands(connection, stream),
            Side::Server(connection) => shake_hands(connection, stream),
        }?;
        Ok(Records::new(self, &rest))
    }
}

/// What both sides have alike in `rustls`.
pub(super) trait Unbuffered {
    type Data;
    fn process<'c, 'i>(&'c mut self, came: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
    fn is_over(&self) -> bool;
}

impl Unbuffered for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(&'c mut self, came: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(came)
    }

    fn is_over(&self) -> bool {
        !self.is_handshaking()
    }
}

impl Unbuffered for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(&'c mut self, came: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(came)
    }

    fn is_over(&self) -> bool {
        !self.is_handshaking()
    }
}

enum Next {
    /// It has more to say or to look at.
    Again,
    /// Everything it has is to be sent.
    Send,
    /// It waits for the peer.
    Read,
}

/// Gives what came behind it.
fn shake_hands<H: Unbuffered>(side: &mut H, stream: &mut (impl Read + Write)) -> io::Result<Vec<u8>> {
    let (mut came, mut offered, mut said) = (Vec::new(), 0, Out::default());
    loop {
        let UnbufferedStatus { discard, state } = side.process(&mut came[..offered]);
        let next = match state {
            Ok(ConnectionState::EncodeTlsData(data)) => encode(data, &mut said).map(|()| Next::Again),
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                Ok(Next::Send)
            }
            Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => Ok(Next::Read),
            Ok(_) => Err(Error::General("something else than a handshake".into())),
            Err(error) => Err(error),
        };
        came.drain(..discard);
        offered -= discard;
        match next {
            Ok(Next::Again) => {}
            Ok(Next::Send) => said.send_all(&mut *stream)?,
            Ok(Next::Read) if side.is_over() => return Ok(came.split_off(offered)),
            Ok(Next::Read) => match first_record(&came[offered..]) {
                Some(n) => offered += n,
                None => read_more(&mut came, stream)?,
            },
            Err(error) => {
                say_why(side, &mut came[..offered], &mut said);
                // The peer may be gone.
                let _ = said.send_all(&mut *stream);
                return Err(io_error(error));
            }
        }
    }
}

/// The length of the first record, if all of it is there. What is no record is given whole: `rustls` says what is wrong.
fn first_record(bytes: &[u8]) -> Option<usize> {
    let &[kind, version, _, high, low] = bytes.first_chunk::<5>()?;
    let len = 5 + usize::from(u16::from_be_bytes([high, low]));
    match kind {
        20..=23 if version == 3 && len <= MOST => (len <= bytes.len()).then_some(len),
        _ => Some(bytes.len()),
    }
}

fn read_more(came: &mut Vec<u8>, stream: &mut impl Read) -> io::Result<()> {
    let mut bytes = [0; 4096];
    match stream.read(&mut bytes)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        n if came.len() + n > MOST => Err(io_error(Error::General("its handshake is too long".into()))),
        n => {
            came.extend_from_slice(&bytes[..n]);
            Ok(())
        }
    }
}

/// Appends a record of the connection's own.
pub(super) fn encode<D>(mut data: EncodeTlsData<'_, D>, out: &mut Out) -> Result<(), Error> {
    let mut room = 0;
    loop {
        match data.encode(out.room(room)) {
            Ok(n) => {
                out.give_back(room - n);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(size)) => {
                out.give_back(room);
                room = size.required_size;
            }
            Err(EncodeError::AlreadyEncoded) => {
                out.give_back(room);
                return Ok(());
            }
        }
    }
}
