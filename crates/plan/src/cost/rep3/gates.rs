//! What the gates send (docs/rep3.md, sections 2 and 3): the same moves in the same order as in `crates/rep3/src/gates`.

use super::{Rep3, Security, Talk, packed};
use crate::tournament::Level;

/// A vector in three parts, cut at multiples of 64 elements.
struct Parts {
    elements: [u64; 3],
    words: [u64; 3],
}

impl Parts {
    fn of(n: u64) -> Parts {
        let words = n.div_ceil(64);
        let cut = |j: u64| (words * j).div_ceil(3);
        let element = |j: u64| (64 * cut(j)).min(n);
        let each = |at: &dyn Fn(u64) -> u64| [0, 1, 2].map(|j| at(j + 1) - at(j));
        Parts { elements: each(&element), words: each(&cut) }
    }

    /// Party j deals its part.
    fn deal(&self, bits: u32) -> Talk {
        Talk { sent: self.elements.map(|n| packed(n, bits)), rounds: 1 }
    }

    fn deal_planes(&self, planes: u64) -> Talk {
        Talk { sent: self.words.map(|w| 8 * planes * w), rounds: 1 }
    }

    /// Both parties other than the dealer send one element each.
    fn split(&self, bits: u32) -> Talk {
        Talk { sent: others(self.elements.map(|n| packed(n, bits))), rounds: 1 }
    }

    fn split_planes(&self, planes: u64) -> Talk {
        Talk { sent: others(self.words.map(|w| 8 * planes * w)), rounds: 1 }
    }

    fn and(&self, planes: u64) -> Talk {
        Talk { sent: [8 * planes * self.words.iter().sum::<u64>(); 3], rounds: 1 }
    }

    /// The levels above pairs of bits: `ands(blocks)` for that many, until one is left.
    fn tree(&self, mut blocks: u64, ands: impl Fn(u64) -> u64) -> Talk {
        let mut talk = Talk::default();
        while blocks > 1 {
            talk = talk.then(self.and(ands(blocks)));
            blocks = blocks.div_ceil(2);
        }
        talk
    }

    /// The carry out of m bits whose summands are shared.
    fn carry(&self, m: u64) -> Talk {
        if m == 0 {
            return Talk::default();
        }
        let pairs = m / 2;
        // the lowest block of those that are left does not propagate
        let ands = |blocks: u64| 1 + 2 * (blocks / 2 - 1);
        self.split_planes(pairs + m % 2 + pairs.saturating_sub(1)).then(self.tree(m.div_ceil(2), ands))
    }

    /// The sign bit of k bits.
    fn sign(&self, k: u32) -> Talk {
        match k as u64 - 1 {
            0 => Talk::default(),
            m => self.deal_planes(m + 1 + m / 2).then(self.carry(m)),
        }
    }

    /// Whether all of k bits of the summands differ.
    fn all_differ(&self, k: u64) -> Talk {
        let first = if k > 1 { self.split_planes(k / 2) } else { Talk::default() };
        self.deal_planes(k + k / 2).then(first).then(self.tree(k.div_ceil(2), |blocks| blocks / 2))
    }

    /// A bit as a number.
    fn number(&self, bits: u32) -> Talk {
        if bits == 1 { Talk::default() } else { self.deal(bits).then(self.split(bits)) }
    }

    /// A bit times a value in each of `rings`.
    fn select(&self, rings: &[u32]) -> Talk {
        let deals = rings.iter().map(|&k| self.deal(k).and_also(self.deal(k)));
        let splits = rings.iter().map(|&k| self.split(k));
        let both = |talks: &mut dyn Iterator<Item = Talk>| talks.fold(Talk::default(), Talk::and_also);
        both(&mut deals.into_iter()).then(both(&mut splits.into_iter()))
    }

    /// The carries of the m low bits, in `bits` bits, from what is dealt of them and the carry c.
    fn carries(&self, security: Security, m: u64, bits: u32) -> Talk {
        // the dealer's own carry, as a bit, is what it proves
        let proof = u64::from(security == Security::Malicious);
        let dealt = self.deal(bits).and_also(self.deal(bits));
        self.deal_planes(m + proof + m / 2).then(self.carry(m)).then(dealt).then(self.split(bits))
    }

    /// The same of numbers below 2^(m-1).
    fn carries_below_half(&self, security: Security, m: u64, bits: u32) -> Talk {
        let mut dealt = self.deal(bits).and_also(self.deal(bits));
        if security == Security::Malicious {
            dealt = dealt.and_also(self.deal_planes(m + 1));
        }
        dealt.then(self.split(bits))
    }
}

/// What each party sends where it sends as much as the others' parts are long.
fn others(parts: [u64; 3]) -> [u64; 3] {
    [parts[1] + parts[2], parts[2] + parts[0], parts[0] + parts[1]]
}

impl Talk {
    /// In the same rounds.
    fn and_also(self, other: Talk) -> Talk {
        let sent = std::array::from_fn(|i| self.sent[i] + other.sent[i]);
        Talk { sent, rounds: self.rounds.max(other.rounds) }
    }
}

/// Vectors longer than [`Rep3::BLOCK`] go through a gate in blocks.
fn blocks(n: u64, gate: impl Fn(Parts) -> Talk) -> Talk {
    let (full, rest) = (n / Rep3::BLOCK as u64, n % Rep3::BLOCK as u64);
    let mut talk = Talk::default();
    for _ in 0..full {
        talk = talk.then(gate(Parts::of(Rep3::BLOCK as u64)));
    }
    if rest > 0 || full == 0 { talk.then(gate(Parts::of(rest))) } else { talk }
}

pub(super) fn is_negative(n: u64, from: u32, to: u32) -> Talk {
    blocks(n, |parts| parts.sign(from).then(parts.number(to)))
}

pub(super) fn equal(n: u64, from: u32, to: u32) -> Talk {
    blocks(n, |parts| parts.all_differ(from as u64).then(parts.number(to)))
}

pub(super) fn truncate(security: Security, n: u64, from: u32, shift: u32) -> Talk {
    match shift {
        0 => Talk::default(),
        _ => blocks(n, |parts| parts.carries(security, shift as u64, from - shift)),
    }
}

pub(super) fn extend(security: Security, n: u64, from: u32, to: u32) -> Talk {
    match to - from {
        0 => Talk::default(),
        growth => blocks(n, |parts| parts.carries(security, from as u64, growth)),
    }
}

pub(super) fn relu(security: Security, n: u64, from: u32, to: u32) -> Talk {
    blocks(n, |parts| {
        let relu = parts.sign(from).then(parts.select(&[from]));
        match to - from {
            0 => relu,
            growth => relu.then(parts.carries_below_half(security, from as u64, growth)),
        }
    })
}

/// All games of the levels, each a ReLU.
pub(super) fn tournament(security: Security, levels: &[Level], bits: u32) -> Talk {
    games(levels).map(|n| relu(security, n, bits, bits)).sum()
}

/// Games in which the bit selects the index, too.
pub(super) fn argmax(levels: &[Level], bits: u32, index: u32) -> Talk {
    let game = |parts: Parts| parts.sign(bits).then(parts.select(&[bits, index]));
    games(levels).map(|n| game(Parts::of(n))).sum()
}

/// Games of every level that has any.
fn games(levels: &[Level]) -> impl Iterator<Item = u64> {
    levels.iter().map(|level| level.pair_len() as u64).filter(|&pairs| pairs > 0)
}
