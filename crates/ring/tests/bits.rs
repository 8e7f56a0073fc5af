//! Bit vectors and packed elements: round trips, layout and refused bytes.

use privet_ring::{Adder, BitVec, PackError, Ring, element, pack, packed_len, unpack};
use proptest::prelude::*;

fn from_bools(bits: &[bool]) -> BitVec {
    let mut v = BitVec::zeros(bits.len());
    for (i, b) in bits.iter().enumerate() {
        v.set(i, u64::from(*b));
    }
    v
}

proptest! {
    #[test]
    fn bits_are_kept(bits in prop::collection::vec(any::<bool>(), 0..300)) {
        let v = from_bools(&bits);
        prop_assert_eq!(v.len(), bits.len());
        for (i, b) in bits.iter().enumerate() {
            prop_assert_eq!(v.get(i), u64::from(*b));
        }
        let bytes = v.to_bytes();
        prop_assert_eq!(bytes.len(), bits.len().div_ceil(8));
        for (i, b) in bits.iter().enumerate() {
            prop_assert_eq!(bytes[i / 8] >> (i % 8) & 1, u8::from(*b));
        }
        prop_assert_eq!(BitVec::from_bytes(bits.len(), &bytes), Some(v));
    }

    #[test]
    fn xor_is_bitwise(pairs in prop::collection::vec(any::<(bool, bool)>(), 0..200)) {
        let (a, b): (Vec<bool>, Vec<bool>) = pairs.iter().copied().unzip();
        let mut v = from_bools(&a);
        v.xor_assign(&from_bools(&b));
        let want: Vec<bool> = pairs.iter().map(|(a, b)| a ^ b).collect();
        prop_assert_eq!(v, from_bools(&want));
    }

    #[test]
    fn clearing_a_bit_leaves_the_others(len in 1usize..200, at in any::<prop::sample::Index>()) {
        let at = at.index(len);
        let mut v = from_bools(&vec![true; len]);
        v.set(at, 2);
        prop_assert_eq!((0..len).filter(|&i| v.get(i) == 0).collect::<Vec<_>>(), vec![at]);
    }

    #[test]
    fn words_past_the_end_are_cleared(len in 0usize..200, extra in 0usize..3) {
        let v = BitVec::from_words(len, vec![u64::MAX; len.div_ceil(64) + extra]);
        prop_assert_eq!(&v, &from_bools(&vec![true; len]));
        prop_assert_eq!(v.words().len(), len.div_ceil(64));
    }

    #[test]
    fn stray_bits_and_lengths_are_refused(bits in prop::collection::vec(any::<bool>(), 1..200), stray in 0usize..8) {
        let mut bytes = from_bools(&bits).to_bytes();
        let last = bytes.len() - 1;
        if bits.len() % 8 != 0 {
            bytes[last] |= 1 << (bits.len() % 8 + stray % (8 - bits.len() % 8));
            prop_assert_eq!(BitVec::from_bytes(bits.len(), &bytes), None);
        }
        bytes.push(0);
        prop_assert_eq!(BitVec::from_bytes(bits.len(), &bytes), None);
        prop_assert_eq!(BitVec::from_bytes(bits.len(), &bytes[..last]), None);
    }

    #[test]
    fn packing_loses_nothing_but_the_upper_bits(k in 1u32..=64, values in prop::collection::vec(any::<u64>(), 0..150)) {
        let ring = Ring::new(k);
        let mut bytes = Vec::with_capacity(1 + packed_len(ring, values.len()));
        bytes.push(0xaa);
        let place = bytes.as_ptr();
        pack(ring, &values, &mut bytes);
        prop_assert_eq!(bytes.as_ptr(), place, "a buffer that is large enough does not move");
        let packed = &bytes[1..];
        prop_assert_eq!(bytes[0], 0xaa, "what was there stays");
        prop_assert_eq!(packed.len(), packed_len(ring, values.len()));
        prop_assert_eq!(packed.len(), (values.len() * k as usize).div_ceil(8));
        for (i, v) in values.iter().enumerate() {
            for b in 0..k as usize {
                let at = i * k as usize + b;
                prop_assert_eq!(u64::from(packed[at / 8] >> (at % 8) & 1), v >> b & 1, "element {}, bit {}", i, b);
            }
        }
        let want: Vec<u64> = values.iter().map(|v| ring.wrap(*v)).collect();
        for (i, v) in want.iter().enumerate() {
            prop_assert_eq!(element(ring, packed, i), *v, "element {}", i);
        }
        prop_assert_eq!(unpack(ring, packed, values.len()), Ok(want));
    }

    /// Wherever the pieces end.
    #[test]
    fn pieces_of_packed_bytes_add_every_element_once(
        k in 1u32..=64,
        values in prop::collection::vec(any::<u64>(), 0..150),
        ends in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let ring = Ring::new(k);
        let mut packed = Vec::new();
        pack(ring, &values, &mut packed);
        let mut ends: Vec<usize> = ends.iter().map(|end| end.index(packed.len() + 1)).collect();
        ends.extend([0, packed.len()]);
        ends.sort_unstable();
        let mut sums: Vec<u64> = (0..values.len() as u64).map(|i| ring.wrap(i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        let expected: Vec<u64> = sums.iter().zip(&values).map(|(a, b)| ring.wrap(a.wrapping_add(*b))).collect();
        let mut adder = Adder::new(ring, &mut sums);
        for piece in ends.windows(2) {
            adder.feed(&packed[piece[0]..piece[1]]);
        }
        prop_assert_eq!(adder.end(), Ok(()));
        prop_assert_eq!(sums, expected);
    }

    #[test]
    fn packed_bytes_with_a_bit_past_the_last_element_are_refused(k in 1u32..64, values in prop::collection::vec(any::<u64>(), 1..50)) {
        let (ring, n) = (Ring::new(k), values.len());
        let mut bytes = Vec::new();
        pack(ring, &values, &mut bytes);
        let used = (n * k as usize - 1) % 8 + 1;
        for bit in used..8 {
            let mut other = bytes.clone();
            *other.last_mut().unwrap() |= 1 << bit;
            let err = PackError::Padding { elements: n, bits: k };
            prop_assert_eq!(added(ring, &other, n), Err(err));
            prop_assert_eq!(unpack(ring, &other, n), Err(PackError::Padding { elements: n, bits: k }));
        }
    }

    #[test]
    fn packed_bytes_of_another_length_are_refused(k in 1u32..=64, n in 0usize..50, extra in 1usize..9) {
        let ring = Ring::new(k);
        let expected = packed_len(ring, n);
        let err = |found| Err(PackError::Length { elements: n, bits: k, expected, found });
        prop_assert_eq!(unpack(ring, &vec![0; expected + extra], n), err(expected + extra));
        prop_assert_eq!(added(ring, &vec![0; expected + extra], n), err(expected + extra).map(|_| ()));
        if let Some(short) = expected.checked_sub(extra) {
            prop_assert_eq!(added(ring, &vec![0; short], n), err(short).map(|_| ()));
            prop_assert_eq!(unpack(ring, &vec![0; short], n), err(short));
        }
    }
}

/// What adding these bytes to `n` sums says, in one piece.
fn added(ring: Ring, bytes: &[u8], n: usize) -> Result<(), PackError> {
    let mut sums = vec![0; n];
    let mut adder = Adder::new(ring, &mut sums);
    adder.feed(bytes);
    adder.end()
}

#[test]
#[should_panic(expected = "1 words for 65 bits")]
fn too_few_words() {
    let _ = BitVec::from_words(65, vec![0]);
}

#[test]
fn a_printed_vector_shows_no_bit() {
    assert_eq!(format!("{:?}", from_bools(&[true, false, true])), "BitVec[3]");
    assert!(BitVec::zeros(0).is_empty() && BitVec::from_bytes(0, &[]).is_some());
}
