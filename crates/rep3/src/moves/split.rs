use super::{Dealt, PIECE};
use crate::context::{Messages, Party};
use crate::keys::Streams;
use crate::parts::{Parts, Role, Roles};
use crate::proof::{Algebra, Column, Kind, Operand, View};
use crate::{PartyId, RunError, Share, mutation};
use privet_prg::Prg;
use privet_ring::{Ring, pack};

/// A value that both parties other than the dealer of a part know: component j + 2 of part j.
#[derive(Clone)]
pub(crate) struct Known {
    /// In the part of the party before.
    pub before: Column,
    /// In the part of the party after.
    pub after: Column,
}

impl Known {
    /// The summand `x_(j+2)` of every part j.
    pub fn summand(id: PartyId, parts: &Parts, x: &Share) -> Known {
        let part = parts.elements(id);
        Known { before: Column::slice(&x.next, part.before), after: Column::slice(&x.own, part.after) }
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

/// A replicated value part by part: this party's components i and i + 1 in each.
pub(crate) struct Pieces(pub Roles<[Vec<u64>; 2]>);

/// The two messages of every part: a sum of products each, of what their sender knows.
pub(super) struct Exchange {
    pub algebra: Algebra,
    /// Of `c`, which the party after the dealer sends.
    pub before: Vec<[Column; 2]>,
    /// Of `c'`, which the party before the dealer sends.
    pub after: Vec<[Column; 2]>,
    /// Words of every part.
    pub words: Roles<usize>,
}

/// What an exchange gave.
pub(super) struct Exchanged {
    /// The total. Its components in the own part are `-F` of key i and of key i + 1.
    pub pieces: Pieces,
    /// `c`, which came for the part of the party after.
    pub c: Vec<u64>,
    /// `c'`, which came for the part of the party before.
    pub c2: Vec<u64>,
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
    /// `-F` of the own part, of key i and of key i + 1.
    mine: [Vec<u64>; 2],
    /// `-F` of what is sent, and what is sent.
    before: (Vec<u64>, Vec<u64>),
    after: (Vec<u64>, Vec<u64>),
}

impl Party<'_> {
    /// Multiply dealt bits by what the two others know: they send each other one message each, one round.
    pub(crate) fn split<const N: usize>(
        &mut self,
        what: &str,
        splits: [Split; N],
    ) -> Result<[Pieces; N], RunError> {
        let of = |terms: &[(Dealt, Known)], pick: fn(&(Dealt, Known)) -> [Column; 2]| {
            terms.iter().map(pick).collect::<Vec<_>>()
        };
        let exchanges = splits.each_ref().map(|Split { terms, words }| Exchange {
            algebra: Algebra::Bits,
            before: of(terms, |(a, b)| [a.before.clone(), b.before.clone()]),
            after: of(terms, |(a, b)| [a.after.clone(), b.after.clone()]),
            words: *words,
        });
        let exchanged = self.exchange(what, exchanges.into())?;
        let pieces = exchanged.into_iter().zip(splits).map(|(Exchanged { pieces, c, c2 }, split)| {
            self.claim_split(split, &pieces, c, c2);
            pieces
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
            let own_mine = masked(&mut key, algebra, words.mine, &[], &mut vec![]).0;
            let before = masked(&mut key, algebra, words.before, &before, &mut out.next);
            let after = masked(&mut next_key, algebra, words.after, &after, &mut out.prev);
            let next_mine = masked(&mut next_key, algebra, words.mine, &[], &mut vec![]).0;
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
        for open in open {
            let (ring, words) = (open.algebra.ring(), open.words);
            let c = take(&mut from_prev, ring, words.after);
            let c2 = take(&mut from_next, ring, words.before);
            let c = self.unpack(what, ring, c, words.after, self.id.prev())?;
            let c2 = self.unpack(what, ring, c2, words.before, self.id.next())?;
            exchanged.push(open.close(c, c2));
        }
        Ok(exchanged)
    }

    /// Remember to prove c and c': the rows of the table in docs/rep3.md, section 6.
    fn claim_split(&mut self, split: Split, pieces: &Pieces, c: Vec<u64>, c2: Vec<u64>) {
        let Some(transcript) = &mut self.transcript else { return };
        let (a, b): (Vec<Dealt>, Vec<Known>) = split.terms.into_iter().unzip();
        let of = |f: fn(&Dealt) -> &Column| a.iter().map(|a| f(a).clone()).collect::<Vec<_>>();
        let known = |f: fn(&Known) -> &Column| b.iter().map(|b| f(b).clone()).collect::<Vec<_>>();
        // what a verifier adds alone; it is this party's in one proof each
        let [mut own, mut next] = pieces.0.mine.clone();
        let (mut c, mut c2) = (c, c2);
        for j in PartyId::ALL {
            let views = match Role::of(self.id, j) {
                Role::Mine => [
                    before(of(|a| &a.next), std::mem::take(&mut next)),
                    after(of(|a| &a.own), std::mem::take(&mut own)),
                ],
                Role::Before => [
                    prover(of(|a| &a.before), known(|b| &b.before)),
                    before(known(|b| &b.before), std::mem::take(&mut c2)),
                ],
                Role::After => [
                    after(known(|b| &b.after), std::mem::take(&mut c)),
                    prover(known(|b| &b.after), of(|a| &a.after)),
                ],
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
fn before(u: Vec<Column>, rest: Vec<u64>) -> View {
    verifier(u, rest, |u| [Some(u[0].clone()), u.get(1).cloned()])
}

/// As the party after it does.
fn after(v: Vec<Column>, rest: Vec<u64>) -> View {
    verifier(v, rest, |v| [v.get(1).cloned(), Some(v[0].clone())])
}

/// Of what it knows alone, with what [`prover`]'s factors have too much of it taken off.
fn verifier(own: Vec<Column>, mut rest: Vec<u64>, term: fn(&[Column]) -> [Option<Column>; 2]) -> View {
    let terms = own.chunks(2).map(term).collect();
    for [a, b] in own.as_chunks::<2>().0 {
        Algebra::Bits.subtract_product(&mut rest, a, b);
    }
    View::Verifier { terms, rest: rest.into() }
}

impl Begun {
    /// The total from what came: `c` of the part of the party after, `c2` (that is, c') of the part of the party before.
    fn close(self, c: Vec<u64>, c2: Vec<u64>) -> Exchanged {
        let Begun { algebra, mine, before: (before, mut sent), after: (after, mut sent2), .. } = self;
        for (sent, came) in [(&mut sent, &c2), (&mut sent2, &c)] {
            algebra.add(sent, came);
            algebra.negate(sent);
        }
        let pieces = Pieces(Roles { mine, before: [before, sent], after: [sent2, after] });
        Exchanged { pieces, c, c2 }
    }
}

/// `-F`, and `-F` less products, which is appended to a message: in pieces that stay in the first-level cache.
fn masked(
    key: &mut Prg,
    algebra: Algebra,
    n: usize,
    terms: &[[Column; 2]],
    message: &mut Vec<u8>,
) -> (Vec<u64>, Vec<u64>) {
    let ring = algebra.ring();
    let (mut masks, mut sum, mut buffer) = (Vec::with_capacity(n), Vec::new(), [0; PIECE]);
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
            for [a, b] in terms {
                algebra.subtract_product(words, &a[piece.clone()], &b[piece.clone()]);
            }
            sum.extend_from_slice(words);
            pack(ring, words, message);
        }
    }
    (masks, sum)
}

/// Cut what `n` elements take off the front of a message.
fn take<'a>(rest: &mut &'a [u8], ring: Ring, n: usize) -> &'a [u8] {
    let (message, later) = rest.split_at(ring.packed_bytes(n));
    *rest = later;
    message
}

impl Pieces {
    /// A dealt value and one that the two others know.
    pub fn of(a: &Dealt, b: &Known) -> Pieces {
        Pieces(Roles {
            mine: [a.own.to_vec(), a.next.to_vec()],
            before: [a.before.to_vec(), b.before.to_vec()],
            after: [b.after.to_vec(), a.after.to_vec()],
        })
    }

    /// Add a dealt value.
    pub fn add_dealt(&mut self, algebra: Algebra, a: &Dealt) {
        algebra.add(&mut self.0.mine[0], &a.own);
        algebra.add(&mut self.0.mine[1], &a.next);
        algebra.add(&mut self.0.before[0], &a.before);
        algebra.add(&mut self.0.after[1], &a.after);
    }

    /// Add a value that the two others know.
    pub fn add_known(&mut self, algebra: Algebra, b: &Known) {
        algebra.add(&mut self.0.before[1], &b.before);
        algebra.add(&mut self.0.after[0], &b.after);
    }

    /// Add a public number times a value that the two others know.
    pub fn add_known_times(&mut self, algebra: Algebra, b: &Known, factor: u64) {
        algebra.add_times(&mut self.0.before[1], &b.before, factor);
        algebra.add_times(&mut self.0.after[0], &b.after, factor);
    }

    /// Add the product of two values that the two others know.
    pub fn add_known_product(&mut self, algebra: Algebra, a: &Known, b: &Known) {
        algebra.add_product(&mut self.0.before[1], &a.before, &b.before);
        algebra.add_product(&mut self.0.after[0], &a.after, &b.after);
    }

    /// The whole vector of ring elements.
    pub fn join(self, id: PartyId, parts: &Parts) -> Share {
        let [own, next] = [0, 1].map(|side| {
            let mut out = Vec::with_capacity(parts.len());
            for pieces in self.in_order(id) {
                out.extend_from_slice(&pieces[side]);
            }
            out
        });
        Share::new(own, next)
    }

    /// [`Pieces::join`], and what comes after it at once: `finish` is given elements of a component while they are in the
    /// first-level cache, whose component it is, and the first one's place.
    pub fn join_with(self, id: PartyId, parts: &Parts, finish: impl Fn(PartyId, usize, &mut [u64])) -> Share {
        let [own, next] = [(0, id), (1, id.next())].map(|(side, holder)| {
            let mut out = Vec::with_capacity(parts.len());
            for piece in self.in_order(id).into_iter().flat_map(|pieces| pieces[side].chunks(PIECE)) {
                let start = out.len();
                out.extend_from_slice(piece);
                finish(holder, start, &mut out[start..]);
            }
            out
        });
        Share::new(own, next)
    }

    /// Of part 0, 1 and 2.
    pub fn in_order(&self, id: PartyId) -> [&[Vec<u64>; 2]; 3] {
        PartyId::ALL.map(|j| match Role::of(id, j) {
            Role::Mine => &self.0.mine,
            Role::Before => &self.0.before,
            Role::After => &self.0.after,
        })
    }
}
