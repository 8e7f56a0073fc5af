//! Which forms of a comparison are worth a choice: those that no other one beats in key bytes, rounds and work at once.

use crate::compare::Comparison;
use crate::price::{comparison_aes, comparison_key_bytes};
use privet_kernels::chunks::Level;
use privet_plan::Form;

/// Operations on planes, a comparison's part of them, that take as long as one AES call.
const OPERATIONS_A_CALL: u64 = 2048;

/// What a form costs a comparison, of many: bits of key, an evaluator's part on average; rounds; operations on planes.
fn cost(what: Comparison, form: Form) -> [u64; 3] {
    match what.chunks(form) {
        None => {
            let calls = comparison_aes(what.bits);
            [8 * comparison_key_bytes(what.bits), 1, OPERATIONS_A_CALL * calls]
        }
        Some(chunks) => {
            let planes = chunks.tables() + chunks.levels.iter().map(Level::products).sum::<usize>();
            [planes.div_ceil(2) as u64, 1 + chunks.levels.len() as u64, chunks.work() as u64]
        }
    }
}

/// All forms of a comparison that are not beaten, fewest key bytes first.
pub(crate) fn sensible(what: Comparison) -> Vec<Form> {
    let cuts = (1..=8).flat_map(|width| (2..=9).map(move |fan| Form::Chunks { width, fan }));
    let mut all: Vec<(Form, [u64; 3])> =
        cuts.chain([Form::Tree]).map(|form| (form, cost(what, form))).collect();
    // among equals the first one stays
    all.sort_by_key(|(_, cost)| *cost);
    all.dedup_by_key(|(_, cost)| *cost);
    let beaten = |of: &[u64; 3]| {
        all.iter().any(|(_, other)| other != of && other.iter().zip(of).all(|(other, of)| other <= of))
    };
    all.iter().filter(|(_, cost)| !beaten(cost)).map(|(form, _)| *form).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_a_curve() {
        for bits in 1..=64 {
            for what in [Comparison::less(bits), Comparison::equal(bits)] {
                let forms = sensible(what);
                let costs: Vec<_> = forms.iter().map(|form| cost(what, *form)).collect();
                assert!(costs.windows(2).all(|w| w[0][0] <= w[1][0]), "{what:?}: {costs:?}");
                assert!(costs.iter().any(|cost| cost[1] == 1), "{what:?}: one round is to be had");
                assert!(forms.iter().all(|form| form.check().is_ok()));
            }
        }
        let forms = sensible(Comparison::less(63));
        assert!(
            forms.contains(&Form::Tree) && forms.contains(&Form::Chunks { width: 4, fan: 4 }),
            "{forms:?}"
        );
        assert!(!sensible(Comparison::less(7)).contains(&Form::Tree), "one table is smaller");
    }
}
