//! What the dealer gives a party of a session, and the frames of a claimed record as the gates take them.

use crate::store::format::FormatError;
use crate::store::{ClaimedRecord, SessionFile, SessionId, hex, unhex};
use privet_fss::keys::{KeyError, KeySource};
use privet_prg::{HashKeys, Seed};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

/// What an evaluator keeps of a session.
pub struct SessionKeys {
    /// Whose it is.
    pub id: SessionId,
    /// Seed of this evaluator's shares of the weights' masks.
    pub seed: Seed,
    /// Public hash keys.
    pub hash: HashKeys,
}

/// The dealer's message.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    format: u32,
    session: String,
    plan: String,
    party: u8,
    seed: String,
    hash_inner: String,
    hash_leaf: String,
}

impl Drop for Message {
    fn drop(&mut self) {
        self.seed.zeroize();
    }
}

impl SessionKeys {
    /// The dealer's message. Holds a secret.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let message = Message {
            format: 1,
            session: hex(&self.id.session),
            plan: hex(&self.id.plan),
            party: self.id.party,
            seed: hex(self.seed.expose()),
            hash_inner: hex(&self.hash.inner),
            hash_leaf: hex(&self.hash.leaf),
        };
        // Large enough from the start: what grows leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(512));
        // Writing plain data into memory cannot fail.
        let _ = serde_json::to_writer(&mut *bytes, &message);
        bytes
    }

    /// Parse untrusted bytes.
    pub fn decode(text: &[u8]) -> Option<SessionKeys> {
        let m: Message = serde_json::from_slice(text).ok()?;
        (m.format == 1 && m.party < 2).then_some(())?;
        Some(SessionKeys {
            id: SessionId { session: unhex(&m.session)?, party: m.party, plan: unhex(&m.plan)? },
            seed: Seed::from_bytes(unhex(&m.seed)?),
            hash: HashKeys { inner: unhex(&m.hash_inner)?, leaf: unhex(&m.hash_leaf)? },
        })
    }

    /// The session's file in a store: the seed, then both hash keys.
    pub fn file(&self, checks: u64) -> SessionFile {
        let keys = [*self.seed.expose(), self.hash.inner, self.hash.leaf].concat().into();
        SessionFile { id: self.id, checks, keys }
    }

    /// From a store's file.
    pub fn of_file(file: &SessionFile) -> Result<SessionKeys, FormatError> {
        match file.keys.as_chunks() {
            (&[ref seed, inner, leaf], []) => {
                Ok(SessionKeys { id: file.id, seed: Seed::from_bytes(*seed), hash: HashKeys { inner, leaf } })
            }
            _ => Err(FormatError::Damaged("session file")),
        }
    }

    /// Public name of what both parties must hold alike of a session.
    pub fn shared_name(&self) -> [u8; 16] {
        let mut hash = blake3::Hasher::new_derive_key("privet fss: public part of a session v1");
        hash.update(&self.id.session).update(&self.id.plan).update(&self.hash.inner).update(&self.hash.leaf);
        let mut name = [0; 16];
        hash.finalize_xof().fill(&mut name);
        name
    }
}

/// A claimed record's frames.
pub(super) struct Keys<'a>(pub &'a mut ClaimedRecord);

impl KeySource for Keys<'_> {
    fn take(&mut self, len: usize) -> Result<&[u8], KeyError> {
        self.0.take(len).map_err(|e| match e {
            FormatError::Io(e) => KeyError::Io(e),
            e => KeyError::Corrupt(e.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_keys_come_back_from_message_and_file() {
        let id = SessionId { session: [1; 16], party: 1, plan: [2; 32] };
        let hash = HashKeys { inner: [4; 16], leaf: [5; 16] };
        let keys = SessionKeys { id, seed: Seed::from_bytes([3; 16]), hash };
        let file = keys.file(7);
        for read in [SessionKeys::decode(&keys.encode()).unwrap(), SessionKeys::of_file(&file).unwrap()] {
            assert_eq!((read.id, read.seed.expose(), read.hash), (id, &[3; 16], hash));
        }
        for bytes in [0, 47, 49, 64] {
            let other = SessionFile { keys: vec![0; bytes].into(), ..file.clone() };
            assert!(SessionKeys::of_file(&other).is_err(), "{bytes} bytes");
        }
        let third = SessionKeys { id: SessionId { party: 2, ..id }, seed: Seed::from_bytes([3; 16]), hash };
        assert!(SessionKeys::decode(&third.encode()).is_none(), "fss has two parties");
    }
}
