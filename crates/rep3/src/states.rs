//! What outlives a run: shares of states, as a party keeps them between steps and writes them to a checkpoint.
//!
//! The caller keeps the states of the last two steps, names the step that a run starts from, and puts header and checksum
//! around what is written (docs/training.md). After states were read back, holders compare digests of the components that
//! both have before anything is computed from them (docs/rep3.md, section 7).

use crate::sharing::{component, pack_component};
use crate::{Digests, Share, SharingError};
use privet_plan::Plan;
use privet_plan::ir::Op;
use privet_ring::Ring;
use std::collections::BTreeMap;
use thiserror::Error;

/// A party's shares of states, by name.
pub type States = BTreeMap<String, Share>;

/// The states of a program: their names, rings and numbers of elements, which say how shares of them are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateKinds(BTreeMap<String, Kind>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    ring: Ring,
    len: usize,
}

/// States that are not those of the program.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum StateError {
    /// Two plans of a program have different ideas of a state.
    #[error("the program's plans disagree about state `{0}`: compile them together")]
    Plans(String),
    /// A state that should be there.
    #[error(
        "this party has no share of state `{0}`: begin the training again, or resume it from a checkpoint"
    )]
    Missing(String),
    /// A share of another length.
    #[error("the share of state `{name}` has {found} elements, not {expected}: it is of another program")]
    Length {
        /// The state.
        name: String,
        /// Elements of the plan's.
        expected: usize,
        /// Elements found.
        found: usize,
    },
    /// Bytes that are not the states of this program.
    #[error("the saved states are not this program's, or were changed: {0}")]
    Bytes(#[from] SharingError),
}

impl StateKinds {
    /// The states of all the plans of a program, which may each read some of them.
    pub fn of<'p>(plans: impl IntoIterator<Item = &'p Plan>) -> Result<StateKinds, StateError> {
        let mut kinds = BTreeMap::new();
        for node in plans.into_iter().flat_map(|plan| &plan.nodes) {
            let Op::State { name, .. } = &node.op else { continue };
            let kind = Kind { ring: Ring::new(node.ty.bits), len: node.ty.len() };
            if kinds.insert(name.clone(), kind).is_some_and(|other| other != kind) {
                return Err(StateError::Plans(name.clone()));
            }
        }
        Ok(StateKinds(kinds))
    }

    /// Bytes that [`StateKinds::encode`] gives: both components of every element, packed.
    pub fn encoded_len(&self) -> usize {
        let bytes = |kind: &Kind| kind.ring.packed_bytes(kind.len).saturating_mul(2);
        self.0.values().map(bytes).fold(0, usize::saturating_add)
    }

    /// A party's shares of all states: in the order of their names component i, then component i + 1, packed. What names
    /// program, training, step and party, and a checksum, is the caller's.
    pub fn encode(&self, states: &States) -> Result<Vec<u8>, StateError> {
        let mut out = Vec::with_capacity(self.encoded_len());
        for (_, kind, share) in self.each(states)? {
            pack_component(kind.ring, &share.own, &mut out);
            pack_component(kind.ring, &share.next, &mut out);
        }
        Ok(out)
    }

    /// From [`StateKinds::encode`]'s bytes, all of them and nothing else.
    pub fn decode(&self, mut bytes: &[u8]) -> Result<States, StateError> {
        let (expected, found) = (self.encoded_len(), bytes.len());
        if expected != found {
            return Err(SharingError::Length { expected, found }.into());
        }
        let mut states = States::new();
        for (name, kind) in &self.0 {
            let own = component(kind.ring, kind.len, &mut bytes)?;
            let next = component(kind.ring, kind.len, &mut bytes)?;
            states.insert(name.clone(), Share::new(own, next));
        }
        Ok(states)
    }

    /// What the holders of a component compare ([`crate::Party::compare`]) after states were shared or read back. `context`
    /// is public and says which they are: program, training and step.
    pub fn digests(&self, context: &[u8], states: &States) -> Result<Digests, StateError> {
        let mut digests = Digests::default();
        digests.bind(context);
        for (name, kind, share) in self.each(states)? {
            digests.add(name, kind.ring, share);
        }
        Ok(digests)
    }

    /// Every state of the program with the party's share of it.
    fn each<'a>(&'a self, states: &'a States) -> Result<Vec<(&'a str, Kind, &'a Share)>, StateError> {
        let one = |(name, kind): (&'a String, &Kind)| {
            let share = states.get(name).ok_or_else(|| StateError::Missing(name.clone()))?;
            match (kind.len, share.len()) {
                (expected, found) if expected == found => Ok((name.as_str(), *kind, share)),
                (expected, found) => Err(StateError::Length { name: name.clone(), expected, found }),
            }
        };
        self.0.iter().map(one).collect()
    }
}
