//! Products of many words element by element: residues modulo primes, encrypted as polynomials' values (`privet_he::Slots`).
//!
//! Everything goes as in `linear`, with a hint that serves once. Integers are shared modulo the product of the primes, so that
//! each party reduces its share by itself.
//!
//! SECURITY: docs/semi2k-preprocessing.md, "Products by homomorphic encryption".

use super::encryption::{Encryption, Part, add, open, opener};
use super::peers::Peers;
use crate::PrepareError;
use privet_he::layout::{Cost, Layout};
use privet_he::{Encrypted, Factor, Keys, Message, Operand, Residues, SETS, SPARE, Set, Slots, Zero};
use privet_prg::Wiped;
use privet_ring::Ring;
use std::sync::Arc;

/// Products that are worked on together.
const CHUNK: usize = 1 << 16;

/// What residues are encrypted with: 38 bits and their noise fit.
fn set() -> &'static Set {
    &SETS[1]
}

/// One prime's product: what this party keeps until the shares are opened.
struct Prime {
    factor: Factor,
    keys: Keys,
    zeros: Option<Message<Zero>>,
    operands: Vec<Option<Message<Operand>>>,
}

impl Encryption {
    /// This party's share of x y in `ring`, from its shares of either: two steps for each 2^16 elements.
    pub(super) fn multiply(
        &mut self,
        peers: &mut Peers<'_>,
        ring: Ring,
        x: &[u64],
        y: &[u64],
    ) -> Result<Wiped<u64>, PrepareError> {
        let slots = self.slots(set(), ring, peers.parties())?;
        let mut out = Wiped::with_room(x.len());
        for (x, y) in x.chunks(CHUNK).zip(y.chunks(CHUNK)) {
            out.extend_from_slice(&self.chunk(peers, &slots, x, y)?);
        }
        Ok(out)
    }

    fn chunk(
        &mut self,
        peers: &mut Peers<'_>,
        slots: &Slots,
        x: &[u64],
        y: &[u64],
    ) -> Result<Residues, PrepareError> {
        let n = x.len();
        let (mut products, mut message) = (Vec::new(), Vec::new());
        let mut sent = Vec::new();
        for ((prime, x), y) in slots.primes().zip(slots.operands(x)).zip(slots.operands(y)) {
            let p = slots.parameters(set(), prime, n).map_err(|e| PrepareError::Failed(e.to_string()))?;
            let product = self.product(&p, Arc::new(slots.layout(n)))?;
            let groups = product.layout().blocks().groups;
            let (weights, hint) = product.weights(&y, &mut self.prg, usize::MAX);
            let (mut keys, zeros) = product.keys(0..1, &mut self.prg);
            let operands: Vec<_> = (0..groups).map(|group| keys.encrypt(group, &x, &mut self.prg)).collect();
            message.extend(hint.encode());
            message.extend(zeros.encode());
            operands.iter().for_each(|operand| message.extend(operand.encode()));
            sent.push((product, groups));
            products.push((
                weights,
                Some(hint),
                keys,
                Some(zeros),
                operands.into_iter().map(Some).collect::<Vec<_>>(),
            ));
        }
        let due = message.len();
        let received = peers.pass("encrypted products of words / operands", &message, |_| true, |_| due)?;
        drop(message);
        for bytes in received {
            let mut bytes = &bytes[..];
            for ((_, hint, _, zeros, operands), (product, groups)) in products.iter_mut().zip(&sent) {
                add(product, hint, *groups, &mut bytes)?;
                add(product, zeros, 1, &mut bytes)?;
                operands.iter_mut().try_for_each(|operand| add(product, operand, 1, &mut bytes))?;
            }
        }
        let primes: Vec<Prime> = products
            .into_iter()
            .map(|(weights, hint, keys, zeros, operands)| Prime {
                factor: weights.factor(hint),
                keys,
                zeros,
                operands,
            })
            .collect();
        let parts: Vec<Part<'_>> = primes.iter().enumerate().flat_map(|(i, prime)| prime.parts(i)).collect();
        let what = "encrypted products of words / shares";
        if peers.me == opener(peers) {
            let zeros = || Wiped::zeros(slots.layout(n).output_len());
            let mut residues: Vec<Residues> = primes.iter().map(|_| zeros()).collect();
            open(peers, what, &mut self.prg, &parts, &mut residues)?;
            return Ok(slots.opened(n, residues));
        }
        let (mut residues, words) = slots.share(n, &mut self.prg);
        open(peers, what, &mut self.prg, &parts, &mut residues)?;
        Ok(words)
    }
}

impl Prime {
    fn parts(&self, number: usize) -> impl Iterator<Item = Part<'_>> {
        self.operands.iter().enumerate().map(move |(group, operand)| {
            let sums = self.zeros.as_ref().zip(operand.as_ref());
            (number, &self.factor, Encrypted { group, tiles: 0..1, sums, keys: Some(&self.keys) })
        })
    }
}

/// What so many products cost a party, exactly as it will be counted, hints with the rest.
pub fn elements_cost(ring: Ring, n: usize, parties: usize) -> Result<Cost, PrepareError> {
    let mut sum = Cost::default();
    for first in (0..n).step_by(CHUNK) {
        let cost = Slots::cost(set(), ring, parties, SPARE, (n - first).min(CHUNK));
        sum = sum.plus(cost.map_err(|e| PrepareError::Failed(e.to_string()))?);
    }
    Ok(sum)
}
