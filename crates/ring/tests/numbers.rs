//! Rings, fixed point and tensors at the edges.

use privet_ring::{FixedError, FixedPoint, Ring, Tensor, TensorError};
use proptest::prelude::*;

proptest! {
    #[test]
    fn signed_is_the_representative(k in 1u32..=64, x: u64) {
        let ring = Ring::new(k);
        let s = i128::from(ring.signed(x));
        prop_assert!(-(1i128 << (k - 1)) <= s && s < 1i128 << (k - 1));
        prop_assert_eq!((s - i128::from(x)).rem_euclid(1i128 << k), 0);
        prop_assert_eq!(ring.wrap(ring.signed(x) as u64), ring.wrap(x));
        prop_assert_eq!(ring.msb(x) == 1, s < 0);
    }

    #[test]
    fn wrapping_is_a_homomorphism(k in 1u32..=64, x: u64, y: u64) {
        let ring = Ring::new(k);
        let (a, b) = (ring.wrap(x), ring.wrap(y));
        prop_assert_eq!(ring.wrap(x.wrapping_mul(y)), ring.wrap(a.wrapping_mul(b)));
        prop_assert_eq!(ring.wrap(x.wrapping_add(y)), ring.wrap(a.wrapping_add(b)));
        prop_assert!(a <= ring.mask());
    }

    #[test]
    fn encoding_is_within_half_a_unit(k in 8u32..=53, f in 0u32..20, unit in -1.0f64..=1.0) {
        let fixed = FixedPoint::new(Ring::new(k), f.min(k - 1));
        let v = unit * fixed.limit();
        let encoded = fixed.encode(&[v], f64::INFINITY).expect("within the range");
        prop_assert!(encoded[0] <= fixed.ring.mask());
        let back = fixed.decode(&encoded)[0];
        prop_assert!((back - v).abs() <= 0.5 / 2f64.powi(fixed.frac as i32), "{} came back as {}", v, back);
    }

    #[test]
    fn decoding_is_undone_by_encoding(k in 1u32..=53, f in 0u32..60, x: u64) {
        let fixed = FixedPoint::new(Ring::new(k), f);
        let x = fixed.ring.wrap(x);
        // The most negative value has no positive counterpart, so it is outside the symmetric limit.
        prop_assume!(fixed.ring.signed(x) != -(1 << (k - 1)));
        let back = fixed.decode(&[x]);
        prop_assert_eq!(fixed.encode(&back, f64::INFINITY), Ok(vec![x]));
    }
}

#[test]
fn edges_of_rings() {
    assert_eq!(Ring::R64.mask(), u64::MAX);
    assert_eq!(Ring::R64.signed(u64::MAX), -1);
    assert_eq!(Ring::R64.signed(1 << 63), i64::MIN);
    assert_eq!(Ring::new(1).mask(), 1);
    assert_eq!(Ring::new(1).signed(3), -1);
    assert_eq!(Ring::new(8).signed(0x180), -128);
    assert_eq!(Ring::new(37).to_string(), "Z_2^37");
}

#[test]
#[should_panic(expected = "assertion failed")]
fn no_ring_of_zero_bits() {
    let _ = Ring::new(0);
}

#[test]
#[should_panic(expected = "assertion failed")]
fn no_ring_of_65_bits() {
    let _ = Ring::new(65);
}

#[test]
fn ties_go_to_even() {
    let fixed = FixedPoint::new(Ring::new(16), 1);
    let encoded = fixed.encode(&[0.25, 0.75, -0.25, -0.75, 1.25], 100.0).expect("in range");
    assert_eq!(encoded, [0, 2, 0, 0xfffe, 2]);
}

#[test]
fn what_encoding_refuses() {
    let fixed = FixedPoint::new(Ring::new(16), 8);
    let limit = fixed.limit();
    assert_eq!(limit, f64::from(0x7fff) / 256.0);
    assert_eq!(fixed.encode(&[0.0, f64::NAN], 1.0), Err(FixedError::NotANumber { index: 1 }));
    assert_eq!(fixed.encode(&[f64::NEG_INFINITY], 1.0), Err(FixedError::Infinite { index: 0 }));
    let over = Err(FixedError::OutOfRange { index: 2, limit: 2.0 });
    assert_eq!(fixed.encode(&[2.0, -2.0, -2.0001], 2.0), over);
    assert_eq!(fixed.encode(&[128.0], 1e9), Err(FixedError::OutOfRange { index: 0, limit }));
    assert_eq!(fixed.encode(&[limit, -limit], 1e9), Ok(vec![0x7fff, 0x8001]));
}

/// Above 54 bits the limit is no float: what rounds up to 2^(k-1) would come back negative.
#[test]
fn the_top_of_large_rings() {
    for k in 50..=64 {
        for f in [0, 24, k - 1] {
            let fixed = FixedPoint::new(Ring::new(k), f);
            let top = 2f64.powi(k as i32 - 1 - f as i32);
            for v in [top, -top] {
                let refused = fixed.encode(&[v], f64::INFINITY);
                assert!(matches!(refused, Err(FixedError::OutOfRange { index: 0, .. })), "k = {k}, f = {f}");
            }
            let limit = fixed.limit();
            let units = (top - limit) * 2f64.powi(f as i32);
            assert!(units >= 1.0 && units <= 2f64.powi((k as i32 - 54).max(0)), "k = {k}, f = {f}");
            let encoded = fixed.encode(&[limit, -limit], f64::INFINITY);
            assert_eq!(encoded.map(|e| fixed.decode(&e)), Ok(vec![limit, -limit]), "k = {k}, f = {f}");
        }
    }
}

#[test]
fn no_error_shows_the_value() {
    let fixed = FixedPoint::new(Ring::new(16), 8);
    let error = fixed.encode(&[987.125], 3.0).expect_err("out of range").to_string();
    assert!(error.contains("element 0") && error.contains('3') && !error.contains("987"), "{error}");
}

#[test]
fn tensors_fit_their_shape() {
    let t = Tensor::new(vec![2, 3], vec![7; 6]).expect("six elements");
    assert_eq!(format!("{t:?}"), "Tensor[2, 3]");
    let t = t.reshaped(&[3, 2]).expect("the same number");
    assert_eq!(t.shape(), [3, 2]);
    let wrong = TensorError::Length { shape: vec![4], expected: 4, found: 6 };
    assert_eq!(t.reshaped(&[4]), Err(wrong));
    assert_eq!(Tensor::new(vec![], vec![1]).expect("a scalar").len(), 1);
    assert!(Tensor::zeros(&[0, 5]).is_empty());
}

/// The product of a hostile shape must not wrap around to the length of the data.
#[test]
fn a_shape_too_large_is_refused() {
    assert!(Tensor::new(vec![1 << 33, 1 << 31], vec![]).is_err());
}
