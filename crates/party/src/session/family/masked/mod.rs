//! What families with masked values share, for any number of parties: owners add all parties' masks to their tensors, every party
//! holds the same sums, states are additive shares, and so are results.

mod owner;
mod reasons;
mod record;

pub(super) use owner::{MaskedOutside, mask_seeds, share_out};
pub(super) use record::{Frames, stores};

use super::{Encoded, Held};
use crate::session::control::{Reply, Talk, say};
use crate::session::job::JobError;
use crate::session::owner::{OwnerError, Piece, Shared, states as states_of};
use crate::session::peers::Others;
use crate::store::hex;
use owner::Masking;
use privet_family::{States, expand_state};
use privet_net::Channel;
use privet_plan::Program;
use privet_prg::Seed;
use privet_ring::{Ring, pack, unpack};
use std::collections::{BTreeMap, HashMap};
use thiserror::Error;
use zeroize::Zeroizing;

/// Why parties cannot go on with what they hold.
#[derive(Debug, Error)]
pub(in crate::session) enum MaskedError {
    #[error(
        "the parties hold records that were not made together: a file of one store is of another preparation; prepare anew, and \
         carry all parties' files of one deal together"
    )]
    OtherSet,
    #[error("the parties received different tensors from an owner: its connection or program is broken")]
    Disagree,
    #[error(
        "this party has no share of state `{0}`: begin the training again, or resume it from a checkpoint"
    )]
    NoState(String),
}

impl From<MaskedError> for JobError {
    fn from(e: MaskedError) -> JobError {
        JobError::Family(Box::new(e))
    }
}

/// Bytes of the name of a set.
const SET: usize = 16;

/// Whether all said the same; of those that did not, which part differs.
fn agree(ours: &[u8], theirs: &[Vec<u8>]) -> Result<(), MaskedError> {
    if theirs.iter().any(|theirs| theirs[..SET] != ours[..SET]) {
        return Err(MaskedError::OtherSet);
    }
    if theirs.iter().all(|theirs| theirs == ours) { Ok(()) } else { Err(MaskedError::Disagree) }
}

impl Held for States {
    fn replace(&mut self, updates: States) {
        States::replace(self, updates);
    }
}

/// What owners have sent: masked tensors, which all parties are to hold alike, or shares of states.
#[derive(Default)]
pub(in crate::session) struct Masked {
    tensors: BTreeMap<String, Vec<u64>>,
    states: States,
    digest: blake3::Hasher,
}

impl Masked {
    /// A masked tensor, packed.
    pub fn take_in(&mut self, piece: &Piece, bytes: &[u8]) -> Result<(), OwnerError> {
        self.digest.update(piece.name.as_bytes()).update(bytes);
        self.tensors.insert(piece.name.clone(), elements(piece, bytes)?);
        Ok(())
    }

    /// Receive an owner's tensors: masked ones, or this party's shares of states, for which all parties but the last are given
    /// seeds.
    pub fn receive(
        &mut self,
        kind: Shared,
        pieces: &[Piece],
        channel: &mut dyn Channel,
        last: bool,
    ) -> Result<(), OwnerError> {
        for piece in pieces {
            let (ring, n) = (Ring::new(piece.ty.bits), piece.ty.len());
            let seeded = kind == Shared::States && !last;
            let expected = if seeded { Seed::BYTES } else { ring.packed_bytes(n) };
            let bytes = Zeroizing::new(channel.recv(&Talk::Tensor.step(), expected)?);
            match (kind, bytes.first_chunk()) {
                (Shared::Inputs | Shared::Weights, _) => self.take_in(piece, &bytes)?,
                (Shared::States, Some(seed)) if seeded => {
                    self.states.insert(&*piece.name, expand_state(&Seed::from_bytes(*seed), ring, n));
                }
                (Shared::States, _) => self.states.insert(&*piece.name, elements(piece, &bytes)?),
            }
        }
        Ok(())
    }

    /// All parties must hold the same, under what was made together: `set` names that. Both are public to the parties, so a
    /// digest is. This is the first message between the parties that depends on what is named.
    pub fn compare(&self, set: &[u8; SET], others: &mut Others) -> Result<(), JobError> {
        let ours = self.said(set);
        Ok(agree(&ours, &exchange(others, &ours)?)?)
    }

    /// What a party says of the set, and of what it was sent.
    fn said(&self, set: &[u8; SET]) -> Vec<u8> {
        [&set[..], self.digest.finalize().as_bytes()].concat()
    }

    /// The masked tensors by name.
    pub fn tensors(self) -> BTreeMap<String, Vec<u64>> {
        self.tensors
    }

    /// The masked inputs of a plan, by node.
    pub fn inputs(mut self, pieces: &[Piece]) -> HashMap<usize, Vec<u64>> {
        pieces.iter().filter_map(|p| Some((p.node, self.tensors.remove(&p.name)?))).collect()
    }

    /// Shares of states.
    pub fn states(self) -> States {
        self.states
    }
}

/// Send the same to all other parties, and receive as much from each, in the order of their numbers.
fn exchange(others: &mut Others, ours: &[u8]) -> Result<Vec<Vec<u8>>, JobError> {
    let (step, parties) = (Talk::Digest.step(), others.parties());
    for &party in &parties {
        others.to(party)?.send(&step, ours.to_vec())?;
    }
    parties.into_iter().map(|party| Ok(others.to(party)?.recv(&step, ours.len())?)).collect()
}

/// Let an owner send its tensors: it is told the seeds of this party's shares of their masks, which follow from `seed`. Without one
/// this party masks none of them, as it masks no states.
pub(super) fn grant(
    pieces: &[Piece],
    seed: Option<&Seed>,
    channel: &mut dyn Channel,
) -> Result<(), JobError> {
    let seeds = seed.map_or_else(BTreeMap::new, |seed| mask_seeds(pieces, seed));
    let seeds = seeds.into_iter().map(|(name, seed)| (name, hex(seed.expose()))).collect();
    Ok(say(channel, Talk::Reply, &Reply::Share { seeds })?)
}

/// This party owns tensors itself, and its masks of them follow from `seed`: the other parties must grant their masks, unless this
/// party masks them alone, and get the sums. This party then knows the whole masks of its own tensors, which tells it nothing new.
pub(super) fn share_own(
    pieces: &[Piece],
    encoded: &Encoded,
    seed: &Seed,
    alone: bool,
    others: &mut Others,
    tensors: &mut Masked,
) -> Result<(), JobError> {
    let mut masking = Masking::new(mask_seeds(pieces, seed));
    for (_, channel) in others.all() {
        masking.granted(channel, alone)?;
    }
    for piece in pieces {
        let bytes = masking.mask(piece, encoded)?;
        tensors.take_in(piece, &bytes)?;
        for party in others.parties() {
            others.to(party)?.send(&Talk::Tensor.step(), bytes.clone())?;
        }
    }
    Ok(())
}

/// Shares of all states of a program, for a checkpoint.
pub(super) fn save(program: &Program, states: &States) -> Result<Zeroizing<Vec<u8>>, JobError> {
    let mut bytes = Zeroizing::new(Vec::new());
    for Piece { name, ty, .. } in states_of(program) {
        let share = states.get(&name).filter(|s| s.len() == ty.len());
        pack(Ring::new(ty.bits), share.ok_or(MaskedError::NoState(name))?, &mut bytes);
    }
    Ok(bytes)
}

/// From [`save`]'s bytes, which may have been changed. The error says how.
pub(super) fn restore(program: &Program, mut bytes: &[u8]) -> Result<States, String> {
    let mut states = States::new();
    for piece in states_of(program) {
        let size = Ring::new(piece.ty.bits).packed_bytes(piece.ty.len());
        let (share, rest) = bytes.split_at_checked(size).ok_or("its shares are cut off")?;
        states.insert(&*piece.name, elements(&piece, share).map_err(|e| e.to_string())?);
        bytes = rest;
    }
    if bytes.is_empty() { Ok(states) } else { Err("something follows its shares".into()) }
}

/// The packed elements of a tensor.
fn elements(piece: &Piece, bytes: &[u8]) -> Result<Vec<u64>, OwnerError> {
    unpack(Ring::new(piece.ty.bits), bytes, piece.ty.len())
        .map_err(|e| OwnerError::Form { name: piece.name.clone(), cause: e.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::testing::program;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_a_checkpoint_holds_is_restored_as_it_was_saved_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..24)
        ) {
            let program = program();
            match restore(&program, &bytes) {
                Ok(states) => prop_assert_eq!(&save(&program, &states).unwrap()[..], &bytes[..]),
                Err(_) => prop_assert!(bytes.len() != 8, "one state of one element of 64 bits"),
            }
        }
    }

    fn said(set: [u8; SET], tensors: &[u8]) -> Vec<u8> {
        let mut masked = Masked::default();
        masked.digest.update(tensors);
        masked.said(&set)
    }

    /// What every party finds, each with the name of its set and what it holds of an owner's tensors.
    fn found(all: &[([u8; SET], &[u8])]) -> Vec<String> {
        let said: Vec<Vec<u8>> = all.iter().map(|(set, tensors)| said(*set, tensors)).collect();
        let of = |me: usize| {
            let (before, rest) = said.split_at(me);
            let theirs: Vec<Vec<u8>> = before.iter().chain(&rest[1..]).cloned().collect();
            agree(&said[me], &theirs).err().map(|e| e.to_string()).unwrap_or_default()
        };
        (0..all.len()).map(of).collect()
    }

    #[test]
    fn parties_compare_their_sets_and_their_tensors_and_say_which_differ() {
        let (mut last, mut first) = ([1; SET], [1; SET]);
        (last[SET - 1], first[0]) = (3, 3);
        for n in 2..=5 {
            let mut all = vec![([1; SET], &b"x"[..]); n];
            assert!(found(&all).iter().all(String::is_empty));
            for odd in 0..n {
                all[odd].1 = b"y";
                assert!(found(&all).iter().all(|e| e.contains("different tensors from an owner")), "{odd}");
                for other in [last, first] {
                    // Whatever the tensors: which party's file is wrong, nobody can tell.
                    all[odd].0 = other;
                    assert!(found(&all).iter().all(|e| e.contains("not made together")), "{odd}");
                }
                all[odd] = ([1; SET], b"x");
            }
        }
    }
}
