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

/// The value at point `e` of the polynomial with these coefficients (0 after the last).
pub(super) fn value<E: Extension>(coefficients: &[E], vars: u32, e: usize) -> E {
    // variables at infinity pick, those at 1 add up, those at 0 leave out
    let (mut rest, mut picked, mut summed) = (e, 0, 0);
    for j in 0..vars {
        match rest % 3 {
            0 => {}
            1 => summed |= 1 << j,
            _ => picked |= 1 << j,
        }
        rest /= 3;
    }
    let mut sum = E::ZERO;
    let mut subset = 0usize;
    loop {
        if let Some(c) = coefficients.get(picked | subset) {
            sum = sum.add(*c);
        }
        // the next subset of `summed`
        subset = subset.wrapping_sub(summed) & summed;
        if subset == 0 {
            return sum;
        }
    }
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
