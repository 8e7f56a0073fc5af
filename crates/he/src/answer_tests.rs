//! What decryption leaves, measured on both sides of the formulas; what each message tells, with one side's randomness
//! held fixed and the other's redrawn.

use super::*;
use crate::key::PublicKey;
use crate::layout::{Matmul, MatmulLayout};
use crate::noise;
use crate::params::SETS;
use crate::sample::{ERROR_VARIANCE, OFFSET, TERNARY_VARIANCE};
use privet_prg::Seed;
use privet_ring::Ring;

const RING: Ring = Ring::new(24);

/// Everything of one product, from seeds.
struct Run {
    context: Arc<Context>,
    p: Parameters,
    layout: MatmulLayout,
    key: SecretKey,
    public: PublicKey,
    x: Vec<u64>,
    query: Query,
}

fn prg(seed: u8) -> Prg {
    Seed::from_bytes([seed; 16]).stream()
}

/// A row of 64 places times 64 columns, all 4096 coefficients of the weights used.
fn run(x: Vec<u64>, holder: u8) -> Run {
    let shape = Matmul { groups: 1, m: 1, k: 64, o: 64 };
    let layout = MatmulLayout::with_blocks(shape, 4096, [1, 64, 64]);
    let p = Parameters::on(&SETS[0], RING, 8, layout.coefficients(), layout.output_len(), 1).unwrap();
    let (context, mut prg) = (Context::new(p.set()).unwrap(), prg(holder));
    let key = SecretKey::generate(&context, &mut prg);
    let public = key.public(&mut prg);
    let query = key.encrypt(&p, &layout, &x, &mut prg);
    Run { context, p, layout, key, public, x, query }
}

fn draw(seed: u8, n: usize) -> Vec<u64> {
    prg(seed).elements(RING, n)
}

/// Weights at the ends of their width.
fn weights(seed: u8) -> Vec<u64> {
    draw(seed, 4096).into_iter().map(|w| if w & 1 == 1 { 127 } else { RING.wrap(-128i64 as u64) }).collect()
}

/// Mean and variance.
fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64)
}

/// Integers below q from their fractions of it, centred.
fn integers(context: &Context, c: &Coeff) -> Vec<f64> {
    let q = context.set().primes.iter().map(|p| *p as f64).product::<f64>();
    context.fractions(c).iter().map(|f| *f as i128 as f64 / 2f64.powi(128) * q).collect()
}

/// `body + mask s` in coefficients.
fn phase(run: &Run, body: &Points, mask: &Points) -> Coeff {
    let mut sum = run.context.product(mask, &run.key.s);
    run.context.add(&mut sum.words, &body.words, false);
    run.context.coefficients(sum)
}

/// Noise of a phase: how far its fraction is from the message's, in units of 1 modulo q.
fn noise_of(run: &Run, c: &Coeff, messages: &[u64]) -> Vec<f64> {
    let q = run.p.set().primes.iter().map(|p| *p as f64).product::<f64>();
    let fractions = run.context.fractions(c);
    let off =
        fractions.iter().zip(messages).map(|(f, m)| f.wrapping_sub(u128::from(*m) << (128 - RING.bits())));
    off.map(|f| f as i128 as f64 / 2f64.powi(128) * q).collect()
}

#[test]
fn keys_and_fresh_ciphertexts_have_their_noise() {
    let mut secrets = Vec::new();
    let (mut public, mut fresh, mut dithered) = (Vec::new(), Vec::new(), Vec::new());
    for holder in 0..8 {
        let r = run(vec![0; 64], holder);
        secrets.extend(integers(&r.context, &r.context.coefficients(r.key.s.clone())));
        public.extend(integers(&r.context, &phase(&r, &r.public.b, &r.public.a)));
        // half a unit to be rounded in every coefficient, and messages of 0
        for (x, found) in [(1 << 23, &mut dithered), (0, &mut fresh)] {
            let wide =
                MatmulLayout::with_blocks(Matmul { groups: 1, m: 1, k: 4096, o: 1 }, 4096, [1, 4096, 1]);
            let query = r.key.encrypt(&r.p, &wide, &[x; 4096], &mut prg(90 + holder));
            let (body, a) = query.ciphertext(&r.context, 0);
            found.extend(noise_of(&r, &phase(&r, body, &a), &[x; 4096]));
        }
    }
    let near = |values: &[f64], variance: f64| {
        let (mean, found) = moments(values);
        let n = values.len() as f64;
        // six standard errors; no distribution here has a kurtosis above 3
        mean.abs() < 6.0 * (variance / n).sqrt() && (found / variance - 1.0).abs() < 6.0 * (2.0 / n).sqrt()
    };
    assert!(near(&secrets, TERNARY_VARIANCE), "{:?}", moments(&secrets));
    assert!(near(&public, ERROR_VARIANCE), "{:?}", moments(&public));
    assert!(near(&fresh, ERROR_VARIANCE), "{:?}", moments(&fresh));
    // the largest variance that rounding can have, and no bias
    assert!(near(&dithered, ERROR_VARIANCE + 0.25), "{:?}", moments(&dithered));
    assert!(!near(&fresh, 1.1 * ERROR_VARIANCE) && !near(&fresh, 0.9 * ERROR_VARIANCE), "the test is sharp");
}

#[test]
fn products_have_the_predicted_noise() {
    let (mut products, mut cleared) = (Vec::new(), Vec::new());
    let mut params = None;
    for holder in 0..4 {
        let r = run(draw(50 + holder, 64), holder);
        let w = weights(60 + holder);
        let owner = Weights::new(&r.context, &r.p, &r.layout, &w);
        let (body, a) = r.query.ciphertext(&r.context, 0);
        let expected: Vec<u64> = (0..64)
            .map(|o| {
                RING.wrap((0..64).fold(0, |s: u64, j| s.wrapping_add(r.x[j].wrapping_mul(w[j * 64 + o]))))
            })
            .collect();
        let outputs = r.layout.outputs(0);
        let kept = |c: Coeff| Coeff {
            words: r
                .context
                .primes()
                .flat_map(|i| outputs.iter().map(move |o| (i, o.coefficient)))
                .map(|(i, at)| c.words[r.context.range(i)][at])
                .collect(),
        };
        let packed = owner.product(&r.layout, 0, &[(body, a)]);
        let (body, mask) = (packed.body, packed.mask);
        products.extend(noise_of(&r, &kept(phase(&r, &body, &mask)), &expected));

        let (body, a) = r.query.ciphertext(&r.context, 0);
        let packed = owner.product(&r.layout, 0, &[(body, a)]);
        let at = outputs.iter().map(|o| o.coefficient);
        let c = packed.clear(&r.context, &r.public, at, &mut prg(70 + holder));
        let mut whole = kept(r.context.coefficients(r.context.product(&r.context.points(c.mask), &r.key.s)));
        r.context.add(&mut whole.words, &c.body.words, false);
        cleared.extend(noise_of(&r, &whole, &expected));
        params = Some(r.p);
    }
    let p = params.unwrap();
    let (predicted, bound) = (noise::variance(&p, 4096), noise::bound(&p, 4096));
    for noise in [&products, &cleared] {
        let found = moments(noise).1 / predicted;
        // 256 samples: six standard errors are a half. From above it is a bound, from below the formula is not idle
        assert!((0.5..1.5).contains(&found), "{found} of the predicted variance");
        assert!(noise.iter().all(|e| e.abs() < bound), "bound");
    }
    let apart = products.iter().zip(&cleared).filter(|(a, b)| a != b).count();
    assert!(apart > 250, "the encryption of 0 adds noise of its own");
}

#[test]
fn answers_are_drowned() {
    let mut noise = Vec::new();
    let mut p = None;
    for owner in 0..64 {
        let r = run(draw(80, 64), 1);
        let (answer, share) = Weights::new(&r.context, &r.p, &r.layout, &weights(81)).answer(
            &r.public,
            &r.layout,
            &r.query,
            &mut prg(100 + owner),
        );
        let outputs = r.layout.outputs(0);
        let mine = r.key.decrypt(&r.p, &r.layout, &answer);
        let phases = r.key.phases(&r.p, &outputs, &answer.polynomials()[0]);
        let bits = r.p.mask_bits();
        for (o, phase) in outputs.iter().zip(phases) {
            let message = u128::from(mine[o.index]) << (bits - RING.bits());
            noise.push(
                ((phase.wrapping_sub(message) << (128 - bits)) as i128) as f64 / 2f64.powi(128 - bits as i32),
            );
        }
        assert_eq!(share.len(), 64);
        p = Some(r.p);
    }
    let p = p.unwrap();
    let unit = 2f64.powf(f64::from(p.flood_bits() + p.mask_bits()) - p.set().modulus_bits());
    let (mean, variance) = moments(&noise);
    let (n, expected) = (noise.len() as f64, unit * unit / 4.0);
    // what rounding adds is below a hundredth
    assert!(mean.abs() < 6.0 * (expected / n).sqrt() + 0.02 * unit, "{mean} of {unit}");
    assert!((variance / expected - 1.0).abs() < 6.0 * (1.6 / n).sqrt() + 0.01, "{variance}, not {expected}");
    let most = 2f64.powi((p.mask_bits() - RING.bits()) as i32) * noise::worst_fraction(&p, 4096);
    assert!(noise.iter().all(|e| e.abs() <= most), "bound");
}

/// The holder knows a, e, s and x. With another draw of the owner everything that it sees is another, and uniform.
#[test]
fn an_answer_tells_its_holder_a_share_alone() {
    let r = run(draw(3, 64), 5);
    let (mut masks, mut mine): (Vec<u128>, Vec<u64>) = (vec![], vec![]);
    for owner in 0..16 {
        let owner_weights = Weights::new(&r.context, &r.p, &r.layout, &weights(6));
        let (answer, _) = owner_weights.answer(&r.public, &r.layout, &r.query, &mut prg(200 + owner));
        mine.extend(r.key.decrypt(&r.p, &r.layout, &answer));
        masks.extend(&answer.polynomials()[0].mask);
    }
    let fits = |values: Vec<f64>| {
        let ((mean, variance), n) = (moments(&values), values.len() as f64);
        mean.abs() < 6.0 / (12.0 * n).sqrt() && (12.0 * variance - 1.0).abs() < 6.0 * (0.8 / n).sqrt()
    };
    assert!(fits(mine.iter().map(|v| *v as f64 / 2f64.powi(24) - 0.5).collect()), "shares are uniform");
    let bits = r.p.mask_bits() as i32;
    let apart = |i: usize| {
        let (a, b) = (masks[i], masks[i + 4096]);
        encode::wrap(a.wrapping_sub(b), bits as u32) as f64 / 2f64.powi(bits) - 0.5
    };
    assert!(fits((0..15 * 4096).map(apart).collect()), "masks of two draws differ by something uniform");
    let shares: std::collections::HashSet<u64> = (0..16).map(|i| mine[64 * i]).collect();
    assert!(shares.len() > 10);
}

/// What hides the weights is an RLWE sample, error included: without it the mask less `sum of w a`, over the public a, is u.
#[test]
fn a_mask_has_an_error() {
    let r = run(draw(3, 64), 5);
    let owner = Weights::new(&r.context, &r.p, &r.layout, &weights(6));
    let ciphertext = || {
        let (body, a) = r.query.ciphertext(&r.context, 0);
        [(body, a)]
    };
    let bare = owner.product(&r.layout, 0, &ciphertext()).mask;
    let packed = owner.product(&r.layout, 0, &ciphertext());
    let cleared = packed.clear(&r.context, &r.public, std::iter::once(0), &mut prg(9));
    let mut hiding = r.context.points(cleared.mask);
    r.context.add(&mut hiding.words, &bare.words, true);
    for prime in r.context.primes() {
        let m = r.context.modulus(prime);
        let range = r.context.range(prime);
        for (word, a) in hiding.words[range.clone()].iter_mut().zip(&r.public.a.words[range]) {
            *word = m.times(*word, m.inverse(*a));
        }
    }
    let u = integers(&r.context, &r.context.coefficients(hiding));
    assert!(u.iter().filter(|u| u.abs() > 1e6).count() > 4000, "u is not to be read off");
}

/// The owner sees bodies. Two operands of one key differ by something uniform: no public polynomial serves twice.
#[test]
fn queries_are_uniform_to_the_owner() {
    let r = run(vec![0; 64], 7);
    let mut holder = prg(8);
    let mut bodies = Vec::new();
    for _ in 0..4 {
        let query = r.key.encrypt(&r.p, &r.layout, &r.x, &mut holder);
        bodies.push(query.bodies[0].clone());
    }
    for pair in bodies.windows(2) {
        let mut difference = pair[0].clone();
        r.context.add(&mut difference.words, &pair[1].words, true);
        let fractions = r.context.fractions(&r.context.coefficients(difference));
        let (mean, variance) =
            moments(&fractions.iter().map(|f| *f as f64 / 2f64.powi(128) - 0.5).collect::<Vec<_>>());
        assert!(mean.abs() < 6.0 / (12.0 * 4096f64).sqrt(), "{mean}");
        assert!((12.0 * variance - 1.0).abs() < 6.0 * (0.8 / 4096f64).sqrt(), "{variance}");
    }
    let small = crate::sample::errors(&mut prg(1), 16);
    assert!(small.iter().all(|e| (OFFSET - 21..=OFFSET + 21).contains(e)));
}
