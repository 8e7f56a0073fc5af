//! Noise counted on both sides of its formula; what each message tells, with one side's randomness held fixed and the
//! other's redrawn; and answers that no honest peer gives.

use super::*;
use crate::layout::{Matmul, MatmulLayout, Windowed};
use crate::sample::{ERROR_VARIANCE, TERNARY_VARIANCE};
use crate::wire::WireError;
use privet_plan::suite::{View, unseen};
use privet_prg::{Prg, Seed};
use privet_ring::Ring;
use std::sync::Arc;

fn prg(seed: u8) -> Prg {
    Seed::from_bytes([seed; 16]).stream()
}

fn layer(p: TorusParameters, shape: Matmul, block: [usize; 3]) -> TorusLayer {
    numbered(3, p, shape, block)
}

/// One of the layers that share a set of hints.
fn numbered(number: u64, p: TorusParameters, shape: Matmul, block: [usize; 3]) -> TorusLayer {
    let layout = MatmulLayout::with_blocks(shape, p.degree(), block);
    TorusLayer::new(p, Arc::new(layout), HintId::from_bytes([7; 16]), number, 2).unwrap()
}

/// A hint at weights.
fn hinted_at(layer: &TorusLayer, w: &[u64], prg: &mut Prg) -> Result<(Hinted, Vec<u8>), TooHeavy> {
    let p = layer.parameters();
    let filters = Arc::new(Filters::new(p.ring(), p.norm_bits(), w));
    layer.hint(&filters, prg)
}

/// Whether products read a coefficient where no operand stands.
fn has_blanks(layer: &TorusLayer) -> bool {
    layer.shape.has_blanks()
}

/// The shares of a run, and what it sent.
struct Run {
    prepared: Vec<u8>,
    body: Vec<u8>,
    shares: [Vec<u64>; 2],
}

fn run(hint: &ClientHint, hinted: &Hinted, x: [&[u64]; 2], client: &mut Prg) -> Run {
    run_with(hint, hinted, x, &mut (Keys::new(client.seed().stream()), Zeros::default()))
}

/// The same with what both sides have of the run.
fn run_with(hint: &ClientHint, hinted: &Hinted, x: [&[u64]; 2], of_run: &mut (Keys, Zeros)) -> Run {
    let (keys, zeros) = of_run;
    let due = zeros.prepare_bytes(&hinted.layer());
    let (mask, prepared) = hint.prepare(keys);
    assert_eq!(prepared.len(), due);
    let masked = hinted.multiplier().prepare(zeros, &prepared).unwrap();
    // as a record keeps both
    let (layer, mask, masked) = (hinted.layer(), mask.keep(), masked.keep());
    assert!(layer.kept(&mask[1..]).is_err() && hinted.kept(&masked[1..]).is_err());
    let (mask, masked) = (layer.kept(&mask).unwrap(), hinted.kept(&masked).unwrap());
    let (body, mine) = mask.run(x[0]);
    let theirs = masked.run(hinted, &body, x[1]).unwrap();
    Run { prepared, body, shares: [mine.to_vec(), theirs.to_vec()] }
}

/// Weights of one sign, as heavy as the bound allows, and operands' polynomials whose digits are the largest and the smallest: the server's
/// correction is the integer that it should be.
#[test]
fn sums_of_the_largest_digits_do_not_overflow() {
    let ring = Ring::new(37);
    for norm in [12, 15, 16, 18, 27] {
        let p = TorusParameters::exact(ring, norm, 512).unwrap();
        let terms = 1 << 14;
        let layer = layer(p, Matmul { groups: 1, m: 1, k: terms, o: 1 }, [1, 512, 1]);
        assert!(!has_blanks(&layer));
        for sign in [1, -1i64] {
            let weights = vec![ring.wrap((sign << (norm - 7)) as u64); terms];
            let (hinted, _) = hinted_at(&layer, &weights, &mut Seed::random().stream()).unwrap();
            let multiplier = hinted.multiplier();
            for at in 24..48 {
                for low in [(1u128 << at) - 1, 1 << at, (1 << p.low_bits()) - (1 << at)] {
                    // an encryption of 0 that is 0, so that hidings are multiplied with nothing
                    let mut message = vec![0; layer.shape.vector_bytes()];
                    let mut v = wide::Wide::default();
                    v.add_shifted(low as u64 as i64 & i64::MAX, 0);
                    v.add_shifted((low >> 63) as i64, 63);
                    let lows = vec![v; 512];
                    (0..layer.layout().queries()).for_each(|_| wide::put(p.low_bits(), &lows, &mut message));
                    let masked = multiplier.prepare(&mut Zeros::default(), &message).unwrap();
                    let body = vec![0; layer.run_bytes()];
                    let found = masked.run(&hinted, &body, &vec![0; terms]).unwrap();
                    let sum = i128::from(sign) * ((low << p.operand_dropped()) << (norm - 7 + 14)) as i128;
                    let expected = ring.wrap(((sum >> p.step_bits()) as u64).wrapping_add(1));
                    assert_eq!(found[0], expected, "2^{norm}, {low:x}");
                }
            }
        }
    }
}

/// Weights of one sign, as heavy as the bound allows: sums of digits whose mean is not 0 would leave a prime's range.
#[test]
fn weights_of_one_sign_do_not_overflow() {
    let ring = Ring::new(37);
    for norm in [12, 15, 18, 27] {
        let p = TorusParameters::exact(ring, norm, 512).unwrap();
        let (terms, outs) = (1 << 14, 2);
        let layer = layer(p, Matmul { groups: 1, m: 1, k: terms, o: outs }, [1, 512, 1]);
        // sqrt(terms) is 2^7
        let weights = vec![1 << (norm - 7); terms * outs];
        let (hinted, message) = hinted_at(&layer, &weights, &mut Seed::random().stream()).unwrap();
        let hint = layer.read_hint(&message).unwrap();
        let mut client = Seed::random().stream();
        let x = [0, 1].map(|_| client.elements(ring, terms));
        let run = run(&hint, &hinted, [&x[0], &x[1]], &mut client);
        let sum = x.iter().flatten().fold(0u64, |sum, x| sum.wrapping_add(*x)) << (norm - 7);
        for out in 0..outs {
            assert_eq!(
                ring.wrap(run.shares[0][out].wrapping_add(run.shares[1][out])),
                ring.wrap(sum),
                "2^{norm}"
            );
        }
    }
}

/// With a modulus that is far too small, shares are wrong as often as the formula says: neither more nor less.
///
/// Weights are few and small, so that what hides hints and encryptions of 0 is most of the noise.
#[test]
fn wrong_shares_of_a_scaled_down_model_are_as_many_as_predicted() {
    let (ring, runs) = (Ring::new(24), 24);
    let p = TorusParameters::scaled(ring, 2, 512, 63);
    let shape = Matmul { groups: 1, m: 8, k: 4, o: 128 };
    let layer = layer(p, shape, [8, 4, 1]);
    let weights: Vec<u64> = (0..4 * 128u64).map(|i| ring.wrap((i & 3).wrapping_sub(1))).collect();
    // each filter has one weight four times
    let squares = 1.0 + 0.0 + 1.0 + 4.0;
    let (hinted, hint) = hinted_at(&layer, &weights, &mut prg(1)).unwrap();
    let hint = layer.read_hint(&hint).unwrap();
    let mut client = prg(2);
    let mut wrong = 0;
    for i in 0..runs {
        // a product that is 0 modulo any step: the fractions are not uniform
        let x0 = prg(i).elements(ring, 32);
        let x1: Vec<u64> = x0.iter().map(|x| ring.wrap(x.wrapping_neg())).collect();
        let run = run(&hint, &hinted, [&x0, &x1], &mut client);
        let sum = |(a, b): (&u64, &u64)| ring.wrap(a.wrapping_add(*b));
        wrong += run.shares[0].iter().zip(&run.shares[1]).map(sum).filter(|y| *y != 0).count();
    }
    let n = p.dimension() as f64;
    let variance = squares * ERROR_VARIANCE + 2.0 * n * TERNARY_VARIANCE * ERROR_VARIANCE;
    assert!(variance.sqrt() <= p.deviation(), "the formula is an upper bound");
    let outputs = f64::from(runs) * 8.0 * 128.0;
    let expected = outputs * (variance * 2.0 / std::f64::consts::PI).sqrt() / f64::from(p.step_bits()).exp2();
    let off = (wrong as f64 - expected) / expected.sqrt();
    assert!(expected > 800.0 && off.abs() < 4.5, "{wrong} wrong shares, {expected:.0} predicted");
}

/// All messages vary with the randomness of who sends them, in every combination of bits, though all else is fixed: without blanks,
/// and with blanks, of which all is sent before the run.
#[test]
fn messages_are_redrawn_with_their_senders_randomness() {
    for outs in [1, 2] {
        let ring = Ring::new(16);
        let p = TorusParameters::exact(ring, 10, 512).unwrap();
        let layer = layer(p, Matmul { groups: 1, m: 2, k: 6, o: 2 }, [1, 3, outs]);
        assert_eq!(has_blanks(&layer), outs > 1);
        let weights = vec![100, 0, 3, ring.wrap(5u64.wrapping_neg()), 77, 1, 0, 0, 9, 9, 4, 4];
        let zero = vec![0; 12];
        let (hinted, message) = hinted_at(&layer, &weights, &mut prg(1)).unwrap();
        let hint = layer.read_hint(&message).unwrap();
        let client = unseen(|| {
            let run = run(&hint, &hinted, [&zero, &zero], &mut Seed::random().stream());
            let (mut view, n) = (View::default(), run.prepared.len());
            view.bytes("encryption of 0".into(), &run.prepared[..40]);
            view.bytes("low parts, and blanks".into(), &run.prepared[n - 27..]);
            // two tiles and two polynomials each: relations would show repeated keys and publics
            view.bytes("masked operand".into(), &run.body);
            view
        });
        assert_eq!(client, Ok(()), "the server learns something");
        let server = unseen(|| {
            let (_, message) = hinted_at(&layer, &weights, &mut Seed::random().stream()).unwrap();
            let mut view = View::default();
            view.bytes("the first answer's hint".into(), &message[..40]);
            view.bytes("the last one's".into(), &message[message.len() - 40..]);
            view
        });
        assert_eq!(server, Ok(()), "the client learns something");
    }
}

/// Layers that share a run's keys: with more tiles than one before, with fewer, and one whose keys are of another kind.
fn sharing() -> Vec<(TorusLayer, Hinted, ClientHint, Vec<u64>)> {
    let ring = Ring::new(16);
    let layers = [(4, 10, 512), (8, 10, 512), (2, 10, 512), (2, 10, 1024), (8, 12, 512)];
    let of = |(number, (m, norm, degree)): (u64, (usize, u32, usize))| {
        let p = TorusParameters::exact(ring, norm, degree).unwrap();
        let layer = numbered(number, p, Matmul { groups: 1, m, k: 6, o: 2 }, [2, 6, 1]);
        let weights: Vec<u64> = (0..12).map(|i| ring.wrap((i * i + number).wrapping_sub(40))).collect();
        let (hinted, message) = hinted_at(&layer, &weights, &mut Seed::random().stream()).unwrap();
        let hint = layer.read_hint(&message).unwrap();
        (layer, hinted, hint, weights)
    };
    (0..).zip(layers).map(of).collect()
}

/// Products are right whatever of the keys' encryptions of 0 came with a layer before, and each comes once.
#[test]
fn layers_of_a_run_share_keys() {
    let (layers, ring) = (sharing(), Ring::new(16));
    let sent: Vec<usize> = {
        let mut zeros = Zeros::default();
        let mut keys = Keys::new(Seed::random().stream());
        let of = |(layer, hinted, hint, weights): &(TorusLayer, Hinted, ClientHint, Vec<u64>)| {
            let mut own = Seed::random().stream();
            let x = [0, 1].map(|_| own.elements(ring, layer.layout().input_len()));
            let mut of_run = (
                std::mem::replace(&mut keys, Keys::new(Seed::random().stream())),
                std::mem::take(&mut zeros),
            );
            let ran = run_with(hint, hinted, [&x[0], &x[1]], &mut of_run);
            (keys, zeros) = of_run;
            let x: Vec<u64> = x[0].iter().zip(&x[1]).map(|(a, b)| a.wrapping_add(*b)).collect();
            for (i, row) in x.chunks_exact(6).enumerate() {
                for o in 0..2 {
                    let truth =
                        (0..6).fold(0u64, |sum, k| sum.wrapping_add(row[k].wrapping_mul(weights[2 * k + o])));
                    let found = ran.shares[0][2 * i + o].wrapping_add(ran.shares[1][2 * i + o]);
                    assert_eq!(ring.wrap(found), ring.wrap(truth), "{:?}, row {i}", layer.parameters());
                }
            }
            let less = layer.prepare_bytes() - ran.prepared.len();
            assert_eq!(less.checked_rem(layer.shape.vector_bytes()), Some(0));
            less.div_euclid(layer.shape.vector_bytes())
        };
        layers.iter().map(of).collect()
    };
    // tiles of two rows: 2 of its own; 4, of which 2 are there; 1, which is there; another ring; another modulus
    assert_eq!(sent, [0, 2, 1, 0, 0]);
}

#[test]
#[should_panic(expected = "keys meet a layer once")]
fn keys_meet_no_layer_twice() {
    let (layers, mut keys) = (sharing(), Keys::new(Seed::random().stream()));
    let _first = layers[0].2.prepare(&mut keys);
    let _second = layers[0].2.prepare(&mut keys);
}

/// What two layers send under one key has no relation to each other: their public rows differ.
#[test]
fn layers_that_share_keys_are_hidden_by_themselves() {
    let layers = sharing();
    let found = unseen(|| {
        let mut keys = Keys::new(Seed::random().stream());
        let mut view = View::default();
        for (layer, _, hint, _) in &layers[..2] {
            let (mask, prepared) = hint.prepare(&mut keys);
            let (body, _) = mask.run(&vec![0; layer.layout().input_len()]);
            view.bytes("low parts".into(), &prepared[prepared.len() - 30..]);
            view.bytes("masked operand".into(), &body[..12]);
        }
        view
    });
    assert_eq!(found, Ok(()), "the server learns something");
}

/// Two hints of the same weights have nothing in common: what hides them is drawn anew, and so are errors.
#[test]
fn nothing_of_a_hint_serves_another() {
    let ring = Ring::new(16);
    let p = TorusParameters::exact(ring, 10, 512).unwrap();
    let shape = Matmul { groups: 1, m: 1, k: 4, o: 1 };
    let layout: Arc<dyn Windowed> = Arc::new(MatmulLayout::with_blocks(shape, 512, [1, 4, 1]));
    let hints = [1u8, 1, 2].map(|id| {
        let layer = TorusLayer::new(p, Arc::clone(&layout), HintId::from_bytes([id; 16]), 0, 1).unwrap();
        hinted_at(&layer, &[1, 2, 3, 4], &mut Seed::random().stream()).unwrap().1
    });
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        let same = hints[a].iter().zip(&hints[b]).filter(|(a, b)| a == b).count();
        let most = hints[a].len().div_euclid(256) + 5 * hints[a].len().isqrt().div_euclid(16) + 20;
        assert!(same < most, "{same} of {} bytes of hints {a} and {b} are alike", hints[a].len());
    }
    assert_ne!(HintId::random(), HintId::random());
}

/// Answers of one hint are hidden by secrets of their own: with one secret for two of them, hints of equal filters would be as near
/// as errors are, and those of others would differ by a small sum of public polynomials.
#[test]
fn every_answer_of_a_hint_is_hidden_by_a_secret_of_its_own() {
    let p = TorusParameters::exact(Ring::new(16), 10, 512).unwrap();
    let layer = layer(p, Matmul { groups: 1, m: 1, k: 4, o: 3 }, [1, 4, 1]);
    // places times columns: three equal filters
    let weights: Vec<u64> = (0..12u64).map(|i| 5 * i.div_euclid(3)).collect();
    let (_, message) = hinted_at(&layer, &weights, &mut Seed::random().stream()).unwrap();
    let (mut from, kept) = (&message[..], p.kept_bits());
    let mut answer = || -> Vec<u64> {
        let polys = (0..p.rank()).map(|_| super::wide::take(kept, p.degree(), &mut from).unwrap());
        polys.flatten().map(|v| v.bits(kept - 60, 60)).collect()
    };
    let answers = [answer(), answer(), answer()];
    let n = p.dimension();
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        let moved = |(a, b): (&u64, &u64)| Ring::new(60).wrap(a.wrapping_sub(*b).wrapping_add(1 << 51));
        let near = answers[a].iter().zip(&answers[b]).map(moved).filter(|d| *d < 1 << 52).count();
        // one in 256 by chance; of this n an 8-fold excess has a probability below 2^-60
        assert!(near < n.div_euclid(32), "{near} of {n} coefficients of hints {a} and {b} are near");
    }
}

#[test]
fn wrong_answers_are_refused_with_their_reason() {
    let ring = Ring::new(16);
    let p = TorusParameters::exact(ring, 4, 512).unwrap();
    let layer = layer(p, Matmul { groups: 1, m: 1, k: 4, o: 1 }, [1, 4, 1]);
    // a norm of exactly 2^4, and one above
    assert!(hinted_at(&layer, &[8, 8, 8, 8], &mut prg(1)).is_ok());
    let minus = |w: u64| ring.wrap(w.wrapping_neg());
    assert!(hinted_at(&layer, &[minus(16), 0, 0, 0], &mut prg(1)).is_ok());
    for heavy in [[8, 8, 8, 9], [minus(16), 1, 0, 0], [1 << 15, 0, 0, 0], [17, 0, 0, 0]] {
        let error = hinted_at(&layer, &heavy, &mut prg(1)).map(|_| ()).unwrap_err();
        assert_eq!(error, TooHeavy { norm_bits: 4 }, "{heavy:?}");
    }
    let (hinted, message) = hinted_at(&layer, &[1, 2, 3, 4], &mut prg(1)).unwrap();
    assert_eq!(message.len(), layer.hint_bytes());
    let length = |expected, found| WireError::Length { expected, found };
    for found in [0, message.len() - 1, message.len() + 1, 2 * message.len()] {
        let mut bytes = message.clone();
        bytes.resize(found, 0);
        assert_eq!(layer.read_hint(&bytes).map(|_| ()).unwrap_err(), length(layer.hint_bytes(), found));
    }
    let hint = layer.read_hint(&message).unwrap();
    let (mask, prepared) = hint.prepare(&mut Keys::new(prg(2)));
    for found in [0, prepared.len() - 1, prepared.len() + 1] {
        let mut bytes = prepared.clone();
        bytes.resize(found, 0);
        let error = hinted.multiplier().prepare(&mut Zeros::default(), &bytes).map(|_| ()).unwrap_err();
        assert_eq!(error, length(layer.prepare_bytes(), found));
    }
    let (body, _) = mask.run(&[0; 4]);
    for found in [0, body.len() - 1, body.len() + 1] {
        let mut bytes = body.clone();
        bytes.resize(found, 0);
        let masked = hinted.multiplier().prepare(&mut Zeros::default(), &prepared).unwrap();
        let error = masked.run(&hinted, &bytes, &[0; 4]).unwrap_err();
        assert_eq!(error, length(layer.run_bytes(), found));
    }
}
