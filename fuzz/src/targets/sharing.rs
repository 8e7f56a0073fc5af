//! What owners send the parties of rep3, and those a receiver.

use super::Fields;
use crate::Target;
use privet_prg::Seed;
use privet_rep3::{Portion, Revealed, Share};
use privet_ring::Ring;
use std::sync::Arc;

/// A ring, a number of elements, then a portion of an input; and the same bytes as what a party reveals.
pub const SHARING: Target = Target { name: "sharing", run: sharing, seeds: sharing_seeds, words: &[] };

fn announced(fields: &mut Fields) -> (Ring, usize) {
    (Ring::new(fields.byte() as u32 % 64 + 1), fields.byte() as usize)
}

fn sharing(data: &[u8]) {
    let mut fields = Fields(data);
    let (ring, n) = announced(&mut fields);
    let bytes = fields.0;
    if let Ok(found) = Portion::decode(ring, n, bytes) {
        let mut again = Vec::new();
        found.encode(ring, &mut again);
        assert!(again.len() <= Portion::max_len(ring, n));
        assert_eq!(again, bytes, "a portion has one form");
        let Share { own, next } = found.expand(ring, n);
        assert!(own.len() == n && next.len() == n);
        assert!(own.iter().chain(next.iter()).all(|&x| ring.wrap(x) == x));
    }
    let mut rest = bytes;
    if Portion::take(ring, n, &mut rest).is_ok() {
        assert!(bytes.ends_with(rest) && rest.len() < bytes.len());
    }
    if let Ok(found) = Revealed::decode(ring, n, bytes) {
        let mut again = Vec::new();
        found.encode(ring, &mut again);
        assert_eq!(again, bytes, "a revealed component has one form");
        if let Ok(value) = Revealed::combine(ring, [found.clone(), found.clone(), found]) {
            assert!(value.len() == n && value.iter().all(|&x| ring.wrap(x) == x));
        }
    }
}

fn sharing_seeds() -> Vec<Vec<u8>> {
    let head = |bits: u8, n: u8| vec![bits - 1, n];
    let mut seeds = Vec::new();
    for (bits, n) in [(13, 3), (32, 8), (64, 1), (1, 65)] {
        let ring = Ring::new(bits as u32);
        let values: Vec<u64> =
            (0..n as u64).map(|i| ring.wrap(i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        for portion in Portion::from_seeds(ring, &values, [1, 2].map(|b| Seed::from_bytes([b; 16]))) {
            let mut seed = head(bits, n);
            portion.encode(ring, &mut seed);
            seeds.push(seed);
        }
        let mut seed = head(bits, n);
        let next = Arc::new(values.iter().map(|x| ring.wrap(x.wrapping_add(1))).collect());
        Revealed::of(&Share { own: Arc::new(values), next }).encode(ring, &mut seed);
        seeds.push(seed);
    }
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_valid() {
        for seed in sharing_seeds() {
            let mut fields = Fields(&seed);
            let (ring, n) = announced(&mut fields);
            let portion = Portion::decode(ring, n, fields.0).is_ok();
            assert!(portion || Revealed::decode(ring, n, fields.0).is_ok());
            sharing(&seed);
        }
    }
}
