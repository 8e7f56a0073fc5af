use super::{Dealt, Known, PIECE};
use crate::parts::{Parts, Role, Roles};
use crate::planes::Bits;
use crate::proof::{Algebra, Column};
use crate::{PartyId, Planes, Share};
use std::ops::Range;

/// A replicated value part by part, this party's components i and i + 1 of each, as what they are sums of. Nothing is added up before
/// the parts are joined, and then piece by piece, in the first-level cache.
pub(crate) struct Pieces {
    algebra: Algebra,
    /// Words of every part.
    words: Roles<usize>,
    sums: Roles<[Sum; 2]>,
}

/// What a component of a part is the sum of; of nothing it is 0.
type Sum = Vec<Summand>;

enum Summand {
    Plain(Column),
    Minus(Column),
    /// A public number where a bit is 1.
    Times(Bits, u64),
    /// A number where a bit is 1.
    Chosen(Column, Bits),
}

impl Pieces {
    /// A dealt value.
    pub fn dealt(algebra: Algebra, a: &Dealt) -> Pieces {
        let words = Roles { mine: a.own.len(), before: a.before.len(), after: a.after.len() };
        let mut pieces = Pieces { algebra, words, sums: Roles::default() };
        pieces.add_dealt(a);
        pieces
    }

    /// Add a dealt value.
    pub fn add_dealt(&mut self, a: &Dealt) {
        let Roles { mine: [own, next], before: [before, _], after: [_, after] } = &mut self.sums;
        for (sum, component) in [(own, &a.own), (next, &a.next), (before, &a.before), (after, &a.after)] {
            sum.push(Summand::Plain(component.clone()));
        }
    }

    /// Add a value that the two others know.
    pub fn add_known(&mut self, b: &Known) {
        let [before, after] = self.of_known();
        before.push(Summand::Plain(b.before.clone()));
        after.push(Summand::Plain(b.after.clone()));
    }

    /// Take it off.
    pub fn subtract_known(&mut self, b: &Known) {
        let [before, after] = self.of_known();
        before.push(Summand::Minus(b.before.clone()));
        after.push(Summand::Minus(b.after.clone()));
    }

    /// Add a public number times a bit that the two others know, of ring elements.
    pub fn add_known_times(&mut self, bits: &Known<Bits>, factor: u64) {
        let [before, after] = self.of_known();
        before.push(Summand::Times(bits.before.clone(), factor));
        after.push(Summand::Times(bits.after.clone(), factor));
    }

    /// Add a number that the two others know, where a bit that they know is 1.
    pub fn add_known_chosen(&mut self, bits: &Known<Bits>, b: &Known) {
        let [before, after] = self.of_known();
        before.push(Summand::Chosen(b.before.clone(), bits.before.clone()));
        after.push(Summand::Chosen(b.after.clone(), bits.after.clone()));
    }

    /// The component of the parts of the party before and the party after that what the two others know is a part of.
    fn of_known(&mut self) -> [&mut Sum; 2] {
        let Roles { before: [_, before], after: [after, _], .. } = &mut self.sums;
        [before, after]
    }

    /// The whole vector of ring elements.
    pub fn join(self, id: PartyId, parts: &Parts) -> Share {
        self.join_with(id, parts, |_, _, _| {})
    }

    /// [`Pieces::join`], and what comes after it at once: `finish` is given elements of a component while they are in the
    /// first-level cache, whose component it is, and the first one's place.
    pub fn join_with(self, id: PartyId, parts: &Parts, finish: impl Fn(PartyId, usize, &mut [u64])) -> Share {
        let [own, next] = [(0, id), (1, id.next())].map(|(side, holder)| {
            let mut out = Vec::with_capacity(parts.len());
            for (sums, words) in self.in_order(id) {
                self.append(&sums[side], 0..words, &mut out, |start, words| finish(holder, start, words));
            }
            out
        });
        Share::new(own, next)
    }

    /// The planes of which these are the words, part by part.
    pub fn join_planes(self, id: PartyId, parts: &Parts, count: usize) -> Planes {
        let [own, next] = [0, 1].map(|side| {
            let mut out = Vec::with_capacity(count * parts.len().div_ceil(64));
            for plane in 0..count {
                for (sums, words) in self.in_order(id) {
                    let words = words / count;
                    self.append(&sums[side], plane * words..(plane + 1) * words, &mut out, |_, _| {});
                }
            }
            out
        });
        Planes::new(parts.len(), count, own, next)
    }

    /// Of part 0, 1 and 2, and how many words they have.
    fn in_order(&self, id: PartyId) -> [(&[Sum; 2], usize); 3] {
        let (sums, words) = (&self.sums, &self.words);
        PartyId::ALL.map(|j| match Role::of(id, j) {
            Role::Mine => (&sums.mine, words.mine),
            Role::Before => (&sums.before, words.before),
            Role::After => (&sums.after, words.after),
        })
    }

    /// Append the words `range` of a component of a part; `see` is given every piece of them and where it begins.
    fn append(&self, sum: &Sum, range: Range<usize>, out: &mut Vec<u64>, see: impl Fn(usize, &mut [u64])) {
        for start in range.clone().step_by(PIECE) {
            let (at, piece) = (out.len(), start..range.end.min(start + PIECE));
            let more = match sum.split_first() {
                Some((Summand::Plain(first), more)) => {
                    out.extend_from_slice(&first[piece.clone()]);
                    more
                }
                _ => {
                    out.resize(at + piece.len(), 0);
                    &sum[..]
                }
            };
            let words = &mut out[at..];
            more.iter().for_each(|summand| summand.add_to(self.algebra, words, piece.clone()));
            see(at, words);
        }
    }
}

impl Summand {
    fn add_to(&self, algebra: Algebra, words: &mut [u64], range: Range<usize>) {
        match self {
            Summand::Plain(a) => algebra.add(words, &a[range]),
            Summand::Minus(a) => algebra.subtract(words, &a[range]),
            Summand::Times(bits, factor) => {
                let mut chosen = [0; PIECE];
                let chosen = &mut chosen[..range.len()];
                bits.masks(range, chosen);
                chosen.iter_mut().for_each(|mask| *mask &= factor);
                algebra.add(words, chosen);
            }
            Summand::Chosen(a, bits) => {
                let mut chosen = [0; PIECE];
                let chosen = &mut chosen[..range.len()];
                bits.choose(range, a, chosen);
                algebra.add(words, chosen);
            }
        }
    }
}
