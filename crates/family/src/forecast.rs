use crate::PlannedOpening;
use privet_plan::cost::GateCost;
use privet_plan::{Plan, PlanError};

/// What a protocol family can say of a plan before anything runs. The code above the protocols (estimates, audits,
/// reports) knows families by this alone.
pub trait Forecast: Send + Sync {
    /// The family's prices, which also say its name and what it withstands.
    fn prices(&self) -> &dyn GateCost;
    /// Every opening of a checked plan, in order: what an account of the run will have, and what owners share.
    fn openings(&self, plan: &Plan) -> Vec<PlannedOpening>;
    /// Whether the family runs this checked plan at all. The error names the node and what to change.
    fn check(&self, _plan: &Plan) -> Result<(), PlanError> {
        Ok(())
    }
    /// Why masked openings tell nobody anything, and what else is known to whom: one or two sentences for people.
    fn remark(&self) -> &'static str;
}
