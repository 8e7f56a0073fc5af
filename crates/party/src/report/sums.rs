//! Sums over a run's accounts.

use crate::report::Verification;
use crate::session::control::PartyRun;
use privet_family::NodeStats;

/// What a whole run cost one party, with all verification.
pub fn sum(account: &PartyRun) -> NodeStats {
    let mut total = account.checks;
    account.nodes.iter().for_each(|n| total.add(n));
    total
}

/// Figure by figure, the whole run's cost at the party where it is largest.
pub fn busiest(accounts: &[PartyRun]) -> NodeStats {
    accounts.iter().map(sum).fold(NodeStats::default(), |most, party| most.larger(&party))
}

/// The verification's part of it, where anything was verified.
pub fn verification(accounts: &[PartyRun]) -> Option<Verification> {
    let checks = accounts.iter().fold(NodeStats::default(), |most, a| most.larger(&a.checks));
    let NodeStats { seconds, sent_bytes, rounds, .. } = checks;
    (rounds > 0).then_some(Verification { seconds, bytes_sent: sent_bytes, rounds })
}
