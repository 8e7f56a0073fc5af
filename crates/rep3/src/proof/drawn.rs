//! What is drawn for a verification: coefficients' seeds and challenges, of each proof and of all three in common.

use super::batch::Role;
use super::extension::Extension;
use super::galois::Gr;
use crate::price::proofs::Shapes;
use privet_kernels::fold::RING_BITS;
use privet_prg::{Domain, Prg, Seed};
use privet_ring::Ring;

/// A seed that both verifiers of a prover draw alike: what the one before it tells it, and what the one after does.
pub(in crate::proof) struct Halves([Seed; 2]);

impl Halves {
    pub fn draw(shared: &mut Prg) -> Halves {
        Halves([(); 2].map(|()| shared.seed()))
    }

    pub fn seed(&self) -> Seed {
        sum(self.0.each_ref())
    }

    /// What the verifier with this role tells the prover.
    pub fn told(&self, role: Role) -> &[u8] {
        match role {
            Role::Before => self.0[0].expose(),
            Role::After => self.0[1].expose(),
            Role::Prover => unreachable!("a prover is told"),
        }
    }
}

/// What both verifiers of a proof draw alike.
pub(super) struct Drawn {
    /// Of the verifier that has this.
    role: Role,
    pub shapes: Shapes,
    /// Of the coefficients' seed.
    halves: Halves,
    /// Of seeds that were told before this verification began, in their order ([`super::ahead`]).
    ahead: Vec<Halves>,
    /// Per fold; all are units, so that the masks at the end are multiplied by units.
    pub challenges: Vec<Vec<u64>>,
}

impl Drawn {
    pub fn new(role: Role, shapes: Shapes, ahead: Vec<Halves>, mut shared: Prg) -> Drawn {
        let halves = Halves::draw(&mut shared);
        let mut unit = || loop {
            let r = shared.elements(Ring::R64, 1)[0];
            if is_unit(r) {
                break r;
            }
        };
        let challenges =
            (0..shapes.folds()).map(|k| (0..shapes.challenges(k)).map(|_| unit()).collect()).collect();
        Drawn { role, shapes, halves, ahead, challenges }
    }

    /// The seed of the coefficients.
    pub fn seed(&self) -> Seed {
        self.halves.seed()
    }

    /// What the verifier with this role tells the prover before its values of fold `k`: half a seed before the first, and before the others
    /// the challenges of the fold before, which the party after the prover alone tells it.
    fn told(&self, role: Role, k: usize) -> Vec<u8> {
        match (role, k) {
            (_, 0) => self.halves.told(role).to_vec(),
            (Role::After, _) if k < self.shapes.folds() => challenge_bytes(&self.challenges[k - 1]),
            _ => vec![],
        }
    }

    /// What this verifier tells the prover before its values of fold `k`.
    pub fn tells(&self, k: usize) -> Vec<u8> {
        self.told(self.role, k)
    }

    /// What the other verifier does, and before the first values what it told ahead.
    pub fn other_tells(&self, k: usize) -> Vec<u8> {
        let other = if self.role == Role::Before { Role::After } else { Role::Before };
        let mut told = self.told(other, k);
        self.ahead.iter().filter(|_| k == 0).for_each(|halves| told.extend_from_slice(halves.told(other)));
        told
    }
}

/// Whether it is not 0 in either Galois ring. Then it is not 0 in GF(2^64), and a unit in all three.
fn is_unit(r: u64) -> bool {
    RING_BITS.iter().all(|of_ring| r & of_ring != 0)
}

/// The point of a fold that all three proofs have in common, from the challenges of each in any order: uniform to a prover that lacks its
/// own, whatever the others are. In either ring none of them is 0, and as good as never their sum; a 1 takes its place there.
pub(super) fn common_point(challenges: [&[u64]; 3], vars: u32) -> Vec<u64> {
    let sum = |i: usize| challenges.iter().fold(0, |sum, r| sum ^ r[i]);
    let unit = |r: u64| {
        RING_BITS
            .iter()
            .fold(r, |unit, of_ring| if r & of_ring == 0 { unit | of_ring & Gr::ONE } else { unit })
    };
    (0..vars as usize).map(|i| unit(sum(i))).collect()
}

/// The seed of the coefficients that all three proofs share, from all provers' seeds in any order. Uniform to a party that
/// lacks one of them, whatever the others are: its own, until both its verifiers have told it their halves.
pub(super) fn common_coefficients(seeds: [&Seed; 3]) -> Seed {
    // keys of their own: each seed's stream is its proof's alone
    sum(seeds.map(|seed| seed.derive(Domain::Common, 0)).each_ref())
}

/// A seed that is uniform to who lacks one of these.
pub(super) fn sum<const N: usize>(seeds: [&Seed; N]) -> Seed {
    Seed::from_bytes(std::array::from_fn(|i| seeds.iter().fold(0, |sum, seed| sum ^ seed.expose()[i])))
}

fn challenge_bytes(challenges: &[u64]) -> Vec<u8> {
    challenges.iter().flat_map(|r| r.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else a prover would know the point of a fold before its values are in.
    #[test]
    fn common_points_need_all_challenges() {
        let [a, b, c]: [&[u64]; 3] = [&[1, 2, 3, 4], &[5, 6, 7, 8], &[9, 10, 11, 12]];
        let found = common_point([a, b, c], 4);
        assert!([[b, c, a], [c, a, b], [b, a, c]].into_iter().all(|all| common_point(all, 4) == found));
        assert_eq!(common_point([a, b, c], 2), found[..2], "of fewer variables");
        let other: &[u64] = &[13, 14, 15, 16];
        for changed in [[other, b, c], [a, other, c], [a, b, other]] {
            assert!(common_point(changed, 4).iter().zip(&found).all(|(other, r)| other != r));
        }
        // in neither ring 0, which would take the masks away
        for (sum, point) in [(0, 0b11), (0b100, 0b110), (0b1000, 0b1001), (0b1100, 0b1100)] {
            assert_eq!(common_point([&[1 ^ sum], &[2], &[3]], 1), [point], "{sum:b}");
            assert_eq!(is_unit(sum), sum == point, "{sum:b}");
        }
    }

    /// Else a prover would know its coefficients when one of its verifiers has all its messages, and the other has not.
    #[test]
    fn a_seed_needs_both_halves() {
        let shapes = Shapes::of(&Default::default())[0].clone();
        let [drawn, other] = [1, 2]
            .map(|i| Drawn::new(Role::Before, shapes.clone(), vec![], Seed::from_bytes([i; 16]).stream()));
        let of = |first: &Drawn, second: &Drawn| {
            Halves([first.halves.0[0].clone(), second.halves.0[1].clone()]).seed()
        };
        assert_ne!(drawn.halves.0[0], drawn.halves.0[1]);
        let seeds = [of(&drawn, &drawn), of(&other, &drawn), of(&drawn, &other)];
        assert_eq!(seeds[0], drawn.seed());
        assert!(!seeds[1..].contains(&seeds[0]));
        assert!(drawn.halves.0.iter().all(|half| *half != seeds[0]), "half is not all of it");
    }

    /// Else a prover would know its own coefficients before its messages are in.
    #[test]
    fn common_coefficients_need_all_seeds() {
        let seeds = [1, 2, 3].map(|i| Seed::from_bytes([i; 16]));
        let [a, b, c] = seeds.each_ref();
        let found = common_coefficients([a, b, c]);
        // every party has them in an order of its own
        assert!([[b, c, a], [c, a, b], [b, a, c]].iter().all(|seeds| common_coefficients(*seeds) == found));
        let other = Seed::from_bytes([4; 16]);
        for changed in [[&other, b, c], [a, &other, c], [a, b, &other]] {
            assert_ne!(common_coefficients(changed), found);
        }
    }
}
