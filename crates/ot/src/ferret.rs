//! Ferret (Yang, Weng, Lan, Zhang, Wang, CCS 2020, eprint 2020/924) with regular noise, semi-honest.
//!
//! A round turns a reserve of k + t h correlated OTs into t 2^h. The last t h of the reserve open the trees of
//! [`crate::spcot`]; the first k are the table that [`crate::lpn`] folds into every leaf. All traffic is in `start`; the
//! outputs are computed group by group when they are wanted, so a round that waits is its table and its roots.

use crate::cpu::Path;
use crate::delta::Delta;
use crate::error::{Malformed, exact};
use crate::hash::Trees;
use crate::lpn::Rows;
use crate::mutation;
use crate::params::Parameters;
use crate::spcot::{LANES, Quad, expand, masked, punctured, sums};
use privet_prg::{Domain, Prg, Seed, Wiped};
use zeroize::Zeroizing;

type Blocks = Wiped<u128>;

const SUMS: &str = "Ferret, sums of the trees";

/// What both parties of a round have.
struct Round {
    parameters: Parameters,
    trees: Trees,
    rows: Rows,
    table: Blocks,
    group: usize,
}

impl Round {
    /// Splits the reserve: the table stays, the rest is a quad a level of each group of trees.
    fn new(
        parameters: Parameters,
        public: &Seed,
        number: u64,
        mut reserve: Blocks,
    ) -> (Round, Zeroizing<Vec<Quad>>) {
        assert_eq!(reserve.len(), parameters.reserve(), "a round's reserve");
        let base = Zeroizing::new(reserve[parameters.k()..].as_chunks::<LANES>().0.to_vec());
        reserve.truncate(parameters.k());
        let rows = Rows::new(&public.derive(Domain::Common, number), parameters.log_k);
        // Round 0 of the hash belongs to SoftSpoken's trees.
        let trees = Trees::of_round(public, number + 1);
        (Round { parameters, trees, rows, table: reserve, group: 0 }, base)
    }

    /// Moves to the next group; its number, unless the round has ended.
    fn next(&mut self, out: &[u128]) -> Option<usize> {
        assert_eq!(out.len(), self.parameters.group_outputs(), "one group");
        let group = self.group;
        self.group += 1;
        (group < self.parameters.groups()).then_some(group)
    }
}

/// A sender's round, all of whose traffic is done.
pub struct SenderRound {
    round: Round,
    delta: Delta,
    roots: Zeroizing<Vec<Quad>>,
}

/// A receiver's round that waits for the sender's message.
pub struct WaitingRound {
    round: Round,
    base: Zeroizing<Vec<Quad>>,
}

/// A receiver's round, all of whose traffic is done.
pub struct ReceiverRound {
    waiting: WaitingRound,
    message: Vec<Quad>,
}

impl SenderRound {
    /// Uses a reserve up. Gives the message, [`Parameters::message_bytes`] long.
    pub fn start(
        parameters: Parameters,
        public: &Seed,
        number: u64,
        delta: &Delta,
        reserve: Blocks,
        prg: &mut Prg,
    ) -> (SenderRound, Vec<u8>) {
        let (round, base) = Round::new(parameters, public, number, reserve);
        let mut roots = Zeroizing::new(vec![[0; LANES]; parameters.groups()]);
        prg.fill_blocks(roots.as_flattened_mut());
        if mutation::active("roots-repeat") {
            roots.fill([1; LANES]);
        }
        let mut message = Vec::with_capacity(parameters.message_bytes());
        let mut parents = Wiped::zeros(parameters.group_outputs() / 2);
        for (roots, base) in roots.iter().zip(base.chunks(parameters.depth as usize)) {
            sums(&round.trees, delta.block(), roots, &mut parents, |level, sum| {
                message.extend(masked(sum, &base[level]).iter().flat_map(|c| c.to_le_bytes()));
            });
        }
        (SenderRound { round, delta: delta.clone(), roots }, message)
    }

    /// The next group of outputs, until the round has ended: then false.
    pub fn produce(&mut self, out: &mut [u128]) -> bool {
        let Some(group) = self.round.next(out) else { return false };
        let path = Path::detect();
        expand(&self.round.trees, self.delta.block(), &self.roots[group], out);
        if mutation::active("noise-left-out") {
            out.fill(0);
        }
        self.round.rows.fold(path, &self.round.table, out);
        true
    }
}

impl WaitingRound {
    /// Uses a reserve up.
    pub fn start(parameters: Parameters, public: &Seed, number: u64, reserve: Blocks) -> WaitingRound {
        let (round, base) = Round::new(parameters, public, number, reserve);
        WaitingRound { round, base }
    }

    /// With the sender's message.
    pub fn finish(self, message: &[u8]) -> Result<ReceiverRound, Malformed> {
        let bytes = exact(SUMS, message, self.round.parameters.message_bytes())?;
        let block = |b: &[u8; 16]| u128::from_le_bytes(*b);
        let quads = bytes.as_chunks::<16>().0.as_chunks::<LANES>().0;
        Ok(ReceiverRound { message: quads.iter().map(|q| q.each_ref().map(block)).collect(), waiting: self })
    }
}

impl ReceiverRound {
    /// The next group of outputs, until the round has ended: then false.
    pub fn produce(&mut self, out: &mut [u128]) -> bool {
        let WaitingRound { round, base } = &mut self.waiting;
        let Some(group) = round.next(out) else { return false };
        let path = Path::detect();
        let depth = round.parameters.depth as usize;
        let at = group * depth..(group + 1) * depth;
        punctured(path, &round.trees, &base[at.clone()], &self.message[at], out);
        if mutation::active("noise-left-out") {
            out.fill(0);
        }
        round.rows.fold(path, &round.table, out);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::B10;

    /// The protocol, as it reads in the paper; and the noise is there: a tree has one output that is no sum of the table.
    #[test]
    fn a_round_gives_correlations_with_one_noisy_choice_a_tree() {
        let public = Seed::from_bytes([1; 16]);
        let mut prg = Seed::from_bytes([2; 16]).stream();
        let delta = Delta::draw(&mut prg);
        let mut q = Wiped::zeros(B10.reserve());
        prg.fill_blocks(&mut q);
        q.iter_mut().for_each(|q| *q &= !1);
        let choices = prg.bits(B10.reserve());
        let t = |(i, q): (usize, &u128)| if choices.get(i) == 1 { q ^ delta.block() } else { *q };
        let t = q.iter().enumerate().map(t).collect::<Wiped<u128>>();
        let (table, of_sender) = (t[..B10.k()].to_vec(), q[..B10.k()].to_vec());

        let waiting = WaitingRound::start(B10, &public, 0, t);
        let (mut sender, message) = SenderRound::start(B10, &public, 0, &delta, q, &mut prg);
        assert_eq!(message.len(), B10.message_bytes());
        let mut receiver = waiting.finish(&message).unwrap();

        let row = || Rows::new(&public.derive(Domain::Common, 0), B10.log_k);
        let (mut rows, mut rows_of_sender, mut leaves) = (row(), row(), Vec::new());
        let (mut q, mut t) = (vec![0; B10.group_outputs()], vec![0; B10.group_outputs()]);
        let (mut ones, mut groups) = (0, 0);
        while sender.produce(&mut q) {
            assert!(receiver.produce(&mut t));
            let mut sums = vec![0; B10.group_outputs()];
            rows.fold(Path::Portable, &table, &mut sums);
            let mut noisy = [0; LANES];
            for (i, ((q, t), sum)) in q.iter().zip(&t).zip(&sums).enumerate() {
                assert_eq!(q ^ t, if t & 1 == 1 { delta.block() } else { 0 });
                noisy[i % LANES] += ((t ^ sum) & 1) as usize;
                ones += (t & 1) as usize;
            }
            assert_eq!(noisy, [1; LANES], "group {groups}");
            if groups < 2 {
                rows_of_sender.fold(Path::Portable, &of_sender, &mut q);
                leaves.extend_from_slice(&q);
            }
            groups += 1;
        }
        assert!(!receiver.produce(&mut t));
        let all = leaves.len();
        leaves.sort();
        leaves.dedup();
        assert_eq!(leaves.len(), all, "every tree has leaves of its own");
        assert_eq!(groups * B10.group_outputs(), B10.n());
        assert!(ones.abs_diff(B10.n() / 2) < 4000, "{ones} choices are one");
    }

    #[test]
    fn a_message_of_another_length_is_named() {
        let public = Seed::from_bytes([1; 16]);
        let waiting = WaitingRound::start(B10, &public, 0, Wiped::zeros(B10.reserve()));
        let expected = B10.message_bytes();
        let error = waiting.finish(&vec![0; expected - 1]).map(|_| ()).unwrap_err();
        assert_eq!(error, Malformed::Length { step: SUMS, expected, found: expected - 1 });
    }
}
