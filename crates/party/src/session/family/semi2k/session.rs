//! What a party keeps of a session: who prepares its records, its seed of the weights' masks, and what all parties draw alike.

use super::Semi2kError;
use crate::store::format::FormatError;
use crate::store::{SessionFile, SessionId};
use privet_prg::Seed;
use privet_semi2k::PartySeed;
use zeroize::Zeroizing;

/// Who prepares the records of a session. A party uses those alone that came in the way that its deployment says: records of a
/// dealer, who knows all masks, are refused where the parties are to prepare among themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The parties, among themselves: nobody knows a mask.
    Parties,
    /// A dealer, who knows all masks.
    Dealer,
}

impl By {
    /// What a deployment says.
    pub fn of(dealer: bool) -> By {
        if dealer { By::Dealer } else { By::Parties }
    }

    fn byte(self) -> u8 {
        match self {
            By::Parties => 1,
            By::Dealer => 2,
        }
    }
}

/// Bytes of a session's keys.
const KEYS: usize = 2 + 2 * Seed::BYTES;
/// The byte in place of an owner.
const NO_OWNER: u8 = u8::MAX;

/// A party's keys of a session.
#[derive(Clone)]
pub(super) struct SessionKeys {
    /// Who prepares its records.
    pub by: By,
    /// The party that masks the weights alone, as it owns them; none: all do.
    pub owner: Option<u8>,
    /// This party's secret seed of its summands of the weights' masks.
    pub own: Seed,
    /// From which all parties draw alike; no party has chosen it alone.
    pub public: Seed,
}

impl SessionKeys {
    /// Party `me`'s seed of the session.
    pub fn seed(&self, me: u8) -> PartySeed {
        PartySeed::new(usize::from(me), self.own.clone()).with_owner(self.owner.map(usize::from))
    }

    /// The bytes in a session's file: both seeds, then who prepares and who owns the weights. Hold a secret.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut keys = Zeroizing::new(Vec::with_capacity(KEYS));
        keys.extend_from_slice(self.own.expose());
        keys.extend_from_slice(self.public.expose());
        keys.extend_from_slice(&[self.by.byte(), self.owner.unwrap_or(NO_OWNER)]);
        keys
    }

    /// From a session's file, if its records came in this way, for weights of this owner.
    pub fn of_file(file: &SessionFile, by: By, owner: Option<u8>) -> Result<SessionKeys, Semi2kError> {
        let damaged = || Semi2kError::Record(FormatError::Damaged("session file"));
        let (&[ref own, public], &[made, of]) = file.keys.as_chunks() else { return Err(damaged()) };
        let made = [By::Parties, By::Dealer].into_iter().find(|by| by.byte() == made);
        let of = Some(of).filter(|of| *of != NO_OWNER);
        match (made.ok_or_else(damaged)? == by, of == owner) {
            (true, true) => {
                let [own, public] = [*own, public].map(Seed::from_bytes);
                Ok(SessionKeys { by, owner, own, public })
            }
            (true, false) => Err(Semi2kError::OtherOwner(of)),
            (false, _) => Err(Semi2kError::Made(by)),
        }
    }

    /// A party's file of a session.
    pub fn file(&self, id: SessionId) -> SessionFile {
        SessionFile { id, checks: 0, keys: self.encode() }
    }

    /// The public name of what all parties must hold alike of a session, which they compare when it is opened.
    pub fn shared_name(&self, id: &SessionId) -> [u8; 16] {
        let mut hash = blake3::Hasher::new_derive_key("privet semi2k: public part of a session v1");
        hash.update(&id.session)
            .update(&id.plan)
            .update(&[self.by.byte(), self.owner.unwrap_or(NO_OWNER)])
            .update(self.public.expose());
        let mut name = [0; 16];
        hash.finalize_xof().fill(&mut name);
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(by: By) -> SessionKeys {
        SessionKeys { by, owner: None, own: Seed::from_bytes([3; 16]), public: Seed::from_bytes([4; 16]) }
    }

    #[test]
    fn a_session_is_used_as_it_was_prepared_and_no_other_way() {
        let id = SessionId { session: [1; 16], party: 4, plan: [2; 32] };
        let ways = [By::Parties, By::Dealer];
        for (made, used) in ways.into_iter().flat_map(|made| ways.map(|used| (made, used))) {
            let file = SessionFile::decode(&keys(made).file(id).encode()).unwrap();
            match SessionKeys::of_file(&file, used, None) {
                Ok(read) => {
                    let seeds = [read.own.expose(), read.public.expose()];
                    assert!(made == used && read.by == used && seeds == [&[3; 16], &[4; 16]]);
                }
                Err(e) => assert!(made != used && matches!(e, Semi2kError::Made(_)), "{e}"),
            }
        }
        for keys in
            [vec![], vec![1], vec![0; KEYS], vec![3; KEYS], vec![1; KEYS - 1], vec![1; KEYS + 1], vec![1; 17]]
        {
            let file = SessionFile { id, checks: 0, keys: keys.into() };
            assert!(matches!(SessionKeys::of_file(&file, By::Parties, None), Err(Semi2kError::Record(_))));
        }
    }

    #[test]
    fn a_session_is_used_for_weights_of_the_owner_that_it_was_prepared_for() {
        let id = SessionId { session: [1; 16], party: 1, plan: [2; 32] };
        let owners = [None, Some(0), Some(1), Some(7)];
        for (made, used) in owners.into_iter().flat_map(|made| owners.map(|used| (made, used))) {
            let keys = SessionKeys { owner: made, ..keys(By::Parties) };
            let file = SessionFile::decode(&keys.file(id).encode()).unwrap();
            match SessionKeys::of_file(&file, By::Parties, used) {
                Ok(read) => assert!(made == used && read.owner == used),
                Err(e) => {
                    assert!(made != used && matches!(e, Semi2kError::OtherOwner(of) if of == made), "{e}")
                }
            }
            assert_eq!(keys.seed(1).masks_weights(), made.is_none_or(|owner| owner == 1), "{made:?}");
        }
    }

    #[test]
    fn a_session_has_one_name_at_all_parties() {
        let of = |keys: &SessionKeys, session: u8, party, plan: u8| {
            keys.shared_name(&SessionId { session: [session; 16], party, plan: [plan; 32] })
        };
        let ours = keys(By::Parties);
        let name = of(&ours, 1, 0, 1);
        let theirs = SessionKeys { own: Seed::from_bytes([9; 16]), ..ours.clone() };
        assert_eq!(name, of(&theirs, 1, 2, 1), "a party's own seed is no part of it");
        let other = SessionKeys { public: Seed::from_bytes([9; 16]), ..ours.clone() };
        let owned = SessionKeys { owner: Some(0), ..ours.clone() };
        let others = [
            of(&ours, 2, 0, 1),
            of(&ours, 1, 0, 2),
            of(&keys(By::Dealer), 1, 0, 1),
            of(&other, 1, 0, 1),
            of(&owned, 1, 0, 1),
        ];
        assert!(others.iter().all(|other| *other != name));
    }
}
