mod adaptive;
mod hidden;
mod products;
mod tags;
mod threads;

use super::batch::Role;
use super::{Algebra, Column, Kind, Rest, View};
use crate::planes::Bits;
use crate::price::proofs::{Stated, verification};
use crate::testing::three;
use crate::{Party, PartyId, RunError, Security};
use privet_prg::{Prg, Seed};
use privet_ring::Ring;

/// A factor as both verifiers have it, before the prover and after it: at least one of them has some of it.
type Factor = [Option<Vec<u64>>; 2];

/// Statements of `terms` products over `words` words, true unless spoilt.
#[derive(Clone)]
struct Statement {
    kind: Kind,
    prover: PartyId,
    /// Left and right.
    terms: Vec<[Factor; 2]>,
    /// The verifiers'.
    rest: [Vec<u64>; 2],
}

fn algebra(kind: Kind) -> Algebra {
    match kind {
        Kind::Bits | Kind::Numbers => Algebra::Bits,
        Kind::Ring(ring) => Algebra::Ring(ring),
    }
}

/// Whether a factor of a term is 0 or 1 a word.
fn of_bits(kind: Kind, factor: usize) -> bool {
    kind == Kind::Numbers && factor == 1
}

/// The whole of a term's factor 0 or 1.
fn whole(kind: Kind, term: &[Factor; 2], factor: usize) -> Vec<u64> {
    let algebra = match kind {
        Kind::Ring(_) if factor == 1 => Algebra::Ring(Ring::R64),
        _ => algebra(kind),
    };
    let mut there = term[factor].iter().flatten();
    let first = there.next().expect("some of it").clone();
    there.fold(first, |sum, more| algebra.sum(&sum, more))
}

fn statement(prg: &mut Prg, kind: Kind, prover: PartyId, words: usize, terms: usize) -> Statement {
    let ring = algebra(kind).ring();
    let mut column = |factor| {
        let words = prg.elements(ring, words);
        if of_bits(kind, factor) { words.into_iter().map(|w| w & 1).collect() } else { words }
    };
    let terms: Vec<[Factor; 2]> = (0..terms)
        .map(|t| {
            [0, 1].map(|factor| {
                let both = [column(factor), column(factor)].map(Some);
                // of ring elements both have a summand
                let [b, a] = both;
                match (t + factor) % 3 {
                    1 if !matches!(kind, Kind::Ring(_)) => [b, None],
                    2 if !matches!(kind, Kind::Ring(_)) => [None, a],
                    _ => [b, a],
                }
            })
        })
        .collect();
    let before = column(0);
    let mut after = before.clone();
    for term in &terms {
        let [left, right] = [0, 1].map(|factor| whole(kind, term, factor));
        match kind {
            // one of them is 0 or 1
            Kind::Numbers => {
                after.iter_mut().zip(left.iter().zip(&right)).for_each(|(s, (l, r))| *s ^= l * r)
            }
            _ => algebra(kind).add_product(&mut after, &left, &right),
        }
    }
    algebra(kind).negate(&mut after);
    Statement { kind, prover, terms, rest: [before, after] }
}

impl Statement {
    fn push(&self, party: &mut Party) {
        let column = |factor: usize, c: &[u64]| -> Column {
            if of_bits(self.kind, factor) {
                Bits::of_numbers(c, 0).words().clone()
            } else {
                c.to_vec().into()
            }
        };
        let view = match Role::of(party.id, self.prover) {
            Role::Prover => {
                let of = |term: &[Factor; 2]| [0, 1].map(|f| column(f, &whole(self.kind, term, f)));
                View::prover(self.terms.iter().map(of))
            }
            verifier => {
                let side = usize::from(verifier == Role::After);
                let of = |term: &[Factor; 2]| {
                    [0, 1].map(|f| term[f][side].as_ref().map(|summand| column(f, summand)))
                };
                let terms: Vec<_> = self.terms.iter().map(of).collect();
                View::Verifier { rest: self.rest(side, &terms), terms }
            }
        };
        party.transcript.as_mut().unwrap().push(self.kind, self.prover, view);
    }

    /// What a verifier adds alone; of bits and numbers as a column and the products of those of its summands that it has both of.
    fn rest(&self, side: usize, terms: &[[Option<Column>; 2]]) -> Rest {
        let mut column = self.rest[side].clone();
        if matches!(self.kind, Kind::Ring(_)) {
            return column.into();
        }
        let mut products = vec![];
        for (whole, term) in self.terms.iter().zip(terms) {
            let ([Some(left), Some(right)], [Some(l), Some(r)]) =
                (whole.each_ref().map(|of| &of[side]), term)
            else {
                continue;
            };
            let product = |(l, r): (&u64, &u64)| if self.kind == Kind::Numbers { l * r } else { l & r };
            column.iter_mut().zip(left.iter().zip(right).map(product)).for_each(|(sum, more)| *sum ^= more);
            products.push([l.clone(), r.clone()]);
        }
        Rest::new(column.into(), products)
    }
}

fn stream() -> Prg {
    Seed::from_bytes(*b"of proofs' tests").stream()
}

fn ring(bits: u32) -> Kind {
    Kind::Ring(Ring::new(bits))
}

#[test]
fn true_statements_pass() {
    let mut prg = stream();
    for kind in [Kind::Bits, Kind::Numbers, ring(1), ring(8), ring(33), ring(64)] {
        for (words, terms) in
            [(1, 1), (2, 3), (15, 1), (16, 1), (17, 2), (63, 1), (64, 2), (65, 1), (1000, 2), (8300, 2)]
        {
            // not the same about everybody
            let about = &PartyId::ALL[..1 + words % 3];
            let statements: Vec<_> =
                about.iter().map(|&p| statement(&mut prg, kind, p, words, terms)).collect();
            let results = three(Security::Malicious, |party| {
                statements.iter().for_each(|s| s.push(party));
                party.verify().map(|()| (party.checks.sent_bytes, party.checks.rounds))
            });
            let mut stated: [Stated; 3] = Default::default();
            for s in &statements {
                let of = &mut stated[s.prover.index()];
                let batches = match s.kind {
                    Kind::Bits => &mut of.bits,
                    Kind::Numbers => &mut of.numbers,
                    Kind::Ring(_) => &mut of.ring,
                };
                batches.push((words, terms));
            }
            let declared = verification(&stated, false, 0);
            for (result, sent) in results.into_iter().zip(declared.sent) {
                let counted =
                    result.unwrap_or_else(|e| panic!("{kind:?}, {words} words, {terms} terms: {e}"));
                assert_eq!((sent, declared.rounds), counted, "(bytes, rounds) declared and counted");
            }
        }
    }
}

#[test]
fn nothing_to_prove_costs_nothing() {
    let rounds = three(Security::Malicious, |party| {
        statement(&mut stream(), Kind::Bits, PartyId::ALL[1], 0, 2).push(party);
        party.verify().unwrap();
        party.verify().unwrap();
        party.checks.rounds
    });
    assert_eq!(rounds, [0; 3]);
}

/// What of a statement.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Factor { term: usize, factor: usize },
    Sum,
}

/// An attempt to cheat: one bit of a verifier's column, at that party alone, or at the prover, or at both.
struct Lie {
    place: Place,
    /// Whose column: 0 of the party before the prover, 1 of the one after.
    side: usize,
    word: usize,
    bit: u32,
    only: Option<PartyId>,
}

impl Lie {
    fn draw(prg: &mut Prg, s: &Statement) -> Lie {
        let mut below = |n: usize| (prg.elements(Ring::R64, 1)[0] % n as u64) as usize;
        let terms = s.terms.len();
        let place = match below(2 * terms + 1) {
            i if i < 2 * terms => Place::Factor { term: i / 2, factor: i % 2 },
            _ => Place::Sum,
        };
        let bits = match (s.kind, place) {
            (Kind::Ring(ring), _) => ring.bits() as usize,
            (kind, Place::Factor { factor, .. }) if of_bits(kind, factor) => 1,
            _ => 64,
        };
        let (side, word) = (below(2), below(s.rest[0].len()));
        Lie { place, side, word, bit: below(bits) as u32, only: PartyId::new(below(6) as u8) }
    }

    /// Whether the statement is false for whoever believes the lie.
    fn matters(&self, s: &Statement) -> bool {
        let flip = 1u64 << self.bit;
        let Place::Factor { term, factor } = self.place else { return true };
        if s.terms[term][factor][self.side].is_none() {
            return false;
        }
        let other = whole(s.kind, &s.terms[term], 1 - factor)[self.word];
        match s.kind {
            Kind::Bits => other & flip != 0,
            Kind::Numbers => other != 0,
            Kind::Ring(ring) => ring.wrap(other.wrapping_mul(flip)) != 0,
        }
    }

    fn tell(&self, s: &Statement) -> Statement {
        let mut told = s.clone();
        let column = match self.place {
            Place::Factor { term, factor } => told.terms[term][factor][self.side].as_mut().expect("there"),
            Place::Sum => &mut told.rest[self.side],
        };
        column[self.word] ^= 1 << self.bit;
        told
    }

    /// Whether this party knows what was changed.
    fn reaches(&self, id: PartyId, s: &Statement) -> bool {
        match Role::of(id, s.prover) {
            Role::Prover => self.place != Place::Sum,
            Role::Before => self.side == 0,
            Role::After => self.side == 1,
        }
    }
}

#[test]
fn no_false_statement_passes() {
    let mut prg = stream();
    let mut lies = 0;
    while lies < 2000 {
        let kinds = [Kind::Bits, Kind::Bits, Kind::Numbers, Kind::Numbers, ring(1), ring(13), ring(64)];
        let kind = kinds[lies % kinds.len()];
        // now and then so many that words are folded in the largest groups
        let (words, terms) = if lies % 49 == 48 { (8300, 2) } else { [(1, 1), (3, 2), (70, 1)][lies % 3] };
        let s = statement(&mut prg, kind, PartyId::ALL[lies % 3], words, terms);
        let lie = Lie::draw(&mut prg, &s);
        if !lie.matters(&s) {
            continue;
        }
        let told = lie.tell(&s);
        let believes = |id| lie.only.is_none_or(|only| only == id);
        let results = three(Security::Malicious, |party| {
            party.enter(0, "tested");
            if believes(party.id) { &told } else { &s }.push(party);
            party.verify()
        });
        let holds = PartyId::ALL.into_iter().any(|id| believes(id) && lie.reaches(id, &s));
        for (id, result) in PartyId::ALL.into_iter().zip(&results) {
            assert_eq!(result.is_err(), holds, "{kind:?}, attempt {lies}, {id}: {result:?}");
        }
        if holds {
            let named = |r: &Result<(), RunError>| matches!(r, Err(RunError::Dishonest { prover, layer, .. }) if *prover == s.prover && layer == "tested");
            assert!(named(&results[s.prover.next().index()]) && named(&results[s.prover.prev().index()]));
            lies += 1;
        }
    }
}
