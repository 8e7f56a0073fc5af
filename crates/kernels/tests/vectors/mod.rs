//! The known answers of `vectors/compare.txt`, batch by batch.

#![allow(dead_code, reason = "each test program reads some of the fields")]

use privet_kernels::compare::CompareShape;
use privet_prg::{HashKeys, TreeHash};
use std::collections::HashMap;

const VECTORS: &str = include_str!("../../../../vectors/compare.txt");

/// Bytes of a field in hexadecimal.
pub fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().as_chunks::<2>().0;
    digits.iter().map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

/// One batch of the file, field by field.
pub struct Batch(pub HashMap<&'static str, &'static str>);

impl Batch {
    pub fn all() -> Vec<Batch> {
        let body = VECTORS.lines().filter(|l| !l.starts_with('#')).collect::<Vec<_>>();
        let batches = body.split(|l| *l == "end").filter(|b| !b.is_empty());
        batches.map(|b| Batch(b.iter().map(|l| l.split_once(' ').unwrap()).collect())).collect()
    }

    pub fn numbers(&self, field: &str) -> Vec<u64> {
        self.0[field].split(' ').map(|v| v.parse().unwrap()).collect()
    }

    pub fn blocks(&self, field: &str) -> Vec<u128> {
        let block = |hex| u128::from_le_bytes(bytes(hex).try_into().unwrap());
        self.0[field].split(' ').map(block).collect()
    }

    pub fn shares(&self, field: &str) -> Vec<u64> {
        self.0[field].bytes().map(|b| (b - b'0') as u64).collect()
    }

    pub fn hash(&self) -> TreeHash {
        let key = |field| bytes(self.0[field]).try_into().unwrap();
        TreeHash::new(HashKeys { inner: key("inner"), leaf: key("leaf") })
    }

    pub fn shape(&self) -> CompareShape {
        CompareShape { bits: self.numbers("bits")[0] as u32, count: self.numbers("alpha").len() }
    }
}
