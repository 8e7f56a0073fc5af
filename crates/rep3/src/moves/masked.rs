//! A function of x that is an inner product of functions of v = x + d and functions of d.
//!
//! In the part that party j deals, the two others draw d from key j + 2, which party j does not have. Party j + 1 sends it `x_(j+2) + d`,
//! so that party j knows v, and deals the functions of v. The functions of d are known to the two others, and so is the rest a split.
//! Nobody proves any of this: it is for parties that follow the protocol.

use super::split::{Exchange, Exchanged, Exchanging, Term};
use super::{Deal, Dealt};
use crate::context::{Messages, Party};
use crate::parts::{Parts, Roles};
use crate::proof::{Algebra, Column};
use crate::{RunError, Share, mutation};
use privet_family::Secret;
use privet_prg::wiped::Wiped;
use privet_ring::{Ring, pack};
use std::sync::Arc;

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
    /// `inner(d, dealt, scratch, sums)` adds to each row's sum its functions of d times what was dealt of an element. `scratch` is as long as
    /// `dealt`, and means nothing.
    pub inner: G,
}

impl<F: Fn(u64, &mut [u64]), G: Fn(u64, &[u64], &mut [u64], &mut [u64])> Masked<F, G> {
    /// Functions of the own part's v, to be dealt.
    fn deal(&self, v: &[u64], count: Roles<usize>) -> Deal {
        let values = columns(v, self.terms, &self.factors);
        Deal { algebra: Algebra::Ring(self.to), values, words: count.map(|n| self.terms * n), masks: None }
    }

    /// Their products with functions of d in the parts that the neighbours dealt, row after row.
    fn products(&self, dealt: &Dealt, Block { count, coins, .. }: &Block) -> Vec<Exchange> {
        let before = self.sums(&dealt.before, &coins.before);
        let after = self.sums(&dealt.after, &coins.after);
        let algebra = Algebra::Ring(self.to);
        let exchanges = before.into_iter().zip(after);
        let one = |sum: Column| vec![Term::Sum(sum)];
        let of =
            |(before, after)| Exchange { algebra, before: one(before), after: one(after), words: *count };
        exchanges.map(of).collect()
    }

    /// What the products of one part add up to, row after row.
    fn sums(&self, dealt: &[u64], coins: &[u64]) -> Vec<Column> {
        let n = coins.len();
        // each with its room from the start: a vector that moves leaves what it had behind
        let mut rows: Vec<Secret> = (0..self.rows).map(|_| Vec::with_capacity(n).into()).collect();
        let mut some = Wiped::zeros(ELEMENTS * self.terms);
        let mut scratch = Wiped::zeros(self.terms);
        let mut sums = Wiped::zeros(self.rows);
        for (first, coins) in (0..n).step_by(ELEMENTS).zip(coins.chunks(ELEMENTS)) {
            for (t, column) in dealt.chunks_exact(n).enumerate() {
                let values = some[t..].iter_mut().step_by(self.terms);
                values.zip(&column[first..first + coins.len()]).for_each(|(to, value)| *to = *value);
            }
            for (d, dealt) in coins.iter().zip(some.chunks_exact(self.terms)) {
                sums.fill(0);
                (self.inner)(*d, dealt, &mut scratch, &mut sums);
                rows.iter_mut().zip(sums.iter()).for_each(|(row, sum)| row.push(*sum));
            }
        }
        rows.into_iter().map(|row| Arc::new(row).into()).collect()
    }
}

/// Elements of a vector that are taken at a time where so many functions of each are dealt.
pub const fn masked_block(terms: usize) -> usize {
    WORDS / terms / 64 * 64
}

/// A block of elements: their places, how each party takes part in them, and the coins of the parts that the neighbours deal.
struct Block {
    parts: Parts,
    count: Roles<usize>,
    coins: Hidden,
}

impl Party<'_> {
    /// Row after row. All masked values are shown in one round. What is dealt of a block goes with the products of the block before:
    /// two rounds more than there are blocks.
    pub(crate) fn masked<F: Fn(u64, &mut [u64]), G: Fn(u64, &[u64], &mut [u64], &mut [u64])>(
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
        let blocks = (0..n.max(1)).step_by(block).enumerate().map(|(number, start)| {
            let parts = Parts::of(block.min(n - start));
            let count = parts.elements(self.id).map(|part| part.len());
            Block { parts, count, coins: self.hidden_coins(what.from, number as u64, count) }
        });
        let blocks: Vec<Block> = blocks.collect();
        let shown = self.shown(what.from, &blocks, x)?;

        let mut rows = vec![(Vec::with_capacity(n), Vec::with_capacity(n)); what.rows];
        let mut products = Vec::new();
        for (i, v) in shown.into_iter().chain([vec![]]).enumerate() {
            let deal = blocks.get(i).map(|b| what.deal(&v, b.count));
            let before = i.checked_sub(1).map(|before| &blocks[before]);
            let (dealt, found) = self.deal_and_exchange(deal, std::mem::take(&mut products))?;
            if let (Some(block), Some(dealt)) = (blocks.get(i), dealt) {
                products = what.products(&dealt, block);
            }
            let Some(Block { parts, .. }) = before else { continue };
            for ((own, next), exchanged) in rows.iter_mut().zip(found) {
                let share = exchanged.total().join(self.id, parts);
                own.extend_from_slice(&share.own);
                next.extend_from_slice(&share.next);
            }
        }
        let (own, next): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        Ok(Share::new(own.concat(), next.concat()))
    }

    /// One round for both.
    fn deal_and_exchange(
        &mut self,
        deal: Option<Deal>,
        products: Vec<Exchange>,
    ) -> Result<(Option<Dealt>, Vec<Exchanged>), RunError> {
        let what = "functions of the masked value, products with those of the mask";
        let mut dealing = self.begin_deal(deal.into_iter().collect());
        let Exchanging { out, expected: (prev, next), open } = self.begin_exchange(products);
        let Messages { prev: to_prev, next: to_next } = out;
        dealing.payload.extend_from_slice(&to_next);
        let out = Messages { prev: to_prev, next: dealing.payload };
        let got = self.talk(what, out, (dealing.expected + prev, next))?;
        let (of_deal, of_products) = got.prev.split_at(dealing.expected);
        let dealt = self.end_deal(what, dealing.made, of_deal)?;
        Ok((dealt.into_iter().next(), self.end_exchange(what, open, [of_products, &got.next])?))
    }

    /// v of the own part of every block.
    fn shown(&mut self, ring: Ring, blocks: &[Block], x: &Share) -> Result<Vec<Vec<u64>>, RunError> {
        let (mut payload, mut expected, mut start) = (Vec::new(), 0, 0);
        let mut places = Vec::with_capacity(blocks.len());
        for Block { parts, coins, count } in blocks {
            let ranges = parts.elements(self.id).map(|part| start + part.start..start + part.end);
            let masked = x.next[ranges.before].iter().zip(&coins.before);
            let masked = masked.map(|(x, d)| ring.wrap(x.wrapping_add(*d)));
            pack(ring, &masked.collect::<Vec<u64>>(), &mut payload);
            expected += ring.packed_bytes(count.mine);
            places.push(ranges.mine);
            start += parts.len();
        }
        let step = "masked value";
        let got = self.talk(step, Messages { prev: payload, next: vec![] }, (0, expected))?.next;
        let mut got = &got[..];
        let v = places.into_iter().map(|mine| {
            let (message, later) = got.split_at(ring.packed_bytes(mine.len()));
            got = later;
            let mut v = self.unpack(step, ring, message, mine.len(), self.id.next())?;
            for (v, (a, b)) in v.iter_mut().zip(x.own[mine.clone()].iter().zip(&x.next[mine])) {
                *v = ring.wrap(v.wrapping_add(*a).wrapping_add(*b));
            }
            Ok(v)
        });
        v.collect()
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
    let (mut all, mut some) = (vec![0; n * functions], Wiped::zeros(ELEMENTS * functions));
    for (first, x) in (0..n).step_by(ELEMENTS).zip(x.chunks(ELEMENTS)) {
        x.iter().zip(some.chunks_exact_mut(functions)).for_each(|(x, of_x)| of(*x, of_x));
        for (t, column) in all.chunks_exact_mut(n).enumerate() {
            let values = some[t..].iter().step_by(functions);
            column[first..first + x.len()].iter_mut().zip(values).for_each(|(to, value)| *to = *value);
        }
    }
    all
}
