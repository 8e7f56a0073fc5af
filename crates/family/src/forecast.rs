use crate::{Facts, PlannedOpening};
use privet_plan::{Plan, Target};

/// What a protocol family can say of a plan before anything runs: its prices and refusals ([`Target`]), what becomes
/// known to whom, and facts about itself. The code built on the protocols (compiling, estimates, audits, reports) knows
/// families by this alone.
pub trait Forecast: Target + Send + Sync {
    /// What holds for all plans.
    fn facts(&self) -> &'static Facts;
    /// Every opening of a checked plan, in order: what an account of the run will have, and what owners share.
    fn openings(&self, plan: &Plan) -> Vec<PlannedOpening>;
    /// Why masked openings tell nobody anything, and what else is known to whom: one or two sentences for people.
    fn remark(&self) -> &'static str;
}
