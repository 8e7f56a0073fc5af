//! The transforms against their definition, on every path that the machine has.

use privet_he::HePath;
use privet_he::ntt::{Ntt, spec};
use privet_prg::{Prg, Seed};
use privet_ring::Ring;

/// Primes with 2^15 dividing p - 1, on both sides of what the registers' halves and limbs hold; first the smallest one
/// that can be, last the largest ones below 2^50.
const PRIMES: [u64; 10] = [
    65537,
    557057,
    1073872897,
    2148728833,
    4295294977,
    549756174337,
    281474977595393,
    562949954142209,
    1125899903795201,
    1125899904679937,
];

fn paths() -> impl Iterator<Item = HePath> {
    HePath::ALL.into_iter().filter(|p| {
        if !p.available() {
            eprintln!("skipped: {p}, which this machine lacks");
        }
        p.available()
    })
}

fn uniform(prg: &mut Prg, p: u64, n: usize) -> Vec<u64> {
    prg.elements(Ring::R64, n).into_iter().map(|x| x % p).collect()
}

/// Inputs at the ends of the range, where a lazy reduction that is short of one overflows.
fn extremes(prg: &mut Prg, p: u64, n: usize) -> Vec<Vec<u64>> {
    let edge = prg.elements(Ring::new(2), n).into_iter().map(|x| [0, 1, p - 2, p - 1][x as usize]).collect();
    vec![vec![0; n], vec![p - 1; n], edge, uniform(prg, p, n)]
}

#[test]
fn every_path_is_the_definition() {
    let mut prg = Seed::from_bytes([1; 16]).stream();
    for p in PRIMES {
        for n in [32, 64, 128, 256, 512] {
            let ntt = Ntt::new(n, p);
            for input in extremes(&mut prg, p, n) {
                let expected = spec::forward(&input, p);
                for path in paths() {
                    let mut words = input.clone();
                    ntt.forward(path, &mut words);
                    assert_eq!(words, expected, "{path}, N = {n}, p = {p}");
                    ntt.inverse(path, &mut words);
                    assert_eq!(words, input, "{path}, N = {n}, p = {p}");
                }
            }
        }
    }
}

#[test]
fn leading_coefficients_alone_give_the_same_values() {
    let mut prg = Seed::from_bytes([3; 16]).stream();
    for p in PRIMES {
        for n in [32, 64, 512, 8192] {
            let ntt = Ntt::new(n, p);
            for used in [0, 1, 31, 32, 33, 100, 128, 4096, n].into_iter().filter(|used| *used <= n) {
                for mut input in extremes(&mut prg, p, n) {
                    input[used..].fill(0);
                    for path in paths() {
                        let (mut words, mut expected) = (input.clone(), input.clone());
                        ntt.forward_of(path, &mut words, used);
                        ntt.forward(path, &mut expected);
                        assert_eq!(words, expected, "{path}, N = {n}, p = {p}, {used} coefficients");
                    }
                }
            }
        }
    }
}

#[test]
fn paths_agree_at_full_size() {
    let mut prg = Seed::from_bytes([2; 16]).stream();
    for p in PRIMES {
        for n in [4096, 8192, 16384] {
            let ntt = Ntt::new(n, p);
            for input in extremes(&mut prg, p, n) {
                let mut expected = input.clone();
                ntt.forward(HePath::Portable, &mut expected);
                for path in paths() {
                    let mut words = input.clone();
                    ntt.forward(path, &mut words);
                    assert_eq!(words, expected, "{path}, N = {n}, p = {p}");
                    ntt.inverse(path, &mut words);
                    assert_eq!(words, input, "{path}, N = {n}, p = {p}");
                }
            }
        }
    }
}

#[test]
fn values_multiply_as_polynomials() {
    let mut prg = Seed::from_bytes([3; 16]).stream();
    let (n, p) = (256, PRIMES[9]);
    let ntt = Ntt::new(n, p);
    let (a, b) = (uniform(&mut prg, p, n), uniform(&mut prg, p, n));
    for path in paths() {
        let (mut x, mut y) = (a.clone(), b.clone());
        ntt.forward(path, &mut x);
        ntt.forward(path, &mut y);
        x.iter_mut().zip(&y).for_each(|(x, y)| *x = (*x as u128 * *y as u128 % p as u128) as u64);
        ntt.inverse(path, &mut x);
        assert_eq!(x, spec::product(&a, &b, p), "{path}");
    }
}

#[test]
#[should_panic(expected = "2 n divides p - 1")]
fn a_prime_without_the_roots_is_refused() {
    Ntt::new(1 << 16, 65537 + 65536 / 2 * 15);
}
