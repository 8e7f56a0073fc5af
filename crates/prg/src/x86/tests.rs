use super::*;
use crate::ctr;
use crate::hash::sum_by_hash;
use aes::Aes128Enc;
use aes::cipher::{Array, KeyInit};

/// Every width of this machine, under three keys, beside the cipher.
fn all() -> impl Iterator<Item = (Rounds, Aes128Enc)> {
    let widths = [CpuCap::Aesni, CpuCap::Vaes, CpuCap::Avx512].into_iter().filter_map(Width::detect);
    widths.flat_map(|width| {
        let keys = [[0; 16], [0xff; 16], std::array::from_fn(|i| 17 * i as u8)];
        // SAFETY: detected.
        keys.map(|key| (unsafe { Rounds::new(width, &key) }, Aes128Enc::new(&Array(key))))
    })
}

const LENGTHS: [usize; 15] = [0, 1, 2, 3, 4, 5, 15, 16, 17, 19, 31, 32, 33, 67, 500];

#[test]
fn a_lower_cap_takes_narrower_registers() {
    assert_eq!(Width::detect(CpuCap::Portable), None);
    assert!(matches!(Width::detect(CpuCap::Avx2), None | Some(Width::One)));
    assert_ne!(Width::detect(CpuCap::Vaes), Some(Width::Four));
}

#[test]
fn the_hash_is_the_ciphers() {
    for (rounds, aes) in all() {
        for n in LENGTHS {
            let blocks = |i: usize| (i as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            let mut found: Vec<u128> = (0..n + 1).map(blocks).collect();
            let mut right = found.clone();
            rounds.hash(&mut found[..n]);
            ctr::hash(&aes, &mut right[..n]);
            assert_eq!(found, right, "{n} blocks, {:?}", rounds.width);
        }
    }
}

/// Levels of few nodes and of many, both sides and all sums, with bits that do not stay.
#[test]
fn levels_of_half_trees_are_the_ciphers() {
    let block = |i: usize| (i as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    for (rounds, aes) in all() {
        for n in [0, 4, 8, 12, 28, 32, 36, 68, 300] {
            for kept in [u128::MAX, !1, 0] {
                let nodes: Vec<u128> = (0..n).map(block).collect();
                let (mut found, mut right) = (nodes.clone(), nodes.clone());
                let (mut found_beside, mut right_beside) = (vec![3; n], vec![5; n]);
                let mut sums = [[[7, 8, 9, 10], [11, 12, 13, 14]]; 2];
                let [of, by_hash] = &mut sums;
                rounds.children(Level { left: &mut found, right: &mut found_beside, kept, sums: of });
                let level = Level { left: &mut right, right: &mut right_beside, kept, sums: by_hash };
                level.by_hash(|blocks| ctr::hash(&aes, blocks));
                assert_eq!((found, found_beside), (right, right_beside), "{n} nodes, {:?}", rounds.width);
                assert_eq!(sums[0], sums[1], "{n} nodes, {:?}", rounds.width);
                let mut alone = [[7, 8, 9, 10]; 2];
                rounds.sum(&nodes, &mut alone[0]);
                sum_by_hash(&nodes, &mut alone[1], |blocks| ctr::hash(&aes, blocks));
                assert_eq!(alone, [sums[0][0]; 2], "{n} nodes, {:?}", rounds.width);
            }
        }
    }
}

#[test]
fn the_stream_is_the_ciphers() {
    for (rounds, aes) in all() {
        for n in LENGTHS {
            for first in [0, 7, u64::MAX - 3, u64::MAX - 2, 1 << 40] {
                let mut found = vec![[9; 16]; n + 1];
                let mut right = found.clone();
                rounds.keystream(first, &mut found[..n]);
                ctr::keystream(&aes, 0, first, &mut right[..n]);
                assert_eq!(found, right, "{n} blocks from {first}, {:?}", rounds.width);
            }
        }
    }
}
