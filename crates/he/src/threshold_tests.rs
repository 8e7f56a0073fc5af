//! What the other parties, all together, see of one: with its randomness redrawn, noise and uniform shares alone.

use super::*;
use crate::context::Points;
use crate::layout::{Matmul, MatmulLayout};
use crate::params::SETS;
use privet_ring::Ring;

const RING: Ring = Ring::new(24);

/// Two parties' product up to the joined summands, the first party's own coins from `seed`.
struct Run {
    context: Arc<Context>,
    p: Parameters,
    layout: MatmulLayout,
    keys: Vec<KeyShare>,
    public: PublicKey,
    query: Query,
    weights: Vec<Weights>,
}

fn prg(seed: u8) -> Prg {
    Seed::from_bytes([seed; 16]).stream()
}

fn run() -> Run {
    let shape = Matmul { groups: 1, m: 1, k: 64, o: 64 };
    let layout = MatmulLayout::with_blocks(shape, 4096, [1, 64, 64]);
    let p = Parameters::on(&SETS[0], RING, 4, layout.coefficients(), layout.output_len(), 2).unwrap();
    let context = Context::new(p.set()).unwrap();
    let mut publics = Publics::new(Seed::from_bytes([1; 16]));
    let (for_key, for_query) = (publics.reference().0, publics.reference().0);
    let same = |seed: &Seed| Reference(Seed::from_bytes(*seed.expose()));
    let (keys, shares): (Vec<_>, Vec<_>) =
        (2..4).map(|i| KeyShare::generate(&context, same(&for_key), &mut prg(i))).unzip();
    let public = PublicKey::sum(&context, shares);
    let query = |(i, key): (usize, &KeyShare)| {
        let x = prg(10 + i as u8).elements(RING, 64);
        key.encrypt(same(&for_query), &p, &layout, &x, &mut prg(20 + i as u8))
    };
    let query = Query::sum(&context, keys.iter().enumerate().map(query).collect());
    let weights = (0..2).map(|i| {
        let w: Vec<u64> = prg(30 + i).elements(Ring::new(3), 4096);
        Weights::new(&context, &p, &layout, &w)
    });
    let weights = weights.collect();
    Run { context, p, layout, keys, public, query, weights }
}

fn joined(r: &Run) -> Joined {
    let summands =
        (0..2).map(|i| r.weights[i].multiply(&r.public, &r.layout, &r.query, &mut prg(40 + i as u8)));
    Summand::sum(&r.context, summands.collect())
}

fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64)
}

#[test]
fn a_partial_decryption_is_drowned_and_shared() {
    let r = run();
    let (mut noise, mut shares) = (Vec::new(), Vec::new());
    let bits = r.p.output_bits();
    for seed in 0..64 {
        let j = joined(&r);
        let exact = r.context.product(&r.context.points(j.0[0].mask.clone()), &r.keys[0].0.s);
        let exact = encode::switch(&r.context, &r.context.coefficients(exact), bits);
        let (partial, share, _) = j.partial(&r.keys[0], &r.p, &r.layout, &mut prg(100 + seed));
        for (o, d) in r.layout.outputs(0).iter().zip(&partial.0[0]) {
            let masked = d.wrapping_add(u128::from(share[o.index]) << (bits - RING.bits()));
            let off = encode::wrap(masked.wrapping_sub(exact[o.coefficient]), bits);
            noise.push(((off << (128 - bits)) as i128 >> (128 - bits)) as f64);
        }
        shares.extend(share.iter().map(|s| *s as f64 / 2f64.powi(24) - 0.5));
    }
    let n = noise.len() as f64;
    let unit = 2f64.powf(f64::from(r.p.flood_bits() + bits) - r.p.set().modulus_bits());
    // twice rounded to integers
    let ((mean, variance), expected) = (moments(&noise), unit * unit / 4.0 + 1.0 / 6.0);
    assert!(mean.abs() < 6.0 * (expected / n).sqrt(), "{mean}");
    assert!((variance / expected - 1.0).abs() < 6.0 * (2.0 / n).sqrt(), "{variance}, not {expected}");
    let (mean, variance) = moments(&shares);
    assert!(mean.abs() < 6.0 / (12.0 * n).sqrt() && (12.0 * variance - 1.0).abs() < 6.0 * (0.8 / n).sqrt());
}

/// Divided by the joint key, what a summand adds to `w c` would be u if it had no error.
#[test]
fn both_parts_of_a_summand_have_an_error() {
    let r = run();
    let few = r.context.degree() >> 7;
    let bare = {
        let (body, a) = r.query.ciphertext(&r.context, 0);
        let packed = r.weights[0].product(&r.layout, 0, &[(body, a)]);
        [packed.body, packed.mask]
    };
    // every coefficient an output, so that the body is there to be transformed
    struct Whole(MatmulLayout);
    impl Layout for Whole {
        fn blocks(&self) -> crate::layout::Blocks {
            self.0.blocks()
        }
        fn input_len(&self) -> usize {
            self.0.input_len()
        }
        fn weight_len(&self) -> usize {
            self.0.weight_len()
        }
        fn output_len(&self) -> usize {
            4096
        }
        fn weights_in_a_polynomial(&self) -> usize {
            self.0.weights_in_a_polynomial()
        }
        fn pack_input(&self, number: usize, x: &[u64], out: &mut [u64]) {
            self.0.pack_input(number, x, out);
        }
        fn pack_weights(&self, number: usize, w: &[u64], out: &mut [u64]) {
            self.0.pack_weights(number, w, out);
        }
        fn outputs(&self, _: usize) -> Vec<crate::layout::Output> {
            (0..4096).map(|i| crate::layout::Output { coefficient: i, index: i }).collect()
        }
    }
    let mut summand = r.weights[0].multiply(&r.public, &Whole(r.layout), &r.query, &mut prg(50)).0.remove(0);
    let parts = [std::mem::take(&mut summand.body.words), std::mem::take(&mut summand.mask.words)];
    for (part, (bare, hiding)) in parts.into_iter().zip(bare.iter().zip([&r.public.b, &r.public.a])) {
        let mut v: Points = r.context.points(Coeff { words: part });
        r.context.add(&mut v.words, &bare.words, true);
        for prime in r.context.primes() {
            let m = r.context.modulus(prime);
            let range = r.context.range(prime);
            for (word, h) in v.words[range.clone()].iter_mut().zip(&hiding.words[range]) {
                *word = m.times(*word, m.inverse(*h));
            }
        }
        let u = r.context.fractions(&r.context.coefficients(v));
        let small = u.iter().filter(|u| (**u as i128).unsigned_abs() < 1 << 64).count();
        assert!(small < few, "{small} small coefficients");
    }
}
