//! Bits times numbers: what an exchange multiplies in a ring is always a number and a bit, so that both its messages are proved as
//! words of bits.

use super::same::{Side, Sides};
use super::split::{Exchange, Exchanged, Term};
use super::{Dealt, Known, Pieces};
use crate::context::Party;
use crate::parts::{Role, Roles};
use crate::planes::Bits;
use crate::proof::{Algebra, Column};
use crate::{PartyId, RunError};
use privet_kernels::wide;
use privet_ring::Ring;
use std::ops::Range;

/// A sum of products to be computed, each of a bit and a number.
pub(crate) struct Select {
    pub ring: Ring,
    /// At most two dealt numbers, each where a bit is 1.
    pub chosen: Vec<Chosen>,
    /// Numbers that the two others know, where a component of a bit that the dealer knows is 1.
    pub turned: Option<Turned>,
    /// Elements of every part.
    pub words: Roles<usize>,
}

/// A dealt number times a public one, where a bit is 1.
pub(crate) struct Chosen {
    pub number: Dealt,
    pub weight: u64,
    /// What the two others know.
    pub bit: Known<Bits>,
}

/// Two numbers that the two others know, one for each component of the dealer's bit.
pub(crate) struct Turned {
    /// Components j and j + 1 modulo 2.
    pub bit: Dealt<Bits>,
    /// The same components as they meet numbers, where the messages are to be proved.
    pub spread: Option<Dealt>,
    /// Where component j + 1 is 1: what the party after the dealer adds.
    pub after: Known,
    /// Where component j is 1: what the party before the dealer adds.
    pub before: Known,
}

impl Party<'_> {
    /// One message from each of the two others; one round.
    ///
    /// Party j + 1 sends `c = -(sum of A_(j+1) v) - y c_(j+1) - F_(j+1)`, party j + 2 sends `c' = -(sum of A_j v) - y' c_j - F_j`.
    pub(crate) fn select<const N: usize>(
        &mut self,
        what: &str,
        selects: [Select; N],
    ) -> Result<[Pieces; N], RunError> {
        let pieces = self.select_all(what, selects.into())?;
        Ok(pieces.try_into().unwrap_or_else(|_| unreachable!("one for each")))
    }

    /// [`Party::select`] for any number of results.
    pub(crate) fn select_all(&mut self, what: &str, selects: Vec<Select>) -> Result<Vec<Pieces>, RunError> {
        let exchanges = selects.iter().map(Select::exchange).collect();
        let exchanged = self.exchange(what, exchanges)?;
        for (select, exchanged) in selects.iter().zip(&exchanged) {
            self.claim_select(select, exchanged);
        }
        Ok(exchanged.iter().map(Exchanged::total).collect())
    }

    /// Remember to prove both messages: the last rows of the table in docs/rep3.md, section 6. The holders of component
    /// j + 1 of what was dealt know `-F - sum of A v` but for v, and the two others know `c + y c_(j+1)` but for the bit.
    fn claim_select(&mut self, select: &Select, exchanged: &Exchanged) {
        if self.transcript.is_none() {
            return;
        }
        let (ring, words) = (select.ring, select.words);
        let Exchanged { mine: [own, next], before, after, c, c2, .. } = exchanged;
        let (chosen, turned) = (select.chosen.len(), usize::from(select.turned.is_some()));
        let v: Vec<Known> = select.chosen.iter().map(|chosen| chosen.bit.spread(ring)).collect();
        for j in PartyId::ALL {
            match Role::of(self.id, j) {
                Role::Mine => {
                    let first = select.dealt(next, |a| &a.next);
                    self.claim_same(ring, j.next(), words.mine, Sides::<_, Unseen>::Before(first, chosen));
                    let second = select.dealt(own, |a| &a.own);
                    self.claim_same(ring, j.prev(), words.mine, Sides::<Unseen, _>::After(second, chosen));
                }
                Role::Before => {
                    let first = Sides::Both(
                        select.dealt(&before.mask, |a| &a.before),
                        select.known(&before.message, &v, |b| &b.before, |turned| &turned.after),
                    );
                    self.claim_same(ring, j.next(), words.before, first);
                    let second = select.known(c2, &v, |b| &b.before, |turned| &turned.before);
                    self.claim_same(ring, j.prev(), words.before, Sides::<_, Unseen>::Before(second, turned));
                }
                Role::After => {
                    let first = select.known(c, &v, |b| &b.after, |turned| &turned.after);
                    self.claim_same(ring, j.next(), words.after, Sides::<Unseen, _>::After(first, turned));
                    let second = Sides::Both(
                        select.known(&after.message, &v, |b| &b.after, |turned| &turned.before),
                        select.dealt(&after.mask, |a| &a.after),
                    );
                    self.claim_same(ring, j.prev(), words.after, second);
                }
            }
        }
    }
}

/// The other side's numbers, at a party that does not know them.
type Unseen = fn(Range<usize>, usize, &mut [u64]);

impl Select {
    fn exchange(&self) -> Exchange {
        let term = |numbers: &Column, weight: u64, bits: &Bits| Term::Chosen {
            numbers: numbers.clone(),
            weight,
            bits: bits.clone(),
        };
        let chosen = |Chosen { number, weight, bit }: &Chosen| {
            (term(&number.before, *weight, &bit.before), term(&number.after, *weight, &bit.after))
        };
        let (mut before, mut after): (Vec<_>, Vec<_>) = self.chosen.iter().map(chosen).unzip();
        if let Some(Turned { bit, after: y, before: y2, .. }) = &self.turned {
            before.push(term(&y.before, 1, &bit.before));
            after.push(term(&y2.after, 1, &bit.after));
        }
        Exchange { algebra: Algebra::Ring(self.ring), before, after, words: self.words }
    }

    /// `-F - sum of A v` of one component, for every choice of the bits v.
    fn dealt<'a>(
        &'a self,
        mask: &'a Column,
        component: fn(&Dealt) -> &Column,
    ) -> Side<impl Fn(Range<usize>, usize, &mut [u64]) + 'a> {
        debug_assert!(self.chosen.len() <= 2);
        let chosen = [0, 1].map(|t| {
            self.chosen.get(t).map(|chosen| (&component(&chosen.number)[..mask.len()], chosen.weight))
        });
        let numbers = move |range: Range<usize>, bits: usize, to: &mut [u64]| {
            to.copy_from_slice(&mask[range.clone()]);
            for (t, chosen) in chosen.iter().enumerate() {
                if let Some((a, weight)) = chosen.filter(|_| bits >> t & 1 == 1) {
                    let a = &a[range.clone()];
                    wide!({
                        to.iter_mut().zip(a).for_each(|(to, a)| *to = to.wrapping_sub(a.wrapping_mul(weight)))
                    });
                }
            }
        };
        let bits = self.turned.iter().filter_map(|turned| turned.spread.as_ref());
        Side { bits: bits.map(|bit| component(bit).clone()).collect(), numbers, at_none: Some(mask.clone()) }
    }

    /// A message and what its sender's bit times y was taken off for, for both values of that bit.
    fn known<'a>(
        &'a self,
        message: &'a Column,
        v: &[Known],
        part: fn(&Known) -> &Column,
        number: fn(&Turned) -> &Known,
    ) -> Side<impl Fn(Range<usize>, usize, &mut [u64]) + 'a> {
        let y = self.turned.as_ref().map(|turned| &part(number(turned))[..message.len()]);
        let numbers = move |range: Range<usize>, bits: usize, to: &mut [u64]| {
            let message = &message[range.clone()];
            match y.filter(|_| bits == 1) {
                None => to.copy_from_slice(message),
                Some(y) => {
                    put(to, message.iter().zip(&y[range]).map(|(message, y)| message.wrapping_add(*y)))
                }
            }
        };
        Side { bits: v.iter().map(|v| part(v).clone()).collect(), numbers, at_none: Some(message.clone()) }
    }
}

fn put(to: &mut [u64], numbers: impl Iterator<Item = u64>) {
    wide!(to.iter_mut().zip(numbers).for_each(|(to, number)| *to = number));
}
