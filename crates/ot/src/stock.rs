//! Correlations of one direction that are made and not yet taken: blocks that are there, and rounds that give more.

use crate::cot::Blocks;
use crate::ferret::{ReceiverRound, SenderRound};
use crate::mutation;
use crate::params::Parameters;
use privet_prg::Wiped;
use std::collections::VecDeque;
use thiserror::Error;

/// Fewer correlations are there than were asked for: more must be prepared first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{wanted} correlations are asked for and {available} prepared; prepare more")]
pub struct Short {
    /// Asked for.
    pub wanted: usize,
    /// There.
    pub available: usize,
}

/// A round whose traffic is done.
pub(crate) trait Produce {
    /// The next group; false once there is none.
    fn produce(&mut self, out: &mut [u128]) -> bool;
}

impl Produce for SenderRound {
    fn produce(&mut self, out: &mut [u128]) -> bool {
        SenderRound::produce(self, out)
    }
}

impl Produce for ReceiverRound {
    fn produce(&mut self, out: &mut [u128]) -> bool {
        ReceiverRound::produce(self, out)
    }
}

/// What one party has of one direction. Both parties' stocks move alike.
pub(crate) struct Stock<R> {
    /// Room, of which `read..end` can be taken.
    ready: Blocks,
    read: usize,
    end: usize,
    rounds: VecDeque<(Blocks, R)>,
    waiting: usize,
    taken: u64,
    /// The next round's, once there is one.
    reserve: Option<Blocks>,
    /// Number of the next round.
    pub round: u64,
}

impl<R: Produce> Stock<R> {
    pub fn new() -> Stock<R> {
        let ready = Wiped::default();
        Stock {
            ready,
            read: 0,
            end: 0,
            rounds: VecDeque::new(),
            waiting: 0,
            taken: 0,
            reserve: None,
            round: 0,
        }
    }

    /// What can be taken.
    pub fn available(&self) -> usize {
        self.end - self.read + self.waiting
    }

    /// Whether a round can start.
    pub fn has_reserve(&self) -> bool {
        self.reserve.is_some()
    }

    /// Room for `n` more blocks, to be filled in.
    pub fn grow(&mut self, n: usize) -> &mut [u128] {
        debug_assert!(self.rounds.is_empty(), "blocks of an extension come before rounds");
        let rest = self.end - self.read;
        if self.read > rest {
            self.ready.copy_within(self.read..self.end, 0);
            (self.read, self.end) = (0, rest);
        }
        let at = self.end;
        self.end += n;
        self.make_room();
        &mut self.ready[at..self.end]
    }

    /// Room for all up to `end`.
    fn make_room(&mut self) {
        if self.end > self.ready.len() {
            resize(&mut self.ready, self.end);
        }
    }

    /// Sets the first reserve aside, out of what an extension gave.
    pub fn set_reserve(&mut self, parameters: Parameters) {
        let at = self.end - parameters.reserve();
        self.reserve = Some(Wiped::copy_of(&self.ready[at..self.end]));
        (self.ready, self.read, self.end) = (Wiped::default(), 0, 0);
    }

    /// The reserve, for the round that starts now.
    pub fn use_reserve(&mut self) -> Blocks {
        self.round += 1;
        self.reserve.take().expect("a reserve is set aside before a round starts")
    }

    /// Adds a round. Its first outputs are the next round's reserve, whenever that starts: so what a round gives does not
    /// depend on when others are prepared.
    pub fn push(&mut self, parameters: Parameters, mut round: R) {
        let mut first = Wiped::default();
        while first.len() < parameters.reserve() {
            let at = first.len();
            resize(&mut first, at + parameters.group_outputs());
            assert!(round.produce(&mut first[at..]), "a round gives more than its reserve");
        }
        let rest = Wiped::new(first.split_off(parameters.reserve()));
        let again = mutation::active("reserve-given-out").then(|| first[..rest.len()].to_vec());
        self.reserve = Some(first);
        self.waiting += parameters.usable();
        self.rounds.push_back((again.map_or(rest, Wiped::new), round));
    }

    /// The next `n`, and the number of the first.
    pub fn take(&mut self, n: usize, group: usize) -> Result<(u64, Blocks), Short> {
        if n > self.available() {
            return Err(Short { wanted: n, available: self.available() });
        }
        let mut out = Wiped::with_room(n);
        while out.len() < n {
            if self.read == self.end {
                self.refill(group);
            }
            let here = (n - out.len()).min(self.end - self.read);
            out.extend_from_slice(&self.ready[self.read..self.read + here]);
            self.read += here;
        }
        let first = self.taken;
        self.taken += n as u64;
        Ok((first, out))
    }

    /// One more group into the empty buffer.
    fn refill(&mut self, group: usize) {
        self.read = 0;
        let (rest, round) = self.rounds.front_mut().expect("what is available is there");
        if !rest.is_empty() {
            self.ready = std::mem::take(rest);
            self.end = self.ready.len();
        } else {
            if self.ready.len() < group {
                resize(&mut self.ready, group);
            }
            let more = round.produce(&mut self.ready[..group]);
            self.end = if more { group } else { 0 };
            if !more {
                self.rounds.pop_front();
            }
        }
        self.waiting -= self.end;
    }
}

/// Resizes without leaving a copy of the old blocks behind.
fn resize(blocks: &mut Blocks, len: usize) {
    if len > blocks.capacity() {
        let mut larger = Wiped::with_room(len.next_power_of_two());
        larger.extend_from_slice(blocks);
        *blocks = larger;
    }
    blocks.resize(len, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::B10;

    /// Gives the numbers from `at` on.
    struct Counter {
        at: u128,
        end: u128,
    }

    impl Produce for Counter {
        fn produce(&mut self, out: &mut [u128]) -> bool {
            let more = self.at < self.end;
            for o in out {
                *o = self.at;
                self.at += 1;
            }
            more
        }
    }

    #[test]
    fn every_output_is_given_once_or_kept_for_the_next_round() {
        let mut stock = Stock::new();
        let n = B10.n() as u128;
        let mut seen = Vec::new();
        for round in 0..2 {
            stock.push(B10, Counter { at: round * n, end: (round + 1) * n });
            seen.extend_from_slice(&stock.use_reserve());
        }
        assert_eq!(stock.available(), 2 * B10.usable());
        let mut numbers = 0;
        for part in [1, 63, 100_000, B10.usable() - 100_064, B10.usable() - 1, 1] {
            let (first, blocks) = stock.take(part, B10.group_outputs()).unwrap();
            assert_eq!((first, blocks.len()), (numbers, part));
            numbers += part as u64;
            seen.extend_from_slice(&blocks);
        }
        seen.sort();
        assert!(seen.iter().enumerate().all(|(i, v)| i as u128 == *v) && seen.len() == 2 * B10.n());
        let short = stock.take(1, B10.group_outputs()).unwrap_err();
        assert_eq!(short, Short { wanted: 1, available: 0 });
    }
}
