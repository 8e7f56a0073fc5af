//! A function of x that is an inner product of functions of v = x + d and functions of d.
//!
//! In the part that party j deals, the two others draw d from key j + 2, which party j does not have. Party j + 1 sends it `x_(j+2) + d`,
//! so that party j knows v, and deals the functions of v. The functions of d are known to the two others, and so is the rest a split.
//! Nobody proves any of this: it is for parties that follow the protocol.

use super::Deal;
use super::split::{Exchange, Exchanged};
use crate::context::{Messages, Party};
use crate::parts::{Parts, Roles};
use crate::proof::{Algebra, Column};
use crate::{RunError, Share, mutation};
use privet_ring::{Ring, pack};

/// Words that are dealt at a time.
const WORDS: usize = 1 << 22;

/// What a function is made of.
pub(crate) struct Masked<F, G> {
    /// Of x.
    pub from: Ring,
    /// Of the results.
    pub to: Ring,
    /// Functions of v, and of d for each row.
    pub terms: usize,
    /// Results for each element.
    pub rows: usize,
    /// Those of v.
    pub factors: F,
    /// Those of d, row after row.
    pub words: G,
}

/// Elements of a vector that are taken at a time where so many functions of each are dealt.
pub const fn masked_block(terms: usize) -> usize {
    WORDS / terms / 64 * 64
}

impl Party<'_> {
    /// Row after row. Three rounds a block.
    pub(crate) fn masked<F: Fn(u64, &mut [u64]), G: Fn(u64, &mut [u64])>(
        &mut self,
        what: &Masked<F, G>,
        x: &Share,
    ) -> Result<Share, RunError> {
        if self.transcript.is_some() {
            return Err(RunError::Missing(
                "an operation that nobody can prove; the plan is for semi-honest parties".into(),
            ));
        }
        let (n, block) = (x.len(), masked_block(what.terms));
        let mut rows = vec![(Vec::with_capacity(n), Vec::with_capacity(n)); what.rows];
        for (number, start) in (0..n.max(1)).step_by(block).enumerate() {
            let range = start..n.min(start + block);
            let part = |x: &[u64]| x[range.clone()].to_vec();
            let found = self.masked_block(what, number as u64, &Share::new(part(&x.own), part(&x.next)))?;
            for ((own, next), found) in rows.iter_mut().zip(found) {
                own.extend_from_slice(&found.own);
                next.extend_from_slice(&found.next);
            }
        }
        let (own, next): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        Ok(Share::new(own.concat(), next.concat()))
    }

    fn masked_block<F: Fn(u64, &mut [u64]), G: Fn(u64, &mut [u64])>(
        &mut self,
        what: &Masked<F, G>,
        number: u64,
        x: &Share,
    ) -> Result<Vec<Share>, RunError> {
        let (parts, terms) = (Parts::of(x.len()), what.terms);
        let ranges = parts.elements(self.id);
        let count = ranges.clone().map(|part| part.len());
        let coins = self.hidden_coins(what.from, number, count);
        let v = self.shown(what.from, &ranges, x, &coins.before)?;

        let algebra = Algebra::Ring(what.to);
        let values = columns(&v, terms, &what.factors);
        let deal = Deal { algebra, values, words: count.map(|n| terms * n), masks: None };
        let [dealt] = self.deal("functions of the masked value", [deal])?;

        let terms_of = |dealt: &Column, coins: &[u64]| -> Vec<Vec<[Column; 2]>> {
            let words = Column::from(columns(coins, terms * what.rows, &what.words));
            let column = |c: &Column, i: usize| c.part(i * coins.len()..(i + 1) * coins.len());
            let row =
                |r: usize| (0..terms).map(|i| [column(dealt, i), column(&words, r * terms + i)]).collect();
            (0..what.rows).map(row).collect()
        };
        let before = terms_of(&dealt.before, &coins.before);
        let after = terms_of(&dealt.after, &coins.after);
        let exchanges = before.into_iter().zip(after);
        let exchanges = exchanges.map(|(before, after)| Exchange { algebra, before, after, words: count });
        let found = self.exchange("products with those of the mask", exchanges.collect())?;
        Ok(found.into_iter().map(|Exchanged { pieces, .. }| pieces.join(self.id, &parts)).collect())
    }

    /// v of the own part.
    fn shown(
        &mut self,
        ring: Ring,
        ranges: &Roles<std::ops::Range<usize>>,
        x: &Share,
        coins: &[u64],
    ) -> Result<Vec<u64>, RunError> {
        let mine = ranges.mine.clone();
        let masked =
            x.next[ranges.before.clone()].iter().zip(coins).map(|(x, d)| ring.wrap(x.wrapping_add(*d)));
        let mut payload = Vec::new();
        pack(ring, &masked.collect::<Vec<u64>>(), &mut payload);
        let expected = ring.packed_bytes(mine.len());
        let step = "masked value";
        let got = self.talk(step, Messages { prev: payload, next: vec![] }, (0, expected))?.next;
        let mut v = self.unpack(step, ring, &got, mine.len(), self.id.next())?;
        for (v, (a, b)) in v.iter_mut().zip(x.own[mine.clone()].iter().zip(&x.next[mine])) {
            *v = ring.wrap(v.wrapping_add(*a).wrapping_add(*b));
        }
        Ok(v)
    }

    /// d of the parts that the neighbours deal.
    fn hidden_coins(&self, ring: Ring, number: u64, count: Roles<usize>) -> Hidden {
        let [own, next] = self.hidden_keys(number);
        // in the part of the party after, component j + 2 is this party's first; in that of the party before, its second
        let mut coins = Hidden {
            before: next.stream().elements(ring, count.before),
            after: own.stream().elements(ring, count.after),
        };
        mutation::mask("hidden-coins-dropped", [&mut coins.before, &mut coins.after]);
        coins
    }
}

/// Coins that the dealer of a part does not know.
struct Hidden {
    before: Vec<u64>,
    after: Vec<u64>,
}

/// Elements whose functions are computed before they are laid out, so that they stay in the first caches.
const ELEMENTS: usize = 16;

/// `of` every element, so many functions, function after function.
fn columns(x: &[u64], functions: usize, of: impl Fn(u64, &mut [u64])) -> Vec<u64> {
    let n = x.len();
    let (mut all, mut some) = (vec![0; n * functions], vec![0; ELEMENTS * functions]);
    for (first, x) in (0..n).step_by(ELEMENTS).zip(x.chunks(ELEMENTS)) {
        x.iter().zip(some.chunks_exact_mut(functions)).for_each(|(x, of_x)| of(*x, of_x));
        for (t, column) in all.chunks_exact_mut(n).enumerate() {
            let values = some[t..].iter().step_by(functions);
            column[first..first + x.len()].iter_mut().zip(values).for_each(|(to, value)| *to = *value);
        }
    }
    all
}
