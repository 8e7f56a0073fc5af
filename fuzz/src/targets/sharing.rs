//! What owners send the parties of rep3, those a receiver, and what a party reads back of its states.

use super::Fields;
use crate::Target;
use privet_plan::Plan;
use privet_plan::ir::{Node, Op, PLAN_VERSION, Type};
use privet_prg::Seed;
use privet_rep3::{Portion, Revealed, Share, StateKinds, States};
use privet_ring::Ring;
use std::sync::Arc;

/// A ring, a number of elements, then a portion of an input; and the same bytes as what a party reveals, and as the
/// states of a checkpoint.
pub const SHARING: Target = Target { name: "sharing", run: sharing, seeds: sharing_seeds, words: &[] };

fn announced(fields: &mut Fields) -> (Ring, usize) {
    (Ring::new(fields.byte() as u32 % 64 + 1), fields.byte() as usize)
}

/// Of two states, the second of one bit an element.
fn kinds(ring: Ring, n: usize) -> StateKinds {
    let state = |name: &str, bits: u32| Node {
        op: Op::State { name: name.into(), owner: "model_owner".into() },
        inputs: vec![],
        ty: Type { shape: vec![n], bits, frac: 0 },
        layer: String::new(),
        form: None,
    };
    let nodes = vec![state("a", ring.bits()), state("b", 1)];
    let (name, outputs, updates) = (String::new(), vec![], vec![]);
    let plan = Plan { version: PLAN_VERSION, name, batch: 1, nodes, outputs, updates };
    StateKinds::of([&plan]).expect("one plan agrees with itself")
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
    let kinds = kinds(ring, n);
    if let Ok(found) = kinds.decode(bytes) {
        assert_eq!(kinds.encode(&found).expect("states of these kinds"), bytes, "states have one form");
        assert!(found.values().all(|share| share.own.len() == n && share.next.len() == n));
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
        let bit = |i: u64| (0..n as u64).map(|j| (i + j) % 2).collect::<Vec<_>>();
        let states = States::from([
            ("a".into(), Share::new(values.clone(), values.iter().rev().copied().collect())),
            ("b".into(), Share::new(bit(0), bit(1))),
        ]);
        let states = kinds(ring, n as usize).encode(&states).expect("states of these kinds");
        seeds.push([head(bits, n), states].concat());
        let mut seed = head(bits, n);
        let next = Arc::new(values.iter().map(|x| ring.wrap(x.wrapping_add(1))).collect());
        Revealed::of(&Share { own: Arc::new(values.into()), next }).encode(ring, &mut seed);
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
            let states = kinds(ring, n).decode(fields.0).is_ok();
            assert!(portion || states || Revealed::decode(ring, n, fields.0).is_ok());
            sharing(&seed);
        }
    }
}
