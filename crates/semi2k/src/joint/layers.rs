//! The layers of a plan, and products of elements: by encryption, or where that takes more by transfers. There weights' masks
//! are prepared once, at their first use, and serve all records of a session; products of several records are made together.

use super::cost::{self, Transferred};
use super::{Encryption, Layer, Linear, Own, Task, Transfers, elements_cost, unrolled};
use crate::masks::MaskCache;
use crate::prepare::static_masks;
use crate::preprocess::{Factor, PrepareError, static_operand};
use crate::seeds::PartySeed;
use crate::shares::{Seats, Words};
use privet_family::{Products, Secret};
use privet_plan::ir::{Plan, ValueId};
use privet_ring::Ring;
use std::collections::HashMap;

/// Bytes of operands and shares of the records whose products are made together: it bounds memory.
pub(super) const TOGETHER: usize = 64 << 20;
/// Multiplications above which no node is made by transfers, whatever else it would take.
pub(super) const MOST: u64 = 1 << 16;

/// Multiplies masks of layers, for a session. All parties use theirs alike.
pub struct Layers {
    encryption: Encryption,
    /// Nothing goes by transfers.
    encrypts_all: bool,
    /// Records whose products are made together, and how often that is done.
    records: Together,
    /// Calls that were made.
    begun: usize,
    /// The party that knows all weights, if there is one: it alone has masks of them.
    owner: Option<usize>,
    masks: HashMap<ValueId, Words>,
    layers: HashMap<ValueId, Layer>,
    ready: Ready,
}

/// Shares of the products of a record's masks with weights' masks, by node. They serve that record alone.
pub(super) type Ready = HashMap<ValueId, Words>;

#[derive(Clone, Copy)]
struct Together {
    runs: usize,
    calls: usize,
}

impl Layers {
    /// For the layers of a plan whose second operands are static, with this party's seed of the session.
    pub fn new(plan: &Plan, session: &PartySeed, encryption: Encryption) -> Layers {
        let (mut masks, seats) = (HashMap::new(), Seats::one(session.party()));
        static_masks(plan, std::slice::from_ref(session), seats, |node, _, mask| {
            masks.insert(node, mask.clone());
        });
        Layers {
            encryption,
            encrypts_all: false,
            records: Together { runs: 1, calls: 1 },
            begun: 0,
            owner: session.owner(),
            masks,
            layers: HashMap::new(),
            ready: Ready::new(),
        }
    }

    /// For so many records, of which as many are made together as memory allows: the same number at all parties.
    pub(super) fn for_records(self, plan: &Plan, records: usize) -> Layers {
        let nodes = (0..plan.nodes.len()).filter_map(|v| static_operand(plan, v));
        let words = |(what, _): (Products, ValueId)| what.count * what.shape.input_len() + what.output_len();
        let bytes = size_of::<u64>() * nodes.map(words).sum::<usize>();
        let most = TOGETHER.checked_div(bytes).unwrap_or(records).clamp(1, records.max(1));
        let calls = records.div_ceil(most).max(1);
        Layers { records: Together { runs: records.div_ceil(calls).max(1), calls }, ..self }
    }

    /// Without transfers, however small products are; the same at all parties.
    pub fn all_encrypted(self) -> Layers {
        Layers { encrypts_all: true, ..self }
    }

    /// How many records are made together.
    pub(super) fn at_once(&self) -> usize {
        self.records.runs
    }

    /// The next record is the one that these are of.
    pub(super) fn begin(&mut self, ready: Ready) {
        self.ready = ready;
    }

    /// Of these records, at most [`Layers::at_once`], the products with weights' masks that are encrypted. Operands' masks follow
    /// from seeds alone, so it can be done before anything else of the records is.
    pub(super) fn ahead(
        &mut self,
        transfers: &mut Transfers<'_>,
        plan: &Plan,
        records: &[Own<'_>],
    ) -> Result<Vec<Ready>, PrepareError> {
        let Together { runs, calls } = self.records;
        assert!(records.len() <= runs, "as many records as were announced");
        let caches: Vec<MaskCache<'_>> = records.iter().map(|_| MaskCache::new(plan)).collect();
        let mut ready: Vec<Ready> = records.iter().map(|_| Ready::new()).collect();
        self.begun += 1;
        let last = self.begun == calls;
        for v in 0..plan.nodes.len() {
            if let Some((what, _)) = static_operand(plan, v) {
                let operand = plan.nodes[v].inputs[0];
                let masks: Vec<_> =
                    records.iter().zip(&caches).map(|(own, cache)| cache.of(own, operand)).collect();
                let ring = masks[0].ring();
                let task = self.of_session(Task { what, runs, calls, ring, owner: None });
                if self.is_encrypted(&task, transfers.parties())? {
                    // absent records count as zeros, so that one packing of the weights serves all calls
                    let mut x = Secret::new(Vec::with_capacity(runs * masks[0].len()));
                    masks.iter().for_each(|mask| x.extend_from_slice(mask.own()));
                    x.resize(runs * masks[0].len(), 0);
                    let x = Words::new(transfers.seats(), ring, vec![x]);
                    let products = self.session_products(transfers, v, task, &x)?;
                    if last {
                        // room for the next layer, whose polynomials take as much
                        self.layers.remove(&v);
                    }
                    for (i, ready) in ready.iter_mut().enumerate() {
                        ready.insert(v, products.slice(i * what.output_len()..(i + 1) * what.output_len()));
                    }
                }
            }
            caches.iter().for_each(|cache| cache.done(v));
        }
        Ok(ready)
    }

    /// A task whose second operand is a weight's mask: all of it, with as many bits as the ring, at the party that knows all weights.
    fn of_session(&self, task: Task) -> Task {
        Task { owner: self.owner.map(|owner| (owner, task.ring.bits())), ..task }
    }

    /// Products of a task's runs with a weight's mask, which is prepared at its first use.
    fn session_products(
        &mut self,
        transfers: &mut Transfers<'_>,
        node: ValueId,
        task: Task,
        x: &Words,
    ) -> Result<Words, PrepareError> {
        if !self.layers.contains_key(&node) {
            let mine = self.owner.is_none_or(|owner| transfers.seats() == Seats::one(owner));
            let w = mine.then(|| self.masks[&node].reduced(task.ring));
            let w = w.as_ref().map(|w| w.own().as_slice());
            let layer = transfers.linear(&mut self.encryption, task, w)?;
            self.layers.insert(node, layer);
        }
        transfers.products(&mut self.encryption, &self.layers[&node], x)
    }

    /// Whether encryption takes less than transfers, as [`cost::of_transfers`] weighs them.
    fn is_encrypted(&self, task: &Task, parties: usize) -> Result<bool, PrepareError> {
        let macs = task.what.macs() * task.runs as u64;
        // such kernels are refused where they are no small ones ([`too_wide`])
        if task.fits().is_err() {
            return Ok(false);
        }
        if self.encrypts_all || macs > MOST {
            return Ok(true);
        }
        let once = cost::multiply(parties, macs as usize, task.ring);
        let by_transfers = task.calls as u64 * cost::of_transfers(parties, once);
        Ok(cost::of_encryption(parties, &task.mean_cost(parties)?, task.calls) < by_transfers)
    }

    /// The same for elements, of which products take so many transfers.
    fn are_encrypted(&self, parties: usize, x: &Words, once: Transferred) -> Result<bool, PrepareError> {
        let encrypted = elements_cost(x.ring(), x.len(), parties)?;
        Ok(self.encrypts_all
            || cost::of_encryption(parties, &encrypted, 1) < cost::of_transfers(parties, once))
    }
}

/// Why a product can be prepared in no way, if so: encryption has no packing for it, and transfers would take too long.
pub(crate) fn too_wide(what: Products, ring: Ring) -> Option<String> {
    let task = Task { what, runs: 1, calls: 1, ring, owner: None };
    task.fits().err().filter(|_| what.macs() > MOST).map(|e| e.to_string())
}

impl Linear for Layers {
    fn products(
        &mut self,
        transfers: &mut Transfers<'_>,
        what: Products,
        x: &Words,
        w: Factor,
    ) -> Result<Words, PrepareError> {
        if let Factor::Session(node) = w
            && let Some(ready) = self.ready.remove(&node)
        {
            return Ok(ready);
        }
        let ring = x.ring();
        // A layer that is not ready was found cheaper by transfers, for as many records as were announced.
        let announced = match w {
            Factor::Record(_) => Together { runs: 1, calls: 1 },
            Factor::Session(_) => self.records,
        };
        let task = Task { what, runs: announced.runs, calls: announced.calls, ring, owner: None };
        let task = match w {
            Factor::Record(_) => task,
            Factor::Session(_) => self.of_session(task),
        };
        let encrypted = self.is_encrypted(&task, transfers.parties())?;
        match w {
            Factor::Record(w) if !encrypted => unrolled::products(transfers, what, x, w),
            Factor::Session(node) if !encrypted => unrolled::products(transfers, what, x, &self.masks[&node]),
            Factor::Record(w) => {
                let layer = transfers.linear(&mut self.encryption, task, Some(w.reduced(ring).own()))?;
                transfers.products(&mut self.encryption, &layer, x)
            }
            Factor::Session(node) => self.session_products(transfers, node, Task { runs: 1, ..task }, x),
        }
    }

    fn is_ready(&self, node: ValueId) -> bool {
        self.ready.contains_key(&node)
    }

    fn take_ready(&mut self, node: ValueId) -> Option<Words> {
        self.ready.remove(&node)
    }

    fn multiply(
        &mut self,
        transfers: &mut Transfers<'_>,
        x: &Words,
        y: &Words,
    ) -> Result<Words, PrepareError> {
        let parties = transfers.parties();
        match self.are_encrypted(parties, x, cost::multiply(parties, x.len(), x.ring()))? {
            true => transfers.multiply_encrypted(&mut self.encryption, x, y),
            false => transfers.multiply(x, y),
        }
    }

    fn square(&mut self, transfers: &mut Transfers<'_>, x: &Words) -> Result<Words, PrepareError> {
        let parties = transfers.parties();
        match self.are_encrypted(parties, x, cost::square(parties, x.len(), x.ring()))? {
            true => transfers.multiply_encrypted(&mut self.encryption, x, x),
            false => transfers.square(x),
        }
    }
}
