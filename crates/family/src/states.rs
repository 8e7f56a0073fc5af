use crate::Secret;
use privet_prg::Seed;
use privet_ring::Ring;
use std::collections::BTreeMap;

/// The share of a state's first value that belongs to the party that is given `seed`: uniform elements, expanded from a
/// seed that is fresh for this state and used for nothing else.
pub fn expand_state(seed: &Seed, ring: Ring, n: usize) -> Vec<u64> {
    seed.stream().elements(ring, n)
}

/// What is left of `value` (elements of `ring`) once a party was given `seed`: `value` minus [`expand_state`]. The owner of a
/// state sends a seed to every party but the last, and to that one what they leave; all but any one of these are uniform.
pub fn share_state(value: &[u64], ring: Ring, seed: &Seed) -> Vec<u64> {
    let mut share = expand_state(seed, ring, value.len());
    for (s, v) in share.iter_mut().zip(value) {
        *s = ring.wrap(v.wrapping_sub(*s));
    }
    share
}

/// One party's additive shares of states by name, in the rings of their nodes; zeroed when dropped.
#[derive(Clone, Default)]
pub struct States(BTreeMap<String, Secret>);

impl States {
    /// None.
    pub fn new() -> States {
        States::default()
    }

    /// Put in the share of a state; one of the same name is replaced.
    pub fn insert(&mut self, name: impl Into<String>, share: Vec<u64>) {
        self.0.insert(name.into(), Secret::new(share));
    }

    /// The share of a state.
    pub fn get(&self, name: &str) -> Option<&[u64]> {
        self.0.get(name).map(|share| share.as_slice())
    }

    /// Names and shares, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u64])> {
        self.0.iter().map(|(name, share)| (name.as_str(), share.as_slice()))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Take over what a run made of some of them: all of `updates` replace those of their names.
    pub fn replace(&mut self, mut updates: States) {
        self.0.append(&mut updates.0);
    }
}

impl std::fmt::Debug for States {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_state_add_up() {
        let ring = Ring::new(40);
        let value: Vec<u64> = [0, 1, 1 << 39, ring.mask(), 77].to_vec();
        let seeds = [9, 10].map(|byte| Seed::from_bytes([byte; 16]));
        let last = seeds.iter().fold(value.clone(), |left, seed| share_state(&left, ring, seed));
        let [a, b] = seeds.map(|seed| expand_state(&seed, ring, value.len()));
        let sum: Vec<u64> = (0..value.len()).map(|i| ring.wrap(a[i] + b[i] + last[i])).collect();
        assert_eq!(sum, value);
        assert!(last.iter().all(|&b| b == ring.wrap(b)));
    }

    #[test]
    fn states_are_replaced_by_name_and_not_printed() {
        let mut states = States::new();
        states.insert("w", vec![123_456_789]);
        states.insert("v", vec![2]);
        assert_eq!(format!("{states:?}"), r#"{"v", "w"}"#);
        let mut updates = States::new();
        updates.insert("w", vec![5]);
        states.replace(updates);
        assert_eq!(
            (states.get("w"), states.get("v"), states.get("u")),
            (Some(&[5][..]), Some(&[2][..]), None)
        );
        assert_eq!(states.len(), 2);
    }
}
