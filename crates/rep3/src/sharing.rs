//! Values that come from, or go to, somebody outside the three parties (or one of them: nothing is different).
//!
//! An owner draws components 0 and 1 from fresh seeds and computes component 2, so two of three parties get a seed
//! instead of half of what they hold. The two holders of a component compare digests of it before it is used
//! ([`Digests`], [`Party::compare`]): an owner that tells them different things is found out. A receiver gets every
//! component from one holder and a digest of it from the other.

use crate::context::Messages;
use crate::{Party, PartyId, RunError, Security, Share, mutation};
use privet_family::Secret;
use privet_prg::Seed;
use privet_ring::{PackError, Ring, pack, unpack};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// A message of an owner, or to a receiver, that is not what was announced, or copies that differ.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SharingError {
    /// Unknown kind of component.
    #[error(
        "a shared tensor begins with {0}, which is neither a seed nor elements; sender and receiver run different versions"
    )]
    Kind(u8),
    /// Too short, or something follows.
    #[error(
        "a shared tensor takes {expected} bytes, but {found} were given; sender and receiver run different versions"
    )]
    Length {
        /// Bytes that it takes.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// Elements of another number.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The two holders of a component gave different ones.
    #[error(
        "{first} and {second} gave different copies of a component that both hold: one of them does not follow the protocol, and nothing of this result can be trusted"
    )]
    Disagree {
        /// The holder that sent a digest.
        first: PartyId,
        /// The holder that sent elements.
        second: PartyId,
    },
}

/// One component of a shared vector, as it travels.
#[derive(Clone, PartialEq)]
pub enum Component {
    /// To be expanded.
    Seed(Seed),
    /// As it is.
    Elements(Arc<Secret>),
}

impl Component {
    const SEED: u8 = 0;
    const ELEMENTS: u8 = 1;

    fn expand(self, ring: Ring, n: usize) -> Arc<Secret> {
        match self {
            Component::Seed(seed) => Arc::new(seed.stream().elements(ring, n).into()),
            Component::Elements(elements) => elements,
        }
    }

    fn encode(&self, ring: Ring, out: &mut Vec<u8>) {
        match self {
            Component::Seed(seed) => {
                out.push(Self::SEED);
                out.extend_from_slice(seed.expose());
            }
            Component::Elements(elements) => {
                out.push(Self::ELEMENTS);
                pack(ring, elements, out);
            }
        }
    }

    /// From the front of `bytes`.
    fn take(ring: Ring, n: usize, bytes: &mut &[u8]) -> Result<Component, SharingError> {
        let kind = split(bytes, 1)?[0];
        Ok(match kind {
            Self::SEED => {
                let mut seed = [0; Seed::BYTES];
                seed.copy_from_slice(split(bytes, Seed::BYTES)?);
                Component::Seed(Seed::from_bytes(seed))
            }
            Self::ELEMENTS => {
                let body = split(bytes, ring.packed_bytes(n))?;
                Component::Elements(Arc::new(unpack(ring, body, n)?.into()))
            }
            other => return Err(SharingError::Kind(other)),
        })
    }
}

/// The next `len` bytes.
fn split<'a>(bytes: &mut &'a [u8], len: usize) -> Result<&'a [u8], SharingError> {
    let error = SharingError::Length { expected: len, found: bytes.len() };
    let (head, rest) = bytes.split_at_checked(len).ok_or(error)?;
    *bytes = rest;
    Ok(head)
}

/// Append a component as it is.
pub(crate) fn pack_component(ring: Ring, component: &[u64], out: &mut Vec<u8>) {
    pack(ring, component, out);
}

/// The component of `n` elements at the front of `bytes`, which is moved past it.
pub(crate) fn component(ring: Ring, n: usize, bytes: &mut &[u8]) -> Result<Vec<u64>, SharingError> {
    Ok(unpack(ring, split(bytes, ring.packed_bytes(n))?, n)?)
}

/// What an owner sends one party for one vector: both of its components.
#[derive(Clone, PartialEq)]
pub struct Portion {
    /// Component i at party i.
    pub own: Component,
    /// Component i + 1 at party i.
    pub next: Component,
}

impl Portion {
    /// Share `values` of `ring` with fresh randomness: one portion for each party. To any one of them its portion is
    /// uniform whatever the values are.
    pub fn of(ring: Ring, values: &[u64]) -> [Portion; 3] {
        Portion::from_seeds(ring, values, [Seed::random(), Seed::random()])
    }

    /// With given seeds of components 0 and 1, which must serve nothing else.
    pub fn from_seeds(ring: Ring, values: &[u64], seeds: [Seed; 2]) -> [Portion; 3] {
        let [c0, c1] = seeds.each_ref().map(|seed| seed.stream().elements(ring, values.len()));
        let rest = values.iter().zip(c0.iter().zip(&c1));
        let c2 = rest.map(|(x, (a, b))| ring.wrap(x.wrapping_sub(*a).wrapping_sub(*b))).collect();
        let [s0, s1] = seeds.map(Component::Seed);
        let c2 = Component::Elements(Arc::new(c2));
        [
            Portion { own: s0.clone(), next: s1.clone() },
            Portion { own: s1, next: c2.clone() },
            Portion { own: c2, next: s0 },
        ]
    }

    /// The most bytes that a portion of `n` elements takes.
    pub fn max_len(ring: Ring, n: usize) -> usize {
        2 * (1 + ring.packed_bytes(n).max(Seed::BYTES))
    }

    /// Append what travels: for each component its kind, then 16 bytes of seed or the packed elements.
    pub fn encode(&self, ring: Ring, out: &mut Vec<u8>) {
        self.own.encode(ring, out);
        self.next.encode(ring, out);
    }

    /// The portion of `n` elements of `ring` at the front of `bytes`, which is moved past it.
    pub fn take(ring: Ring, n: usize, bytes: &mut &[u8]) -> Result<Portion, SharingError> {
        let own = Component::take(ring, n, bytes)?;
        Ok(Portion { own, next: Component::take(ring, n, bytes)? })
    }

    /// The portion of `n` elements of `ring` that `bytes` hold, and nothing else.
    pub fn decode(ring: Ring, n: usize, mut bytes: &[u8]) -> Result<Portion, SharingError> {
        let found = bytes.len();
        let portion = Portion::take(ring, n, &mut bytes)?;
        match bytes {
            [] => Ok(portion),
            rest => Err(SharingError::Length { expected: found - rest.len(), found }),
        }
    }

    /// The party's share of the `n` elements.
    pub fn expand(self, ring: Ring, n: usize) -> Share {
        Share { own: self.own.expand(ring, n), next: self.next.expand(ring, n) }
    }
}

impl fmt::Debug for Portion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Portion(..)")
    }
}

/// Digests of all that a party was given, component by component: to be compared with the other holders'.
pub struct Digests {
    own: blake3::Hasher,
    next: blake3::Hasher,
}

impl Default for Digests {
    fn default() -> Digests {
        let hasher = || blake3::Hasher::new_derive_key("privet rep3 shared components");
        Digests { own: hasher(), next: hasher() }
    }
}

impl Digests {
    /// Take in what says which vectors follow: public, alike at every party.
    pub fn bind(&mut self, context: &[u8]) {
        for hasher in [&mut self.own, &mut self.next] {
            absorb(hasher, &(context.len() as u64).to_le_bytes());
            absorb(hasher, context);
        }
    }

    /// The digests: of what the party before holds too, and of what the party after does.
    pub fn finish(&self) -> [[u8; blake3::OUT_LEN]; 2] {
        [&self.own, &self.next].map(|hasher| *hasher.finalize().as_bytes())
    }

    /// Take in a vector, in the same order at every party; `name` is public.
    pub fn add(&mut self, name: &str, ring: Ring, share: &Share) {
        for (hasher, component) in [(&mut self.own, &share.own), (&mut self.next, &share.next)] {
            let head = [name.len() as u64, ring.bits().into(), component.len() as u64];
            head.iter().for_each(|word| absorb(hasher, &word.to_le_bytes()));
            absorb(hasher, name.as_bytes());
            absorb_elements(hasher, component);
        }
    }
}

fn absorb(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(bytes);
}

/// In pieces that are large to the hash, which takes 16 of its chunks of 1 KiB at once where it can.
fn absorb_elements(hasher: &mut blake3::Hasher, elements: &[u64]) {
    const PIECE: usize = 16 * 1024;
    let mut bytes = vec![0; 8 * elements.len().min(PIECE)];
    for chunk in elements.chunks(PIECE) {
        for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(chunk) {
            *to = word.to_le_bytes();
        }
        hasher.update(&bytes[..8 * chunk.len()]);
    }
}

impl Party<'_> {
    /// Compare what this party was given with what its neighbours were: 33 bytes to each, one round. An error names
    /// the neighbour whose copy differs; before it is known that all are alike, nothing may be computed from them.
    ///
    /// The first byte says what the sender takes the others for: one that trusts them would accept what nobody proved to it.
    pub fn compare(&mut self, what: &str, digests: Digests) -> Result<(), RunError> {
        let (own, next) = (digests.own.finalize(), digests.next.finalize());
        let (mode, word) = match self.transcript {
            Some(_) => (Security::Malicious, 1),
            None => (Security::SemiHonest, 0),
        };
        let message = |digest: blake3::Hash| [&[word][..], digest.as_bytes()].concat();
        let out = Messages { prev: message(own), next: message(next) };
        let len = 1 + blake3::OUT_LEN;
        let mut got = self.talk(what, out, (len, len))?;
        for (theirs, peer) in [(&mut got.prev, self.id.prev()), (&mut got.next, self.id.next())] {
            if theirs.remove(0) != word && !mutation::active("modes-not-compared") {
                return Err(RunError::Mode { step: self.step_name(what), peer, mode });
            }
        }
        for (mine, theirs, peer) in [(own, got.prev, self.id.prev()), (next, got.next, self.id.next())] {
            if mine.as_bytes()[..] != theirs[..] && !mutation::active("copies-not-compared") {
                let step = self.step_name(what);
                return Err(RunError::Inconsistent { step, peer: peer.to_string() });
            }
        }
        Ok(())
    }
}

/// What a party sends the receiver of an output: component i, and a digest of component i + 1, by which the receiver
/// checks the next party.
#[derive(Clone, PartialEq, Eq)]
pub struct Revealed {
    own: Arc<Secret>,
    next: [u8; blake3::OUT_LEN],
}

impl Revealed {
    /// Of a share.
    pub fn of(share: &Share) -> Revealed {
        Revealed { own: share.own.clone(), next: component_digest(&share.next) }
    }

    /// Bytes of `n` elements.
    pub fn len(ring: Ring, n: usize) -> usize {
        blake3::OUT_LEN + ring.packed_bytes(n)
    }

    /// Append what travels: the digest, then the packed component.
    pub fn encode(&self, ring: Ring, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.next);
        pack(ring, &self.own, out);
    }

    /// From exactly [`Revealed::len`] bytes.
    pub fn decode(ring: Ring, n: usize, bytes: &[u8]) -> Result<Revealed, SharingError> {
        let error = SharingError::Length { expected: Revealed::len(ring, n), found: bytes.len() };
        let (digest, body) = bytes.split_first_chunk().ok_or(error)?;
        Ok(Revealed { own: Arc::new(unpack(ring, body, n)?.into()), next: *digest })
    }

    /// The value, from all three parties in order. An error names two parties of which one changed a component.
    pub fn combine(ring: Ring, from: [Revealed; 3]) -> Result<Vec<u64>, SharingError> {
        for first in PartyId::ALL {
            let second = first.next();
            let same = from[first.index()].next == component_digest(&from[second.index()].own);
            if !same && !mutation::active("revealed-not-compared") {
                return Err(SharingError::Disagree { first, second });
            }
        }
        let [a, b, c] = from.each_ref().map(|part| part.own.iter());
        let sum = |(a, (b, c)): (&u64, (&u64, &u64))| ring.wrap(a.wrapping_add(*b).wrapping_add(*c));
        Ok(a.zip(b.zip(c)).map(sum).collect())
    }
}

impl fmt::Debug for Revealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Revealed(..)")
    }
}

fn component_digest(elements: &[u64]) -> [u8; blake3::OUT_LEN] {
    let mut hasher = blake3::Hasher::new_derive_key("privet rep3 revealed component");
    absorb(&mut hasher, &(elements.len() as u64).to_le_bytes());
    absorb_elements(&mut hasher, elements);
    *hasher.finalize().as_bytes()
}
