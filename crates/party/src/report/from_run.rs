//! The report of a run, from what the parties accounted for and what the plan says.

use super::sums::{busiest, sum, verification};
use super::{LayerReport, Openings, PartyReport, REPORT_VERSION, Revealed, RunReport, Totals, Transport};
use crate::config::{Place, Roles, Security};
use crate::session::control::PartyRun;
use crate::session::outcome::Outcome;
use crate::store::hex;
use privet_family::{Class, Forecast, NodeStats, OpeningKind, When};
use privet_plan::Plan;
use privet_plan::cost::Operation;
use privet_plan::form::named;
use privet_plan::ir::{Node, Op};
use std::collections::BTreeSet;

/// What a client knows of a run besides the plan and the parties' accounts.
#[derive(Clone, Copy)]
pub struct Observer<'a> {
    /// The protocol family.
    pub family: &'a dyn Forecast,
    /// The client that writes the report.
    pub me: &'a Place,
    /// Who played which role.
    pub roles: &'a Roles,
    /// Seconds that dealing the run's keys took.
    pub offline_s: f64,
    /// Peak resident memory of the client, bytes; absent when unknown.
    pub peak_rss_bytes: Option<u64>,
}

/// The report of one run, or of several runs of one plan ([`Outcome::add`]). Costs are those of the party with the most; nothing in it is secret. Where the
/// network was emulated, or on which machine it ran, is for the caller to add.
pub fn from_run(plan: &Plan, outcome: &Outcome, seen: &Observer) -> RunReport {
    let places = places(outcome, seen).into_iter();
    let parties: Vec<PartyReport> = places.map(|p| party(plan, outcome, seen, p)).collect();
    let computing = &parties[..outcome.accounts.len()];
    let most = busiest(&outcome.accounts);
    let encrypted = outcome.accounts.iter().all(|a| a.encrypted);
    RunReport {
        version: REPORT_VERSION,
        plan: plan.name.clone(),
        plan_hash: hex(&plan.hash()),
        protocol: seen.family.protocol().into(),
        security: security(&outcome.accounts).to_string(),
        transport: if encrypted { Transport::Tls } else { Transport::Insecure },
        batch: plan.batch,
        runs: outcome.runs,
        network: None,
        layers: layers(plan, &outcome.nodes()),
        verification: verification(&outcome.accounts),
        totals: Totals {
            online_s: outcome.online_s(),
            offline_s: seen.offline_s,
            bytes_sent: computing.iter().map(|p| p.bytes_sent).max().unwrap_or(0),
            rounds: most.rounds,
            key_bytes: most.key_bytes,
        },
        openings: openings(plan, outcome, seen.family),
        parties,
        accuracy: None,
        machine: None,
    }
}

/// What the run withstood: as much as the least careful party says.
fn security(accounts: &[PartyRun]) -> Security {
    let all = accounts.iter().all(|a| a.security == Security::Malicious);
    if all { Security::Malicious } else { Security::SemiHonest }
}

/// The parties first, a dealer, then every client with a role.
fn places(outcome: &Outcome, seen: &Observer) -> Vec<Place> {
    let parties = (0..outcome.accounts.len()).map(|i| Place::Party(i as u8));
    let dealer = outcome.accounts.first().filter(|a| a.dealer);
    let clients = seen.roles.all().map(|(_, place)| place).chain([seen.me]);
    let clients: BTreeSet<&Place> = clients.filter(|p| matches!(p, Place::Client(_))).collect();
    parties.chain(dealer.map(|_| Place::Dealer)).chain(clients.into_iter().cloned()).collect()
}

fn party(plan: &Plan, outcome: &Outcome, seen: &Observer, place: Place) -> PartyReport {
    let roles: Vec<String> = seen.roles.of(&place).into_iter().map(str::to_owned).collect();
    let account = match place {
        Place::Party(i) => outcome.accounts.get(usize::from(i)),
        _ => None,
    };
    let own_peak = if place == *seen.me { seen.peak_rss_bytes } else { None };
    PartyReport {
        peak_rss_bytes: account.map(|a| a.peak_rss_bytes).filter(|&b| b > 0).or(own_peak),
        bytes_sent: match account {
            Some(account) => sum(account).sent_bytes + outcome.runs * result_bytes(plan, seen.family),
            None => outcome.runs * shared_bytes(plan, &roles, seen.family),
        },
        learned: learned(plan, &roles),
        place: place.to_string(),
        roles,
    }
}

/// What an owner sends to share its inputs for a run.
fn shared_bytes(plan: &Plan, roles: &[String], family: &dyn Forecast) -> u64 {
    let owned = |n: &&Node| matches!(&n.op, Op::Input { owner, .. } if roles.contains(owner));
    let price = |n: &Node| family.operation(&Operation::of_types(&n.op, &[], &n.ty)).client_bytes;
    plan.nodes.iter().filter(owned).map(price).sum()
}

/// What a party sends receivers in a run: its shares of the outputs.
fn result_bytes(plan: &Plan, family: &dyn Forecast) -> u64 {
    let price = |value: usize| family.output(&plan.nodes[value].ty).client_bytes;
    plan.outputs.iter().map(|o| price(o.value)).sum()
}

fn learned(plan: &Plan, roles: &[String]) -> Vec<String> {
    let mine = plan.outputs.iter().filter(|o| roles.contains(&o.to));
    mine.map(|o| {
        let shape = plan.nodes[o.value].ty.shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        format!("the result `{}` ({shape})", o.name)
    })
    .collect()
}

/// Nodes of the same layer in one row, in the order in which layers begin.
fn layers(plan: &Plan, costs: &[NodeStats]) -> Vec<LayerReport> {
    let mut rows: Vec<(LayerReport, Vec<String>)> = Vec::new();
    for (node, cost) in plan.nodes.iter().zip(costs) {
        if matches!(node.op, Op::Weight { .. } | Op::Input { .. } | Op::Public { .. }) {
            continue;
        }
        let at = rows.iter().position(|(row, _)| row.layer == node.layer).unwrap_or_else(|| {
            let layer = node.layer.clone();
            let (ops, max_error) = (String::new(), None);
            let row =
                LayerReport { layer, ops, seconds: 0.0, bytes_sent: 0, rounds: 0, key_bytes: 0, max_error };
            rows.push((row, Vec::new()));
            rows.len() - 1
        });
        let (row, ops) = &mut rows[at];
        row.seconds += cost.seconds;
        row.bytes_sent += cost.sent_bytes;
        row.rounds += cost.rounds;
        row.key_bytes += cost.key_bytes;
        let name = named(node);
        if !ops.contains(&name) {
            ops.push(name);
        }
    }
    rows.into_iter().map(|(row, ops)| LayerReport { ops: ops.join(", "), ..row }).collect()
}

/// What was shared, opened or proved under masks, and what was revealed. The plan says how many values, and what owners
/// share; bits that the parties opened and proofs are as a party counted them.
fn openings(plan: &Plan, outcome: &Outcome, family: &dyn Forecast) -> Openings {
    let is_input = |v: usize| matches!(plan.nodes[v].op, Op::Input { .. });
    let (mut masked, mut masked_bits) = (0, 0);
    for o in family.openings(plan).iter().filter(|o| o.when == When::Run && o.class == Class::Masked) {
        // What belongs to no node are proofs.
        let Some(v) = o.node else { continue };
        masked += o.elements;
        masked_bits += if is_input(v) { o.bits } else { 0 };
    }
    // Every run of a plan opens the same.
    (masked, masked_bits) = (outcome.runs * masked, outcome.runs * masked_bits);
    if let Some(account) = outcome.accounts.first() {
        let opened = account.openings.iter().filter(|o| o.kind == OpeningKind::Masked);
        let proved = account.checks.sent_bytes;
        masked += proved / 8;
        masked_bits += outcome.runs * opened.map(|o| o.bits).sum::<u64>() + 8 * proved;
    }
    let revealed = plan.outputs.iter().map(|o| {
        let ty = &plan.nodes[o.value].ty;
        Revealed { name: o.name.clone(), to: o.to.clone(), shape: ty.shape.clone(), bits: ty.bits }
    });
    Openings { masked, masked_bits, revealed: revealed.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verification;
    use privet_family::Opening;
    use privet_plan::ir::{Output, PLAN_VERSION, Type};
    use std::collections::BTreeMap;

    fn node(op: Op, inputs: &[usize], shape: &[usize], layer: &str) -> Node {
        let operand = matches!(op, Op::Input { .. } | Op::Weight { .. });
        let ty = Type { shape: shape.to_vec(), bits: 20, frac: if operand { 2 } else { 4 } };
        Node { op, inputs: inputs.to_vec(), ty, layer: layer.into(), form: None }
    }

    /// relu(x w), then negated in a layer of another name and again in the first.
    fn plan() -> Plan {
        let input = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 8.0 };
        let weight = Op::Weight { name: "w".into(), owner: "model_owner".into() };
        let nodes = vec![
            node(input, &[], &[3, 2], ""),
            node(weight, &[], &[5, 2], "fc"),
            node(Op::Linear, &[0, 1], &[3, 5], "fc"),
            node(Op::Relu, &[2], &[3, 5], "fc"),
            node(Op::Neg, &[3], &[3, 5], "flip"),
            node(Op::Neg, &[4], &[3, 5], "fc"),
        ];
        let outputs = vec![Output { value: 5, name: "y".into(), to: "receiver".into() }];
        let plan =
            Plan { version: PLAN_VERSION, name: "small".into(), batch: 3, nodes, outputs, updates: vec![] };
        plan.check().unwrap();
        plan
    }

    fn account(sent: u64, seconds: f64) -> PartyRun {
        let busy = NodeStats { seconds, key_bytes: 100, sent_bytes: sent, rounds: 2, ..Default::default() };
        let idle = NodeStats::default();
        let masked = Opening { step: 1, what: "fc / product".into(), bits: 300, kind: OpeningKind::Masked };
        let kind = OpeningKind::Revealed { to: "receiver".into() };
        let revealed = Opening { step: 9, what: "output y".into(), bits: 300, kind };
        PartyRun {
            plan: "run".into(),
            at: None,
            protocol: "fss".parse().unwrap(),
            security: Security::SemiHonest,
            dealer: true,
            checks: idle,
            online_s: 2.0 * seconds,
            nodes: vec![idle, idle, busy, busy, idle, idle],
            openings: vec![masked, revealed],
            peak_rss_bytes: 1 << 20,
            encrypted: true,
        }
    }

    fn outcome() -> Outcome {
        Outcome {
            outputs: BTreeMap::new(),
            accounts: vec![account(10, 0.5), account(30, 0.25)],
            wall_s: 3.0,
            runs: 1,
        }
    }

    fn report_of(outcome: &Outcome) -> RunReport {
        let alice: Place = "client:alice".parse().unwrap();
        let roles = Roles::new(alice.clone(), Place::Party(1), alice.clone());
        let seen = Observer {
            family: &privet_fss::Fss,
            me: &alice,
            roles: &roles,
            offline_s: 7.0,
            peak_rss_bytes: Some(9),
        };
        from_run(&plan(), outcome, &seen)
    }

    #[test]
    fn layers_are_merged_by_name_in_order() {
        let report = report_of(&outcome());
        let rows: Vec<(&str, &str, f64, u64)> =
            report.layers.iter().map(|l| (&*l.layer, &*l.ops, l.seconds, l.bytes_sent)).collect();
        assert_eq!(rows, [("fc", "linear, relu, neg", 1.0, 60), ("flip", "neg", 0.0, 0)]);
    }

    #[test]
    fn totals_are_of_the_party_with_the_most() {
        let report = report_of(&outcome());
        // 15 elements of 20 bits are 38 bytes.
        assert_eq!(report.totals.bytes_sent, 60 + 38);
        assert_eq!((report.totals.rounds, report.totals.key_bytes), (4, 200));
        assert_eq!((report.totals.online_s, report.totals.offline_s), (1.0, 7.0));
    }

    #[test]
    fn three_parties_have_no_dealer_and_verification_counts() {
        let mut outcome = outcome();
        outcome.accounts.push(account(20, 0.5));
        for (i, a) in outcome.accounts.iter_mut().enumerate() {
            (a.protocol, a.security, a.dealer) = ("rep3".parse().unwrap(), Security::Malicious, false);
            a.checks =
                NodeStats { seconds: 0.25, sent_bytes: [5, 1, 50][i], rounds: 3, ..Default::default() };
        }
        let report = report_of(&outcome);
        let places: Vec<&str> = report.parties.iter().map(|p| &*p.place).collect();
        assert_eq!(places, ["party:0", "party:1", "party:2", "client:alice"]);
        assert_eq!(
            report.verification,
            Some(Verification { seconds: 0.25, bytes_sent: 50, rounds: 3 }),
            "of the party with the most"
        );
        // Party 2 sends 2 * 20 + 50, party 1 more by node but less in all; then come 38 bytes of results.
        assert_eq!((report.totals.bytes_sent, report.totals.rounds), (90 + 38, 7));
        assert_eq!(report.security, "malicious");
        assert_eq!(report.openings.masked_bits, 6 * 20 + 300 + 8 * 5, "inputs, openings, proofs of a party");
        outcome.accounts[1].security = Security::SemiHonest;
        assert_eq!(report_of(&outcome).security, "semi-honest", "as weak as the weakest");
    }

    #[test]
    fn only_the_receiver_learns_something() {
        let report = report_of(&outcome());
        let learned: Vec<(&str, usize)> =
            report.parties.iter().map(|p| (&*p.place, p.learned.len())).collect();
        assert_eq!(learned, [("party:0", 0), ("party:1", 0), ("dealer", 0), ("client:alice", 1)]);
        assert_eq!(report.parties[3].learned, ["the result `y` (3x5)"]);
        assert_eq!(report.parties[1].roles, ["model_owner"]);
        assert_eq!(report.parties[2].bytes_sent, 0);
        // 6 elements of 20 bits are 15 bytes, to two parties.
        assert_eq!((report.parties[3].bytes_sent, report.parties[3].peak_rss_bytes), (30, Some(9)));
    }

    #[test]
    fn openings_count_what_the_parties_opened() {
        let openings = report_of(&outcome()).openings;
        // Input 6, product 15, sign bits 15, results of ReLU 15.
        assert_eq!((openings.masked, openings.masked_bits), (51, 6 * 20 + 300));
        assert_eq!(openings.revealed.len(), 1);
        assert_eq!(openings.revealed[0].shape, [3, 5]);
    }

    #[test]
    fn one_plain_connection_stamps_the_report() {
        let mut outcome = outcome();
        assert_eq!(report_of(&outcome).transport, Transport::Tls);
        outcome.accounts[1].encrypted = false;
        assert_eq!(report_of(&outcome).transport, Transport::Insecure);
    }
}
