//! The list of openings known before a run is exactly what the evaluators open, in their order.

mod common;

use common::in_every_form;
use privet_family::{Class, Forecast, Opening, OpeningKind, When};
use privet_fss::keys::MemoryKeys;
use privet_fss::{Dealer, Eval, Evaluator, Fss, Given, MaskedWeights, PartyId, SessionMasks, States};
use privet_kernels::cpu;
use privet_plan::Plan;
use privet_plan::ir::Op;
use privet_plan::suite::{cases, optional_cases, training_cases};
use privet_prg::Seed;
use privet_ring::Ring;
use privet_testkit::Mesh;
use std::collections::{BTreeMap, HashMap};

/// What evaluator 0 opens. What is opened does not depend on the data, so the operands are any masked values.
fn opened(plan: &Plan) -> Vec<Opening> {
    let device = cpu(1);
    let masks = SessionMasks::new(plan, device.as_ref(), &Seed::random());
    let record = Seed::random();
    let mut keys = [MemoryKeys::default(), MemoryKeys::default()];
    Dealer::new(plan, device.as_ref(), &masks).deal(0, &record, &mut keys, &mut |_| {}).unwrap();
    let any = |bits: u32, n: usize| Seed::random().stream().elements(Ring::new(bits), n);
    let (mut inputs, mut weights) = (HashMap::new(), BTreeMap::new());
    let (mut publics, mut states) = (BTreeMap::new(), States::new());
    for (id, node) in plan.nodes.iter().enumerate() {
        match &node.op {
            Op::Input { .. } => drop(inputs.insert(id, any(node.ty.bits, node.ty.len()))),
            Op::Weight { name, .. } => drop(weights.insert(name.clone(), any(node.ty.bits, node.ty.len()))),
            Op::State { name, .. } => states.insert(name, any(node.ty.bits, node.ty.len())),
            Op::Public { name, .. } => drop(publics.insert(name.clone(), any(64, 1)[0])),
            _ => {}
        }
    }
    let seeds = Dealer::record_seeds(&record);
    let mut sides = Mesh::new(2).run_with(keys, |links, mut keys| {
        let b = links.me();
        let session = masks.party_seeds()[b].clone();
        let weights = MaskedWeights::new(plan, device.as_ref(), session, weights.clone()).unwrap();
        let (party, seed, hash) = (PartyId::BOTH[b], seeds[b].clone(), masks.hash_keys());
        let mut cx = Eval::new(party, device.as_ref(), hash, 0, seed, &mut keys, links.to(1 - b));
        let given = Given { inputs: inputs.clone(), publics: publics.clone(), states: &states };
        Evaluator::new(plan, &weights).run(&mut cx, given, &mut |_| {}).unwrap();
        cx.openings().to_vec()
    });
    assert_eq!(sides[0], sides[1], "{}: both evaluators open the same", plan.name);
    sides.swap_remove(0)
}

#[test]
fn the_list_is_what_the_evaluators_open() {
    for case in in_every_form(cases().into_iter().chain(training_cases()).chain(optional_cases()).collect()) {
        let listed: Vec<_> = Fss
            .openings(&case.plan)
            .into_iter()
            .filter(|o| o.class == Class::Masked && o.when == When::Run)
            .filter(|o| o.node.is_some_and(|v| !matches!(case.plan.nodes[v].op, Op::Input { .. })))
            .map(|o| (format!("{} / {}", o.layer, o.what), o.bits))
            .collect();
        let opened = opened(&case.plan);
        assert!(opened.iter().all(|o| o.kind == OpeningKind::Masked), "{}", case.name);
        // A tournament level without a pair opens nothing.
        let opened = opened.into_iter().filter(|o| o.bits > 0);
        let opened: Vec<_> = opened.map(|o| (o.what, o.bits)).collect();
        assert_eq!(listed, opened, "{}", case.name);
    }
}
