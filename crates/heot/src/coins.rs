//! The coins of a run as the plan's definitions take them: for who compares a run with the interpreter.

use crate::context::coins;
use crate::gate::{At, Kind, kind};
use privet_plan::ir::ValueId;
use privet_plan::{Coins, Plan};
use privet_prg::Seed;
use std::collections::HashMap;

/// The coins of one run, from the seed that both sides tossed and the client's shares of all values: some coins are a
/// share's low part.
pub(crate) struct Drawn<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// What both sides tossed for the run.
    pub seed: &'a Seed,
    /// The client's share of each node's value.
    pub client: &'a HashMap<ValueId, Vec<u64>>,
}

impl Coins for Drawn<'_> {
    fn draw(&mut self, node: ValueId, _: usize, _: u32) -> Option<Vec<u64>> {
        let at = At { plan: self.plan, id: node };
        let Kind::Gate(gate) = kind(&at.node().op) else { return None };
        let share = self.client.get(&at.node().inputs[0])?;
        gate.coins(&at, share, &|ring, n| coins(self.seed, node, ring, n))
    }
}
