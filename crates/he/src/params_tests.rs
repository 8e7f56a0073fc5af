use super::*;
use crate::modulus::Modulus;

/// Miller and Rabin, exact below 2^64 with these bases.
fn is_prime(n: u64) -> bool {
    let m = Modulus::new(n);
    let (odd, twos) = ((n - 1) >> (n - 1).trailing_zeros(), (n - 1).trailing_zeros());
    [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37].into_iter().all(|base| {
        let mut x = m.power(base, odd);
        x == 1
            || (0..twos).any(|_| {
                let found = x == n - 1;
                x = m.times(x, x);
                found
            })
    })
}

#[test]
fn primes_are_the_largest_that_fit() {
    let largest: Vec<u64> = (1..)
        .map(|i| (1 << PRIME_BITS) + 1 - (i << 15))
        .filter(|&p| is_prime(p))
        .take(PRIMES.len())
        .collect();
    assert_eq!(largest, PRIMES);
    assert!(!is_prime(PRIMES[0] - 2) && is_prime(65537));
}

#[test]
fn every_set_has_its_evidence() {
    let evidence = include_str!("evidence.txt");
    for set in &SETS {
        let line = evidence.lines().find(|l| l.starts_with(set.name)).unwrap_or_else(|| {
            panic!("{} is not in evidence.txt; run scripts/he-evidence.py --write", set.name)
        });
        let fields: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(fields[1].parse(), Ok(set.degree), "{line}");
        // the estimate is for no smaller modulus
        assert!(fields[2].parse::<f64>().unwrap() >= set.modulus_bits(), "{line}");
        let least = fields[3..].iter().map(|f| f.parse::<f64>().unwrap()).fold(f64::MAX, f64::min);
        assert!(least >= f64::from(SECURITY_BITS), "{line}");
    }
}

#[test]
fn the_cheapest_set_that_holds_is_chosen() {
    let choose = |k, b, c, o, n| Parameters::choose(Ring::new(k), b, c, o, n);
    assert_eq!(choose(24, 8, 4096, 4096, 1).unwrap().set().name, "n4096-q100");
    assert_eq!(choose(41, 24, 1 << 16, 1 << 20, 1).unwrap().set().name, "n8192-q150");
    assert_eq!(choose(64, 24, 1 << 14, 1 << 16, 1).unwrap().set().name, "n8192-q150");
    assert_eq!(choose(64, 64, 1 << 19, 1 << 24, 1).unwrap().set().name, "n8192-q200");
    assert_eq!(choose(64, 64, 1 << 16, 1 << 20, 5).unwrap().set().name, "n8192-q200");
    let error = choose(64, 64, 1 << 30, 1 << 40, 64).unwrap_err();
    let NoSet::Modulus { distance_bits, .. } = error else { panic!("{error}") };
    assert!(distance_bits < DISTANCE_BITS && error.to_string().contains("2^-40"), "{error}");
}

/// Every choice decrypts with the worst of everything, and drowns.
#[test]
fn every_choice_keeps_both_promises() {
    for k in 1..=64 {
        for b in [1, 8, 16, 24, 41, 64].into_iter().filter(|b| *b <= k) {
            for (c, o) in [(1, 1), (8192, 8192), (1 << 18, 1 << 24)] {
                for n in [1, 2, 3, 5, 8] {
                    let Ok(p) = Parameters::choose(Ring::new(k), b, c, o, n) else { continue };
                    assert!(noise::worst_fraction(&p, c) < 0.5, "{p:?}");
                    assert!(p.distance_bits(c, o) >= 40.0, "{p:?}");
                    assert!(p.flood_bits() + 2 < 156, "{p:?}");
                    let p = p.coarse(c, o);
                    assert!(noise::worst_fraction(&p, c) < 0.5 && p.distance_bits(c, o) >= 40.0, "{p:?}");
                }
            }
        }
    }
}
