//! What the gates send and have to prove (docs/rep3.md, sections 2, 3 and 6): the same moves in the same order as in
//! `crates/rep3/src/gates`.

use super::claims::Moves;
use super::proofs::{Extension, by_element, depth, few_rows};
use super::{Setting, Talk, packed};
use crate::Security;
use crate::moves::masked_block;
use privet_family::Products;
use privet_plan::Cut;
use privet_plan::tournament::Tournament;

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

    fn planes(&self, count: u64) -> [u64; 3] {
        self.words.map(|w| count * w)
    }

    /// Party j deals its part.
    fn deal(&self, bits: u32) -> Moves {
        Talk { sent: self.elements.map(|n| packed(n, bits)), rounds: 1 }.into()
    }

    fn deal_planes(&self, planes: u64) -> Moves {
        Talk { sent: self.planes(planes).map(|w| 8 * w), rounds: 1 }.into()
    }

    /// Party j + 1 deals for the part of party j.
    fn deal_turned(&self, bits: u32) -> Moves {
        let [a, b, c] = self.elements.map(|n| packed(n, bits));
        Talk { sent: [c, a, b], rounds: 1 }.into()
    }

    /// Party j deals a number, a sum of so many bits that it knows, which is stated: a term for every set of bits.
    fn deal_bits(&self, bits: u32, count: u32) -> Moves {
        self.deal(bits).stating_numbers(self.elements, bits, sets(count))
    }

    /// Both parties other than the dealer send one number each, of so many products with bits of theirs and so many with bits of the
    /// dealer's, and state it.
    fn select(&self, bits: u32, chosen: u32, turned: u32) -> Moves {
        let talk = Talk { sent: others(self.elements.map(|n| packed(n, bits))), rounds: 1 };
        // a set of bits of either side is a term, and one of both
        let (terms, [after, before]) = (sets(chosen.max(turned)), turns(self.elements));
        Moves::from(talk).stating_numbers(after, bits, terms).stating_numbers(before, bits, terms)
    }

    /// Some planes at once, so many with so many products each, of which a term states two.
    fn split_planes(&self, planes: &[(u64, usize)]) -> Moves {
        let count: u64 = planes.iter().map(|(planes, _)| planes).sum();
        let talk = Talk { sent: others(self.planes(count).map(|w| 8 * w)), rounds: 1 };
        planes.iter().fold(talk.into(), |moves, &(planes, products)| {
            stated_by_others(moves, self.planes(planes), products.div_ceil(2))
        })
    }

    /// So many planes at once, each with statements of its own about everybody.
    fn and(&self, planes: u64) -> Moves {
        let words: u64 = self.words.iter().sum();
        let moves = Talk { sent: [8 * planes * words; 3], rounds: 1 }.into();
        (0..planes).fold(moves, |moves: Moves, _| moves.stating(Extension::Bits, [words; 3], 1))
    }

    /// The bits of the dealer's summand: m that are added and `top` above them, and for a tree the products of pairs.
    fn bits(&self, m: u64, top: u64, tree: bool) -> Moves {
        let (bits, products) = (m + top, if tree { m / 2 } else { 0 });
        // nothing is carried into the lowest bit; the carries into those above it, from even and odd ones and from bit m; the products
        let below = m.min(bits - 1);
        let stated = [1, below.div_ceil(2), below / 2, bits - 1 - below, products];
        let dealt = self.deal_planes(bits + products);
        stated.iter().fold(dealt, |moves, &count| moves.stating(Extension::Bits, self.planes(count), 1))
    }

    /// The levels above pairs of bits: `ands(blocks)` for that many, until one is left.
    fn tree(&self, mut blocks: u64, ands: impl Fn(u64) -> u64) -> Moves {
        let mut moves = Moves::default();
        while blocks > 1 {
            moves = moves.then(self.and(ands(blocks)));
            blocks = blocks.div_ceil(2);
        }
        moves
    }

    /// The carry out of m bits whose summands are shared.
    fn carry(&self, m: u64) -> Moves {
        if m == 0 {
            return Moves::default();
        }
        self.pairs(m).then(self.tree(m.div_ceil(2), carried))
    }

    /// The carry out of m bits, and that out of the lowest `low`: an AND for each block that these are made of but the first one, from
    /// the level on in which the tree has blocks as large as that. With the level after it goes what is dealt of it.
    fn carries_out_of(&self, m: u64, low: u64, dealt: Moves) -> Moves {
        let (pairs, odd) = (low / 2, low % 2);
        let first = pairs.checked_ilog2().unwrap_or(0);
        let last = first + pairs.count_ones().saturating_sub(1) + odd as u32;
        let (mut moves, mut blocks, mut dealt) = (self.pairs(m), m.div_ceil(2), Some(dealt));
        for level in 0.. {
            let ands =
                if blocks > 1 { carried(blocks) } else { 0 } + u64::from((first..last).contains(&level));
            let beside = dealt.take_if(|_| level == last);
            if ands == 0 && beside.is_none() {
                break;
            }
            blocks = blocks.div_ceil(2);
            let made = if ands == 0 { Moves::default() } else { self.and(ands) };
            moves = moves.then(made.and_also(beside.unwrap_or_default()));
        }
        moves
    }

    /// What the blocks of two bits carry and propagate.
    fn pairs(&self, m: u64) -> Moves {
        let pairs = m / 2;
        let (lowest, above) = (if pairs == 0 { (m, 1) } else { (1, 3) }, pairs.saturating_sub(1));
        self.split_planes(&[lowest, (above, 1), (above, 2)])
    }

    /// The sign bit of k bits.
    fn sign(&self, k: u32) -> Moves {
        match k as u64 - 1 {
            0 => Moves::default(),
            m => self.bits(m, 1, true).then(self.carry(m)),
        }
    }

    /// Whether all of k bits of the summands differ.
    fn all_differ(&self, k: u64) -> Moves {
        let first = if k > 1 { self.split_planes(&[(k / 2, 2)]) } else { Moves::default() };
        self.bits(k, 0, true).then(first).then(self.tree(k.div_ceil(2), |blocks| blocks / 2))
    }

    /// A bit as a number.
    fn number(&self, bits: u32) -> Moves {
        if bits == 1 { Moves::default() } else { self.deal_bits(bits, 1).then(self.select(bits, 1, 0)) }
    }

    /// A bit times a value in each of `rings`: the party after the dealer deals its product with a component of the bit, the dealer its
    /// own with the bit.
    fn times(&self, rings: &[u32]) -> Moves {
        let all = |moves: &dyn Fn(u32) -> Moves| {
            rings.iter().fold(Moves::default(), |all, &bits| all.and_also(moves(bits)))
        };
        let dealt = all(&|bits| {
            let product = self.deal(bits).stating_numbers(self.elements, bits, 1);
            let [after, _] = turns(self.elements);
            product.and_also(self.deal_turned(bits).stating_numbers(after, bits, 1))
        });
        dealt.then(all(&|bits| self.select(bits, 1, 1)))
    }

    /// The carries of the m low bits, in `bits` bits, from what is dealt of them and the carry c.
    fn carries(&self, security: Security, m: u64, bits: u32) -> Moves {
        // the dealer's own carry, as a bit, is what it proves
        let proof = u64::from(security == Security::Malicious);
        let (dealt, chosen) = self.carries_dealt(bits, 0);
        self.bits(m, proof, true).then(self.carry(m)).then(dealt).then(self.select(bits, chosen, 0))
    }

    /// The same, less what k bits carry of a number below 2^(k-1): one sum of two products.
    fn carries_and_wraps(&self, security: Security, k: u64, shift: u64, bits: u32) -> Moves {
        let (growth, proof) = (bits - (k - shift) as u32, u64::from(security == Security::Malicious));
        let (mut dealt, chosen) = self.carries_dealt(bits, growth);
        if security == Security::Malicious {
            dealt = dealt.and_also(self.bits(k, 1, false));
        }
        self.bits(shift, proof, true).then(self.carry(shift)).then(dealt).then(self.select(bits, chosen, 0))
    }

    /// A ReLU of what is left of k bits, in `bits` bits.
    fn relu_of_cut(&self, security: Security, cut: Cut, bits: u32) -> Moves {
        let (left, proves) = (cut.bits - cut.shift, security == Security::Malicious);
        let (growth, m) = (bits - left, cut.bits as u64 - 1);
        let (dealt, chosen) = self.carries_dealt(bits, growth);
        let signs = self.bits(m, 1 + u64::from(proves && growth > 0), true);
        let carries = self.carries_out_of(m, cut.shift as u64, dealt);
        signs.then(carries).then(self.select(bits, chosen, 0)).then(self.times(&[bits]))
    }

    /// The same of numbers below 2^(m-1).
    fn carries_below_half(&self, security: Security, m: u64, bits: u32) -> Moves {
        let (mut dealt, chosen) = self.carries_dealt(bits, 0);
        if security == Security::Malicious {
            dealt = dealt.and_also(self.bits(m, 1, false));
        }
        dealt.then(self.select(bits, chosen, 0))
    }

    /// What is dealt to make carries numbers of so many bits, less wraps that are needed in `growth` bits, if they are; and how many products
    /// come after it.
    fn carries_dealt(&self, bits: u32, growth: u32) -> (Moves, u32) {
        let bit = |bits| self.deal_bits(bits, 1);
        match growth {
            0 => (bit(bits).and_also(bit(bits)), 1),
            growth => (bit(bits).and_also(bit(growth)).and_also(self.deal_bits(bits, 2)), 2),
        }
    }
}

/// ANDs of a level of carries of so many blocks: the lowest one of those that are left does not propagate.
fn carried(blocks: u64) -> u64 {
    1 + 2 * (blocks / 2 - 1)
}

/// The nonempty sets of so many bits.
fn sets(bits: u32) -> usize {
    (1 << bits) - 1
}

/// What each party sends where it sends as much as the others' parts are long.
fn others(parts: [u64; 3]) -> [u64; 3] {
    [parts[1] + parts[2], parts[2] + parts[0], parts[0] + parts[1]]
}

/// With statements about words of bits of both parties other than the dealer, for each part.
fn stated_by_others(moves: Moves, words: [u64; 3], terms: usize) -> Moves {
    let [after, before] = turns(words);
    moves.stating(Extension::Bits, after, terms).stating(Extension::Bits, before, terms)
}

/// Of each party, what there is of the part of the party before it, and of the party after it: what is said of the party after each part's
/// dealer, and of the one before.
fn turns([a, b, c]: [u64; 3]) -> [[u64; 3]; 2] {
    [[c, a, b], [b, c, a]]
}

/// One after the other, and what was stated may be verified between two of them.
fn in_pieces(mut pieces: impl Iterator<Item = Moves>) -> Moves {
    let first = pieces.next().unwrap_or_default();
    pieces.fold(first, Moves::then_if_verified)
}

impl Setting {
    /// Long vectors go through a gate in blocks, and what was stated may be verified between two of them.
    fn blocks(&self, n: u64, gate: impl Fn(Parts) -> Moves) -> Moves {
        in_pieces(self.limits.blocks(n as usize).map(|block| gate(Parts::of(block.len() as u64))))
    }

    /// Signs.
    pub fn is_negative(&self, n: u64, from: u32, to: u32) -> Moves {
        self.blocks(n, |parts| parts.sign(from).then(parts.number(to)))
    }

    /// Whether numbers are zero.
    pub fn equal(&self, n: u64, from: u32, to: u32) -> Moves {
        self.blocks(n, |parts| parts.all_differ(from as u64).then(parts.number(to)))
    }

    /// Truncation to the bits that it leaves.
    pub fn truncate(&self, n: u64, from: u32, shift: u32) -> Moves {
        if shift == 0 { Moves::default() } else { self.carries(n, shift, from - shift) }
    }

    /// What is above the bits that a truncation leaves, of values known to be below half of `from` bits.
    pub fn wraps(&self, n: u64, from: u32, growth: u32) -> Moves {
        self.blocks(n, |parts| parts.carries_below_half(self.security, from as u64, growth))
    }

    /// Truncation to `to` bits, more than it leaves.
    pub fn truncate_keeping(&self, n: u64, from: u32, shift: u32, to: u32) -> Moves {
        self.blocks(n, |parts| parts.carries_and_wraps(self.security, from as u64, shift as u64, to))
    }

    /// By a bit that is there: of a bit an AND.
    pub fn choose(&self, n: u64, bits: u32) -> Moves {
        match bits {
            1 => self.blocks(n, |parts| parts.and(1)),
            _ => self.blocks(n, |parts| parts.times(&[bits])),
        }
    }

    /// Extension of signed numbers.
    pub fn extend(&self, n: u64, from: u32, to: u32) -> Moves {
        if from == to { Moves::default() } else { self.carries(n, from, to - from) }
    }

    /// ReLU to `to` bits.
    pub fn relu(&self, n: u64, from: u32, to: u32) -> Moves {
        self.blocks(n, |parts| {
            let relu = parts.sign(from).then(parts.times(&[from]));
            match to - from {
                0 => relu,
                growth => relu.then(parts.carries_below_half(self.security, from as u64, growth)),
            }
        })
    }

    /// ReLU of a truncation, to `to` bits.
    pub fn relu_of_cut(&self, n: u64, cut: Cut, to: u32) -> Moves {
        self.blocks(n, |parts| parts.relu_of_cut(self.security, cut, to))
    }

    /// The same by a truncation to `from` bits before it.
    pub fn relu_after_cut(&self, n: u64, cut: Cut, from: u32, to: u32) -> Moves {
        let truncated = match cut.promised {
            true => self.truncate_keeping(n, cut.bits, cut.shift, from),
            false => self.truncate(n, cut.bits, cut.shift),
        };
        truncated.then_if_verified(self.relu(n, from, to))
    }

    /// All games of the levels, each a ReLU.
    pub fn tournament(&self, tournament: &Tournament, bits: u32) -> Moves {
        games(tournament).map(|n| self.relu(n, bits, bits)).sum()
    }

    /// Games in which the bit selects the index, too.
    pub fn argmax(&self, tournament: &Tournament, bits: u32, index: u32) -> Moves {
        let game = |parts: Parts| parts.sign(bits).then(parts.times(&[bits, index]));
        games(tournament).map(|n| self.blocks(n, game)).sum()
    }

    /// Sums of so many products each, reshared.
    pub fn sums_of_products(&self, n: u64, bits: u32, terms: usize) -> Moves {
        Moves::reshare(n, bits).stating(Extension::Ring, [n; 3], terms)
    }

    /// Products of elements, or sums of so many.
    pub fn products_of_elements(&self, n: u64, bits: u32, terms: usize) -> Moves {
        let blocks = self.limits.blocks(n as usize).map(|block| {
            let n = block.len() as u64;
            self.sums_of_products(n, bits, terms).multiplying(n * terms as u64)
        });
        in_pieces(blocks)
    }

    /// Products of a linear operation, reshared: proved by tags, as inner products as long as the inner dimension, or element by element.
    pub fn products(&self, products: &Products, bits: u32, tagged: bool) -> Moves {
        let tagged = tagged && products.weight_len() > 0;
        in_pieces(self.limits.parts(self.security, products, tagged).map(|part| {
            let part = products.with_units(part.len());
            let [x, w, y] = [part.input_len(), part.weight_len(), part.output_len()];
            let moves = Moves::reshare(y as u64, bits).multiplying(part.macs());
            match by_element(part.shape) {
                _ if tagged => {
                    let ahead = self.limits.ahead(&part, few_rows(products.shape));
                    moves.stating_tagged(part.count * (depth(part.shape) + part.columns()), [x, y], ahead)
                }
                Some(depth) => moves.stating(Extension::Ring, [y as u64; 3], depth),
                // once for every product of a batch
                None => moves.stating_products(part.count * depth(part.shape), [x, w, y]),
            }
        }))
    }

    /// How often m low bits carry, in `bits` bits.
    pub fn carries(&self, n: u64, m: u32, bits: u32) -> Moves {
        self.blocks(n, |parts| parts.carries(self.security, m as u64, bits))
    }

    /// The bits of numbers: their summands', then so many ANDs on each level of carries over as many places as carry.
    pub fn digits(&self, n: u64, bits: u32, levels: impl Fn(usize) -> Vec<u64>) -> Moves {
        if bits == 1 {
            return Moves::default();
        }
        let (parts, carried) = (Parts::of(n), bits as u64 - 1);
        let summands = parts.bits(bits as u64, 0, true);
        let generated = parts.split_planes(&[(1, 1)]);
        summands.then(generated).then(self.ands(n, levels(carried as usize).into_iter()))
    }

    /// So many ANDs of planes in every round.
    pub fn ands(&self, n: u64, rounds: impl Iterator<Item = u64>) -> Moves {
        rounds.map(|planes| Parts::of(n).and(planes)).sum()
    }

    /// Bits as numbers.
    pub fn numbers(&self, n: u64, bits: u32) -> Moves {
        Parts::of(n).number(bits)
    }

    /// Inner products of so many functions of a masked value, which its dealer is shown, with those of the mask, in `rows`.
    pub fn masked(&self, n: u64, [from, to]: [u32; 2], terms: usize, rows: u64) -> Moves {
        let block = masked_block(terms) as u64;
        let blocks = (0..n.max(1)).step_by(block as usize).map(|start| {
            let parts = Parts::of(block.min(n - start));
            let [a, b, c] = parts.elements.map(|n| packed(n, from));
            let dealt = parts.elements.map(|n| packed(terms as u64 * n, to));
            let products = others(parts.elements.map(|n| rows * packed(n, to)));
            let talk = |sent| Talk { sent, rounds: 1 };
            talk([c, a, b]).and_also(talk(dealt)).and_also(talk(products))
        });
        let sent = |blocks: Talk, block: Talk| Talk { rounds: blocks.rounds + 1, ..blocks.and_also(block) };
        let all = blocks.fold(Talk::default(), sent);
        Talk { rounds: all.rounds + 2, ..all }.into()
    }

    /// An extension of numbers below a half.
    pub fn extend_non_negative(&self, n: u64, from: u32, to: u32) -> Moves {
        self.blocks(n, |parts| parts.carries_below_half(self.security, from as u64, to - from))
    }
}

/// Games of every level that has any.
fn games(tournament: &Tournament) -> impl Iterator<Item = u64> {
    tournament.levels.iter().map(|level| level.pair_len() as u64).filter(|&pairs| pairs > 0)
}
