use super::protocol::{CommonCoins, Shares, Step, split, sum};
use privet_plan::interpret_step;
use privet_plan::ir::{Node, Op};
use privet_plan::suite::cases;
use privet_prg::Seed;
use privet_ring::{Ring, Tensor};
use std::collections::BTreeMap;

/// Everybody's shares of operands.
fn shared(operands: &BTreeMap<String, Tensor>, ring: impl Fn(&str) -> Ring, parties: usize) -> Vec<Shares> {
    let mut all = vec![Shares::new(); parties];
    for (name, tensor) in operands {
        let shares = split(ring(name), tensor.data(), parties, &Seed::random());
        all.iter_mut().zip(shares).for_each(|(of, share)| drop(of.insert(name.clone(), share)));
    }
    all
}

/// Every plan of the shared suite, among every number of parties: outputs and states are the interpreter's under the same coins.
#[test]
fn every_case_of_the_suite_is_the_interpreters() {
    for (number, case) in cases().into_iter().enumerate() {
        let parties = 2 + number % 4;
        let mut random = Seed::random().stream();
        let [inputs, weights] = case.operands(&mut || random.elements(Ring::R64, 1)[0]);
        let plan = &case.plan;
        let common = Seed::random();
        let truth = interpret_step(plan, &inputs, &weights, &mut CommonCoins(&common)).unwrap();

        let ring = |wanted: &str| {
            let named = |n: &&Node| match &n.op {
                Op::Input { name, .. } | Op::Weight { name, .. } | Op::State { name, .. } => name == wanted,
                Op::Public { name, .. } => name == wanted,
                _ => false,
            };
            Ring::new(plan.nodes.iter().find(named).unwrap().ty.bits)
        };
        let publics =
            inputs.iter().map(|(n, t)| (n.clone(), t.data().first().copied().unwrap_or(0))).collect();
        let (inputs, weights) = (shared(&inputs, ring, parties), shared(&weights, ring, parties));
        let steps: Vec<Step<'_>> = (0..parties)
            .map(|me| Step {
                plan,
                me,
                parties,
                common: &common,
                inputs: &inputs[me],
                weights: &weights[me],
                publics: &publics,
            })
            .collect();
        let said: Vec<Vec<u8>> = steps.iter().map(|s| s.shares().unwrap()).collect();
        let found: Vec<_> = steps
            .iter()
            .map(|s| {
                let theirs = said.iter().enumerate().filter(|(p, _)| *p != s.me).map(|(_, b)| b.clone());
                s.finish(&theirs.collect::<Vec<_>>()).unwrap()
            })
            .collect();
        for (i, value) in truth.0.iter().enumerate() {
            let ring = Ring::new(plan.nodes[plan.outputs[i].value].ty.bits);
            let shares: Vec<Vec<u64>> = found.iter().map(|f| f.0[i].clone()).collect();
            assert_eq!(sum(ring, value.data().len(), &shares), value.data(), "{}: output {i}", case.name);
        }
        for (name, value) in &truth.1 {
            let shares: Vec<Vec<u64>> = found.iter().map(|f| f.1[name].clone()).collect();
            assert_eq!(sum(ring(name), value.data().len(), &shares), value.data(), "{}: {name}", case.name);
        }
    }
}
