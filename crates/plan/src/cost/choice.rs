//! The form of every comparison, by prices: what a network makes fast, and how many key bytes a run may use up.

use super::estimate::{offline_seconds, price, seconds};
use super::{Estimate, Network, Operation, PerParty, Prices, Rates, Units, estimate, known};
use crate::form::{Form, summary};
use crate::ir::Plan;
use serde::Serialize;
use thiserror::Error;

/// What a plan is compiled for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aim {
    /// The network on which a run shall be fast.
    pub network: Network,
    /// Most key bytes that a run may use up at one party.
    pub max_key_bytes: Option<u64>,
}

impl Default for Aim {
    fn default() -> Self {
        Aim { network: Network::LAN, max_key_bytes: None }
    }
}

/// No choice of forms keeps to [`Aim::max_key_bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "a run uses up at least {least} bytes of keys, more than max_key_bytes = {most}; allow as many, or compile fewer rows"
)]
pub struct TooManyKeys {
    /// The fewest key bytes of a run.
    pub least: u64,
    /// How many it may have.
    pub most: u64,
}

/// One form of one comparison.
#[derive(Clone, Copy)]
struct Way {
    form: Form,
    keys: PerParty,
    seconds: f64,
}

/// State the form of every comparison of which the family knows several: the fastest ones of which the keys are few enough.
/// It goes by the family's shipped rates, so that a model gives the same plan everywhere. Gives what was chosen, in words; nothing where there was nothing to choose.
pub fn choose_forms(plan: &mut Plan, prices: &dyn Prices, aim: &Aim) -> Result<Option<String>, TooManyKeys> {
    let state = |plan: &mut Plan, chosen: &[Comparison]| {
        chosen.iter().for_each(|c| plan.nodes[c.node].form = Some(c.ways[c.at].form));
    };
    let there = prices.on(&aim.network);
    let prices = there.as_ref().map_or(prices, |(_, prices)| &**prices);
    let rates = prices.rates();
    let mut chosen = comparisons(plan, prices, &rates, &aim.network);
    state(plan, &chosen);
    let from_disk = rates.for_keys(keys(plan, prices).most());
    if from_disk != rates {
        chosen = comparisons(plan, prices, &from_disk, &aim.network);
        state(plan, &chosen);
    }
    if let Some(most) = aim.max_key_bytes {
        let used = keys(plan, prices);
        shrink(&mut chosen, used, most).map_err(|least| TooManyKeys { least, most })?;
        state(plan, &chosen);
    }
    let cap = aim.max_key_bytes.map_or(String::new(), |most| format!(", at most {most} bytes of keys"));
    let text = |forms| format!("comparisons: {forms}; network {}{cap}", aim.network);
    Ok(if chosen.is_empty() { None } else { summary(plan).map(text) })
}

/// A node with several forms: from the fastest to the one with the fewest keys, each step dearer in time for a byte saved
/// than the one before.
struct Comparison {
    node: usize,
    ways: Vec<Way>,
    at: usize,
}

fn comparisons(plan: &Plan, prices: &dyn Prices, rates: &Rates, network: &Network) -> Vec<Comparison> {
    let known = known(plan);
    let of = |node: usize| {
        let operation = Operation::of(plan, node, &known);
        let way = |form: Form| {
            let operation = Operation { form: Some(form), ..operation.clone() };
            let cost = prices.operation(&operation);
            // what parties prepare among themselves takes their time as well
            let before = offline_seconds(&cost.offline, rates, network);
            let seconds = before + seconds(&cost, &Units::of(&operation, &cost), rates, network);
            Way { form, keys: cost.key_bytes, seconds }
        };
        let ways = hull(prices.forms(&operation).into_iter().map(way).collect());
        (!ways.is_empty()).then_some(Comparison { node, ways, at: 0 })
    };
    (0..plan.nodes.len()).filter(|&id| Form::applies(&plan.nodes[id].op)).filter_map(of).collect()
}

/// The lower hull of keys over seconds, fastest first: the ways that are best for some worth of a key byte.
fn hull(mut ways: Vec<Way>) -> Vec<Way> {
    ways.sort_by(|a, b| a.seconds.total_cmp(&b.seconds).then(a.keys.most().cmp(&b.keys.most())));
    let mut hull: Vec<Way> = Vec::new();
    for way in ways {
        if hull.last().is_some_and(|last| way.keys.most() >= last.keys.most()) {
            continue;
        }
        while let [.., a, b] = hull[..]
            && saved(&a, &b) <= saved(&a, &way)
        {
            hull.pop();
        }
        hull.push(way);
    }
    hull
}

/// Key bytes saved for a second more.
fn saved(fast: &Way, small: &Way) -> f64 {
    (fast.keys.most() - small.keys.most()) as f64 / (small.seconds - fast.seconds)
}

/// Take the steps that save most key bytes for a second until `used` is at most `most` at every party. The error is the
/// least possible.
fn shrink(chosen: &mut [Comparison], mut used: PerParty, most: u64) -> Result<(), u64> {
    let mut steps: Vec<(f64, usize)> = Vec::new();
    for (at, c) in chosen.iter().enumerate() {
        steps.extend(c.ways.windows(2).map(|pair| (saved(&pair[0], &pair[1]), at)));
    }
    // stable: the steps of one comparison are taken in their order, since each is worth less than the one before
    steps.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (_, at) in steps {
        if used.most() <= most {
            return Ok(());
        }
        let c = &mut chosen[at];
        used += c.ways[c.at + 1].keys;
        used -= c.ways[c.at].keys;
        c.at += 1;
    }
    if used.most() <= most { Ok(()) } else { Err(used.most()) }
}

/// Key bytes of a run.
fn keys(plan: &Plan, prices: &dyn Prices) -> PerParty {
    let known = known(plan);
    (0..plan.nodes.len()).map(|id| price(plan, id, &known, prices).key_bytes).sum()
}

/// What a plan would cost if its comparisons had the forms that a network asks for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    /// `this plan`, or the network for which forms were chosen.
    pub compiled_for: String,
    /// The forms, in words.
    pub comparisons: String,
    /// Key bytes of a run, of the party with more.
    pub key_bytes: u64,
    /// Rounds of a run.
    pub rounds: u64,
    /// Predicted seconds of a run between machines in one place.
    pub lan_s: f64,
    /// The same between distant ones.
    pub wan_s: f64,
}

/// The plan as it is, and with the forms that a LAN and a WAN ask for. Empty where the family has nothing to choose.
pub fn alternatives(plan: &Plan, prices: &dyn Prices, rates: &Rates) -> Vec<Alternative> {
    let of = |compiled_for: String, plan: &Plan| {
        let on = |network| estimate(plan, prices, rates, network);
        let (lan, wan): (Estimate, Estimate) = (on(&Network::LAN), on(&Network::WAN));
        Alternative {
            compiled_for,
            comparisons: summary(plan).unwrap_or_else(|| "the protocol's own way".into()),
            key_bytes: lan.total.key_bytes.most(),
            rounds: lan.total.rounds,
            lan_s: lan.seconds,
            wan_s: wan.seconds,
        }
    };
    let mut all = vec![of("this plan".into(), plan)];
    for network in [Network::LAN, Network::WAN] {
        let mut other = plan.clone();
        let aim = Aim { network, ..Aim::default() };
        match choose_forms(&mut other, prices, &aim) {
            Ok(Some(_)) => all.push(of(network.to_string(), &other)),
            // nothing to choose, or a cap, which is not given
            Ok(None) | Err(_) => return Vec::new(),
        }
    }
    all
}

/// What it takes to prepare a run in one of several ways.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Preparation {
    /// What a deployment sets for it.
    pub set: &'static str,
    /// Bytes that one party sends to the others, all of them together.
    pub wire_bytes: u64,
    /// Predicted seconds between machines in one place.
    pub lan_s: f64,
    /// The same between distant ones.
    pub wan_s: f64,
}

/// Every way of preparing a run of the plan. Empty where the family has one way only.
pub fn preparations(plan: &Plan, prices: &dyn Prices, rates: &Rates) -> Vec<Preparation> {
    let of = |(set, prices): (&'static str, Box<dyn Prices>)| {
        let on = |network| estimate(plan, &*prices, rates, network);
        let (lan, wan): (Estimate, Estimate) = (on(&Network::LAN), on(&Network::WAN));
        let wire_bytes = lan.total.offline.wire_bytes;
        Preparation { set, wire_bytes, lan_s: lan.offline_seconds, wan_s: wan.offline_seconds }
    };
    prices.preparations().into_iter().map(of).collect()
}
