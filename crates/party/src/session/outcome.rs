//! What runs gave a client, and what they cost.

use super::control::PartyRun;
use privet_family::NodeStats;
use privet_plan::FloatTensor;
use std::collections::BTreeMap;

/// What a run gave, or several runs of one plan.
pub struct Outcome {
    /// The outputs whose receiver this client is, by name; of several runs, the last one's.
    pub outputs: BTreeMap<String, FloatTensor>,
    /// The parties' accounts, in their order; of several runs, all their costs.
    pub accounts: Vec<PartyRun>,
    /// Seconds from the request to the outputs in hand, at the client.
    pub wall_s: f64,
    /// How many runs.
    pub runs: u64,
}

impl Outcome {
    /// The slowest party's time from shared inputs to shared outputs.
    pub fn online_s(&self) -> f64 {
        self.accounts.iter().map(|a| a.online_s).fold(0.0, f64::max)
    }

    /// Node by node, the largest of the parties' costs. Key bytes are those of one party, which used up the most in all, so that
    /// they add up: of one node it may have fewer than another party.
    pub fn nodes(&self) -> Vec<NodeStats> {
        let Some((first, rest)) = self.accounts.split_first() else { return Vec::new() };
        let larger = |most: Vec<NodeStats>, a: &PartyRun| {
            most.iter().zip(&a.nodes).map(|(m, n)| m.larger(n)).collect()
        };
        let mut nodes = rest.iter().fold(first.nodes.clone(), larger);
        let keys = |a: &PartyRun| a.nodes.iter().map(|n| n.key_bytes).sum::<u64>();
        let most = rest.iter().fold(first, |most, a| if keys(a) > keys(most) { a } else { most });
        nodes.iter_mut().zip(&most.nodes).for_each(|(node, of)| node.key_bytes = of.key_bytes);
        nodes
    }

    /// The largest of the parties' costs of verification.
    pub fn checks(&self) -> NodeStats {
        self.accounts.iter().fold(NodeStats::default(), |most, a| most.larger(&a.checks))
    }

    /// Take in a later run of the same plan: the steps of a training become one account. Costs add up; outputs and what
    /// was opened are those of the last run, since every run opens the same.
    pub fn add(&mut self, later: Outcome) {
        for (sum, run) in self.accounts.iter_mut().zip(&later.accounts) {
            run.add_to(sum);
        }
        self.outputs = later.outputs;
        self.wall_s += later.wall_s;
        self.runs += later.runs;
    }
}

impl PartyRun {
    fn add_to(&self, sum: &mut PartyRun) {
        sum.online_s += self.online_s;
        sum.nodes.iter_mut().zip(&self.nodes).for_each(|(sum, node)| sum.add(node));
        sum.checks.add(&self.checks);
        sum.at = self.at;
        sum.openings.clone_from(&self.openings);
        sum.peak_rss_bytes = sum.peak_rss_bytes.max(self.peak_rss_bytes);
        sum.encrypted &= self.encrypted;
    }
}
