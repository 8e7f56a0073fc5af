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
