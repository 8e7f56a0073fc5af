use privet_plan::cost::Security;
use std::ops::RangeInclusive;

/// What holds for a protocol family, whatever the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its user-facing name.
    pub name: &'static str,
    /// How many parties compute.
    pub parties: RangeInclusive<usize>,
    /// Whether a dealer, who is no party, makes what runs use up.
    pub has_dealer: bool,
    /// Whether a run uses up something that is prepared before it, by whomever.
    pub needs_preparation: bool,
    /// What it can be told to withstand, the default first.
    pub withstands: &'static [Security],
}
