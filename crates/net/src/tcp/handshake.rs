//! The handshake of TLS over a blocking stream, record by record, so that nothing behind it is decrypted by `rustls`.

use std::io::{self, ErrorKind, Read, Write};

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::kernel::KernelConnection;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};
use rustls::{Error, ExtractedSecrets};

use super::records::Records;
use super::tls::io_error;

/// Most bytes of handshake that wait for their end.
const MOST: usize = 64 << 10;

/// One side before its handshake.
pub(super) enum Side {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

impl Side {
    /// Makes the handshake. An alert that tells the peer what is wrong is on its way when this fails.
    pub fn shake_hands(self, stream: &mut (impl Read + Write)) -> io::Result<Records> {
        match self {
            Side::Client(connection) => shake_hands(connection, stream),
            Side::Server(connection) => shake_hands(connection, stream),
        }
    }
}

/// What both sides have alike in `rustls`.
trait Handshake: Sized {
    type Data: Send + 'static;
    fn process<'c, 'i>(&'c mut self, came: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
    fn is_over(&self) -> bool;
    fn secrets(self) -> Result<(ExtractedSecrets, KernelConnection<Self::Data>), Error>;
}

impl Handshake for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(&'c mut self, came: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(came)
    }

    fn is_over(&self) -> bool {
        !self.is_handshaking()
    }

    fn secrets(self) -> Result<(ExtractedSecrets, KernelConnection<Self::Data>), Error> {
        self.dangerous_into_kernel_connection()
    }
}

impl Handshake for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(&'c mut self, came: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(came)
    }

    fn is_over(&self) -> bool {
        !self.is_handshaking()
    }

    fn secrets(self) -> Result<(ExtractedSecrets, KernelConnection<Self::Data>), Error> {
        self.dangerous_into_kernel_connection()
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

fn shake_hands<H: Handshake>(mut side: H, stream: &mut (impl Read + Write)) -> io::Result<Records> {
    let (mut came, mut offered, mut said) = (Vec::new(), 0, Vec::new());
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
            Ok(Next::Send) => stream.write_all(&std::mem::take(&mut said))?,
            Ok(Next::Read) if side.is_over() => break,
            Ok(Next::Read) => match first_record(&came[offered..]) {
                Some(n) => offered += n,
                None => read_more(&mut came, stream)?,
            },
            Err(error) => {
                say_why(&mut side, &mut came[..offered], said, stream);
                return Err(io_error(error));
            }
        }
    }
    let (secrets, next) = side.secrets().map_err(io_error)?;
    Records::new(secrets, Box::new(next), &came[offered..]).map_err(io_error)
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

fn encode<D>(mut data: EncodeTlsData<'_, D>, said: &mut Vec<u8>) -> Result<(), Error> {
    let start = said.len();
    let mut room = 0;
    loop {
        said.resize(start + room, 0);
        match data.encode(&mut said[start..]) {
            Ok(n) => {
                said.truncate(start + n);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(size)) => room = size.required_size,
            Err(EncodeError::AlreadyEncoded) => return Ok(()),
        }
    }
}

/// Sends the alert of a handshake that failed, if there is one.
fn say_why<H: Handshake>(side: &mut H, came: &mut [u8], mut said: Vec<u8>, stream: &mut impl Write) {
    if let Ok(ConnectionState::EncodeTlsData(data)) = side.process(came).state
        && encode(data, &mut said).is_err()
    {
        return;
    }
    // The peer may be gone.
    let _ = stream.write_all(&said);
}
