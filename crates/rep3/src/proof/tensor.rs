//! Polynomials of degree 1 and 2 in several variables (`privet_kernels::fold`).

use super::extension::Extension;

/// The products of the challenges: entry l is that of the `r_j` at the ones of l.
pub(super) fn basis<E: Extension>(r: &[u64]) -> Vec<E> {
    let mut powers = vec![E::embed(1)];
    for &r in r {
        let r = E::embed(r);
        for l in 0..powers.len() {
            powers.push(powers[l].mul(r));
        }
    }
    powers
}

/// Values at 0, 1 and infinity in every variable of the polynomial with these coefficients (0 after the last).
pub(super) fn extend<E: Extension>(coefficients: &[E], vars: u32) -> Vec<E> {
    let mut values = coefficients.to_vec();
    values.resize(1 << vars, E::ZERO);
    let mut size = 1;
    while values.len() > size {
        values = values
            .chunks(2 * size)
            .flat_map(|pair| {
                let (zero, infinity) = pair.split_at(size);
                let one = zero.iter().zip(infinity).map(|(a, b)| a.add(*b));
                zero.iter().copied().chain(one).chain(infinity.iter().copied()).collect::<Vec<_>>()
            })
            .collect();
        size *= 3;
    }
    values
}

/// The polynomial of degree 2 in every variable with these values, at `r`.
pub(super) fn evaluate<E: Extension>(values: &[E], r: &[u64]) -> E {
    let mut values = values.to_vec();
    for &r in r.iter().rev() {
        let r = E::embed(r);
        let third = values.len() / 3;
        let at = |e: usize| {
            let (zero, one, infinity) = (values[e], values[third + e], values[2 * third + e]);
            // zero + (one - zero - infinity) r + infinity r^2
            zero.add(r.mul(one.sub(zero).sub(infinity).add(r.mul(infinity))))
        };
        values = (0..third).map(at).collect();
    }
    values[0]
}

/// Most variables of a later fold.
const VARS: u32 = 4;

/// Variables of every fold: `first`, then as many as it takes to bring `items` items and one mask into one group. Empty
/// where there is nothing to prove.
pub(super) fn schedule(first: u32, mut items: usize) -> Vec<u32> {
    if items == 0 {
        return vec![];
    }
    let mut vars = vec![first];
    while items + 1 > 1 << VARS {
        vars.push(VARS);
        items = items.div_ceil(1 << VARS);
    }
    vars.push((items + 1).next_power_of_two().ilog2());
    vars
}
