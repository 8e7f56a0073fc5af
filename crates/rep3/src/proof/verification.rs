//! What a party computes in a verification, in both algebras: side by side where it has threads for both.

use super::batch::{Batches, Weights};
use super::drawn::{Drawn, common_coefficients};
use super::extension::Nothing;
use super::field::Gf;
use super::fold::Masks;
use super::galois::Gr;
use super::products::{Combined, CommonFolds, ProductClaim};
use super::roles::{Roles, Stated};
use super::spent::Wiping;
use super::tags::{Difference, Tagged};
use crate::mutation;
use crate::price::proofs::Shapes;
use privet_kernels::{Device, in_two};
use privet_prg::{Prg, Seed};

/// All three proofs, as a party has them.
pub(super) struct Verification {
    /// What this party draws for the proofs that it checks: of the party after, and of the party before.
    pub drawn: [Drawn; 2],
    /// Of the own proof.
    pub shapes: Shapes,
    /// Of the longest proof.
    folds: usize,
    bits: Roles<Gf>,
    ring: Roles<Gr>,
    /// Of layers with tags, if there are some.
    pub difference: Option<Difference>,
    /// Whether what the party after opened of it says that it is 0.
    pub is_zero: bool,
    /// What it was made of.
    wiping: Wiping,
}

/// What a proof is of: the statements, and the shape that it has.
pub(super) type Proved = (Batches, Shapes);

/// What is stated about matrix products and convolutions.
pub(super) struct OfProducts {
    /// What is proved.
    pub proved: Vec<ProductClaim>,
    pub in_common: CommonFolds,
    /// Results of layers with tags, and what masks their difference; nothing where there are none.
    pub tagged: Option<(Vec<Tagged>, [Prg; 2])>,
}

impl Verification {
    /// With the seed that the verifiers of the own proof told, `masks` of both algebras, and the statements of all three proofs in the order
    /// of [`Roles`]. Gives the own proof's first values as well.
    pub fn new(
        device: &dyn Device,
        seed: &Seed,
        drawn: [Drawn; 2],
        proved: [Proved; 3],
        [of_bits, of_ring]: [[Masks; 3]; 2],
        OfProducts { proved: products, in_common, tagged }: OfProducts,
    ) -> (Verification, Vec<u8>) {
        let shapes = proved[0].1.clone();
        let folds = proved.iter().map(|(_, shapes)| shapes.folds()).max().unwrap_or(0);
        let [next, prev] = drawn.each_ref().map(Drawn::seed);
        let coefficients = common_coefficients([seed, &next, &prev]);
        let stated = |(batches, shapes): Proved, seed: &Seed| {
            let (of_bits, of_ring) = Weights::expand(seed, &batches);
            let bits = Stated { statements: batches.bits, shape: shapes.bits, weights: of_bits };
            (bits, Stated { statements: batches.ring, shape: shapes.ring, weights: of_ring })
        };
        let [own, of_next, of_prev] = proved;
        let (own, of_next, of_prev) = (stated(own, seed), stated(of_next, &next), stated(of_prev, &prev));
        let (bits, ring) = ([own.0, of_next.0, of_prev.0], [own.1, of_next.1, of_prev.1]);
        let ((bits, mut values), (ring, of_ring, difference)) = in_two(
            device.threads() > 1 && bits[0].statements.words() >= MANY,
            || {
                let mut bits = Roles::new(device, bits, of_bits, Nothing);
                let values = bits.values(device, 0);
                (bits, values)
            },
            || {
                let joining = Combined::new(device, products, in_common, &coefficients);
                let mut ring = Roles::new(device, ring, of_ring, joining);
                let values = ring.values(device, 0);
                let difference =
                    tagged.map(|(results, masks)| Difference::of(device, results, &coefficients, masks));
                (ring, values, difference)
            },
        );
        values.extend(of_ring);
        let (difference, wiping) = match difference {
            Some((difference, claims)) => (Some(difference), Wiping::of_tagged(claims)),
            None => (None, Wiping::default()),
        };
        (Verification { drawn, shapes, folds, bits, ring, difference, is_zero: true, wiping }, values)
    }

    /// Bytes of the difference in the messages after the values of fold `k`, and in those that follow.
    pub fn difference_bytes(&self, k: usize) -> usize {
        if k == 0 && self.difference.is_some() { Difference::BYTES } else { 0 }
    }

    /// Folds of all three proofs: as many as the longest one has.
    pub fn folds(&self) -> usize {
        self.folds
    }

    /// The last fold; the first one where there is none, and nothing but a difference of tags is compared.
    pub fn last_fold(&self) -> usize {
        self.folds.saturating_sub(1)
    }

    /// Go on after fold `k`, with the values of the party before and the challenges of the own proof. Gives the own proof's next values.
    pub fn go_on(&mut self, device: &dyn Device, k: usize, values: &[u8], own: &[u64]) -> Vec<u8> {
        let Verification { drawn: [next, prev], bits, ring, .. } = self;
        let (of_bits, of_ring) = values.split_at(prev.shapes.bits.message_bytes(k));
        let [next, prev] = [next, prev].map(|drawn| drawn.challenges.get(k).map_or(&[][..], Vec::as_slice));
        let challenges = [own, next, prev];
        let (mut values, of_ring) = in_two(
            device.threads() > 1 && bits.words(k) >= MANY,
            || {
                bits.go_on(device, k, of_bits, challenges);
                bits.values(device, k + 1)
            },
            || {
                ring.go_on(device, k, of_ring, challenges);
                ring.values(device, k + 1)
            },
        );
        values.extend(of_ring);
        values
    }

    /// What is left of a verification of which all has been said.
    pub fn into_wiping(self) -> Wiping {
        let mut wiping = self.wiping;
        wiping.add(self.bits.wiping);
        wiping.add(self.ring.wiping);
        wiping
    }

    /// What the other verifiers need at the end: of the proof of the party after, and of that of the party before.
    pub fn finish(&self) -> [Vec<u8>; 2] {
        let [mut next, mut prev] = self.bits.finish();
        let [of_next, of_prev] = self.ring.finish();
        next.extend(of_next);
        prev.extend(of_prev);
        [next, prev]
    }

    /// Whether the proofs of the party after hold, and those of the party before, by what the other verifiers sent.
    pub fn accepts(&self, device: &dyn Device, [of_next, of_prev]: [&[u8]; 2]) -> [bool; 2] {
        let [next, prev] = self.drawn.each_ref().map(|drawn| drawn.shapes.bits.final_bytes());
        let ((next_bits, next_ring), (prev_bits, prev_ring)) =
            (of_next.split_at(next), of_prev.split_at(prev));
        // both, whatever the first says
        let of_bits = self.bits.accepts(device, [next_bits, prev_bits]);
        let of_ring = self.ring.accepts(device, [next_ring, prev_ring]);
        let any = mutation::active("last-values-not-checked");
        std::array::from_fn(|i| (of_bits[i] & (of_ring[i] | mutation::active("bits-alone-checked"))) | any)
    }
}

/// Words of factors from which on a second thread saves more time than it takes to wake it.
const MANY: usize = 1 << 15;
