mod products;

use super::{Column, Kind, View};
use crate::planes::packed;
use crate::testing::three;
use crate::{Party, PartyId, RunError, Security};
use privet_kernels::fold::Words;
use privet_plan::cost::proofs::{Stated, verification};
use privet_prg::{Prg, Seed};
use privet_ring::Ring;

/// Statements of `terms` products over `words` words, true unless spoilt.
struct Statement {
    kind: Kind,
    prover: PartyId,
    u: Vec<Vec<u64>>,
    v: Vec<Vec<u64>>,
    before: Vec<u64>,
    after: Vec<u64>,
}

fn statement(prg: &mut Prg, kind: Kind, prover: PartyId, words: usize, terms: usize) -> Statement {
    let ring = match kind {
        Kind::Bits | Kind::Numbers { .. } => Ring::R64,
        Kind::Ring(ring) => ring,
    };
    let mut columns = |of_u: bool| -> Vec<_> {
        let column = |t: usize| {
            let column = prg.elements(ring, words);
            match kind.operand(t, of_u, &column.clone().into()) {
                Words::Whole(_) => column,
                Words::Bits(_) => column.into_iter().map(|w| w & 1).collect(),
            }
        };
        (0..terms).map(column).collect()
    };
    let (u, v) = (columns(true), columns(false));
    let before = prg.elements(ring, words);
    let after = (0..words)
        .map(|m| match kind {
            Kind::Bits => u.iter().zip(&v).fold(before[m], |sum, (u, v)| sum ^ (u[m] & v[m])),
            // one of them is 0 or 1
            Kind::Numbers { .. } => {
                u.iter().zip(&v).fold(before[m], |sum, (u, v)| sum ^ u[m].wrapping_mul(v[m]))
            }
            Kind::Ring(ring) => ring.wrap(
                u.iter()
                    .zip(&v)
                    .fold(before[m], |s, (u, v)| s.wrapping_add(u[m].wrapping_mul(v[m])))
                    .wrapping_neg(),
            ),
        })
        .collect();
    Statement { kind, prover, u, v, before, after }
}

impl Statement {
    fn push(&self, party: &mut Party) {
        let columns_of = |of_u: bool, c: &Vec<Vec<u64>>| -> Vec<Column> {
            let column = |(t, c): (usize, &Vec<u64>)| match self.kind.operand(t, of_u, &c.clone().into()) {
                Words::Whole(_) => c.clone().into(),
                Words::Bits(_) => packed(c).into(),
            };
            c.iter().enumerate().map(column).collect()
        };
        let (u, v) = (columns_of(true, &self.u), columns_of(false, &self.v));
        let column = |c: &Vec<u64>| Column::from(c.clone());
        let view = if party.id == self.prover {
            View::Prover { u, v }
        } else if party.id == self.prover.prev() {
            View::Before { u, s: column(&self.before) }
        } else {
            View::After { v, s: column(&self.after) }
        };
        party.transcript.as_mut().unwrap().push(self.kind, self.prover, view);
    }
}

fn stream() -> Prg {
    Seed::from_bytes(*b"of proofs' tests").stream()
}

fn ring(bits: u32) -> Kind {
    Kind::Ring(Ring::new(bits))
}

fn numbers(first: usize) -> Kind {
    Kind::Numbers { first }
}

#[test]
fn true_statements_pass() {
    let mut prg = stream();
    for kind in [Kind::Bits, numbers(0), numbers(1), numbers(3), ring(1), ring(8), ring(33), ring(64)] {
        for (words, terms) in
            [(1, 1), (2, 3), (15, 1), (16, 1), (17, 2), (63, 1), (64, 2), (65, 1), (1000, 2), (8300, 2)]
        {
            // not the same about everybody
            let about = &PartyId::ALL[..1 + words % 3];
            let statements: Vec<_> =
                about.iter().map(|&p| statement(&mut prg, kind, p, words, terms)).collect();
            let results = three(Security::Malicious, |party| {
                statements.iter().for_each(|s| s.push(party));
                party.verify().map(|()| (party.stats.sent_bytes, party.stats.rounds))
            });
            let mut stated: [Stated; 3] = Default::default();
            for s in &statements {
                let of = &mut stated[s.prover.index()];
                let batches = match s.kind {
                    Kind::Bits => &mut of.bits,
                    Kind::Numbers { .. } => &mut of.numbers,
                    Kind::Ring(_) => &mut of.ring,
                };
                batches.push((words, terms));
            }
            let declared = verification(&stated);
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
        party.stats.rounds
    });
    assert_eq!(rounds, [0; 3]);
}

/// An attempt to cheat: one bit of one column, at one party or at both that hold it.
struct Lie {
    column: usize,
    word: usize,
    bit: u32,
    only: Option<PartyId>,
}

impl Lie {
    fn draw(prg: &mut Prg, s: &Statement) -> Lie {
        let mut below = |n: usize| (prg.elements(Ring::R64, 1)[0] % n as u64) as usize;
        let (column, terms) = (below(2 * s.u.len() + 2), s.u.len());
        let is_bits =
            |t: usize, of_u: bool| matches!(s.kind.operand(t, of_u, &vec![].into()), Words::Bits(_));
        let bits = match s.kind {
            Kind::Ring(ring) => ring.bits() as usize,
            _ if column < terms && is_bits(column, true) => 1,
            _ if (terms..2 * terms).contains(&column) && is_bits(column - terms, false) => 1,
            _ => 64,
        };
        Lie {
            column,
            word: below(s.before.len()),
            bit: below(bits) as u32,
            only: PartyId::new(below(6) as u8),
        }
    }

    /// Whether the statement is false for whoever believes the lie.
    fn matters(&self, s: &Statement) -> bool {
        let (terms, flip) = (s.u.len(), 1u64 << self.bit);
        let other = match self.column {
            c if c < terms => s.v[c][self.word],
            c if c < 2 * terms => s.u[c - terms][self.word],
            _ => return true,
        };
        match s.kind {
            Kind::Bits => other & flip != 0,
            Kind::Numbers { .. } => other != 0,
            Kind::Ring(ring) => ring.wrap(other.wrapping_mul(flip)) != 0,
        }
    }

    fn tell(&self, s: &Statement) -> Statement {
        let (terms, flip) = (s.u.len(), 1u64 << self.bit);
        let mut t = Statement {
            u: s.u.clone(),
            v: s.v.clone(),
            before: s.before.clone(),
            after: s.after.clone(),
            ..*s
        };
        let column = match self.column {
            c if c < terms => &mut t.u[c],
            c if c < 2 * terms => &mut t.v[c - terms],
            c if c == 2 * terms => &mut t.before,
            _ => &mut t.after,
        };
        column[self.word] ^= flip;
        t
    }
}

#[test]
fn no_false_statement_passes() {
    let mut prg = stream();
    let mut lies = 0;
    while lies < 2000 {
        let kinds = [Kind::Bits, Kind::Bits, numbers(0), numbers(1), numbers(2), ring(1), ring(13), ring(64)];
        let kind = kinds[lies % kinds.len()];
        // now and then so many that words are folded in the largest groups
        let (words, terms) = if lies % 49 == 48 { (8300, 2) } else { [(1, 1), (3, 2), (70, 1)][lies % 3] };
        let s = statement(&mut prg, kind, PartyId::ALL[lies % 3], words, terms);
        let lie = Lie::draw(&mut prg, &s);
        if !lie.matters(&s) {
            continue;
        }
        let told = lie.tell(&s);
        // the party that holds a column alone must be the one that is told
        let results = three(Security::Malicious, |party| {
            party.enter(0, "tested");
            let believes = lie.only.is_none_or(|only| only == party.id) || lie.column >= 2 * terms;
            if believes {
                told.push(party)
            } else {
                s.push(party)
            }
            party.verify()
        });
        let holds = match lie.only {
            // this party's view does not have the column, so nothing was changed
            Some(only) if only == s.prover.next() && lie.column < terms => false,
            Some(only) if only == s.prover.prev() && (terms..2 * terms).contains(&lie.column) => false,
            _ => true,
        };
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
