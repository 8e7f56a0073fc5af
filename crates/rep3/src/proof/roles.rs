//! What a party does in each of the three proofs, in both algebras at once.

use super::batch::{Batches, Role, Weights};
use super::extension::Extension;
use super::field::Gf;
use super::fold::{Masks, Point, Prover, Verifier};
use super::galois::Gr;
use super::products::Combined;
use super::words::FoldedWords;
use crate::price::proofs::{OF_BITS, Shapes};
use crate::{Party, mutation};
use privet_kernels::fold::RING_BITS;
use privet_prg::{Domain, Prg, Seed};
use privet_ring::Ring;

/// What both verifiers of a proof draw alike.
pub(super) struct Drawn {
    /// Of the verifier that has this.
    role: Role,
    pub shapes: Shapes,
    /// Of the coefficients' seed: what the verifier before the prover tells it, and what the one after does.
    halves: [Seed; 2],
    /// Per fold; all are units, so that the masks at the end are multiplied by units.
    pub challenges: Vec<Vec<u64>>,
}

impl Drawn {
    pub fn new(role: Role, shapes: Shapes, mut shared: Prg) -> Drawn {
        let halves = [(); 2].map(|()| shared.seed());
        let mut unit = || loop {
            let r = shared.elements(Ring::R64, 1)[0];
            if is_unit(r) {
                break r;
            }
        };
        let challenges =
            (0..shapes.folds()).map(|k| (0..shapes.challenges(k)).map(|_| unit()).collect()).collect();
        Drawn { role, shapes, halves, challenges }
    }

    /// The seed of the coefficients.
    pub fn seed(&self) -> Seed {
        sum(self.halves.each_ref())
    }

    /// What the verifier with this role tells the prover before its values of fold `k`: half a seed before the first, and before the others
    /// the challenges of the fold before, which the party after the prover alone tells it.
    fn told(&self, role: Role, k: usize) -> Vec<u8> {
        match (role, k) {
            (Role::Before, 0) => self.halves[0].expose().to_vec(),
            (Role::After, 0) => self.halves[1].expose().to_vec(),
            (Role::After, _) if k < self.shapes.folds() => challenge_bytes(&self.challenges[k - 1]),
            _ => vec![],
        }
    }

    /// What this verifier tells the prover before its values of fold `k`.
    pub fn tells(&self, k: usize) -> Vec<u8> {
        self.told(self.role, k)
    }

    /// What the other verifier does.
    pub fn other_tells(&self, k: usize) -> Vec<u8> {
        self.told(if self.role == Role::Before { Role::After } else { Role::Before }, k)
    }
}

/// A verifier of one proof, of both algebras.
pub(super) struct Check {
    pub drawn: Drawn,
    masks: Masks,
    bits: Verifier<Gf>,
    ring: Verifier<Gr>,
}

impl Check {
    pub fn new(party: &Party, drawn: Drawn, batches: Batches, masks: Masks) -> Check {
        let (bits, ring) = Weights::expand(&drawn.seed(), &batches);
        let Shapes { bits: of_bits, ring: of_ring } = drawn.shapes.clone();
        let bits = Verifier::new(party.device, drawn.role, batches.bits, of_bits, bits);
        let ring = Verifier::new(party.device, drawn.role, batches.ring, of_ring, ring);
        Check { drawn, masks, bits, ring }
    }

    /// Go on with the statements about bits, at this point if all three proofs have one in common.
    pub fn fold_bits(
        &mut self,
        party: &Party,
        k: usize,
        message: &[u8],
        common: Common<Gf>,
        products: &Combined,
    ) {
        if let Some(own) = self.drawn.challenges.get(k) {
            self.bits.fold(party.device, k, &mut self.masks, message, common.or(own), products);
        }
    }

    /// Go on with those about rings.
    pub fn fold_ring(
        &mut self,
        party: &Party,
        k: usize,
        message: &[u8],
        common: Common<Gr>,
        products: &Combined,
    ) {
        if let Some(own) = self.drawn.challenges.get(k) {
            self.ring.fold(party.device, k, &mut self.masks, message, common.or(own), products);
        }
    }

    /// What the other verifier needs at the end.
    pub fn finish(&self) -> Vec<u8> {
        let mut out = vec![];
        self.bits.finish(&mut out);
        self.ring.finish(&mut out);
        out
    }

    /// Whether both proofs hold, by what the other verifier sent.
    pub fn accepts(&self, party: &Party, bytes: &[u8]) -> bool {
        let (bits, ring) = bytes.split_at(self.drawn.shapes.bits.final_bytes());
        // both, whatever the first says
        let of_ring = self.ring.check(party.device, ring) | mutation::active("bits-alone-checked");
        (self.bits.check(party.device, bits) & of_ring) | mutation::active("last-values-not-checked")
    }
}

/// The prover of one proof.
pub(super) struct Proof {
    pub shapes: Shapes,
    masks: Masks,
    bits: Prover<Gf>,
    ring: Prover<Gr>,
}

impl Proof {
    pub fn new((batches, shapes): (Batches, Shapes), seed: &Seed, masks: Masks) -> Proof {
        let (bits, ring) = Weights::expand(seed, &batches);
        let bits = Prover::new(batches.bits, shapes.bits.clone(), bits);
        let ring = Prover::new(batches.ring, shapes.ring.clone(), ring);
        Proof { shapes, masks, bits, ring }
    }

    /// Its values of fold `k`.
    pub fn message(
        &mut self,
        party: &Party,
        k: usize,
        products: &Combined,
        words: Option<&mut FoldedWords>,
    ) -> Vec<u8> {
        let mut out = vec![];
        self.bits.message(party.device, k, &mut self.masks, products, None, &mut out);
        self.ring.message(party.device, k, &mut self.masks, products, words, &mut out);
        out
    }

    /// Go on at the challenges of fold `k`, or where all three proofs do.
    pub fn fold(
        &mut self,
        party: &Party,
        k: usize,
        r: &[u64],
        (bits, ring): (Common<Gf>, Common<Gr>),
        products: &Combined,
    ) {
        self.bits.fold(party.device, k, bits.or(r), products);
        self.ring.fold(party.device, k, ring.or(r), products);
    }
}

/// What one party does in a verification.
pub(super) struct Verification {
    /// Of its own messages.
    pub proof: Proof,
    /// Of the messages of the party after, in whose proof it is B.
    pub of_next: Check,
    /// Of the messages of the party before, in whose proof it is A.
    pub of_prev: Check,
    /// What it knows of all products, for all three proofs.
    pub products: Combined,
    /// What is made of words of ring elements at points that all three proofs have in common.
    pub words: FoldedWords,
}

impl Verification {
    /// Variables of fold `k` of words of bits, where all three proofs have one: it is at a point that they have in common.
    pub fn common_bits(&self, k: usize) -> Option<u32> {
        let shapes = [&self.proof.shapes, &self.of_next.drawn.shapes, &self.of_prev.drawn.shapes];
        let vars = OF_BITS.get(k).copied()?;
        shapes.iter().all(|shapes| shapes.bits.of_words() > k).then_some(vars)
    }

    /// The same of words of ring elements.
    pub fn common_words(&self, k: usize) -> Option<u32> {
        let shapes = [&self.of_next.drawn.shapes, &self.of_prev.drawn.shapes];
        let own = &self.proof.shapes.ring;
        let alike = |shapes: &&Shapes| shapes.ring.of_words() > k && shapes.ring.vars(k) == own.vars(k);
        (own.of_words() > k && shapes.iter().all(alike)).then(|| own.vars(k))
    }
}

/// What the three proofs have in common in a fold, of one algebra.
pub(super) struct Common<'a, E: Extension> {
    /// Its point; else each proof goes on at its own challenges.
    point: Option<&'a [u64]>,
    /// Columns that are folded at this point by now.
    folded: Option<&'a mut E::Folded>,
}

impl<'a, E: Extension> Common<'a, E> {
    /// At this point, with what is folded there; nothing in common where there is none.
    pub fn at(point: Option<&'a [u64]>, folded: &'a mut E::Folded) -> Common<'a, E> {
        Common { point, folded: point.map(|_| folded) }
    }

    /// Where a proof goes on that has this challenge.
    pub fn or(self, own: &'a [u64]) -> Point<'a, E> {
        Point { r: self.point.unwrap_or(own), folded: self.folded }
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
        let [drawn, other] =
            [1, 2].map(|i| Drawn::new(Role::Before, shapes.clone(), Seed::from_bytes([i; 16]).stream()));
        let of = |first: &Drawn, second: &Drawn| {
            let halves = [first.halves[0].clone(), second.halves[1].clone()];
            Drawn { role: Role::After, shapes: shapes.clone(), halves, challenges: vec![] }.seed()
        };
        assert_ne!(drawn.halves[0], drawn.halves[1]);
        let seeds = [of(&drawn, &drawn), of(&other, &drawn), of(&drawn, &other)];
        assert_eq!(seeds[0], drawn.seed());
        assert!(!seeds[1..].contains(&seeds[0]));
        assert!(drawn.halves.iter().all(|half| *half != seeds[0]), "half is not all of it");
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
