use super::{Dealt, PIECE, Pieces};
use crate::context::{Messages, Party};
use crate::keys::Streams;
use crate::parts::{Parts, Role, Roles};
use crate::planes::Bits;
use crate::proof::{Algebra, Column, Kind, Operand, Rest, View};
use crate::{PartyId, RunError, Share, mutation};
use privet_kernels::wide;
use privet_prg::Prg;
use privet_ring::{Ring, pack};

/// A value that both parties other than the dealer of a part know: component j + 2 of part j.
#[derive(Clone)]
pub(crate) struct Known<C = Column> {
    /// In the part of the party before.
    pub before: C,
    /// In the part of the party after.
    pub after: C,
}

impl Known<Bits> {
    /// As they meet numbers of a ring ([`Bits::spread`]).
    pub fn spread(&self, ring: Ring) -> Known {
        Known { before: self.before.spread(ring), after: self.after.spread(ring) }
    }
}

impl Known {
    /// The summand `x_(j+2)` of every part j.
    pub fn summand(id: PartyId, parts: &Parts, x: &Share) -> Known {
        let part = parts.elements(id);
        Known { before: Column::slice(&x.next, part.before), after: Column::slice(&x.own, part.after) }
    }

    /// Bit `l` of every number.
    pub fn bit(&self, l: u32) -> Known<Bits> {
        Known { before: Bits::of_numbers(&self.before, l), after: Bits::of_numbers(&self.after, l) }
    }

    /// The same function of the words in both parts.
    pub fn map<C: Into<Column>>(&self, f: impl Fn(&[u64]) -> C) -> Known {
        Known { before: f(&self.before).into(), after: f(&self.after).into() }
    }
}

/// Bits to be computed: a sum of products, each of a dealt bit and one that the two others know.
pub(crate) struct Split {
    pub terms: Vec<(Dealt, Known)>,
    /// Words of every part.
    pub words: Roles<usize>,
}

/// The two messages of every part: a sum of products each, of what their sender knows.
pub(super) struct Exchange {
    pub algebra: Algebra,
    /// Of `c`, which the party after the dealer sends.
    pub before: Vec<Term>,
    /// Of `c'`, which the party before the dealer sends.
    pub after: Vec<Term>,
    /// Words of every part.
    pub words: Roles<usize>,
}

/// A product of what its sender knows.
pub(super) enum Term {
    /// Of words and words.
    Words([Column; 2]),
    /// What products add up to.
    Sum(Column),
    /// Of numbers, a public number and bits.
    Chosen { numbers: Column, weight: u64, bits: Bits },
}

/// What an exchange gave.
pub(super) struct Exchanged {
    algebra: Algebra,
    /// `-F` of the own part, of key i and of key i + 1.
    pub mine: [Column; 2],
    /// `c`, which was sent for the part of the party before.
    pub before: Sent,
    /// `c'`, which was sent for the part of the party after.
    pub after: Sent,
    /// `c`, which came for the part of the party after.
    pub c: Column,
    /// `c'`, which came for the part of the party before.
    pub c2: Column,
}

/// A message of an exchange.
#[derive(Clone)]
pub(super) struct Sent {
    /// `-F`.
    pub mask: Column,
    /// `-F` less the products.
    pub message: Column,
}

/// Exchanges before their round.
#[derive(Default)]
pub(super) struct Exchanging {
    pub out: Messages,
    /// Bytes that the party before and the party after send.
    pub expected: (usize, usize),
    pub open: Vec<Begun>,
}

/// An exchange between the message and the end of its round.
pub(super) struct Begun {
    algebra: Algebra,
    words: Roles<usize>,
    mine: [Column; 2],
    before: Sent,
    after: Sent,
}

impl Party<'_> {
    /// Multiply dealt bits by what the two others know: they send each other one message each, one round.
    pub(crate) fn split<const N: usize>(
        &mut self,
        what: &str,
        splits: [Split; N],
    ) -> Result<[Pieces; N], RunError> {
        let of = |terms: &[(Dealt, Known)], pick: fn(&(Dealt, Known)) -> [Column; 2]| {
            terms.iter().map(|term| Term::Words(pick(term))).collect::<Vec<_>>()
        };
        let exchanges = splits.each_ref().map(|Split { terms, words }| Exchange {
            algebra: Algebra::Bits,
            before: of(terms, |(a, b)| [a.before.clone(), b.before.clone()]),
            after: of(terms, |(a, b)| [a.after.clone(), b.after.clone()]),
            words: *words,
        });
        let exchanged = self.exchange(what, exchanges.into())?;
        let pieces = exchanged.into_iter().zip(splits).map(|(exchanged, split)| {
            self.claim_split(split, &exchanged);
            exchanged.total()
        });
        Ok(pieces.collect::<Vec<_>>().try_into().unwrap_or_else(|_| unreachable!("one for each")))
    }

    /// Party j + 1 sends `c = -(its sum) - F_(j+1)`, party j + 2 sends `c' = -(its sum) - F_j`; the components of both sums' total are
    /// `-F_j`, `-F_(j+1)` and `-(c + c')`. Neither receiver has the key of the mask of what it receives. One round.
    pub(super) fn exchange(
        &mut self,
        what: &str,
        exchanges: Vec<Exchange>,
    ) -> Result<Vec<Exchanged>, RunError> {
        let Exchanging { out, expected, open } = self.begin_exchange(exchanges);
        let got = self.talk(what, out, expected)?;
        self.end_exchange(what, open, [&got.prev, &got.next])
    }

    /// What this party sends of exchanges, before the round.
    pub(super) fn begin_exchange(&mut self, exchanges: Vec<Exchange>) -> Exchanging {
        let Streams { own: mut key, next: mut next_key } = self.draw();
        let (mut out, mut prev, mut next) = (Messages::default(), 0, 0);
        let mut open = Vec::with_capacity(exchanges.len());
        for Exchange { algebra, before, after, words } in exchanges {
            let ring = algebra.ring();
            // Both holders of a key take first the piece for the part of its number, then that for the part before.
            let own_mine = masked(&mut key, algebra, words.mine, &[], &mut vec![]).mask;
            let before = masked(&mut key, algebra, words.before, &before, &mut out.next);
            let after = masked(&mut next_key, algebra, words.after, &after, &mut out.prev);
            let next_mine = masked(&mut next_key, algebra, words.mine, &[], &mut vec![]).mask;
            next += ring.packed_bytes(words.before);
            prev += ring.packed_bytes(words.after);
            open.push(Begun { algebra, words, mine: [own_mine, next_mine], before, after });
        }
        Exchanging { out, expected: (prev, next), open }
    }

    /// The totals, with what the party before and the party after sent.
    pub(super) fn end_exchange(
        &self,
        what: &str,
        open: Vec<Begun>,
        [mut from_prev, mut from_next]: [&[u8]; 2],
    ) -> Result<Vec<Exchanged>, RunError> {
        let mut exchanged = Vec::with_capacity(open.len());
        for Begun { algebra, words, mine, before, after } in open {
            let ring = algebra.ring();
            let c = take(&mut from_prev, ring, words.after);
            let c2 = take(&mut from_next, ring, words.before);
            let c = self.unpack(what, ring, c, words.after, self.id.prev())?;
            let c2 = self.unpack(what, ring, c2, words.before, self.id.next())?;
            exchanged.push(Exchanged { algebra, mine, before, after, c: c.into(), c2: c2.into() });
        }
        Ok(exchanged)
    }

    /// Remember to prove c and c': the rows of the table in docs/rep3.md, section 6.
    fn claim_split(&mut self, split: Split, Exchanged { mine: [own, next], c, c2, .. }: &Exchanged) {
        let Some(transcript) = &mut self.transcript else { return };
        let (a, b): (Vec<Dealt>, Vec<Known>) = split.terms.into_iter().unzip();
        let of = |f: fn(&Dealt) -> &Column| a.iter().map(|a| f(a).clone()).collect::<Vec<_>>();
        let known = |f: fn(&Known) -> &Column| b.iter().map(|b| f(b).clone()).collect::<Vec<_>>();
        for j in PartyId::ALL {
            let views = match Role::of(self.id, j) {
                Role::Mine => [before(of(|a| &a.next), next), after(of(|a| &a.own), own)],
                Role::Before => {
                    [prover(of(|a| &a.before), known(|b| &b.before)), before(known(|b| &b.before), c2)]
                }
                Role::After => [after(known(|b| &b.after), c), prover(known(|b| &b.after), of(|a| &a.after))],
            };
            for (prover, view) in [j.next(), j.prev()].into_iter().zip(views) {
                super::remember(transcript, Kind::Bits, prover, view);
            }
        }
    }
}

/// Two products at a time of what is known to B alone and to A alone, as one of factors of which both have a summand:
/// `u_0 v_0 + u_1 v_1 = (u_0 + v_1)(u_1 + v_0) + u_0 u_1 + v_0 v_1`. What is left alone stays so.
fn prover(u: Vec<Column>, v: Vec<Column>) -> View {
    let sum = |a: &Column, b: &Column| Operand::Sum([a.clone(), b.clone()]);
    let term = |(u, v): (&[Column], &[Column])| match (u, v) {
        ([u0, u1], [v0, v1]) => [sum(u0, v1), sum(u1, v0)],
        _ => [u[0].clone().into(), v[0].clone().into()],
    };
    View::Prover(u.chunks(2).zip(v.chunks(2)).map(term).collect())
}

/// The same as the party before the prover sees it.
fn before(u: Vec<Column>, rest: &Column) -> View {
    verifier(u, rest, |u| [Some(u[0].clone()), u.get(1).cloned()])
}

/// As the party after it does.
fn after(v: Vec<Column>, rest: &Column) -> View {
    verifier(v, rest, |v| [v.get(1).cloned(), Some(v[0].clone())])
}

/// Of what it knows alone, with what [`prover`]'s factors have too much of it taken off.
fn verifier(own: Vec<Column>, rest: &Column, term: fn(&[Column]) -> [Option<Column>; 2]) -> View {
    let terms = own.chunks(2).map(term).collect();
    let products = own.as_chunks::<2>().0.to_vec();
    View::Verifier { terms, rest: Rest::new(rest.clone(), products) }
}

impl Exchanged {
    /// The total of both sums. Its components in the own part are `-F` of key i and of key i + 1.
    pub fn total(&self) -> Pieces {
        let Exchanged { algebra, mine: [own, next], before, after, c, c2 } = self;
        let (own, next, c, c2) = (own.clone(), next.clone(), c.clone(), c2.clone());
        let masks = Dealt { own, next, before: before.mask.clone(), after: after.mask.clone() };
        let mut pieces = Pieces::dealt(*algebra, &masks);
        pieces.subtract_known(&Known { before: before.message.clone(), after: after.message.clone() });
        pieces.subtract_known(&Known { before: c2, after: c });
        pieces
    }
}

/// `-F`, and `-F` less products, which is appended to a message: in pieces that stay in the first-level cache.
fn masked(key: &mut Prg, algebra: Algebra, n: usize, terms: &[Term], message: &mut Vec<u8>) -> Sent {
    let ring = algebra.ring();
    let (mut masks, mut sum) = (Vec::with_capacity(n), Vec::new());
    let (mut buffer, mut chosen) = ([0; PIECE], [0; PIECE]);
    if !terms.is_empty() {
        sum.reserve_exact(n);
        message.reserve(ring.packed_bytes(n));
    }
    for start in (0..n).step_by(PIECE) {
        let piece = start..n.min(start + PIECE);
        let words = &mut buffer[..piece.len()];
        key.fill(ring, words);
        mutation::mask("split-unmasked", [&mut *words]);
        algebra.negate(words);
        masks.extend_from_slice(words);
        if !terms.is_empty() {
            for term in terms {
                match term {
                    Term::Words([a, b]) => {
                        algebra.subtract_product(words, &a[piece.clone()], &b[piece.clone()]);
                    }
                    Term::Sum(sum) => algebra.subtract(words, &sum[piece.clone()]),
                    Term::Chosen { numbers, weight, bits } => {
                        let chosen = &mut chosen[..words.len()];
                        bits.choose(piece.clone(), numbers, chosen);
                        if *weight != 1 {
                            wide!(
                                chosen.iter_mut().for_each(|number| *number = number.wrapping_mul(*weight))
                            );
                        }
                        algebra.subtract(words, chosen);
                    }
                }
            }
            sum.extend_from_slice(words);
            pack(ring, words, message);
        }
    }
    Sent { mask: masks.into(), message: sum.into() }
}

/// Cut what `n` elements take off the front of a message.
fn take<'a>(rest: &mut &'a [u8], ring: Ring, n: usize) -> &'a [u8] {
    let (message, later) = rest.split_at(ring.packed_bytes(n));
    *rest = later;
    message
}
