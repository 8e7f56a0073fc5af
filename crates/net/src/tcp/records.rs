//! Records of TLS 1.3 (RFC 8446, section 5) after the handshake, straight between the socket's bytes and the frames.
//!
//! `rustls` makes the handshake, holds the traffic secrets and derives those of key updates. Its own records take three more
//! copies of each byte. AES-GCM is that of `aws-lc` in both.

#[cfg(test)]
mod tests;

use aws_lc_rs::aead::{self, Aad, TlsProtocolId, TlsRecordOpeningKey, TlsRecordSealingKey};
use rustls::crypto::cipher::{AeadKey, Iv, Nonce, make_tls13_aad};
use rustls::kernel::KernelConnection;
use rustls::{AlertDescription, ConnectionTrafficSecrets, Error, ExtractedSecrets};

use super::out::Out;

/// Most bytes of content in a record.
pub(super) const CONTENT: usize = 1 << 14;
const HEAD: usize = 5;
const TAG: usize = 16;
/// Most bytes after a record's head: content, its type, padding and tag.
const SEALED: usize = CONTENT + 256;
/// Encrypted bytes that are taken off the socket at a time.
const READ: usize = 256 * 1024;
/// Records under one key. AES-GCM allows for 2^24.5 full ones (RFC 8446, section 5.5).
const KEY_RECORDS: u64 = 1 << 23;

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;
/// `KeyUpdate` (RFC 8446, section 4.6.3); the last byte asks for one in return where it is 1.
const KEY_UPDATE: [u8; 5] = [24, 0, 0, 1, 0];

/// Where the next keys of a direction come from.
pub(super) trait Secrets: Send {
    fn next_sending(&mut self) -> Result<ConnectionTrafficSecrets, Error>;
    fn next_receiving(&mut self) -> Result<ConnectionTrafficSecrets, Error>;
}

impl<D: Send> Secrets for KernelConnection<D> {
    fn next_sending(&mut self) -> Result<ConnectionTrafficSecrets, Error> {
        self.update_tx_secret().map(|(_, secrets)| secrets)
    }

    fn next_receiving(&mut self) -> Result<ConnectionTrafficSecrets, Error> {
        self.update_rx_secret().map(|(_, secrets)| secrets)
    }
}

/// Encrypts what this side sends.
struct Sealer {
    /// It refuses a nonce that does not rise.
    key: TlsRecordSealingKey,
    iv: Iv,
    seq: u64,
}

/// Decrypts what the peer sends.
struct Opener {
    key: TlsRecordOpeningKey,
    iv: Iv,
    seq: u64,
}

/// What the next record holds.
pub(super) enum Record<'a> {
    /// Bytes for the protocol.
    Content(&'a [u8]),
    /// Not all of it has come yet.
    Incomplete,
    /// The peer sends nothing more.
    End,
}

/// Both directions of a connection, and the encrypted bytes that came and are not opened.
pub(super) struct Records {
    sealer: Sealer,
    opener: Opener,
    secrets: Box<dyn Secrets>,
    key_records: u64,
    /// The peer asks for new keys.
    asked: bool,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    closed: bool,
}

fn cipher(secrets: &ConnectionTrafficSecrets) -> Result<(&'static aead::Algorithm, &AeadKey, Iv), Error> {
    let copy = |iv: &Iv| Iv::copy(iv.as_ref());
    match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => Ok((&aead::AES_128_GCM, key, copy(iv))),
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => Ok((&aead::AES_256_GCM, key, copy(iv))),
        _ => Err(Error::General("a cipher that was not offered".into())),
    }
}

fn nonce(iv: &Iv, seq: u64) -> aead::Nonce {
    aead::Nonce::assume_unique_for_key(Nonce::new(iv, seq).0)
}

impl Sealer {
    /// From the key's first record on.
    fn new(secrets: &ConnectionTrafficSecrets) -> Result<Self, Error> {
        let (algorithm, key, iv) = cipher(secrets)?;
        let key = TlsRecordSealingKey::new(algorithm, TlsProtocolId::TLS13, key.as_ref());
        Ok(Self { key: key.map_err(|_| Error::EncryptError)?, iv, seq: 0 })
    }

    /// Appends one record to `out`, from where its content lies.
    fn seal(&mut self, kind: u8, content: &[u8], out: &mut Out) -> Result<(), Error> {
        let (head, nonce, place) = self.begin(content.len(), out);
        let (body, end) = place.split_at_mut(content.len());
        let sealed = self.key.seal_out_of_place_scatter(nonce, Aad::from(head), content, body, &[kind], end);
        sealed.map_err(|_| Error::EncryptError)
    }

    /// Appends one record with the bytes of all `parts`.
    fn gather(&mut self, kind: u8, parts: &[&[u8]], len: usize, out: &mut Out) -> Result<(), Error> {
        let (head, nonce, place) = self.begin(len, out);
        let (inner, end) = place.split_at_mut(len + 1);
        let mut free = &mut inner[..];
        for part in parts.iter().copied().chain([&[kind][..]]) {
            let (here, rest) = free.split_at_mut(part.len());
            here.copy_from_slice(part);
            free = rest;
        }
        let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(head), inner);
        end.copy_from_slice(tag.map_err(|_| Error::EncryptError)?.as_ref());
        Ok(())
    }

    /// Writes the head of a record with `len` bytes of content; gives it, the record's nonce, and the place of all that follows.
    fn begin<'a>(&mut self, len: usize, out: &'a mut Out) -> ([u8; HEAD], aead::Nonce, &'a mut [u8]) {
        let sealed = len + 1 + TAG;
        let head = make_tls13_aad(sealed);
        let (start, place) = out.room(HEAD + sealed).split_at_mut(HEAD);
        start.copy_from_slice(&head);
        let nonce = nonce(&self.iv, self.seq);
        self.seq += 1;
        (head, nonce, place)
    }
}

impl Opener {
    fn new(secrets: &ConnectionTrafficSecrets) -> Result<Self, Error> {
        let (algorithm, key, iv) = cipher(secrets)?;
        let key = TlsRecordOpeningKey::new(algorithm, TlsProtocolId::TLS13, key.as_ref());
        Ok(Self { key: key.map_err(|_| Error::DecryptError)?, iv, seq: 0 })
    }

    /// Opens what follows `head`, in place; gives the content and its type.
    fn open<'a>(&mut self, head: [u8; HEAD], sealed: &'a mut [u8]) -> Result<(u8, &'a [u8]), Error> {
        let opened = self.key.open_in_place(nonce(&self.iv, self.seq), Aad::from(head), sealed);
        let inner = &*opened.map_err(|_| Error::DecryptError)?;
        self.seq = self.seq.checked_add(1).ok_or(Error::DecryptError)?;
        // The type is the last byte that is not padding.
        let len = inner.iter().rposition(|&b| b != 0).ok_or_else(|| unexpected("an empty one"))?;
        if len > CONTENT {
            return Err(Error::PeerSentOversizedRecord);
        }
        Ok((inner[len], &inner[..len]))
    }
}

fn unexpected(what: &str) -> Error {
    Error::General(format!("a record that no peer of this release sends: {what}"))
}

impl Records {
    /// Continues after a handshake, behind which nothing was sent, and `rest` came.
    pub fn new(secrets: ExtractedSecrets, next: Box<dyn Secrets>, rest: &[u8]) -> Result<Self, Error> {
        let ExtractedSecrets { tx: (sent, tx), rx: (received, rx) } = secrets;
        if (sent, received) != (0, 0) {
            return Err(Error::General("records passed before the handshake was over".into()));
        }
        let (mut buffer, end) = (rest.to_vec(), rest.len());
        buffer.resize(READ.max(end + HEAD + SEALED), 0);
        Ok(Self {
            sealer: Sealer::new(&tx)?,
            opener: Opener::new(&rx)?,
            secrets: next,
            key_records: KEY_RECORDS,
            asked: false,
            buffer,
            start: 0,
            end,
            closed: false,
        })
    }

    /// Appends records with the bytes of all `parts`, in order: one if they fit, else those of each part by themselves, so that
    /// large ones are encrypted from where they lie.
    pub fn seal(&mut self, parts: [&[u8]; 3], out: &mut Out) -> Result<(), Error> {
        let len = parts.iter().map(|p| p.len()).sum();
        if len <= CONTENT {
            return self.sealer(out)?.gather(DATA, &parts, len, out);
        }
        let mut contents = parts.iter().flat_map(|part| part.chunks(CONTENT));
        contents.try_for_each(|content| self.sealer(out)?.seal(DATA, content, out))
    }

    /// What encrypts the next record: after so many with one key, or when the peer asks for it, with the next.
    fn sealer(&mut self, out: &mut Out) -> Result<&mut Sealer, Error> {
        if std::mem::take(&mut self.asked) || self.sealer.seq >= self.key_records {
            self.sealer.seal(HANDSHAKE, &KEY_UPDATE, out)?;
            self.sealer = Sealer::new(&self.secrets.next_sending()?)?;
        }
        Ok(&mut self.sealer)
    }

    /// Tells the peer that nothing more comes.
    pub fn close(&mut self, out: &mut Out) {
        self.alert(1, AlertDescription::CloseNotify, out);
    }

    /// Tells the peer what is wrong with its records.
    pub fn refuse(&mut self, error: &Error, out: &mut Out) {
        let description = match error {
            Error::AlertReceived(_) => return,
            Error::DecryptError => AlertDescription::BadRecordMac,
            Error::PeerSentOversizedRecord => AlertDescription::RecordOverflow,
            _ => AlertDescription::UnexpectedMessage,
        };
        self.alert(2, description, out);
    }

    fn alert(&mut self, level: u8, description: AlertDescription, out: &mut Out) {
        if !std::mem::replace(&mut self.closed, true) {
            // Without it the peer sees the connection end.
            let _ = self.sealer.seal(ALERT, &[level, description.into()], out);
        }
    }

    /// Where the next encrypted bytes belong; never empty once [`Records::next`] said `Incomplete`.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start > 0 {
            // Less than a record.
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.buffer[self.end..]
    }

    /// So many bytes came.
    pub fn filled(&mut self, n: usize) {
        self.end += n;
    }

    /// Opens the next record.
    pub fn next(&mut self) -> Result<Record<'_>, Error> {
        loop {
            let came = &self.buffer[self.start..self.end];
            let Some(&head) = came.first_chunk::<HEAD>() else { return Ok(Record::Incomplete) };
            let [kind, _, _, high, low] = head;
            let sealed = usize::from(u16::from_be_bytes([high, low]));
            match (kind, sealed) {
                (DATA, ..=SEALED) => {}
                (DATA, _) => return Err(Error::PeerSentOversizedRecord),
                _ => return Err(unexpected("one without encryption")),
            }
            let (from, to) = (self.start + HEAD, self.start + HEAD + sealed);
            if to > self.end {
                return Ok(Record::Incomplete);
            }
            let (kind, content) = self.opener.open(head, &mut self.buffer[from..to])?;
            self.start = to;
            match (kind, content) {
                (DATA, []) => {}
                // Borrowed anew, for as long as the caller likes.
                (DATA, content) => {
                    let len = content.len();
                    return Ok(Record::Content(&self.buffer[from..from + len]));
                }
                (HANDSHAKE, &[24, 0, 0, 1, asks @ 0..=1]) => {
                    self.asked |= asks == 1;
                    self.opener = Opener::new(&self.secrets.next_receiving()?)?;
                }
                (HANDSHAKE, _) => return Err(unexpected("a handshake's message")),
                (ALERT, &[_, 0]) => return Ok(Record::End),
                (ALERT, &[_, description]) => return Err(Error::AlertReceived(description.into())),
                _ => return Err(unexpected("another type")),
            }
        }
    }
}
