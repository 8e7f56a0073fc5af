//! What layers of a run share: the client's keys, and the encryptions of 0 under them.
//!
//! A key hides an operand under public rows that are a layer's own, so it may serve every layer once. The encryptions of 0 under it
//! are under rows that layers with the same parameters have in common: the first layer that needs a key's sends them, and later ones find
//! them at the server. Both sides know without a message which are there.

use super::layer::{HintId, TorusLayer};
use super::params::TorusParameters;
use crate::context::{Context, Points};
use crate::mutation;
use crate::sample;
use privet_prg::{Domain, Prg, Seed};

/// Layers that share keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    id: HintId,
    degree: usize,
    rank: usize,
    modulus_bits: u32,
    kept_bits: u32,
}

impl TorusParameters {
    /// Whether layers with either parameters share keys, where they share a set of hints.
    pub fn shares_keys(&self, other: &TorusParameters) -> bool {
        let id = HintId::from_bytes([0; 16]);
        Kind::of(id, self) == Kind::of(id, other)
    }
}

impl Kind {
    pub fn of(id: HintId, p: &TorusParameters) -> Kind {
        let (modulus_bits, kept_bits) = (p.modulus_bits(), p.kept_bits());
        Kind { id, degree: p.degree(), rank: p.rank(), modulus_bits, kept_bits }
    }

    /// What the public rows follow from that encryptions of 0 are hidden under.
    pub fn rows(&self) -> Seed {
        // no layer has this number
        Seed::from_bytes(self.id.to_bytes())
            .derive(Domain::Public, u64::MAX)
            .derive(Domain::Public, self.number())
    }

    /// A number that no other kind with the same hints has.
    fn number(&self) -> u64 {
        let parts = [self.degree as u64, self.rank as u64, self.modulus_bits.into(), self.kept_bits.into()];
        parts.iter().fold(0, |number, part| number << 16 | part)
    }
}

/// The client's keys of one run, and its coins: fresh, and gone when the run's masks are made.
///
/// SECURITY: a key meets a layer once. With another tile, or another run, of the same layer it would meet the same public rows again, and
/// the difference of both messages would be that of the operands, but for errors. [`super::ClientHint::prepare`] refuses it.
pub struct Keys {
    pub(crate) prg: Prg,
    seed: Seed,
    /// Keys of which encryptions of 0 were sent.
    sent: Vec<(Kind, usize)>,
    /// Layers that they have met.
    met: Vec<(HintId, u64)>,
}

impl Keys {
    /// `prg` is the client's own, and of this run alone.
    pub fn new(mut prg: Prg) -> Keys {
        let seed = prg.seed();
        Keys { prg, seed, sent: Vec::new(), met: Vec::new() }
    }

    /// Panics where they met the layer before.
    pub(crate) fn meet(&mut self, layer: (HintId, u64)) {
        assert!(!self.met.contains(&layer), "keys meet a layer once");
        self.met.push(layer);
    }

    /// Key `number` of a kind: a vector of ternary polynomials.
    pub(crate) fn key(&self, kind: &Kind, number: usize, context: &Context) -> Vec<Points> {
        let number = if mutation::active("torus-keys-repeat") { 0 } else { number };
        let seed = self.seed.derive(Domain::Mask, kind.number()).derive(Domain::Mask, number as u64);
        let mut prg = seed.stream();
        let poly = |_| context.points(context.small(&sample::ternary(&mut prg, kind.degree)));
        (0..kind.rank).map(poly).collect()
    }

    /// How many keys of a kind have their encryptions of 0 at the server, and will have so many.
    pub(crate) fn send(&mut self, kind: Kind, keys: usize) -> usize {
        match self.sent.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, sent)) => std::mem::replace(sent, keys.max(*sent)),
            None => {
                self.sent.push((kind, keys));
                0
            }
        }
    }
}

/// The same at the server: encryptions of 0 that came for one run, of each key as it came.
#[derive(Default)]
pub struct Zeros {
    came: Vec<(Kind, Vec<Vec<u8>>)>,
}

impl Zeros {
    /// Those of a kind.
    pub(crate) fn of(&self, kind: &Kind) -> &[Vec<u8>] {
        self.came.iter().find(|(known, _)| known == kind).map_or(&[], |(_, came)| came)
    }

    /// More of a kind.
    pub(crate) fn add(&mut self, kind: Kind, more: impl Iterator<Item = Vec<u8>>) {
        match self.came.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, came)) => came.extend(more),
            None => self.came.push((kind, more.collect())),
        }
    }

    /// Bytes of a preparation of this layer.
    pub fn prepare_bytes(&self, layer: &TorusLayer) -> usize {
        layer.prepare_bytes_after(self.of(&layer.shape.kind).len())
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(..)")
    }
}

impl std::fmt::Debug for Zeros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Zeros(..)")
    }
}
