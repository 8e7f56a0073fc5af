//! Every protocol among 2, 3 and 5 parties: shares are shares of the right values.

use super::*;
use privet_semi2k::BitwiseMask;
use proptest::prelude::*;

fn masks_are_right(parties: usize, of: &MaskOf) {
    let planes = of.bits as usize;
    let side = of.count.div_ceil(64);
    let own = |party| bits(party, 0, planes * side);
    let all: Vec<BitwiseMask> =
        joint(parties, |t| t.bitwise_mask(of, &own(t.seats().parties().start)).unwrap());
    let h: Vec<Vec<u64>> = (0..planes).map(|l| xor(all.iter().map(|mask| &mask.bits[l]))).collect();
    assert_eq!(h.concat(), xor(&(0..parties).map(own).collect::<Vec<_>>()), "each party's own bits");
    for (j, range) in of.words.iter().enumerate() {
        let found = sum(all.iter().map(|mask| &mask.words[j]));
        assert_eq!(found.len(), of.count);
        for (i, found) in found.iter().enumerate() {
            let word = range.clone().fold(0, |v, l| v | bit(&h[l as usize], i) << (l - range.start));
            assert_eq!(*found, of.ring.wrap(word), "{parties} parties, {of:?}, {range:?}, element {i}");
        }
    }
    for j in 0..if of.pairs { planes / 2 } else { 0 } {
        let found = xor(all.iter().map(|mask| &mask.pairs[j]));
        assert!(
            (0..side).all(|w| found[w] == h[2 * j][w] & h[2 * j + 1][w]),
            "{parties} parties, {of:?}, {j}"
        );
    }
}

#[test]
fn masks_at_the_edges() {
    let large = 64 * 64 * 3 + 1;
    for (parties, count, m, k) in [
        (2, 1, 64, 64),
        (2, large, 5, 64),
        (3, 65, 40, 64),
        (3, 64, 7, 7),
        (5, 190, 9, 41),
        (2, 5, 1, 1),
        (2, 70, 64, 3),
    ] {
        masks_are_right(parties, &mask(count, m, Ring::new(k), &[0..m, m / 3..m, m - 1..m], true));
    }
    masks_are_right(3, &mask(10, 8, R64, &[], true));
    masks_are_right(2, &mask(10, 8, R64, &[2..5], false));
    masks_are_right(2, &mask(10, 8, R64, &[], false));
}

fn products_of_bits_are_right(parties: usize, sizes: &[(usize, usize)]) {
    let x = |party, f: usize| bits(party, f as u8, sizes[f].0);
    let y = |party, f: usize, j: usize| bits(party, 5, j + sizes[f].0).slice(j..j + sizes[f].0);
    let all = joint(parties, |t| {
        let me = t.seats().parties().start;
        let own: Vec<(Bits, Vec<Bits>)> = sizes
            .iter()
            .enumerate()
            .map(|(f, (_, ys))| (x(me, f), (0..*ys).map(|j| y(me, f, j)).collect()))
            .collect();
        let factors: Vec<(&Bits, Vec<&Bits>)> = own.iter().map(|(x, ys)| (x, ys.iter().collect())).collect();
        t.and(&factors).unwrap()
    });
    for (f, (n, ys)) in sizes.iter().enumerate() {
        let a = xor(&(0..parties).map(|p| x(p, f)).collect::<Vec<_>>());
        for j in 0..*ys {
            let b = xor(&(0..parties).map(|p| y(p, f, j)).collect::<Vec<_>>());
            let c = xor(all.iter().map(|z| &z[f][j]));
            assert!((0..*n).all(|w| c[w] == a[w] & b[w]), "{parties} parties, factor {f}, {j}");
        }
    }
}

#[test]
fn products_of_bits_at_the_edges() {
    products_of_bits_are_right(2, &[(1, 1), (200, 2), (3, 0)]);
    products_of_bits_are_right(3, &[(65, 3)]);
    products_of_bits_are_right(5, &[(2, 70)]);
}

fn words_and_products_of_bits_are_right(parties: usize, k: u32, n: usize) {
    let (ring, side) = (Ring::new(k), n.div_ceil(64));
    let (x, y) = (|party| bits(party, 1, side), |party| words(party, 2, ring, n));
    let all = joint(parties, |t| {
        let me = t.seats().parties().start;
        let (x, y) = (x(me), y(me));
        let plain = t.to_words(&[&x, &x.slice(0..1)], n.min(64), ring).unwrap();
        (plain, t.times(&[(&x, vec![&y, &y.times(3)]), (&x, vec![])]).unwrap(), t.open("y", &y).unwrap())
    });
    let a = xor(&(0..parties).map(x).collect::<Vec<_>>());
    let b = sum(&(0..parties).map(y).collect::<Vec<_>>());
    let plain = [0, 1].map(|j| sum(all.iter().map(|(plain, ..)| &plain[j])));
    assert!(all.iter().all(|(_, products, opened)| *opened == b && products[1].is_empty()));
    assert_eq!(plain[0], plain[1]);
    assert!(plain[0].iter().enumerate().all(|(i, found)| *found == bit(&a, i)));
    for (j, factor) in [1, 3].into_iter().enumerate() {
        let found = sum(all.iter().map(|(_, products, _)| &products[0][j]));
        let right = |i: usize| ring.wrap(b[i].wrapping_mul(factor * bit(&a, i)));
        assert!((0..n).all(|i| found[i] == right(i)), "{parties} parties, {ring}, {n} elements");
    }
}

#[test]
fn words_and_products_of_bits_at_the_edges() {
    for (parties, k, n) in [(2, 64, 1), (2, 1, 70), (3, 41, 9000), (5, 64, 700)] {
        words_and_products_of_bits_are_right(parties, k, n);
    }
}

fn products_of_words_are_right(parties: usize, k: u32, n: usize) {
    let ring = Ring::new(k);
    let (x, y) = (|party| words(party, 1, ring, n), |party| words(party, 2, R64, n));
    let all = joint(parties, |t| {
        let me = t.seats().parties().start;
        (t.multiply(&x(me), &y(me)).unwrap(), t.square(&x(me)).unwrap())
    });
    let [a, b] =
        [sum(&(0..parties).map(x).collect::<Vec<_>>()), sum(&(0..parties).map(y).collect::<Vec<_>>())];
    let (product, square) = (sum(all.iter().map(|(p, _)| p)), sum(all.iter().map(|(_, s)| s)));
    let right = |i: usize, by: u64| ring.wrap(a[i].wrapping_mul(by));
    assert!((0..n).all(|i| product[i] == right(i, b[i])), "{parties} parties, {ring}, {n} products");
    assert!((0..n).all(|i| square[i] == right(i, a[i])), "{parties} parties, {ring}, {n} squares");
}

#[test]
fn products_of_words_at_the_edges() {
    for (parties, k, n) in [(2, 64, 1), (2, 1, 3), (2, 33, 130), (3, 64, 70), (5, 24, 700)] {
        products_of_words_are_right(parties, k, n);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn any_shape(parties in 2usize..=5, m in 1u32..=64, k in 1u32..=64, n in 1usize..150, from in 0u32..64, ys in 0usize..4) {
        masks_are_right(parties, &mask(n, m, Ring::new(k), &[0..m, from % m..m], n % 2 == 0));
        products_of_bits_are_right(parties, &[(n.div_ceil(7), ys), (1, 1)]);
        words_and_products_of_bits_are_right(parties, k, n);
        products_of_words_are_right(parties, k, n.min(70));
    }
}
