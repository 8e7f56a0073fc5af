//! Openings that are on their way together.
//!
//! A party that sent its summand of a gate's result goes on with the next gate, until one needs the result. So the last opening of a
//! gate takes no round of its own where the first one of a later gate follows before anybody waits: both are sent, then both are
//! received. Whoever waits for one result has received all that were sent before.

use crate::ir::{Node, ValueId};
use crate::ops;

/// Results of gates of which summands are on their way, as a plan is walked node by node.
#[derive(Clone, Debug, Default)]
pub struct OnTheWay {
    values: Vec<ValueId>,
}

impl OnTheWay {
    /// Whether a node waits for what is on its way.
    pub fn waits(&self, node: &Node) -> bool {
        node.inputs.iter().any(|i| self.values.contains(i))
    }

    /// Node v is next, which opens `rounds` times one after the other. Gives how many rounds it adds.
    pub fn pass(&mut self, v: ValueId, node: &Node, rounds: u64) -> u64 {
        if let ops!(source) = node.op {
            return rounds;
        }
        if self.waits(node) {
            self.values.clear();
        }
        let shared = rounds > 0 && !self.values.is_empty();
        if rounds > 1 {
            self.values.clear();
        }
        if rounds > 0 {
            self.values.push(v);
        }
        rounds - u64::from(shared)
    }
}

/// Rounds of a plan in its order, of whose nodes each opens so many times one after the other.
pub fn rounds_of(nodes: &[Node], rounds: &[u64]) -> u64 {
    let mut sent = OnTheWay::default();
    nodes.iter().zip(rounds).enumerate().map(|(v, (node, rounds))| sent.pass(v, node, *rounds)).sum()
}
