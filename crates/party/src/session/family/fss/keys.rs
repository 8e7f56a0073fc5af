//! What the dealer gives a party of a session.

use crate::store::format::FormatError;
use crate::store::{SessionFile, SessionId};
use privet_prg::{HashKeys, Seed};
use zeroize::Zeroizing;

/// What an evaluator keeps of a session.
pub struct SessionKeys {
    /// Whose it is.
    pub id: SessionId,
    /// Seed of this evaluator's shares of the weights' masks.
    pub seed: Seed,
    /// Public hash keys.
    pub hash: HashKeys,
}

/// What a party keeps of a session, as bytes: its seed, then both hash keys.
pub(super) fn keys_of_party(seed: &Seed, hash: &HashKeys) -> Zeroizing<Vec<u8>> {
    [*seed.expose(), hash.inner, hash.leaf].concat().into()
}

impl SessionKeys {
    /// The session's file in a store, which the dealer sends as well.
    pub fn file(&self, checks: u64) -> SessionFile {
        SessionFile { id: self.id, checks, keys: keys_of_party(&self.seed, &self.hash) }
    }

    /// From a store's file.
    pub fn of_file(file: &SessionFile) -> Result<SessionKeys, FormatError> {
        match file.keys.as_chunks() {
            (&[ref seed, inner, leaf], []) if file.id.party < 2 => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_keys_come_back_from_a_file() {
        let id = SessionId { session: [1; 16], party: 1, plan: [2; 32] };
        let hash = HashKeys { inner: [4; 16], leaf: [5; 16] };
        let keys = SessionKeys { id, seed: Seed::from_bytes([3; 16]), hash };
        let file = keys.file(7);
        let read = SessionKeys::of_file(&SessionFile::decode(&file.encode()).unwrap()).unwrap();
        assert_eq!((read.id, read.seed.expose(), read.hash), (id, &[3; 16], hash));
        for bytes in [0, 47, 49, 64] {
            let other = SessionFile { keys: vec![0; bytes].into(), ..file.clone() };
            assert!(SessionKeys::of_file(&other).is_err(), "{bytes} bytes");
        }
        let third = SessionFile { id: SessionId { party: 2, ..id }, ..file };
        assert!(SessionKeys::of_file(&third).is_err(), "fss has two parties");
    }
}
