//! Matrix products and convolutions of operands that are both shared, or of which one party knows the second one: by
//! encryption (`crates/he`).
//!
//! Every party sends what its weights make of the public polynomials, once for all calls. In a call all encrypt their shares
//! of the operand under fresh keys, tile by tile; each multiplies the sum with its weights, takes its key and a fresh share
//! off under drowning noise, and the last party adds up. Operands of several runs stand below each other.
//!
//! SECURITY: docs/semi2k-preprocessing.md, "Products by homomorphic encryption".

use super::encryption::{Encryption, OPERAND_ROOM, Part, add, open, opener};
use super::peers::Peers;
use crate::PrepareError;
use privet_family::{Prepared, Products};
use privet_he::layout::{ConvLayout, Cost, Layout, Matmul, MatmulLayout, Roles, cost};
use privet_he::{Encrypted, Factor, Hint, Keys, Message, NoSet, Operand, Parameters, Product, Zero};
use privet_kernels::{LinearShape, cpu};
use privet_prg::{Prg, Wiped};
use privet_ring::{Conv2d, Ring};
use std::ops::Range;
use std::sync::Arc;

/// What is multiplied, as all parties know it.
#[derive(Clone, Copy)]
pub struct Task {
    /// The products of one run.
    pub what: Products,
    /// Runs whose operands are multiplied in one call.
    pub runs: usize,
    /// Calls with the same weights that blocks are chosen for.
    pub calls: usize,
    /// The ring.
    pub ring: Ring,
    /// The party that knows the weights, and their bits, signs included; none: all share them.
    pub owner: Option<(usize, u32)>,
}

impl Task {
    /// Blocks and parameters among so many parties.
    fn plan(&self, parties: usize) -> Result<(Parameters, Arc<dyn Layout>), PrepareError> {
        let bits = self.owner.map_or(self.ring.bits(), |(_, bits)| bits);
        let failed = |e: NoSet| PrepareError::Failed(e.to_string());
        let matmul = |m, k, o| {
            let shape = Matmul { groups: self.what.count, m: m * self.runs, k, o };
            let plan = MatmulLayout::plan(shape, self.ring, bits, parties, self.calls).map_err(failed)?;
            Ok::<_, PrepareError>((plan.0, Arc::new(plan.1) as Arc<dyn Layout>))
        };
        match self.what.shape {
            LinearShape::MatMulT { m, k, n } | LinearShape::MatMul { m, k, n } => matmul(m, k, n),
            LinearShape::Conv2d(conv) => {
                assert_eq!(self.what.count, 1, "convolutions stand alone");
                let conv = Conv2d { batch: conv.batch * self.runs, ..conv };
                let plan = ConvLayout::plan(conv, self.ring, bits, parties, self.calls).map_err(failed)?;
                Ok((plan.0, Arc::new(plan.1)))
            }
        }
    }

    /// Whether values of weights are kept: a single call makes them anew.
    fn keeps(&self) -> bool {
        self.calls > 1
    }

    /// Whether encryption has a packing of it.
    pub(super) fn fits(&self) -> Result<(), NoSet> {
        match &self.what.shape {
            LinearShape::Conv2d(conv) => ConvLayout::fits(conv),
            LinearShape::MatMulT { .. } | LinearShape::MatMul { .. } => Ok(()),
        }
    }

    /// What it costs a party, exactly as it will be counted, where values of weights are kept.
    pub fn cost(&self, parties: usize, party: usize) -> Result<Cost, PrepareError> {
        let (p, layout) = self.plan(parties)?;
        Ok(cost(&p, &*layout, self.roles(party), self.keeps()))
    }

    /// The same of all parties together, divided by their number: what ways are compared by. A party's bytes go to each of its peers then.
    pub(super) fn mean_cost(&self, parties: usize) -> Result<Cost, PrepareError> {
        let Some((owner, _)) = self.owner else { return self.cost(parties, 0) };
        let (p, layout) = self.plan(parties)?;
        let one = |party| cost(&p, &*layout, self.roles(party), self.keeps());
        let others = one((owner + 1) % parties);
        let all = (1..parties).fold(one(owner), |sum, _| sum.plus(others));
        // hints go to all but one, operands of all but one to that one
        let to_each = Cost { operand_bytes: others.operand_bytes, ..all };
        Ok(to_each.shared_by(parties))
    }

    /// Weights as the layout has them: `[groups, k, o]`.
    fn weights(&self, w: &[u64]) -> Wiped<u64> {
        let LinearShape::MatMulT { k, n, .. } = self.what.shape else { return Wiped::copy_of(w) };
        let mut out = Wiped::zeros(w.len());
        for (from, to) in w.chunks_exact(k * n).zip(out.chunks_exact_mut(k * n)) {
            for (o, row) in from.chunks_exact(k).enumerate() {
                row.iter().enumerate().for_each(|(j, w)| to[j * n + o] = *w);
            }
        }
        out
    }

    /// Blocks of each run, product by product, into blocks of each product, run by run; or back.
    fn regrouped(&self, v: &[u64], back: bool) -> Wiped<u64> {
        let (runs, count) = if back { (self.what.count, self.runs) } else { (self.runs, self.what.count) };
        if runs == 1 || count == 1 {
            return Wiped::copy_of(v);
        }
        let block = v.len() / (runs * count);
        let mut out = Wiped::with_room(v.len());
        for product in 0..count {
            (0..runs).for_each(|run| out.extend_from_slice(&v[(run * count + product) * block..][..block]));
        }
        out
    }
}

/// Weights of a [`Task`], prepared for all its calls.
pub struct Layer {
    task: Task,
    factor: Factor,
    /// The weights themselves, where this party knows them.
    clear: Option<Prepared>,
}

impl Task {
    /// Who has weights, and who encrypts: all, or the owner and the others.
    fn roles(&self, party: usize) -> Roles {
        match self.owner {
            None => Roles::BOTH,
            Some((owner, _)) => Roles { owns: owner == party, encrypts: owner != party },
        }
    }

    fn owns(&self, party: usize) -> bool {
        self.roles(party).owns
    }

    fn encrypts(&self, party: usize) -> bool {
        self.roles(party).encrypts
    }
}

impl Encryption {
    /// One step: weights for all calls of a task. `w` is this party's share, or all of them at their owner, or nothing.
    ///
    /// # Panics
    /// Where weights are missing, are not as many as the task says, or are wider than it says.
    pub(super) fn linear(
        &mut self,
        peers: &mut Peers<'_>,
        task: Task,
        w: Option<&[u64]>,
    ) -> Result<Layer, PrepareError> {
        let (p, layout) = task.plan(peers.parties())?;
        let product = self.product(&p, Arc::clone(&layout))?;
        let me = peers.me;
        assert_eq!(w.is_some(), task.owns(me), "weights, where they are known");
        let room = if task.keeps() { self.room() } else { 0 };
        let own = w.map(|w| product.weights(&task.weights(w), &mut self.prg, room));
        let hints = product.hints(layout.blocks().groups);
        let message = own.as_ref().map_or(Vec::new(), |(_, hint)| hint.encode());
        let due = |peer| if task.owns(peer) && task.encrypts(me) { product.bytes::<Hint>(hints) } else { 0 };
        let to = |peer| task.owns(me) && task.encrypts(peer);
        let received = peers.pass("encrypted products / weights", &message, to, due)?;
        let (weights, mut sum) = own.unzip();
        for bytes in received.iter().filter(|bytes| !bytes.is_empty()) {
            add(&product, &mut sum, hints, &mut &bytes[..])?;
        }
        let factor = match weights {
            Some(weights) => weights.factor(sum.filter(|_| task.encrypts(me))),
            None => Factor::of_hints(&product, sum.expect("somebody has weights")),
        };
        let known = w.filter(|_| !task.encrypts(me));
        let clear = known.map(|w| task.what.prepare(&*cpu(self.threads()), task.ring, w));
        Ok(Layer { task, factor, clear })
    }

    /// This party's share of the products of a task's runs, from its share `x` of their operands; two steps for each part
    /// that fits into memory. Where one party knows the weights, its own share of the operand is left out here.
    pub(super) fn products(
        &mut self,
        peers: &mut Peers<'_>,
        linear: &Layer,
        x: &[u64],
    ) -> Result<Wiped<u64>, PrepareError> {
        let (Layer { task, factor, .. }, me) = (linear, peers.me);
        let (product, b) = (factor.product(), factor.product().layout().blocks());
        let operand = task.regrouped(x, false);
        let outputs = product.layout().output_len();
        let mut share = Wiped::new(match me == opener(peers) {
            true => vec![0; outputs],
            false => product.parameters().plain().uniform(&mut self.prg, outputs),
        });
        let at_once = product.tiles_in(OPERAND_ROOM);
        for first in (0..b.tiles).step_by(at_once) {
            let tiles = first..(first + at_once).min(b.tiles);
            let made = task.encrypts(me).then(|| product.keys(tiles.clone(), &mut self.prg));
            let (keys, zeros) = made.unzip();
            let mut sealed = Sealed { task, product, tiles: tiles.clone(), keys, zeros };
            let together = at_once.div_ceil(tiles.len());
            for first in (0..b.groups).step_by(together) {
                let groups = first..(first + together).min(b.groups);
                let operands = sealed.send(peers, groups.clone(), &operand, &mut self.prg)?;
                let parts = groups.zip(&operands).map(|(group, operand)| {
                    let sums = sealed.zeros.as_ref().zip(operand.as_ref()).filter(|_| task.owns(me));
                    (0, factor, Encrypted { group, tiles: tiles.clone(), sums, keys: sealed.keys.as_ref() })
                });
                let parts: Vec<Part<'_>> = parts.collect();
                open(peers, "encrypted products / shares", &mut self.prg, &parts, &mut [&mut share[..]])?;
            }
        }
        let mut out = task.regrouped(&share, true);
        if let Some(weights) = &linear.clear {
            let (device, [each, from]) = (cpu(self.threads()), [&*out, x].map(|v| v.len() / task.runs));
            for (x, out) in x.chunks_exact(from).zip(out.chunks_exact_mut(each)) {
                task.what.accumulate(&*device, task.ring, x, weights, out);
            }
        }
        Ok(out)
    }
}

/// Tiles under keys of a call, with all parties' encryptions of 0 as far as this party has them.
struct Sealed<'a> {
    task: &'a Task,
    product: &'a Product,
    tiles: Range<usize>,
    keys: Option<Keys>,
    zeros: Option<Message<Zero>>,
}

impl Sealed<'_> {
    /// One step: everybody's share of the operand in these groups' tiles to all who have weights, in the first groups behind
    /// encryptions of 0. Their sums, as far as this party gets them.
    fn send(
        &mut self,
        peers: &mut Peers<'_>,
        groups: Range<usize>,
        x: &[u64],
        prg: &mut Prg,
    ) -> Result<Vec<Option<Message<Operand>>>, PrepareError> {
        let (task, product, me, tiles) = (self.task, self.product, peers.me, self.tiles.len());
        let first = groups.start == 0;
        let mut message = self.zeros.as_ref().filter(|_| first).map_or(Vec::new(), Message::encode);
        let mut operands: Vec<Option<Message<Operand>>> = Vec::with_capacity(groups.len());
        for group in groups {
            let operand = self.keys.as_mut().map(|keys| keys.encrypt(group, x, prg));
            message.extend(operand.as_ref().map_or(Vec::new(), Message::encode));
            operands.push(operand);
        }
        let polynomials = product.operands(tiles);
        let zeros = product.bytes::<Zero>(if first { tiles } else { 0 });
        let all = product.bytes::<Operand>(operands.len() * polynomials) + zeros;
        let to = |peer| task.encrypts(me) && task.owns(peer);
        let due = |peer| if task.owns(me) && task.encrypts(peer) { all } else { 0 };
        let received = peers.pass("encrypted products / operand", &message, to, due)?;
        drop(message);
        for bytes in received.iter().filter(|bytes| !bytes.is_empty()) {
            let mut bytes = &bytes[..];
            if first {
                add(product, &mut self.zeros, tiles, &mut bytes)?;
            }
            for operand in &mut operands {
                add(product, operand, polynomials, &mut bytes)?;
            }
        }
        Ok(operands)
    }
}
