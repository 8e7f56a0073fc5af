//! A prover that waits for its coefficients, and then makes everything that it sends fit them.

use super::super::Adapt;
use super::super::batch::{Batches, Weights};
use super::*;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// Multiply by Y in GF(2^64) = GF(2)[Y]/(Y^64 + Y^4 + Y^3 + Y + 1).
fn times_y(a: u64) -> u64 {
    (a << 1) ^ ((a >> 63).wrapping_neg() & 0b11011)
}

fn product(mut a: u64, b: u64) -> u64 {
    let mut sum = 0;
    for i in 0..64 {
        sum ^= a & (b >> i & 1).wrapping_neg();
        a = times_y(a);
    }
    sum
}

/// What a change of lane `lane` of word `word` of the only batch adds to the claim.
fn coefficient(weights: &Weights, word: usize, lane: u32) -> u64 {
    let group = weights.rho.len();
    let of_word = product(weights.s[word / group], weights.rho[word % group]);
    (0..lane).fold(of_word, |a, _| times_y(a))
}

/// Which of some coefficients add up to `target`: Gauss over GF(2).
fn combination(coefficients: &[u64], target: u64) -> Option<Vec<usize>> {
    // by leading bit: a sum of coefficients, and which they are
    let mut basis: [Option<(u64, BTreeSet<usize>)>; 64] = [const { None }; 64];
    let reduce = |basis: &[Option<(u64, BTreeSet<usize>)>; 64], mut sum: u64, mut of: BTreeSet<usize>| {
        for (bit, row) in basis.iter().enumerate().rev() {
            if let (1, Some((row, theirs))) = (sum >> bit & 1, row) {
                sum ^= row;
                of = of.symmetric_difference(theirs).copied().collect();
            }
        }
        (sum, of)
    };
    for (i, &coefficient) in coefficients.iter().enumerate() {
        let (sum, of) = reduce(&basis, coefficient, [i].into());
        if sum != 0 {
            basis[63 - sum.leading_zeros() as usize] = Some((sum, of));
        }
    }
    let (left, of) = reduce(&basis, target, BTreeSet::new());
    (left == 0).then(|| of.into_iter().collect())
}

/// Words and lanes that are changed.
type Changes = Vec<(usize, u32)>;

const LIE: (usize, u32) = (70, 13);

/// Changes of the prover's left factors that make the combined statement about them and the lie true, under the coefficients of
/// `seed`: all its values then fit its claims, in every fold, as an honest prover's do.
fn fitting(batches: &Batches, seed: &Seed) -> Changes {
    let (weights, _) = Weights::expand(seed, batches);
    let [Some(_), Some(right)] = &batches.bits.batches[0].terms[0] else {
        panic!("the prover has all factors")
    };
    let right = right.to_vec();
    let lanes = (0..right.len()).flat_map(|word| (0..64).map(move |lane| (word, lane)));
    // a change of the left factor shows where the right one is 1; more of them than there are equations
    let free: Vec<(usize, u32)> =
        lanes.filter(|&(word, lane)| right[word] >> lane & 1 == 1).step_by(17).take(200).collect();
    let coefficients: Vec<u64> = free.iter().map(|&(word, lane)| coefficient(&weights, word, lane)).collect();
    let target = coefficient(&weights, LIE.0, LIE.1);
    let changes = combination(&coefficients, target).expect("enough of them");
    let changes: Vec<_> = changes.into_iter().map(|i| free[i]).collect();
    assert!(!changes.is_empty());
    changes
}

fn flip(words: &mut [u64], changes: &[(usize, u32)]) {
    changes.iter().for_each(|(word, lane)| words[*word] ^= 1 << lane);
}

/// Everybody states `told`; its prover fits its factors to the coefficients. Gives its changes, and how each party ended.
fn adapted(told: &Statement) -> (Changes, [Result<(), RunError>; 3]) {
    let found = Arc::new(Mutex::new(vec![]));
    let results = three(Security::Malicious, |party| {
        party.enter(0, "tested");
        told.push(party);
        if party.id == told.prover {
            let found = found.clone();
            party.adapt = Some(Adapt::new(move |batches, seed| {
                let changes = fitting(batches, seed);
                let left = &mut batches.bits.batches[0].terms[0][0];
                let mut words = left.as_ref().expect("the prover's").to_vec();
                flip(&mut words, &changes);
                *left = Some(Column::from(words).into());
                *found.lock().unwrap() = changes;
            }));
        }
        party.verify()
    });
    (std::mem::take(&mut *found.lock().unwrap()), results)
}

fn told(prg: &mut Prg, prover: PartyId, side: usize) -> Statement {
    let mut told = statement(prg, Kind::Bits, prover, 200, 1);
    told.rest[side][LIE.0] ^= 1 << LIE.1;
    told
}

/// Every claim is true then but the last, about values that the verifiers fold themselves.
#[test]
fn a_prover_that_fits_its_values_to_its_coefficients_is_found() {
    let mut prg = stream();
    for (prover, side) in PartyId::ALL.into_iter().flat_map(|prover| [(prover, 0), (prover, 1)]) {
        let (changes, results) = adapted(&told(&mut prg, prover, side));
        assert!(!changes.is_empty());
        for id in [prover.next(), prover.prev()] {
            let named = |e: &RunError| matches!(e, RunError::Dishonest { prover: p, .. } if *p == prover);
            assert!(results[id.index()].as_ref().is_err_and(named), "{id}: {:?}", results[id.index()]);
        }
    }
}

/// The attack above does what it says: whoever knew the coefficients before its messages were sent could make the same changes
/// at a verifier as well, and would be believed. So it is that nobody knows them which makes proofs sound.
#[test]
fn coefficients_known_before_would_be_fatal() {
    let prover = PartyId::ALL[0];
    let mut told = told(&mut stream(), prover, 0);
    let (changes, _) = adapted(&told);
    // the same keys, and so the same coefficients
    flip(told.terms[0][0][0].as_mut().expect("the summand of the party before"), &changes);
    let results = three(Security::Malicious, |party| {
        told.push(party);
        party.verify()
    });
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}
