//! Prices of `heot`, made of what gates declare that they use ([`Uses`]).
//!
//! A party's bytes are those of the side that sends more at the operation: gates are the server's, linear layers the client's. What
//! is stored is the record of material, exactly, and that of masks. What is done before is an estimate: transfers by Ferret, what makes products
//! of random numbers, and masks of linear layers. Hints are once a session ([`Prices::session`]), of packings for the runs that a session begins with.

use crate::encryption::COINS_BYTES;
use crate::forecast::{Heot, PACKINGS, PLANNED_RUNS, owns_weights, packed_for, suiting};
use crate::gate::{At, Kind, kind};
use crate::gates::linear;
use crate::gathered::keys_made;
use crate::hints::LEAST_SPARE;
use crate::leaf::Digits;
use crate::material::{needs, source, transfers};
use crate::packing::{Packing, packing};
use crate::uses::Uses;
use privet_family::Products;
use privet_he::torus::{Link, NoTorus, PackingAim, TorusCost, TorusParameters};
use privet_net::DISTANCE_ROUNDS;
use privet_ot::Source;
use privet_ot::channel::START_BYTES;
use privet_ot::params::B12;
use privet_plan::cost::{
    Cost, Known, Network, Offline, Operand, Operation, PreparationUnits, Prices, Rates, Security, Units,
};
use privet_plan::ir::{Node, Op, PLAN_VERSION, Rounding, Type, ValueId};
use privet_plan::{Form, Plan, Spread};
use privet_ring::Ring;

fn packed(ty: &Type) -> u64 {
    Ring::new(ty.bits).packed_bytes(ty.len()) as u64
}

/// An operation as a node of a plan that has nothing else, so that gates can be asked: what the server knows is a weight there.
fn alone(of: &Operation<'_>) -> (Plan, ValueId) {
    let node = |op, inputs, ty: &Type| Node { op, inputs, ty: ty.clone(), layer: String::new(), form: None };
    let operand = |x: &Operand<'_>| {
        let name = String::new();
        let op = match x.known {
            Known::Role(role) if owns_weights(role) => Op::Weight { name, owner: role.into() },
            Known::Role(_) | Known::Nobody | Known::Everybody => {
                Op::Input { name, owner: String::new(), limit: 1.0 }
            }
        };
        node(op, Vec::new(), x.ty)
    };
    let mut nodes: Vec<Node> = of.operands.iter().map(operand).collect();
    let mut inputs: Vec<ValueId> = of.alike.clone();
    for (i, x) in of.operands.iter().enumerate() {
        let Some(Spread { rows, each }) = x.spread else { continue };
        let ty = |shape: Vec<usize>| Type { shape, ..x.ty.clone() };
        nodes[i].ty = ty(vec![rows, 1]);
        nodes.push(node(Op::Expand, vec![i], &ty(vec![rows, each])));
        nodes.push(node(Op::Reshape, vec![nodes.len() - 1], x.ty));
        inputs.iter_mut().filter(|input| **input == i).for_each(|input| *input = nodes.len() - 1);
    }
    if let (Op::Relu, Some(cut)) = (of.op, of.cut) {
        let before = Type { bits: cut.bits, ..nodes[0].ty.clone() };
        let after = std::mem::replace(&mut nodes[0].ty, before);
        let op = Op::Truncate { shift: cut.shift, rounding: Rounding::Floor };
        nodes.push(node(op, inputs, &after));
        inputs = vec![nodes.len() - 1];
    }
    nodes.push(Node { form: of.form, ..node(of.op.clone(), inputs, of.result) });
    let id = nodes.len() - 1;
    if let (Op::Truncate { .. }, Some(_)) = (of.op, of.cut) {
        nodes.push(node(Op::Relu, vec![id], of.result));
    }
    let (name, outputs, updates) = (String::new(), Vec::new(), Vec::new());
    (Plan { version: PLAN_VERSION, name, batch: 1, nodes, outputs, updates }, id)
}

/// Material and messages of a gate.
fn used(uses: Uses, link: Link) -> Cost {
    let [server, client] = uses.transfers().map(|n| n as u64);
    // by Ferret the side that has both strings sends
    let (sent, made) = (|transfers: u64| transfers * fewest_bits(link) / 80, uses.made());
    let wire_bytes = (sent(server) + made.bytes[0]).max(sent(client) + made.bytes[1]);
    let (transfers, values, rounds) = (server + client + made.words / WORDS, made.values, made.steps);
    let offline = Offline { transfers, values, wire_bytes, rounds, ..Offline::default() };
    Cost {
        wire_bytes: uses.bytes.into(),
        rounds: uses.steps,
        key_bytes: uses.stored().into(),
        aes: uses.blocks(),
        offline,
        ..Cost::default()
    }
}

/// Elements that seeds expand to in the time of a transfer.
const WORDS: u64 = 5;
/// Blocks that take as long as reading all pieces of an exponential's quadratic under masks.
const QUADRATIC: u64 = 16;
/// Base transfers of both directions.
const BASE: u64 = 2 * 128;
/// Rounds in which both sides agree on a preparation's numbers, and on its records being whole: counted, as `privet bench relu-1000 --protocol
/// heot --set packing=near --network rtt=1s,bandwidth=100Gbit/s` takes 5.5 s, of which transfers begin in two rounds.
const AGREED: u64 = 9;
/// Bits of a transfer by Ferret, in tenths.
const BITS: u64 = 7;
/// The same where a run has very many of them, and the sides are distant.
const BITS_OF_MANY: u64 = 4;

/// Bits of a transfer over such a link, in tenths, at least: a run with fewer transfers has the rest as its own cost.
fn fewest_bits(link: Link) -> u64 {
    match link {
        Link::Near => BITS,
        Link::Distant => BITS_OF_MANY,
    }
}

/// A layer with a hint: the client sends all.
fn layer(at: &At<'_>, cost: &TorusCost) -> Cost {
    let (run, kept) = (cost.run_bytes as u64, packed(&at.node().ty));
    let wire_bytes = (cost.prepare_bytes - cost.zero_bytes) as u64;
    Cost {
        wire_bytes: [0, run].into(),
        rounds: 1,
        key_bytes: [kept, run + kept].into(),
        // the client's masks go out layer by layer, and nothing comes back; encryptions of 0 are the run's (`zeros`), and so is work (`values`)
        offline: Offline { wire_bytes, ..Offline::default() },
        ..Cost::default()
    }
}

impl Heot {
    /// Bytes of encryptions of 0 before a run, under keys that layers share: of each kind as many as the layer with the most needs.
    fn zeros(&self, plan: &Plan) -> u64 {
        let mut kinds: Vec<(TorusParameters, usize)> = Vec::new();
        for at in (0..plan.nodes.len()).map(|id| At { plan, id }).filter(linear::has_hint) {
            let Ok((p, _, cost)) = self.packing(&at) else {
                continue;
            };
            match kinds.iter_mut().find(|(known, _)| known.shares_keys(&p)) {
                Some((_, bytes)) => *bytes = cost.zero_bytes.max(*bytes),
                None => kinds.push((p, cost.zero_bytes)),
            }
        }
        kinds.iter().map(|(_, bytes)| *bytes as u64).sum()
    }

    /// What masks of layers take before a run, in values that are transformed. The client draws those of a layer while the server computes with
    /// those of layers before.
    fn values(&self, plan: &Plan) -> u64 {
        let (mut client, mut server) = (0, 0);
        for at in (0..plan.nodes.len()).map(|id| At { plan, id }).filter(linear::has_hint) {
            let Ok((_, _, cost)) = self.packing(&at) else {
                continue;
            };
            let work = cost.prepare_values();
            client += work.client;
            server = client.max(server + work.multiplier) + work.server;
        }
        server
    }

    /// The packing of a layer with a hint, of weights whose norms do not exceed their fraction by more than the least.
    fn packing(&self, at: &At<'_>) -> Result<Packing, NoTorus> {
        packing(at, at.operand(1).frac + LEAST_SPARE, self.aim())
    }

    /// What packings are for, where nobody knows better: sides that are near.
    fn aim(&self) -> PackingAim {
        let runs = packed_for(self.runs.unwrap_or(PLANNED_RUNS));
        PackingAim { runs, link: self.link.unwrap_or(Link::Near) }
    }
}

impl Prices for Heot {
    fn protocol(&self) -> &'static str {
        crate::FACTS.name
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    fn operation(&self, operation: &Operation<'_>) -> Cost {
        let gate = match kind(operation.op) {
            // a seed to one side, and what is left to the other
            Kind::Input { .. } => {
                let client_bytes = 16 + packed(operation.result);
                return Cost { client_bytes, rounds: 1, ..Cost::default() };
            }
            Kind::Weight { .. } | Kind::Public | Kind::Lacks(_) => return Cost::default(),
            Kind::Gate(gate) => gate,
        };
        let (plan, id) = alone(operation);
        let at = At { plan: &plan, id };
        let macs = Products::of(&plan, at.node()).map_or(0, |products| products.macs());
        let cost = if linear::has_hint(&at) {
            // a layer without a packing is refused
            self.packing(&at).map_or(Cost::default(), |(_, _, cost)| layer(&at, &cost))
        } else {
            used(gate.uses(&at), self.aim().link)
        };
        let is_exponential = matches!(operation.op, Op::Exponential { .. });
        let read = if is_exponential { QUADRATIC * operation.result.len() as u64 } else { 0 };
        Cost { macs, aes: cost.aes + read, ..cost }
    }

    fn has(&self, op: &Op) -> bool {
        !matches!(kind(op), Kind::Lacks(_))
    }

    /// The client masks what a layer reads. Filters that move by one where half of their results are read make more hints: that is for
    /// distant sides.
    fn joined_macs(&self, network: &Network) -> Option<u64> {
        Some(match self.link.unwrap_or_else(|| suiting(network.rtt)) {
            Link::Near => 2,
            Link::Distant => 3,
        })
    }

    fn cuts_promised(&self) -> bool {
        true
    }

    /// Digits of two bits send less, and take a step more. A truncation whose ReLU makes its carry compares nothing.
    fn forms(&self, operation: &Operation<'_>) -> Vec<Form> {
        let free = if let Op::Truncate { rounding, .. } = operation.op {
            *rounding == Rounding::OneUlp || operation.cut.is_some()
        } else {
            false
        };
        let compares = Form::applies(operation.op) && !free;
        if compares { Digits::FORMS.to_vec() } else { Vec::new() }
    }

    /// Each side sends the receiver its share.
    fn output(&self, ty: &Type) -> Cost {
        Cost { client_bytes: packed(ty), rounds: 1, ..Cost::default() }
    }

    /// What begins a run's transfers, and keys that layers share; as if both sides measured how far they are: where a deployment sets `packing` they do not.
    fn run(&self, plan: &Plan) -> Cost {
        let (needs, link) = (needs(plan), self.aim().link);
        let [server, client] = transfers(&needs);
        let source = source(server + client, link);
        let (first, once) = match source {
            Source::SoftSpoken(_) => (0, 0),
            Source::Ferret(p) => ((p.reserve() as u64).div_ceil(8192) * 15_360, 1),
        };
        let more = match source {
            Source::Ferret(B12) => 0,
            Source::Ferret(_) | Source::SoftSpoken(_) => {
                server.max(client) as u64 * (BITS - fewest_bits(link)) / 80
            }
        };
        let coins = if needs.iter().any(|need| need.of.is_encrypted()) { COINS_BYTES as u64 } else { 0 };
        let keys = needs.iter().any(|need| need.of.is_gathered()).then(keys_made).unwrap_or_default();
        let wire_bytes = START_BYTES as u64 + first + more + coins + keys.bytes[0] + self.zeros(plan);
        let rounds = 2 + once + AGREED + DISTANCE_ROUNDS + keys.steps;
        let values = self.values(plan) + keys.values;
        let offline = Offline { base: BASE, values, wire_bytes, rounds, ..Offline::default() };
        Cost { offline, ..Cost::default() }
    }

    /// Hints, from the server.
    fn session(&self, plan: &Plan) -> Cost {
        let hint = |at: At<'_>| self.packing(&at).map_or(0, |(_, _, cost)| cost.hint_bytes as u64);
        let layers = (0..plan.nodes.len()).map(|id| At { plan, id }).filter(linear::has_hint);
        let wire_bytes: u64 = layers.map(hint).sum();
        Cost { wire_bytes: [wire_bytes, 0].into(), rounds: u64::from(wire_bytes > 0), ..Cost::default() }
    }

    fn on(&self, network: &Network) -> Option<(&'static str, Box<dyn Prices>)> {
        if self.link.is_some() {
            return None;
        }
        let link = suiting(network.rtt);
        let (set, _) = PACKINGS.into_iter().find(|(_, other)| *other == link)?;
        Some((set, Box::new(Heot { link: Some(link), ..*self })))
    }

    fn preparations(&self) -> Vec<(&'static str, Box<dyn Prices>)> {
        PACKINGS
            .map(|(set, link)| (set, Box::new(Heot { link: Some(link), ..*self }) as Box<dyn Prices>))
            .into()
    }

    /// A word an element: a share.
    fn held_bytes(&self, ty: &Type) -> u64 {
        8 * ty.len() as u64
    }

    /// Fitted by hand to ReLU of 10^6 elements, LeNet of 1 and 128 rows, SqueezeNet, GELU and a softmax: both parties on two cores of one AMD EPYC
    /// (Zen 5) with AVX-512, over loopback. Multiplications are plain ones of one side. A block of AES is one of a table's pads, with what is computed
    /// beside: entries that are turned, masked and packed. Its rate is no fit to that machine: a Zen 3 with AVX2 alone takes 5.2e-9 by its
    /// calibration, and 1.4 to 2.1 times as long online for ReLU, LeNet and SqueezeNet. The rate of values is a Zen 4's, by its calibration.
    fn rates(&self) -> Rates {
        let default = Rates::default();
        let macs = 8e-11;
        let seconds = Units {
            wide_macs: macs,
            window_macs: macs,
            narrow_macs: macs,
            table_entries: 0.0,
            aes: 3e-9,
            wire_bytes: 2.4e-9,
            elements: 5e-9,
            rounds: 6e-5,
            ..default.seconds
        };
        let before = PreparationUnits {
            transfers: 1.45e-8,
            base: 1.6e-4,
            values: 5e-9,
            wire_bytes: 2.7e-9,
            rounds: 2e-4,
            ..default.before
        };
        Rates { seconds, before, ..default }
    }
}
