//! Lies among many true statements: nothing that is true beside a lie hides it.

use super::*;
use crate::price::proofs::alone;

/// Statements of every kind about every party, of lengths that fill groups and that do not.
fn many(prg: &mut Prg) -> Vec<Statement> {
    let kinds = [Kind::Bits, Kind::Numbers, ring(1), ring(13), ring(40), ring(64)];
    let sizes = [(1, 1), (5, 2), (64, 1), (130, 3), (700, 2)];
    let each = kinds.into_iter().flat_map(|kind| sizes.map(|size| (kind, size)));
    let about = each.flat_map(|each| PartyId::ALL.map(|prover| (each, prover)));
    about.map(|((kind, (words, terms)), prover)| statement(prg, kind, prover, words, terms)).collect()
}

/// All parties state all of it, each what it believes, and verify.
fn verdicts(
    statements: &[Statement],
    believes: impl Fn(PartyId, usize) -> Option<Statement> + Sync,
) -> [Result<(), RunError>; 3] {
    three(Security::Malicious, |party| {
        party.enter(0, "tested");
        for (i, s) in statements.iter().enumerate() {
            believes(party.id, i).as_ref().unwrap_or(s).push(party);
        }
        party.verify()
    })
}

#[track_caller]
fn found(results: &[Result<(), RunError>; 3], prover: PartyId, what: &str) {
    for id in [prover.next(), prover.prev()] {
        let named =
            matches!(&results[id.index()], Err(RunError::Dishonest { prover: p, .. }) if *p == prover);
        assert!(named, "{what}: {id} says {:?}", results[id.index()]);
    }
    assert!(results[prover.index()].is_err(), "{what}: the prover went on");
}

#[test]
fn true_statements_of_all_kinds_pass_together() {
    let statements = many(&mut stream());
    verdicts(&statements, |_, _| None).into_iter().for_each(|result| result.unwrap());
}

/// One wrong bit in one of ninety statements, in every one of them once.
#[test]
fn one_lie_among_many_truths_is_found() {
    let mut prg = stream();
    let statements = many(&mut prg);
    for (at, s) in statements.iter().enumerate() {
        let lie = loop {
            let lie = Lie::draw(&mut prg, s);
            if lie.matters(s) && lie.only.is_none() {
                break lie;
            }
        };
        let told = lie.tell(s);
        let results = verdicts(&statements, |_, i| (i == at).then(|| told.clone()));
        found(&results, s.prover, &format!("statement {at}, {:?}", s.kind));
    }
}

/// Two lies that cancel in every sum whose coefficients are alike: of two words of a group, of two groups, of two statements.
#[test]
fn lies_that_cancel_each_other_are_found() {
    let mut prg = stream();
    for kind in [Kind::Bits, Kind::Numbers, ring(13), ring(64)] {
        let prover = PartyId::ALL[1];
        let statements = [(); 2].map(|()| statement(&mut prg, kind, prover, 8300, 2));
        let half = 1u64
            << match kind {
                Kind::Ring(ring) => ring.bits() - 1,
                _ => 63,
            };
        // the largest power of two, which is its own negation, in two sums of the party before the prover
        let pairs = [
            [(0, 0), (0, 1)],
            [(0, 3), (0, 8)],
            [(0, 0), (0, 64)],
            [(0, 5), (0, 4096 + 5)],
            [(0, 7), (1, 7)],
        ];
        for pair in pairs {
            let told = |i: usize| {
                let mut told = statements[i].clone();
                pair.iter().filter(|(at, _)| *at == i).for_each(|(_, word)| told.rest[0][*word] ^= half);
                Some(told)
            };
            let results = verdicts(&statements, |_, i| told(i));
            found(&results, prover, &format!("{kind:?}, {pair:?}"));
        }
    }
    assert!(alone(64) && !alone(13), "numbers of 64 bits have words of their own");
}
