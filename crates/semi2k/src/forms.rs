//! Which forms of a comparison are worth a choice: those that no other one beats in what is stored, in rounds and in work at once.

use crate::compare::Comparison;
use privet_kernels::chunks::Level;
use privet_plan::Form;

/// What a form costs a comparison, of many: bits of the record, rounds, ANDs of its preparation.
fn cost(what: Comparison, form: Form) -> [u64; 3] {
    let chunks = what.chunks(Some(form));
    let products: usize = chunks.levels.iter().map(Level::products).sum();
    let ands: usize = chunks.sizes.iter().map(|w| (1usize << w) - 1 - *w as usize).sum();
    let rounds = 1 + chunks.levels.len() as u64;
    [(chunks.tables() + products) as u64, rounds, (ands + products) as u64]
}

/// All forms of a comparison that are not beaten, fewest bits of the record first.
pub(crate) fn sensible(what: Comparison) -> Vec<Form> {
    let cuts = (1..=6).flat_map(|width| (2..=6).map(move |fan| Form::Chunks { width, fan }));
    let mut all: Vec<(Form, [u64; 3])> = cuts.map(|form| (form, cost(what, form))).collect();
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
                assert!(
                    !costs.is_empty() && costs.windows(2).all(|w| w[0][0] <= w[1][0]),
                    "{what:?}: {costs:?}"
                );
                assert!(forms.iter().all(|form| form.check().is_ok()));
            }
        }
        let forms = sensible(Comparison::less(63));
        assert!(forms.contains(&Form::Chunks { width: 2, fan: 2 }), "{forms:?}");
        assert!(forms.len() > 2, "{forms:?}");
    }
}
