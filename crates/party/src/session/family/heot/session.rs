//! What both parties know alike of a session and its records.

use super::HeotError;
use crate::session::control::Talk;
use crate::session::job::JobError;
use crate::store::{SessionFile, SessionId, StoreError};
use privet_family::Parameters;
use privet_heot::{Link, Session, suiting};
use privet_net::{Channel, round_trip};
use privet_prg::Seed;
use std::collections::BTreeSet;

/// Most runs of which a party lists the records.
const MOST: usize = 1 << 20;

/// The two records of a run. In a store each has a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What gates use up, made of transfers: of any weights.
    Material,
    /// Masks of linear layers, under the session's hints.
    Masks,
}

impl Kind {
    /// The number of a run's record.
    pub fn index(self, run: u64) -> u64 {
        2 * run + self as u64
    }

    /// The least run all of whose records have this number or a higher one.
    pub fn next_run(index: u64) -> u64 {
        index.div_ceil(2)
    }

    /// The run whose record of this kind has a number.
    pub fn run(self, index: u64) -> Option<u64> {
        (index & 1 == self as u64).then_some(index / 2)
    }
}

/// The name that both parties gave a session when they prepared it.
pub(super) fn name_of(file: &SessionFile) -> Result<[u8; 16], HeotError> {
    let damaged = || StoreError::Missing { what: "the name of a session".into() };
    file.keys[..].try_into().map_err(|_| damaged().into())
}

/// A digest of what both parties must hold alike of a session: its name, the plan, and every byte of the hints.
pub(super) fn shared_name(id: &SessionId, name: &[u8; 16], session: &Session) -> [u8; 32] {
    let mut hash = blake3::Hasher::new_derive_key("privet heot: what parties hold alike of a session v1");
    hash.update(&id.session).update(&id.plan).update(name).update(session.name());
    *hash.finalize().as_bytes()
}

/// The public name of the masks of a run. Both parties drew the session's name, a session begins once, and has no two runs of a number:
/// so the name is of these masks alone. That the hints are the same is compared before a record gets it.
pub(super) fn masks_name(name: &[u8; 16], run: u64) -> [u8; 16] {
    let mut hash = blake3::Hasher::new_derive_key("privet heot: masks of a run v3");
    hash.update(name).update(&run.to_le_bytes());
    let mut name = [0; 16];
    hash.finalize_xof().fill(&mut name);
    name
}

/// The public coins of a run. The name of its material follows from what both parties drew when they made it, each before it
/// heard the other: neither chooses it, as long as it follows the protocol.
pub(super) fn coins(sets: &[[u8; 16]; 2]) -> Seed {
    let mut hash = blake3::Hasher::new_derive_key("privet heot: public coins of a run v1");
    hash.update(sets.as_flattened());
    let mut seed = [0; 16];
    hash.finalize_xof().fill(&mut seed);
    Seed::from_bytes(seed)
}

/// What packings are for: what the deployment says, or the way between both as they measure it.
pub(super) fn link(chosen: &Parameters, channel: &mut dyn Channel) -> Result<Link, JobError> {
    if let Some(link) = privet_heot::link(chosen) {
        return Ok(link);
    }
    let round_trip = round_trip(&Talk::Digest.step(), &mut [channel])?;
    Ok(suiting(round_trip.as_secs_f64()))
}

/// Runs that both parties list, ascending.
pub(super) fn common(runs: &[u64], channel: &mut dyn Channel) -> Result<Vec<u64>, JobError> {
    let step = Talk::Digest.step();
    let ours: Vec<u8> = runs.iter().take(MOST).flat_map(|run| run.to_le_bytes()).collect();
    channel.send(&step, ours)?;
    let theirs = channel.recv_up_to(&step, 8 * MOST)?;
    let (theirs, []) = theirs.as_chunks::<8>() else { return Err(HeotError::Numbers.into()) };
    let theirs: BTreeSet<u64> = theirs.iter().map(|run| u64::from_le_bytes(*run)).collect();
    Ok(runs.iter().take(MOST).copied().filter(|run| theirs.contains(run)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_has_a_number_of_its_own() {
        let mut seen = Vec::new();
        for run in 0..5 {
            for kind in [Kind::Material, Kind::Masks] {
                let index = kind.index(run);
                assert_eq!(kind.run(index), Some(run));
                assert_eq!([Kind::Material, Kind::Masks].iter().filter_map(|k| k.run(index)).count(), 1);
                seen.push(index);
            }
        }
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn coins_follow_from_both_names() {
        let all =
            [[[1; 16], [2; 16]], [[2; 16], [1; 16]], [[1; 16], [1; 16]]].map(|sets| *coins(&sets).expose());
        assert!(all[0] != all[1] && all[0] != all[2] && all[1] != all[2]);
    }
}
