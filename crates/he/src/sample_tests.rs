//! Moments from fixed seeds, two-sided, and samplers that must fail: a test that takes anything tests nothing.

use super::*;
use privet_prg::Seed;

const N: usize = 1 << 18;

/// Mean and variance, and the largest magnitude.
fn moments(values: &[f64]) -> (f64, f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    (mean, variance, values.iter().fold(0.0, |most, v| v.abs().max(most)))
}

/// Six standard errors on both sides; `kurtosis` is the fourth moment over the squared variance. Neighbours must be
/// uncorrelated too.
fn accepts(values: &[f64], variance: f64, kurtosis: f64, most: f64) -> bool {
    let n = values.len() as f64;
    let (mean, found, largest) = moments(values);
    let neighbours = values.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / n;
    let within = |x: f64, sigma: f64| x.abs() <= 6.0 * sigma / n.sqrt();
    within(mean, variance.sqrt())
        && within(found - variance, variance * (kurtosis - 1.0).sqrt())
        && within(neighbours, variance)
        && largest <= most
}

fn signed(small: &Small) -> Vec<f64> {
    small.iter().map(|&v| v as f64 - OFFSET as f64).collect()
}

fn is_ternary(values: &[f64]) -> bool {
    accepts(values, TERNARY_VARIANCE, 1.5, 1.0)
}

fn is_error(values: &[f64]) -> bool {
    accepts(values, ERROR_VARIANCE, 3.0 - 1.0 / CBD as f64, CBD as f64)
}

#[test]
fn small_values_have_their_moments() {
    let mut prg = Seed::from_bytes([7; 16]).stream();
    assert!(is_ternary(&signed(&ternary(&mut prg, N))));
    assert!(is_error(&signed(&errors(&mut prg, N))));
}

#[test]
fn wrong_samplers_are_rejected() {
    let mut prg = Seed::from_bytes([8; 16]).stream();
    let (good, other) = (signed(&errors(&mut prg, N)), signed(&ternary(&mut prg, N)));
    assert!(!is_error(&vec![0.0; N]), "no noise at all");
    assert!(!is_error(&vec![3.24; N]), "a constant");
    assert!(!is_error(&other), "too little noise");
    assert!(!is_error(&good.iter().map(|v| v * 1.02).collect::<Vec<_>>()), "two in a hundred too much");
    assert!(!is_error(&good.iter().map(|v| v * 0.98).collect::<Vec<_>>()), "two in a hundred too little");
    let repeated: Vec<f64> = good.iter().step_by(2).flat_map(|v| [*v, *v]).collect();
    assert!(!is_error(&repeated), "each value twice");
    assert!(!is_ternary(&good));
    assert!(!is_ternary(&other.iter().map(|v| v.abs()).collect::<Vec<_>>()), "one sign only");
}

/// The noise over 2^bits, centred.
fn drowning(limbs: &[Small; 3], bits: u32) -> Vec<f64> {
    let unit = |limb: u32| 2f64.powi((limb * LIMB) as i32 - bits as i32);
    let value = |i: usize| (0..3).map(|l| limbs[l][i] as f64 * unit(l as u32)).sum::<f64>() - 1.5;
    (0..limbs[0].len()).map(value).collect()
}

#[test]
fn drowning_noise_has_its_moments_at_every_width() {
    // three uniform summands: variance 1/4, kurtosis 3 - 6/5/3
    let fits = |values: &[f64]| accepts(values, 0.25, 2.6, 1.5);
    for (i, bits) in [52, 53, 84, 104, 105, 133, 153].into_iter().enumerate() {
        let mut prg = Seed::from_bytes([20 + i as u8; 16]).stream();
        let limbs = flood(&mut prg, bits, N);
        assert!(limbs.iter().all(|l| l.iter().all(|w| w >> LIMB == 0)), "limbs of 52 bits");
        let values = drowning(&limbs, bits);
        assert!(fits(&values), "{bits} bits");
        assert!(!fits(&drowning(&limbs, bits + 1)), "half of {bits} bits is too little");
        assert!(!fits(&vec![0.0; N]), "none is too little");
        // the lowest bits are as random as the highest ones
        let odd = limbs[0].iter().filter(|w| *w & 1 == 1).count() as f64;
        assert!((odd - N as f64 / 2.0).abs() < 3.0 * (N as f64).sqrt(), "{bits} bits");
    }
}

/// The constant of the doc comment: half the square root of Irwin and Hall's Fisher information, for the discrete
/// density by the sum of squared differences of its square roots, with which Hellinger's distance is bounded.
#[test]
fn moving_the_noise_costs_what_is_stated() {
    for m in [64usize, 256, 1024] {
        let mut density = vec![1.0f64; m];
        for _ in 0..2 {
            let mut next = vec![0.0; density.len() + m - 1];
            density.iter().enumerate().for_each(|(i, d)| (0..m).for_each(|j| next[i + j] += d));
            density = next;
        }
        let total: f64 = density.iter().sum();
        let root = |i: isize| {
            if i < 0 { 0.0 } else { density.get(i as usize).map_or(0.0, |d| (d / total).sqrt()) }
        };
        let squares: f64 = (0..=density.len() as isize).map(|i| (root(i) - root(i - 1)).powi(2)).sum();
        // distance <= sqrt(2) H, H^2 <= E^2 squares / 2
        assert!(squares.sqrt() * m as f64 <= crate::noise::MOVING, "{m}: {}", squares.sqrt() * m as f64);
        for e in [1isize, 3, 17] {
            let distance: f64 = (0..density.len() as isize + e)
                .map(|i| (root(i).powi(2) - root(i - e).powi(2)).abs())
                .sum::<f64>()
                / 2.0;
            assert!(distance <= crate::noise::MOVING * e as f64 / m as f64);
        }
    }
}

#[test]
fn public_words_are_uniform_below_the_prime() {
    let mut prg = Seed::from_bytes([9; 16]).stream();
    for p in [65537u64, 3 << 40, (1 << 50) - 1] {
        let mut out = vec![0; N];
        uniform(&mut prg, p, &mut out);
        assert!(out.iter().all(|w| *w < p));
        let centred: Vec<f64> = out.iter().map(|w| *w as f64 / p as f64 - 0.5).collect();
        assert!(accepts(&centred, 1.0 / 12.0, 1.8, 0.5), "{p}");
    }
}

#[test]
fn comparisons_are_comparisons() {
    for a in [0, 1, u64::MAX >> 1, 1 << 63, u64::MAX] {
        for b in [0, 1, u64::MAX >> 1, 1 << 63, u64::MAX] {
            assert_eq!(below(a, b) == 1, a < b);
        }
    }
}
