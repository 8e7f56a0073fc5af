//! Products are right in every ring and shape; what decryption leaves, and what messages tell.

#![expect(clippy::integer_division_remainder_used, reason = "public numbers of tests")]

use super::*;
use crate::context::{Coeff, Points};
use crate::encode;
use crate::layout::Matmul;
use crate::wire::{self, WireError};
use privet_plan::suite::{View, unseen};

fn prg(seed: u8) -> privet_prg::Prg {
    Seed::from_bytes([seed; 16]).stream()
}

fn galois() -> Galois {
    Galois::new(Seed::from_bytes([77; 16]), 1).unwrap()
}

fn product(shape: Matmul, ring: Ring, x: &[u64], w: &[u64]) -> Vec<u64> {
    let Matmul { groups, m, k, o } = shape;
    let mut out = Vec::new();
    for g in 0..groups {
        for i in 0..m {
            for c in 0..o {
                let term = |j: usize| x[(g * m + i) * k + j].wrapping_mul(w[(g * k + j) * o + c]);
                out.push(ring.wrap((0..k).map(term).fold(0, u64::wrapping_add)));
            }
        }
    }
    out
}

#[test]
fn products_are_right_in_every_shape() {
    let galois = galois();
    let mut own = prg(1);
    let (mut secret, message) = galois.keys(0, &mut own);
    let mut keys = galois.read_keys(0, &message).unwrap();
    let shapes = [[1, 128, 64, 128], [2, 3, 5, 7], [1, 130, 65, 64], [1, 300, 20, 33], [1, 1100, 160, 3]];
    for ([groups, m, k, o], bits) in shapes.into_iter().zip([37, 38, 36, 11, 37]) {
        let (shape, ring) = (Matmul { groups, m, k, o }, Ring::new(bits));
        let layout = GaloisLayout::plan(shape, ring, 1 << 12).unwrap();
        let mut random = |n: usize| own.elements(ring, n);
        let (x, w, share) = (random(groups * m * k), random(groups * k * o), random(groups * m * o));
        let operand = galois.encrypt(&mut secret, &layout, &x, &mut own);
        assert_eq!(operand.len(), layout.operand_bytes());
        let answer = galois.multiply(&mut keys, &layout, &operand, &w, &share, &mut prg(2)).unwrap().encode();
        assert_eq!(answer.len(), layout.answer_bytes());
        let read = galois.open(&secret, &layout, &answer).unwrap();
        let sum: Vec<u64> = read.iter().zip(&share).map(|(a, b)| ring.wrap(a.wrapping_add(*b))).collect();
        assert!(sum == product(shape, ring, &x, &w), "{shape:?} {bits}");
    }
}

/// Answers of a shape before they are drowned, for one operand and these weights: ready to be finished.
struct Gathering {
    galois: Galois,
    secret: Secret,
    keys: SwitchKeys,
    layout: GaloisLayout,
    product: Vec<u64>,
    gathered: Vec<[Points; 2]>,
}

fn gathering(shape: Matmul, ring: Ring, weights: impl Fn(u64) -> u64) -> Gathering {
    let (galois, mut own) = (galois(), prg(3));
    let (mut secret, message) = galois.keys(1, &mut own);
    let mut keys = galois.read_keys(1, &message).unwrap();
    let layout = GaloisLayout { shape, ring, width: 64 };
    let x = own.elements(ring, shape.groups * shape.m * shape.k);
    let w: Vec<u64> = own.elements(ring, shape.groups * shape.k * shape.o).into_iter().map(weights).collect();
    let operand = galois.encrypt(&mut secret, &layout, &x, &mut own);
    let ready = galois.ready(&mut keys, &layout, &operand).unwrap();
    let signed = Plain::Power(ring).signed(&w);
    let gathered = galois.gather(&keys, &layout, &ready, 0, &signed);
    let product = product(shape, ring, &x, &w);
    Gathering { galois, secret, keys, layout, product, gathered }
}

impl Gathering {
    /// How far the first answer's outputs are from products, in units of 1 modulo q.
    fn noise(&self, [body, mask]: [Coeff; 2]) -> Vec<f64> {
        let (q, ring) = (&self.galois.context, self.layout.ring);
        let mut phase = q.product(&q.points(mask), &self.secret.answer);
        q.add(&mut phase.words, &q.points(body).words, false);
        let fractions = q.fractions(&q.coefficients(phase));
        let modulus = 2f64.powf(q.set().modulus_bits());
        let off = |(at, place): (usize, usize)| {
            fractions[at].wrapping_sub(u128::from(self.product[place]) << (128 - ring.bits())) as i128 as f64
        };
        self.layout.outputs(0).map(|output| off(output) / 2f64.powi(128) * modulus).collect()
    }
}

/// Modulo q, times P, as the same modulo q P.
fn widened(galois: &Galois, v: &Points) -> Points {
    let mut out = galois.wide.zero();
    out.words[..v.words.len()].copy_from_slice(&v.words);
    out
}

fn mean_square(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64
}

const SHAPE: Matmul = Matmul { groups: 1, m: 128, k: 64, o: 64 };
const RING: Ring = Ring::new(37);

/// The formula has a factor of 4 for weights that fall on one coefficient. These cancel there as often as they add up.
#[test]
fn answers_have_the_noise_that_is_stated() {
    for (weights, least) in [
        (Box::new(|_| 1u64 << 36) as Box<dyn Fn(u64) -> u64>, 0.2),
        (Box::new(|w: u64| if w & 1 == 0 { 1 << 36 } else { (1 << 36) - 1 }), 0.2),
    ] {
        let g = gathering(SHAPE, RING, weights);
        let divided = g.gathered[0].clone().map(|of| g.galois.divided(of));
        let (found, stated) = (mean_square(&g.noise(divided)), noise::variance(&g.layout));
        assert!((least..1.05).contains(&(found / stated)), "{} of {}", found.sqrt(), stated.sqrt());
    }
}

/// Of what the encryptor reads, all is drowned: by a sum of three uniform values, and what rounding adds.
#[test]
fn outputs_are_drowned() {
    let g = gathering(SHAPE, RING, |w| w);
    let (q, bits) = (&g.galois.context, noise::body_bits(RING));
    let mut noise: Vec<f64> = Vec::new();
    for seed in 0..4 {
        let share = prg(50 + seed).elements(RING, g.product.len());
        let [body, mask] =
            g.galois.finish(&g.keys, &g.layout, 0, g.gathered[0].clone(), &share, &mut prg(60 + seed));
        let mask = q.points(encode::widen(q, &mask, noise::mask_bits(RING)));
        let product = encode::switch(q, &q.coefficients(q.product(&mask, &g.secret.answer)), bits);
        for ((at, place), body) in g.layout.outputs(0).zip(body) {
            let due = RING.wrap(g.product[place].wrapping_sub(share[place]));
            let off = body.wrapping_add(product[at]).wrapping_sub(u128::from(due) << (bits - RING.bits()));
            noise.push(((off << (128 - bits)) as i128 >> (128 - bits)) as f64);
        }
    }
    let unit = 2f64.powf(f64::from(noise::flood_bits(RING) + bits) - q.set().modulus_bits());
    // body and product are rounded to integers
    let expected = unit * unit / 4.0 + 1.0 / 6.0;
    let ratio = mean_square(&noise) / expected;
    assert!((ratio - 1.0f64).abs() < 6.0 * (2.0f64 / noise.len() as f64).sqrt(), "{ratio}");
}

/// Whether fractions are uniform in [0, 1), as far as two moments tell.
fn uniform(context: &Context, mut a: Points, b: &Points) -> bool {
    context.add(&mut a.words, &b.words, true);
    let fractions = context.fractions(&context.coefficients(a));
    let values: Vec<f64> = fractions.into_iter().map(|f| f as f64 / 2f64.powi(128) - 0.5).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    mean.abs() < 6.0 / (12.0 * n).sqrt() && (12.0 * mean_square(&values) - 1.0).abs() < 6.0 * (0.8 / n).sqrt()
}

/// Whatever two bodies are compared, they differ by something uniform; each has the error that hides it.
#[test]
fn no_public_polynomial_serves_a_key_twice() {
    let (galois, mut own) = (galois(), prg(9));
    let (mut secret, message) = galois.keys(0, &mut own);
    let keys = galois.read_keys(0, &message).unwrap();
    let all: Vec<&Points> =
        keys.hops.iter().flat_map(|hop| hop.keys().iter().map(|[body, _]| body)).collect();
    for (i, a) in all.iter().enumerate() {
        for b in all[i + 1..].iter().take(4) {
            assert!(uniform(&galois.wide, (*a).clone(), b), "keys {i}");
        }
    }
    let layout = GaloisLayout { shape: Matmul { m: 256, ..SHAPE }, ring: RING, width: 64 };
    let mut bodies = Vec::new();
    for _ in 0..2 {
        let operand = galois.encrypt(&mut secret, &layout, &[0; 256 * 64], &mut own);
        bodies.extend(wire::polynomials(&galois.context, 2, &operand).unwrap());
    }
    for (i, a) in bodies.iter().enumerate() {
        assert!(bodies[..i].iter().all(|b| uniform(&galois.context, a.clone(), b)), "operands");
    }
    // the encryption of 0 is hidden as all keys are
    let [body, mask] = keys.zero.map(|of| galois.divided(widened(&galois, &of)));
    let q = &galois.context;
    let mut phase = q.product(&q.points(mask), &secret.answer);
    q.add(&mut phase.words, &q.points(body).words, false);
    // small, so it is what its residue is
    let p = q.modulus(0).p();
    let signed = |c: &u64| if *c > p / 2 { *c as f64 - p as f64 } else { *c as f64 };
    let errors: Vec<f64> = q.coefficients(phase).words[..DEGREE].iter().map(signed).collect();
    let ratio = mean_square(&errors) / crate::ERROR_VARIANCE;
    assert!((ratio - 1.0).abs() < 6.0 * (2.0 / 8192f64).sqrt(), "{ratio}");
}

/// Without an error, what two masks differ by, over the public polynomial, would be ternary.
#[test]
fn masks_of_answers_have_an_error() {
    let g = gathering(SHAPE, RING, |w| w);
    let q = &g.galois.context;
    let mask = |seed: u8| g.galois.rerandomised(&g.keys, g.gathered[0].clone(), &mut prg(seed))[1].clone();
    let mut apart = q.points(mask(1));
    q.add(&mut apart.words, &q.points(mask(2)).words, true);
    for prime in q.primes() {
        let (m, range) = (q.modulus(prime), q.range(prime));
        let special = m.inverse(m.reduce(u128::from(keys::special())));
        for (word, a) in apart.words[range.clone()].iter_mut().zip(&g.keys.zero[1].words[range]) {
            *word = m.times(*word, m.inverse(m.times(*a, special)));
        }
    }
    let fractions = q.fractions(&q.coefficients(apart));
    let large = fractions.iter().filter(|f| (**f as i128).unsigned_abs() > 1 << 100).count();
    assert!(large > 8000, "what hides a mask is not to be read off: {large}");
}

/// The multiplier sees keys and operands; the encryptor's matrix is the same every time.
#[test]
fn the_multiplier_sees_nothing_of_the_operand() {
    let galois = galois();
    let layout = GaloisLayout { shape: SHAPE, ring: RING, width: 64 };
    let x = prg(4).elements(RING, 128 * 64);
    let view = || {
        let mut own = Seed::random().stream();
        let (mut secret, message) = galois.keys(0, &mut own);
        let operand = galois.encrypt(&mut secret, &layout, &x, &mut own);
        let mut view = View::default();
        for (of, message, words) in
            [("key", &message, [5, 8192 * 100 + 3]), ("operand", &operand, [17, 8192 * 2])]
        {
            for word in words {
                // 8 words of 50 bits are 50 bytes
                let bytes = &message[word / 8 * 50..][..50];
                let read = privet_ring::unpack(Ring::new(50), bytes, 8).unwrap();
                view.elements(format!("{of}, word {word}"), Ring::new(50), &read[..1]);
            }
        }
        view
    };
    unseen(view).unwrap();
}

/// The encryptor knows its keys, its operand and the weights' product, and sees masks and bodies; shares are fresh.
#[test]
fn the_encryptor_sees_nothing_of_the_weights() {
    let g = gathering(SHAPE, RING, |w| w);
    let view = || {
        let mut own = Seed::random().stream();
        let share = own.elements(RING, g.product.len());
        let [body, mask] = g.galois.finish(&g.keys, &g.layout, 0, g.gathered[0].clone(), &share, &mut own);
        let mut view = View::default();
        let [some, others] = [(&body, noise::body_bits(RING)), (&mask, noise::mask_bits(RING))]
            .map(|(of, bits)| (Ring::new(bits), [of[5] as u64, of[700] as u64]));
        view.elements("body".into(), some.0, &some.1);
        view.elements("mask".into(), others.0, &others.1);
        view
    };
    unseen(view).unwrap();
}

#[test]
fn turned_values_are_those_of_the_turned_polynomial() {
    let wide = galois().wide;
    let mut small = Coeff { words: vec![0; 4 * DEGREE] };
    let words = prg(5).elements(Ring::new(20), DEGREE);
    for t in [0, 1, 8, 9, 63] {
        let g = 1 + 256 * t;
        let mut turned = Coeff { words: vec![0; 4 * DEGREE] };
        for prime in wide.primes() {
            let (p, at) = (wide.modulus(prime).p(), prime * DEGREE);
            for (i, w) in words.iter().enumerate() {
                small.words[at + i] = *w;
                let to = g * i % (2 * DEGREE);
                turned.words[at + to % DEGREE] = if to < DEGREE { *w } else { (p - w) % p };
            }
        }
        let from = wide.points(small.clone());
        let mut values = wide.zero();
        turn::values(t, &from.words, &mut values.words);
        assert!(values == wide.points(turned), "{t}");
    }
}

#[test]
fn what_is_not_well_formed_is_refused() {
    let (galois, mut own) = (galois(), prg(6));
    let (mut secret, message) = galois.keys(0, &mut own);
    assert_eq!(message.len(), Galois::key_bytes());
    assert!(matches!(galois.read_keys(0, &message[1..]), Err(WireError::Length { .. })));
    let mut broken = message.clone();
    broken[..50].fill(0xff);
    assert!(matches!(galois.read_keys(0, &broken), Err(WireError::Residue { index: 0 })));
    let mut keys = galois.read_keys(0, &message).unwrap();
    let layout = GaloisLayout { shape: SHAPE, ring: RING, width: 64 };
    let operand = galois.encrypt(&mut secret, &layout, &[1; 128 * 64], &mut own);
    let (w, share) = ([1; 64 * 64], [0; 128 * 64]);
    let mut multiply = |bytes: &[u8]| galois.multiply(&mut keys, &layout, bytes, &w, &share, &mut prg(7));
    assert!(matches!(multiply(&operand[1..]).map(|_| ()), Err(WireError::Length { .. })));
    assert!(matches!(multiply(&[0xff; 153_600]).map(|_| ()), Err(WireError::Residue { .. })));
    let due = layout.answer_bytes();
    assert!(matches!(galois.open(&secret, &layout, &vec![0; due - 1]), Err(WireError::Length { .. })));
}

/// Wide rings take another product. Where one fits, a call is hidden by its promise, and more of them need more room.
#[test]
fn rings_that_are_too_wide_have_no_packing() {
    for bits in [1, 20, 37, 38] {
        let layout = GaloisLayout::plan(SHAPE, Ring::new(bits), 1 << 12).unwrap();
        assert!(noise::distance_bits(&layout, DEGREE << 12) >= 40.0);
    }
    assert!(GaloisLayout::plan(SHAPE, Ring::new(40), 1 << 12).unwrap().width < 64, "less room for noise");
    assert_eq!(GaloisLayout::plan(SHAPE, Ring::new(48), 1 << 12), None);
    assert_eq!(GaloisLayout::plan(SHAPE, Ring::R64, 1), None);
}
