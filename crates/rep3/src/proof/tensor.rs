//! Polynomials of degree 1 and 2 in several variables (`privet_kernels::fold`).

use super::extension::Extension;
use privet_kernels::Device;

/// The products of the challenges: entry l is that of the `r_j` at the ones of l.
pub(super) fn basis<E: Extension>(device: &dyn Device, r: &[u64]) -> Vec<E> {
    let mut powers = Vec::with_capacity(1 << r.len());
    powers.push(E::embed(E::ONE));
    for &r in r {
        let half = powers.len();
        powers.extend_from_within(..);
        E::times(device, &mut powers[half..], r);
    }
    powers
}

/// The polynomial of degree 2 in every variable with these values, at `r`.
pub(super) fn evaluate<E: Extension>(device: &dyn Device, values: &[E], r: &[u64]) -> E {
    let mut values = values.to_vec();
    for &r in r.iter().rev() {
        let third = values.len() / 3;
        // zero + (one - zero - infinity + infinity r) r
        let mut rest = values[2 * third..].to_vec();
        E::times(device, &mut rest, r);
        for (e, rest) in rest.iter_mut().enumerate() {
            *rest = rest.add(values[third + e].sub(values[e]).sub(values[2 * third + e]));
        }
        E::times(device, &mut rest, r);
        values.truncate(third);
        values.iter_mut().zip(rest).for_each(|(zero, rest)| *zero = zero.add(rest));
    }
    values[0]
}
