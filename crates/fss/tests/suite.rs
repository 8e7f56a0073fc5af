//! The shared suite over `fss`: both evaluators in two threads over an in-memory channel, a real dealer.

use privet_family::NodeStats;
use privet_fss::keys::MemoryKeys;
use privet_fss::{Dealer, Eval, Evaluator, MaskedWeights, PartyId, SessionMasks, rounding_coins};
use privet_kernels::{Device, cpu};
use privet_net::mem;
use privet_plan::cost::{Fss, GateCost};
use privet_plan::ir::{Op, Plan};
use privet_plan::suite::{Case, Operands, cases};
use privet_plan::{Coins, interpret};
use privet_prg::{Domain, Seed, TreeHash};
use privet_ring::{Ring, Tensor};
use std::collections::{BTreeMap, HashMap};

/// Everything one run leaves behind.
struct Run {
    outputs: Vec<Vec<u64>>,
    stats: [Vec<NodeStats>; 2],
    dealt: Vec<NodeStats>,
    rounds: u64,
}

struct RecordCoins<'a> {
    plan: &'a Plan,
    record: &'a Seed,
}

impl Coins for RecordCoins<'_> {
    fn draw(&mut self, node: usize, _count: usize, _shift: u32) -> Option<Vec<u64>> {
        rounding_coins(self.plan, self.record, node)
    }
}

fn add(ring: Ring, a: &[u64], b: &[u64]) -> Vec<u64> {
    a.iter().zip(b).map(|(a, b)| ring.wrap(a.wrapping_add(*b))).collect()
}

/// The protocol, as dealer, owners, evaluators and receiver would run it.
fn run(plan: &Plan, [inputs, weights]: &[Operands; 2], session: &Seed, record: &Seed) -> Run {
    let device = cpu(1);
    let masks = SessionMasks::new(plan, device.as_ref(), session);
    let mut keys = [MemoryKeys::default(), MemoryKeys::default()];
    let dealt = Dealer::new(plan, device.as_ref(), &masks).deal(record, &mut keys, &mut |_| {}).unwrap();

    let seeds = Dealer::record_seeds(record);
    let mut masked_inputs = HashMap::new();
    let mut masked_weights = BTreeMap::new();
    for (v, node) in plan.nodes.iter().enumerate() {
        let ring = Ring::new(node.ty.bits);
        match &node.op {
            Op::Input { name, .. } => {
                let r = seeds.each_ref().map(|s| Evaluator::input_mask_share(plan, s, v));
                masked_inputs.insert(v, add(ring, inputs[name].data(), &add(ring, &r[0], &r[1])));
            }
            Op::Weight { name, .. } => {
                let r = masks.party_seeds().each_ref().map(|s| Evaluator::input_mask_share(plan, s, v));
                masked_weights
                    .insert(name.clone(), add(ring, weights[name].data(), &add(ring, &r[0], &r[1])));
            }
            _ => {}
        }
    }

    let (c0, c1) = mem::pair();
    let hash = TreeHash::new(*masks.hash_keys());
    let mut sides =
        keys.into_iter().zip([Box::new(c0), Box::new(c1)]).enumerate().map(|(b, (keys, channel))| {
            let (plan, hash, inputs) = (plan.clone(), hash.clone(), masked_inputs.clone());
            let (device, weights) = (device.clone(), masked_weights.clone());
            let (session_seed, seed) = (masks.party_seeds()[b].clone(), seeds[b].clone());
            std::thread::spawn(move || {
                evaluate(
                    b,
                    device.as_ref(),
                    &plan,
                    &hash,
                    session_seed,
                    seed,
                    weights,
                    inputs,
                    keys,
                    *channel,
                )
            })
        });
    let sides: [_; 2] = [sides.next().unwrap(), sides.next().unwrap()];
    let [(y0, s0, rounds), (y1, s1, _)] = sides.map(|s| s.join().unwrap());
    let outputs = plan
        .outputs
        .iter()
        .enumerate()
        .map(|(i, o)| add(Ring::new(plan.nodes[o.value].ty.bits), &y0[i], &y1[i]));
    Run { outputs: outputs.collect(), stats: [s0, s1], dealt, rounds }
}

#[expect(clippy::too_many_arguments, reason = "one thread's world")]
fn evaluate(
    b: usize,
    device: &dyn Device,
    plan: &Plan,
    hash: &TreeHash,
    session_seed: Seed,
    seed: Seed,
    weights: BTreeMap<String, Vec<u64>>,
    inputs: HashMap<usize, Vec<u64>>,
    mut keys: MemoryKeys,
    mut channel: impl privet_net::Channel,
) -> (Vec<Vec<u64>>, Vec<NodeStats>, u64) {
    let weights = MaskedWeights::new(plan, device, session_seed, weights).unwrap();
    let mut cx = Eval::new(PartyId::BOTH[b], device, hash, seed, &mut keys, &mut channel);
    let (y, stats) = Evaluator::new(plan, &weights).run(&mut cx, inputs, &mut |_| {}).unwrap();
    assert_eq!(keys.bytes(), 0, "keys left over");
    let rounds = channel.meter().total().rounds;
    (y, stats, rounds)
}

fn check(case: &Case, seed: &Seed) {
    let mut stream = seed.derive(Domain::Public, 0).stream();
    let operands = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
    let (session, record) = (seed.derive(Domain::Public, 1), seed.derive(Domain::Public, 2));
    let mut coins = RecordCoins { plan: &case.plan, record: &record };
    let truth: Vec<Tensor> = interpret(&case.plan, &operands[0], &operands[1], &mut coins).unwrap();
    let run = run(&case.plan, &operands, &session, &record);
    case.compare(&run.outputs, &truth);
    let rounds: u64 = run.stats[0].iter().map(|s| s.rounds).sum();
    assert_eq!(rounds, run.rounds, "{}: rounds counted by the network", case.name);
    let key_bytes: Vec<u64> = run.dealt.iter().map(|s| s.key_bytes).collect();
    for (v, dealt) in key_bytes.iter().enumerate() {
        let read = run.stats.iter().map(|s| s[v].key_bytes).max().unwrap();
        assert_eq!(read, *dealt, "{}: key bytes of node {v}", case.name);
    }
    let counted: Vec<NodeStats> = run.stats[0].iter().zip(&run.stats[1]).map(|(a, b)| a.larger(b)).collect();
    declared_equals_counted(case, &counted);
}

/// What the cost model declares for each node is what the engine counted.
fn declared_equals_counted(case: &Case, counted: &[NodeStats]) {
    for (v, node) in case.plan.nodes.iter().enumerate() {
        if node.op.is_local() || matches!(node.op, Op::Input { .. } | Op::Weight { .. }) {
            continue;
        }
        let operands: Vec<_> = node.inputs.iter().map(|&i| &case.plan.nodes[i].ty).collect();
        let declared = Fss.operation(&node.op, &operands, &node.ty);
        let found = &counted[v];
        assert_eq!(
            (declared.rounds, declared.key_bytes, declared.wire_bytes, declared.comparisons, declared.aes),
            (found.rounds, found.key_bytes, found.sent_bytes, found.comparisons, found.aes_calls),
            "{}: node {v} {:?}: (rounds, key bytes, sent bytes, comparisons, AES calls) declared and counted",
            case.name,
            node.op
        );
    }
}

#[test]
fn protocol_equals_interpreter_on_the_suite() {
    for case in cases() {
        case.plan.check().unwrap_or_else(|e| panic!("{}: {e}", case.name));
        for _ in 0..3 {
            check(&case, &Seed::random());
        }
    }
}
