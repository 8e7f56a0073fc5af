//! The coins of a run as the plan's definitions take them: for who compares a run with the interpreter.

use crate::context::coins;
use crate::gate::{At, Kind, kind};
use privet_plan::ir::ValueId;
use privet_plan::{Coins, Plan};
use privet_prg::Seed;
use std::collections::HashMap;

/// The coins of one run, from the seed that both sides tossed and the shares of all values: some coins are a share's low part.
pub(crate) struct Drawn<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// What both sides tossed for the run.
    pub seed: &'a Seed,
    /// Both sides' shares of each node's value.
    pub shares: [&'a HashMap<ValueId, Vec<u64>>; 2],
}

impl Coins for Drawn<'_> {
    fn draw(&mut self, node: ValueId, _: usize, _: u32) -> Option<Vec<u64>> {
        let at = At { plan: self.plan, id: node };
        let Kind::Gate(gate) = kind(&at.node().op) else { return None };
        let [server, client] = self.shares.map(|shares| shares.get(&at.node().inputs[0]));
        gate.coins(&at, [server?, client?], &|ring, n| coins(self.seed, node, ring, n))
    }
}
