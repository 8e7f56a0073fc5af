//! What decryption leaves, measured on both sides of the formulas; what each message tells, with one side's randomness
//! held fixed and the other's redrawn.

use super::*;
use crate::context::Coeff;
use crate::layout::{Matmul, MatmulLayout};
use crate::modulus::PRIME_BITS;
use crate::noise;
use crate::opening::Encrypted;
use crate::params::SETS;
use crate::plain::Plain;
use crate::sample::{ERROR_VARIANCE, TERNARY_VARIANCE};
use crate::{Factor, Keys};
use privet_plan::suite::{View, unseen};
use privet_prg::Prg;
use privet_ring::Ring;

const RING: Ring = Ring::new(24);
const BITS: u32 = 7;
const ROOM: usize = 1 << 30;

fn prg(seed: u8) -> Prg {
    Seed::from_bytes([seed; 16]).stream()
}

fn product() -> Product {
    product_among(2)
}

/// The same of which hints and encryptions of 0 are sent without the bits that noise hides.
fn coarse_among(parties: usize) -> Product {
    let product = product_among(parties);
    let parameters = product.parameters.coarse(4096, 64);
    assert!(parameters.kept_bits().is_some_and(|bits| bits < 80), "{parameters:?}");
    Product { parameters, ..product }
}

/// Three rows of 64 places times 64 columns, in three tiles; all coefficients of the weights used.
fn product_among(parties: usize) -> Product {
    let shape = Matmul { groups: 1, m: 3, k: 64, o: 64 };
    let layout = MatmulLayout::with_blocks(shape, 4096, [1, 64, 64]);
    let p = Parameters::on(&SETS[0], RING, BITS, layout.coefficients(), 64, parties).unwrap();
    let context = Context::new(p.set(), 1).unwrap();
    Product::new(&context, &p, Arc::new(layout), Seed::from_bytes([99; 16]))
}

fn operand(seed: u8) -> Vec<u64> {
    prg(seed).elements(RING, 3 * 64)
}

/// Weights at the ends of their width.
fn weights(seed: u8) -> Vec<u64> {
    let most = 1i64 << (BITS - 1);
    prg(seed)
        .elements(RING, 4096)
        .into_iter()
        .map(|w| RING.wrap(if w & 1 == 1 { most - 1 } else { -most } as u64))
        .collect()
}

/// Two parties after all messages but the last.
struct Run {
    product: Product,
    factors: Vec<Factor>,
    keys: Vec<Keys>,
    zeros: Message<Zero>,
    operands: Message<Operand>,
}

fn run(product: Product, x: [&[u64]; 2], w: [&[u64]; 2], seeds: [u8; 2]) -> Run {
    let mut prgs = seeds.map(prg);
    let mut weights: Vec<_> = w.iter().zip(&mut prgs).map(|(w, prg)| product.weights(w, prg, ROOM)).collect();
    let (second, mut hints) = weights.pop().unwrap();
    let (first, other) = weights.pop().unwrap();
    hints.add(&product.context, &other);
    let again = Message::new(hints.polynomials.clone());
    let factors = vec![first.factor(Some(hints)), second.factor(Some(again))];
    let mut sum: Option<(Message<Zero>, Message<Operand>)> = None;
    let mut keys = Vec::new();
    for (x, prg) in x.iter().zip(&mut prgs) {
        let (mut key, zero) = product.keys(0..3, prg);
        let operand = key.encrypt(0, x, prg);
        keys.push(key);
        match &mut sum {
            None => sum = Some((zero, operand)),
            Some((zeros, operands)) => {
                zeros.add(&product.context, &zero);
                operands.add(&product.context, &operand);
            }
        }
    }
    let (zeros, operands) = sum.unwrap();
    Run { product, factors, keys, zeros, operands }
}

impl Run {
    fn encrypted(&self, party: usize) -> Encrypted<'_> {
        let sums = Some((&self.zeros, &self.operands));
        Encrypted { group: 0, tiles: 0..3, sums, keys: Some(&self.keys[party]) }
    }
}

/// Mean and variance.
fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64)
}

/// Whether fractions are uniform in [0, 1), as far as two moments tell.
fn uniform(values: impl Iterator<Item = u128>) -> bool {
    let values: Vec<f64> = values.map(|f| f as f64 / 2f64.powi(128) - 0.5).collect();
    let ((mean, variance), n) = (moments(&values), values.len() as f64);
    mean.abs() < 6.0 / (12.0 * n).sqrt() && (12.0 * variance - 1.0).abs() < 6.0 * (0.8 / n).sqrt()
}

fn modulus(product: &Product) -> f64 {
    product.context.set().primes.iter().map(|p| *p as f64).product()
}

/// How far fractions of q are from messages', in units of 1 modulo q.
fn noise_of(product: &Product, fractions: &[u128], messages: &[u64]) -> Vec<f64> {
    let off =
        fractions.iter().zip(messages).map(|(f, m)| f.wrapping_sub(u128::from(*m) << (128 - RING.bits())));
    off.map(|f| f as i128 as f64 / 2f64.powi(128) * modulus(product)).collect()
}

/// `body + a s` in fractions of q.
fn phase(context: &Context, body: &Points, a: &Points, s: &Points) -> Vec<u128> {
    let mut sum = context.product(a, s);
    context.add(&mut sum.words, &body.words, false);
    context.fractions(&context.coefficients(sum))
}

fn difference(context: &Context, a: &Points, b: &Points) -> Coeff {
    let mut a = a.clone();
    context.add(&mut a.words, &b.words, true);
    context.coefficients(a)
}

#[test]
fn keys_and_fresh_ciphertexts_have_their_noise() {
    let product = product();
    let context = &product.context;
    let (mut secrets, mut zeros, mut fresh) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    // half a unit to be rounded in every coefficient that is used, and messages of 0
    for (x, fresh) in [0, 1 << 23].into_iter().zip(&mut fresh) {
        for seed in 0..80 {
            let mut prg = prg(seed);
            let (mut keys, zero) = product.keys(0..3, &mut prg);
            let operand = keys.encrypt(0, &[x; 192], &mut prg);
            let mut packed = vec![0; 4096];
            product.layout.pack_input(0, &[x; 192], &mut packed);
            let off = phase(context, &operand.polynomials[1], &product.public(0, 0), &keys.s[1]);
            let off = noise_of(&product, &off, &packed);
            fresh.extend(off.iter().zip(&packed).filter(|(_, m)| x == 0 || **m != 0).map(|(e, _)| *e));
            if seed < 4 {
                let s = context.fractions(&context.coefficients(keys.s[2].clone()));
                secrets.extend(noise_of(&product, &s, &[0; 4096]));
                let e = phase(context, &zero.polynomials[0], &product.public_of_zero(), &keys.s[0]);
                zeros.extend(noise_of(&product, &e, &[0; 4096]));
            }
        }
    }
    let near = |values: &[f64], variance: f64| {
        let (mean, found) = moments(values);
        let n = values.len() as f64;
        // six standard errors; no distribution here has a kurtosis above 3
        mean.abs() < 6.0 * (variance / n).sqrt() && (found / variance - 1.0).abs() < 6.0 * (2.0 / n).sqrt()
    };
    assert!(near(&secrets, TERNARY_VARIANCE), "{:?}", moments(&secrets));
    assert!(near(&zeros, ERROR_VARIANCE), "{:?}", moments(&zeros));
    assert!(near(&fresh[0], ERROR_VARIANCE), "{:?}", moments(&fresh[0]));
    // the largest variance that rounding can have, and no bias
    assert!(near(&fresh[1], ERROR_VARIANCE + 0.25), "{:?}", moments(&fresh[1]));
    assert!(
        !near(&fresh[0], 1.1 * ERROR_VARIANCE) && !near(&fresh[0], 0.9 * ERROR_VARIANCE),
        "the test is sharp"
    );
}

#[test]
fn products_have_the_predicted_noise() {
    // From above it is a bound, from below the formula is not idle
    noisy(&product(), 0.6..1.3);
    // most is what is not sent: a third of the square of half a step, of two parties and of two errors that count as if they were one
    noisy(&coarse_among(2), 0.06..0.12);
}

fn noisy(product: &Product, expected: std::ops::Range<f64>) {
    let (mut noise, p) = (Vec::new(), *product.parameters());
    for seed in 0..4 {
        let (x, y, w) = (operand(seed), operand(10 + seed), weights(20 + seed));
        // both parties' weights are the same: the largest sum
        let r = run(product.clone(), [&x, &y], [&w, &w], [30 + seed, 40 + seed]);
        let mut sums = vec![0u128; 3 * 64];
        for party in 0..2 {
            let parts =
                r.factors[party].summands(&r.encrypted(party), |_, _, c| r.product.context.fractions(&c));
            sums.iter_mut().zip(parts.concat()).for_each(|(sum, part)| *sum = sum.wrapping_add(part));
        }
        let place = |i: usize, o: usize, j: usize| {
            2 * (x[i * 64 + j].wrapping_add(y[i * 64 + j])).wrapping_mul(w[j * 64 + o])
        };
        let products: Vec<u64> = (0..192)
            .map(|at| RING.wrap((0..64).fold(0, |sum: u64, j| sum.wrapping_add(place(at >> 6, at & 63, j)))))
            .collect();
        noise.extend(noise_of(&r.product, &sums, &products));
    }
    let (predicted, bound) = (noise::variance(&p, 4096), noise::bound(&p, 4096));
    let found = moments(&noise).1 / predicted;
    assert!(expected.contains(&found), "{found} of the predicted variance");
    assert!(noise.iter().all(|e| e.abs() < bound), "bound");
}

/// The party without the opener's role sends its summand under noise of the stated width, less its share.
#[test]
fn partials_are_drowned_and_shared() {
    let (x, w) = (operand(1), weights(2));
    let r = run(product(), [&x, &x], [&w, &w], [3, 4]);
    let (p, bits) = (*r.product.parameters(), r.product.parameters().output_bits());
    let bare = r.factors[0].opening(&r.encrypted(0)).sums.concat();
    let (mut noise, mut raw) = (Vec::new(), Vec::new());
    for seed in 0..48 {
        let share = Plain::Power(RING).uniform(&mut prg(100 + seed), 192);
        let partial = r.factors[0].partial(&r.encrypted(0), &share, &mut prg(150 + seed));
        for ((c, bare), r) in partial.0.concat().iter().zip(&bare).zip(&share) {
            let masked = c.wrapping_add(u128::from(*r) << (bits - RING.bits())).wrapping_sub(*bare);
            noise.push(((masked << (128 - bits)) as i128 >> (128 - bits)) as f64);
            raw.push(c << (128 - bits));
        }
    }
    let unit = 2f64.powf(f64::from(p.flood_bits() + bits) - p.set().modulus_bits());
    let n = noise.len() as f64;
    // twice rounded to integers
    let ((mean, variance), expected) = (moments(&noise), unit * unit / 4.0 + 1.0 / 6.0);
    assert!(mean.abs() < 6.0 * (expected / n).sqrt(), "{mean}");
    assert!((variance / expected - 1.0).abs() < 6.0 * (2.0 / n).sqrt(), "{variance}, not {expected}");
    assert!(uniform(raw.into_iter()), "with a uniform share, a partial is uniform");
}

/// The others know the public polynomials, and see hints. What hides the weights is an RLWE sample, error included: without
/// it, the hint less `sum of w a`, over the public a', would be u.
#[test]
fn hints_are_uniform_and_have_an_error() {
    let (product, w) = (product(), weights(5));
    let context = &product.context;
    let hint = |seed: u8| product.weights(&w, &mut prg(seed), ROOM).1.polynomials.remove(0);
    let hints: Vec<Points> = (0..4).map(|i| hint(10 + i)).collect();
    let apart = hints.windows(2).flat_map(|pair| context.fractions(&difference(context, &pair[0], &pair[1])));
    assert!(uniform(apart), "two draws differ by something uniform");

    let mut bare = context.signed_points(&{
        let mut packed = vec![0; 4096];
        product.layout.pack_weights(0, &Plain::Power(RING).signed(&w), &mut packed);
        packed
    });
    bare = context.product(&bare, &product.public(0, 0));
    let mut hiding = hints[0].clone();
    context.add(&mut hiding.words, &bare.words, true);
    for prime in context.primes() {
        let (m, range) = (context.modulus(prime), context.range(prime));
        for (word, a) in hiding.words[range.clone()].iter_mut().zip(&product.public_of_zero().words[range]) {
            *word = m.times(*word, m.inverse(*a));
        }
    }
    let u = noise_of(&product, &context.fractions(&context.coefficients(hiding)), &[0; 4096]);
    assert!(u.iter().filter(|u| u.abs() > 1e6).count() > 4000, "u is not to be read off");
}

/// The others see bodies: whatever two of them are compared, of one tile or of two, of one call or of two, and encryptions
/// of 0 with operands, they differ by something uniform.
#[test]
fn no_public_polynomial_serves_a_key_twice() {
    let shape = Matmul { groups: 2, m: 2, k: 128, o: 64 };
    let layout = MatmulLayout::with_blocks(shape, 4096, [1, 64, 64]);
    let p = Parameters::on(&SETS[0], RING, BITS, layout.coefficients(), 64, 2).unwrap();
    let context = Context::new(p.set(), 1).unwrap();
    let product = Product::new(&context, &p, Arc::new(layout), Seed::from_bytes([9; 16]));
    let mut prg = prg(7);
    let mut bodies = Vec::new();
    for _ in 0..2 {
        let (mut keys, zero) = product.keys(0..2, &mut prg);
        bodies.extend(zero.polynomials);
        for group in 0..2 {
            bodies.extend(keys.encrypt(group, &[0; 512], &mut prg).polynomials);
        }
    }
    for (i, a) in bodies.iter().enumerate() {
        for b in &bodies[..i] {
            assert!(uniform(context.fractions(&difference(&context, a, b)).into_iter()));
        }
    }
}

/// Some words of each prime of a message's first polynomial.
fn sampled<K: Kind>(view: &mut View, what: &str, product: &Product, message: &Message<K>) {
    let context = &product.context;
    if let Some(sent) = message.coarse.first() {
        let [low, high] = [0, 50].map(|at| (sent.words[17] >> at) as u64);
        view.elements(format!("{what}, low"), Ring::new(50), &[low]);
        view.elements(format!("{what}, high"), Ring::new(sent.bits - 50), &[high]);
        return;
    }
    for prime in context.primes() {
        let words = &message.polynomials[0].words[context.range(prime)];
        // primes are below 2^50 by less than a share of 2^-27, so bits of their residues are uniform
        view.elements(format!("{what}, prime {prime}"), Ring::new(PRIME_BITS), &[words[17]]);
    }
}

/// What all parties but `alone` see of a call: its messages, and the opener's share. Everybody's operands and weights are the
/// same every time, and so are the public polynomials and all coins but those of `alone`, which are drawn here.
fn view(product: &Product, parties: usize, alone: usize) -> View {
    let (context, mut view) = (&product.context, View::default());
    let coins = |party: usize| if party == alone { Seed::random().stream() } else { prg(70 + party as u8) };
    let mut prgs: Vec<Prg> = (0..parties).map(coins).collect();
    let (mut own, mut hints, mut keys, mut sums) = (Vec::new(), None, Vec::new(), None);
    for (party, prg) in prgs.iter_mut().enumerate() {
        let (weights, hint) = product.weights(&weights(party as u8), prg, ROOM);
        let (mut key, zero) = product.keys(0..3, prg);
        let operand = key.encrypt(0, &operand(party as u8), prg);
        if party == alone {
            sampled(&mut view, "hint", product, &hint);
            sampled(&mut view, "encryption of 0", product, &zero);
            sampled(&mut view, "operand", product, &operand);
        }
        own.push(weights);
        keys.push(key);
        match (&mut hints, &mut sums) {
            (Some(hints), Some((zeros, operands))) => {
                Message::add(hints, context, &hint);
                Message::add(zeros, context, &zero);
                Message::add(operands, context, &operand);
            }
            _ => (hints, sums) = (Some(hint), Some((zero, operand))),
        }
    }
    let (hints, (zeros, operands)) = (hints.unwrap(), sums.unwrap());
    let copy = || Message::new(hints.polynomials.clone());
    let factors: Vec<Factor> = own.into_iter().map(|weights| weights.factor(Some(copy()))).collect();
    let of = |party: usize| Encrypted {
        group: 0,
        tiles: 0..3,
        sums: Some((&zeros, &operands)),
        keys: Some(&keys[party]),
    };
    let opener = parties - 1;
    let mut opening = factors[opener].opening(&of(opener));
    for party in 0..opener {
        let share = Plain::Power(RING).uniform(&mut prgs[party], 192);
        let partial = factors[party].partial(&of(party), &share, &mut prgs[party]);
        if party == alone {
            let some: Vec<u64> = partial.0.iter().map(|tile| tile[5] as u64).collect();
            view.elements("summand".into(), Ring::new(product.parameters.output_bits()), &some);
        }
        opening.add(&partial);
    }
    if alone != opener {
        let mut share = vec![0; 192];
        opening.open(&mut share);
        view.elements("the opener's share".into(), RING, &share[..6]);
    }
    view
}

#[test]
fn all_parties_but_one_see_nothing_of_it() {
    let all = [(2, 0), (2, 1), (3, 0), (3, 2)].map(|(n, alone)| (product_among(n), n, alone));
    let coarse = [(2, 0), (2, 1)].map(|(n, alone)| (coarse_among(n), n, alone));
    for (product, parties, alone) in all.into_iter().chain(coarse) {
        if let Err(found) = unseen(|| view(&product, parties, alone)) {
            panic!("{parties} parties: all but {alone} learn something: {found}");
        }
    }
}

#[test]
fn residues_of_a_prime_are_encoded_and_decoded() {
    for t in [65537, 0x3f_ffff_0001, 0x3_ffff_ffdf_0001] {
        let plain = Plain::Prime(t);
        let x = plain.uniform(&mut prg(1), 1000);
        let edges = [0, 1, t - 1, t >> 1, (t >> 1) + 1];
        for x in x.into_iter().chain(edges) {
            let bits = plain.bits() + 5;
            let phase = ((u128::from(x) << bits) + u128::from(t >> 1)).checked_div(u128::from(t)).unwrap();
            for off in [0i128, 15, -15] {
                let phase = crate::encode::wrap(phase.wrapping_add(off as u128), bits);
                assert_eq!(plain.decode(phase, bits), x, "{t}");
            }
            let signed = plain.signed(&[x])[0] as i64;
            assert!(signed.unsigned_abs() <= t >> 1 && signed.rem_euclid(t as i64) as u64 == x);
        }
    }
}

/// What is kept of a coefficient is found again, and what is read is within half a step of what there was, and a hundredth.
#[test]
fn coarse_polynomials_are_near_and_are_read_as_they_are_sent() {
    for set in &SETS {
        let context = Context::new(set, 1).unwrap();
        for bits in
            [33, 64, 65, 90, 112].into_iter().filter(|bits| f64::from(*bits) + 8.0 < set.modulus_bits())
        {
            let exact = context.uniform(&Seed::from_bytes([3; 16]), 5);
            let sent = Coarse::of(&context, exact.clone(), bits);
            let read = sent.points(&context);
            assert!(Coarse::of(&context, read.clone(), bits).words == sent.words, "{} {bits}", set.name);
            let off = context.fractions(&difference(&context, &exact, &read));
            let step = 2f64.powi(128 - bits as i32);
            let largest = off.iter().map(|off| (*off as i128 as f64 / step).abs()).fold(0.0, f64::max);
            assert!((0.45..0.51).contains(&largest), "{} {bits}: {largest}", set.name);
        }
    }
}
