//! Verification on one thread and on two.

use super::*;
use crate::linear::{Operand, products};
use crate::testing::{edges, share, three_on};
use privet_family::Products;
use privet_kernels::LinearShape;

/// Enough about everybody that another thread pays, in both algebras and for both components of a product.
fn verdicts(threads: [usize; 3], spoilt: Option<(PartyId, usize)>) -> [Result<(), RunError>; 3] {
    let mut prg = stream();
    let statements: Vec<_> =
        PartyId::ALL.into_iter().map(|prover| statement(&mut prg, Kind::Bits, prover, 17_000, 2)).collect();
    let p = Products { shape: LinearShape::MatMulT { m: 128, k: 300, n: 128 }, count: 1 };
    three_on(threads, Security::Malicious, |party| {
        for s in &statements {
            let mut s = s.clone();
            if let Some((_, 0)) = spoilt.filter(|(liar, _)| *liar == party.id) {
                s.rest.iter_mut().for_each(|rest| rest[16_000] ^= 1 << 40);
            }
            s.push(party);
        }
        let [x, w] =
            [p.input_len(), p.weight_len()].map(|n| share(party.id, Ring::R64, &edges(Ring::R64, n)));
        let w = Operand::new(party.device, Ring::R64, p, &w);
        products(party, Ring::R64, p, &x, &w, None)?;
        if let Some((_, 1)) = spoilt.filter(|(liar, _)| *liar == party.id) {
            let claim = &mut party.transcript.as_mut().unwrap().products[0];
            let mut words = claim.before.to_vec();
            words[7] = words[7].wrapping_add(1);
            claim.before = words.into();
        }
        party.verify()
    })
}

/// What parties tell each other depends on nobody's threads, and a lie in either algebra is found by any number of them.
#[test]
fn threads_change_nothing() {
    for threads in [[2; 3], [1, 2, 3]] {
        let honest = verdicts(threads, None);
        assert!(honest.iter().all(Result::is_ok), "{threads:?}: {honest:?}");
        for spoilt in PartyId::ALL.into_iter().flat_map(|liar| [(liar, 0), (liar, 1)]) {
            let found = verdicts(threads, Some(spoilt));
            assert!(found.iter().all(Result::is_err), "{threads:?}, {spoilt:?}: {found:?}");
        }
    }
}
