use super::PIECE;
use super::same::{PIECE as CHOICES, Side, Sides};
use crate::context::{Messages, Party};
use crate::keys::Streams;
use crate::parts::{Parts, Role, Roles};
use crate::planes::Bits;
use crate::proof::{Algebra, Column, Kind, Operand, View};
use crate::{PartyId, RunError, Share, mutation};
use privet_kernels::wide;
use privet_ring::{Ring, mask_of, pack};
use std::ops::Range;

/// Values that every party knows for its own part, to be shared.
pub(crate) struct Deal {
    pub algebra: Algebra,
    /// This party's values.
    pub values: Vec<u64>,
    /// Words of every part; `values` has those of the own one.
    pub words: Roles<usize>,
    /// Where other dealt values depend on the masks: drawn before ([`Party::deal_masks`]).
    pub masks: Option<DealMasks>,
}

/// The first components of what is dealt: pieces of the dealers' keys.
pub(crate) struct DealMasks {
    /// Of the own part.
    pub own: Vec<u64>,
    /// Of the part of the party after.
    pub after: Vec<u64>,
}

/// A value with components j and j + 1 alone in every part j, as one party holds it: dealt, or `x_j + x_(j+1)`.
#[derive(Clone)]
pub(crate) struct Dealt<C = Column> {
    /// Own part: component i.
    pub own: C,
    /// Own part: component i + 1.
    pub next: C,
    /// Part of the party before: component i, its second one.
    pub before: C,
    /// Part of the party after: component i + 1, its first one.
    pub after: C,
}

impl Dealt<Bits> {
    /// As they meet numbers of a ring ([`Bits::spread`]).
    pub fn spread(&self, ring: Ring) -> Dealt {
        Dealt {
            own: self.own.spread(ring),
            next: self.next.spread(ring),
            before: self.before.spread(ring),
            after: self.after.spread(ring),
        }
    }
}

impl Dealt {
    /// The summand `x_j + x_(j+1)` of every part j.
    pub fn summand(id: PartyId, parts: &Parts, x: &Share) -> Dealt {
        let part = parts.elements(id);
        Dealt {
            own: Column::slice(&x.own, part.mine.clone()),
            next: Column::slice(&x.next, part.mine),
            before: Column::slice(&x.own, part.before),
            after: Column::slice(&x.next, part.after),
        }
    }

    /// The same function of the words of every component.
    pub fn map<C: Into<Column>>(&self, f: impl Fn(&[u64]) -> C) -> Dealt {
        let f = |c: &Column| wide!(f(c)).into();
        Dealt { own: f(&self.own), next: f(&self.next), before: f(&self.before), after: f(&self.after) }
    }

    /// [`Dealt::zip`] for one operand of a split: what only the dealer has is left out unless `proves`, as nothing but
    /// its views of the others' statements is made of it.
    pub fn operand(&self, other: &Dealt, proves: bool, f: impl Fn(&[u64], &[u64]) -> Vec<u64>) -> Dealt {
        if proves {
            return self.zip(other, f);
        }
        let none = Column::from(vec![]);
        let f = |a: &Column, b: &Column| wide!(f(a, b)).into();
        Dealt {
            own: none.clone(),
            next: none,
            before: f(&self.before, &other.before),
            after: f(&self.after, &other.after),
        }
    }

    /// What the two verifiers of every part's dealer hold of [`Dealt::map`]: what only the dealer has is left out.
    pub fn seen(&self, f: impl Fn(&[u64]) -> Vec<u64>) -> Dealt {
        let none = Column::from(vec![]);
        Dealt { own: none.clone(), next: none, before: f(&self.before).into(), after: f(&self.after).into() }
    }

    /// The same function of the words of every component of two.
    pub fn zip(&self, other: &Dealt, f: impl Fn(&[u64], &[u64]) -> Vec<u64>) -> Dealt {
        let f = |a: &Column, b: &Column| wide!(f(a, b)).into();
        Dealt {
            own: f(&self.own, &other.own),
            next: f(&self.next, &other.next),
            before: f(&self.before, &other.before),
            after: f(&self.after, &other.after),
        }
    }
}

/// A deal before its round.
#[derive(Default)]
pub(super) struct Dealing {
    /// To the party after.
    pub payload: Vec<u8>,
    /// Bytes that the party before sends.
    pub expected: usize,
    pub made: Vec<Made>,
}

/// A column of it: the components that this party has.
pub(super) struct Made {
    ring: Ring,
    /// Words of the part of the party before.
    words: usize,
    own: Vec<u64>,
    next: Vec<u64>,
    after: Vec<u64>,
}

/// One summand of a statement about dealt values: the product of two of them.
pub(crate) struct Product<'a>(pub &'a Dealt, pub &'a Dealt);

impl Party<'_> {
    /// Every party shares the values that it knows of its own part: one message to the party after, one round.
    ///
    /// Component j is a piece of key j, which the receiver of component j + 1, party j + 1, does not have.
    pub(crate) fn deal<const N: usize>(
        &mut self,
        what: &str,
        columns: [Deal; N],
    ) -> Result<[Dealt; N], RunError> {
        let dealt = self.deal_all(what, columns.into())?;
        Ok(dealt.try_into().unwrap_or_else(|_| unreachable!("one for each")))
    }

    /// Masks for one column, from keys that no other draw has: of `own` elements, and `after` of the party after.
    pub(crate) fn deal_masks(&mut self, ring: Ring, words: Roles<usize>) -> DealMasks {
        let Streams { mut own, mut next } = self.draw();
        DealMasks { own: own.elements(ring, words.mine), after: next.elements(ring, words.after) }
    }

    /// [`Party::deal`] for any number of columns.
    pub(crate) fn deal_all(&mut self, what: &str, columns: Vec<Deal>) -> Result<Vec<Dealt>, RunError> {
        let dealing = self.begin_deal(columns);
        let got =
            self.talk(what, Messages { prev: vec![], next: dealing.payload }, (dealing.expected, 0))?.prev;
        self.end_deal(what, dealing.made, &got)
    }

    /// What this party sends of its columns, before the round.
    pub(super) fn begin_deal(&mut self, columns: Vec<Deal>) -> Dealing {
        let Streams { own: mut key, next: mut next_key } = self.draw();
        let (mut payload, mut expected) = (Vec::new(), 0);
        let mut made = Vec::with_capacity(columns.len());
        for Deal { algebra, mut values, words, masks } in columns {
            let ring = algebra.ring();
            debug_assert_eq!(values.len(), words.mine);
            payload.reserve(ring.packed_bytes(words.mine));
            let DealMasks { own, after } = match masks {
                Some(masks) => {
                    algebra.subtract(&mut values, &masks.own);
                    pack(ring, &values, &mut payload);
                    masks
                }
                None => {
                    let mut own = Vec::with_capacity(words.mine);
                    let mut mask = [0; PIECE];
                    for value in values.chunks_mut(PIECE) {
                        let mask = &mut mask[..value.len()];
                        key.fill(ring, mask);
                        mutation::mask("deal-unmasked", [&mut *mask]);
                        own.extend_from_slice(mask);
                        algebra.subtract(value, mask);
                        pack(ring, value, &mut payload);
                    }
                    let mut after = next_key.elements(ring, words.after);
                    mutation::mask("deal-unmasked", [&mut after]);
                    DealMasks { own, after }
                }
            };
            expected += ring.packed_bytes(words.before);
            made.push(Made { ring, words: words.before, own, next: values, after });
        }
        Dealing { payload, expected, made }
    }

    /// The columns, with what the party before sent of its own.
    pub(super) fn end_deal(
        &self,
        what: &str,
        made: Vec<Made>,
        mut got: &[u8],
    ) -> Result<Vec<Dealt>, RunError> {
        let dealt = made.into_iter().map(|Made { ring, words, own, next, after }| {
            let (message, later) = got.split_at(ring.packed_bytes(words));
            got = later;
            let before = self.unpack(what, ring, message, words, self.id.prev())?;
            Ok(Dealt { own: own.into(), next: next.into(), before: before.into(), after: after.into() })
        });
        dealt.collect()
    }

    /// Remember that `sum of the products + linear = 0` for dealt bits: the second row of the table in docs/rep3.md, section 6. `linear`
    /// gives the components of a dealt value, of which the dealer's own are not looked at. Nothing is computed where
    /// nothing is to be proved.
    pub(crate) fn claim_dealt(&mut self, products: &[Product], linear: &Dealt) {
        let Some(transcript) = &mut self.transcript else { return };
        for prover in PartyId::ALL {
            let of = |component: fn(&Dealt) -> &Column| {
                products.iter().map(move |Product(x, y)| [x, y].map(|factor| component(factor).clone()))
            };
            let view = match Role::of(self.id, prover) {
                Role::Mine => {
                    let both = |factor: &Dealt| Operand::Sum([factor.own.clone(), factor.next.clone()]);
                    View::Prover(products.iter().map(|Product(x, y)| [both(x), both(y)]).collect())
                }
                Role::After => View::verifier(of(|x| &x.after), linear.after.clone()),
                Role::Before => View::verifier(of(|x| &x.before), linear.before.clone()),
            };
            super::remember(transcript, Kind::Bits, prover, view);
        }
    }

    /// Remember to prove that a dealt number `u` is a sum of bits of the dealer's, each times a public weight; the bits are shared
    /// modulo 2. With the bits c_j known to one verifier and c_(j+1) to the other, u_(j+1) is
    /// `sum of weights (c_j ^ c_(j+1)) - u_j`.
    pub(crate) fn claim_bits<const N: usize>(
        &mut self,
        ring: Ring,
        bits: [(u64, &Dealt<Bits>); N],
        u: &Dealt,
    ) {
        if self.transcript.is_none() {
            return;
        }
        for prover in PartyId::ALL {
            let (len, sides) = match Role::of(self.id, prover) {
                Role::Mine => {
                    let before = sum_less(bits.map(|(weight, c)| (weight, &c.own)), &u.own);
                    let after = number_of(ring, bits.map(|(_, c)| &c.next), &u.next);
                    (u.own.len(), Sides::Both(before, after))
                }
                Role::After => {
                    let before = sum_less(bits.map(|(weight, c)| (weight, &c.after)), &u.after);
                    (u.after.len(), Sides::Before(before, N))
                }
                Role::Before => {
                    let after = number_of(ring, bits.map(|(_, c)| &c.before), &u.before);
                    (u.before.len(), Sides::After(after, 0))
                }
            };
            self.claim_same(ring, prover, len, sides);
        }
    }
}

/// The side of `sum of weights (c_j ^ c_(j+1)) - u_j`, for every choice of the bits c_(j+1).
fn sum_less<const N: usize>(
    bits: [(u64, &Bits); N],
    u: &[u64],
) -> Side<impl Fn(Range<usize>, usize, &mut [u64])> {
    let numbers = move |range: Range<usize>, x: usize, to: &mut [u64]| {
        let others = std::array::from_fn::<_, N, _>(|t| mask_of(x as u64, t));
        let mut all = bits.iter().zip(others);
        let u = &u[range.clone()];
        match all.next() {
            Some(((weight, bits), other)) => {
                bits.masks(range.clone(), to);
                wide!({
                    to.iter_mut().zip(u).for_each(|(to, u)| *to = (weight & (*to ^ other)).wrapping_sub(*u))
                });
            }
            None => to.iter_mut().zip(u).for_each(|(to, u)| *to = u.wrapping_neg()),
        }
        let mut masks = [0; CHOICES];
        let masks = &mut masks[..to.len()];
        for ((weight, bits), other) in all {
            bits.masks(range.clone(), masks);
            wide!({
                to.iter_mut()
                    .zip(&*masks)
                    .for_each(|(to, mask)| *to = to.wrapping_add(weight & (mask ^ other)))
            });
        }
    };
    Side { bits: vec![], numbers, at_none: None }
}

/// The side of u_(j+1), with the bits c_(j+1).
fn number_of<const N: usize>(
    ring: Ring,
    bits: [&Bits; N],
    u: &Column,
) -> Side<impl Fn(Range<usize>, usize, &mut [u64])> {
    let numbers = |range: Range<usize>, _: usize, to: &mut [u64]| to.copy_from_slice(&u[range]);
    Side { bits: bits.map(|bits| bits.spread(ring)).into(), numbers, at_none: Some(u.clone()) }
}
