//! The layers of a plan: small products by transfers, others by encryption. There weights' masks are prepared once, at their
//! first use, and serve all records of a session.

use super::{Encryption, Layer, Linear, Task, Transfers, unrolled};
use crate::prepare::static_masks;
use crate::preprocess::{Factor, PrepareError};
use crate::seeds::PartySeed;
use crate::shares::{Seats, Words};
use privet_family::Products;
use privet_plan::ir::{Plan, ValueId};
use std::collections::HashMap;

/// How many records a layer's blocks are chosen for.
const RECORDS: usize = 16;

/// Multiplies masks of layers, for a session. All parties use theirs alike.
pub struct Layers {
    encryption: Encryption,
    /// Multiplications up to which a node's products are made by transfers.
    small: u64,
    masks: HashMap<ValueId, Words>,
    layers: HashMap<ValueId, Layer>,
}

impl Layers {
    /// For the layers of a plan whose second operands are static, with this party's seed of the session.
    pub fn new(plan: &Plan, session: &PartySeed, encryption: Encryption) -> Layers {
        let (mut masks, seats) = (HashMap::new(), Seats::one(session.party()));
        static_masks(plan, std::slice::from_ref(session), seats, |node, _, mask| {
            masks.insert(node, mask.clone());
        });
        Layers { encryption, small: unrolled::MOST, masks, layers: HashMap::new() }
    }

    /// With transfers for nodes of at most so many multiplications, the same number at all parties; 0: none.
    pub fn with_small(self, multiplications: u64) -> Layers {
        Layers { small: multiplications, ..self }
    }
}

impl Linear for Layers {
    fn products(
        &mut self,
        transfers: &mut Transfers<'_>,
        what: Products,
        x: &Words,
        w: Factor,
    ) -> Result<Words, PrepareError> {
        if what.macs() <= self.small {
            let w = match w {
                Factor::Record(w) => w,
                Factor::Session(node) => &self.masks[&node],
            };
            return unrolled::products(transfers, what, x, w);
        }
        let (ring, encryption) = (x.ring(), &mut self.encryption);
        let task = |calls| Task { what, runs: 1, calls, ring, owner: None };
        let reduced = |w: &Words| w.reduced(ring);
        let layer = match w {
            Factor::Record(w) => &transfers.linear(encryption, task(1), Some(reduced(w).own()))?,
            Factor::Session(node) => {
                if !self.layers.contains_key(&node) {
                    let w = reduced(&self.masks[&node]);
                    let layer = transfers.linear(encryption, task(RECORDS), Some(w.own()))?;
                    self.layers.insert(node, layer);
                }
                &self.layers[&node]
            }
        };
        transfers.products(encryption, layer, x)
    }
}
