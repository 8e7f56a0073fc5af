//! What ReLU costs among parties who trust nobody: preparing the record, then the run. Time, processors, bytes, peak memory.
//!
//! `cargo run --release -p privet-semi2k --example relu -- [ELEMENTS [PARTIES [SOURCE [BITS]]]]`; SOURCE is ss2, ss4, ss8
//! (SoftSpoken) or b10, b11, b12, b13 (Ferret). Parties are threads of this process, joined by channels in memory. Results
//! are compared with ReLU in clear.

use privet_family::keys::MemoryKeys;
use privet_family::{Products, States};
use privet_kernels::cpu;
use privet_net::{Channel, Step};
use privet_ot::{Pair, Parameters, Source, Width};
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Plan, Type};
use privet_prg::Seed;
use privet_ring::Ring;
use privet_semi2k::{
    Eval, Evaluator, Factor, Given, Joint, Linear, MaskedWeights, Own, PartySeed, Peer, PrepareError, Public,
    Transfers, Words, all_seeds, prepare,
};
use privet_testkit::{Links, Mesh};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Barrier, Mutex};
use std::time::Instant;

fn source(name: &str) -> Source {
    match name {
        "ss2" => Source::SoftSpoken(Width::Two),
        "ss4" => Source::SoftSpoken(Width::Four),
        "ss8" => Source::SoftSpoken(Width::Eight),
        set => Source::Ferret(
            Parameters::ALL.into_iter().find(|p| p.name == set).expect("a source of transfers"),
        ),
    }
}

fn relu(n: usize, bits: u32) -> Plan {
    let node = |op, inputs| Node {
        op,
        inputs,
        ty: Type { shape: vec![1, n], bits, frac: 0 },
        layer: "relu".into(),
        form: None,
    };
    let input = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 1.0 };
    let plan = Plan {
        version: PLAN_VERSION,
        name: "relu".into(),
        batch: 1,
        nodes: vec![node(input, vec![]), node(Op::Relu, vec![0])],
        outputs: vec![Output { value: 1, name: "y".into(), to: "receiver".into() }],
        updates: vec![],
    };
    plan.check().expect("a plan");
    plan
}

/// A plan without linear layers asks for none.
struct NoLayers;

impl Linear for NoLayers {
    fn products(
        &mut self,
        _: &mut Transfers,
        _: Products,
        _: &Words,
        _: Factor,
    ) -> Result<Words, PrepareError> {
        unreachable!("there is no linear layer")
    }
}

/// What all parties share in this process: the plan, and the clocks.
struct Bench<'a> {
    plan: &'a Plan,
    source: Source,
    public: Seed,
    seeds: [&'a [PartySeed]; 2],
    input: Vec<u64>,
    together: Barrier,
    laps: Mutex<Vec<Lap>>,
    last: Mutex<(Instant, f64)>,
}

struct Lap {
    what: &'static str,
    seconds: f64,
    processors: f64,
    /// What party 0 sent.
    bytes: u64,
}

/// CPU seconds of this process.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid clock and a valid place.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) }, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

impl Bench<'_> {
    /// Waits for all parties; party 0 writes down what it took.
    fn lap(&self, links: &mut Links, sent: &mut u64, what: &'static str) {
        self.together.wait();
        if links.me() == 0 {
            let all: u64 = links.others().map(|(_, channel)| channel.meter().total().sent).sum();
            let now = (Instant::now(), cpu_seconds());
            let before = std::mem::replace(&mut *self.last.lock().expect("a clock"), now);
            let (seconds, processors) = ((now.0 - before.0).as_secs_f64(), now.1 - before.1);
            self.laps.lock().expect("laps").push(Lap { what, seconds, processors, bytes: all - *sent });
            *sent = all;
        }
        self.together.wait();
    }

    /// A party's shares of the result, and the bytes of its record.
    fn party(&self, links: &mut Links) -> (Vec<u64>, usize) {
        let (me, mut sent) = (links.me(), 0);
        let start = |(_, channel): (usize, &mut dyn Channel)| {
            Pair::start(channel, &Step::new(0, "start"), self.source, &Seed::random())
                .expect("base transfers")
        };
        let mut pairs: Vec<Pair> = links.others().map(start).collect();
        self.lap(links, &mut sent, "start");

        let public = Public::new(&self.public, 0);
        let [session, record] = self.seeds.map(|seeds| &seeds[me]);
        let mut keys = vec![MemoryKeys::default()];
        let peers = links.others().zip(&mut pairs);
        let peers = peers.map(|((number, channel), pair)| Peer { number, channel, pair }).collect();
        let own = Own { session, record, public: public.clone() };
        let mut layers = NoLayers;
        let mut joint = Joint::new(own, Transfers::new(me, peers, 1), &mut layers, &mut keys);
        prepare(self.plan, &mut joint, &mut |_| {}).expect("a record");
        self.lap(links, &mut sent, "prepare");

        let device = cpu(1);
        let weights = MaskedWeights::new(self.plan, device.as_ref(), session.clone(), BTreeMap::new());
        let (weights, states) = (weights.expect("no weights"), States::new());
        let (mut keys, inputs) = (keys.remove(0), HashMap::from([(0, self.input.clone())]));
        let bytes = keys.bytes();
        let peers = links.others().map(|(_, channel)| channel).collect();
        let mut cx = Eval::new(device.as_ref(), public, record.clone(), &mut keys, peers);
        let given = Given { inputs, publics: BTreeMap::new(), states: &states };
        let done = Evaluator::new(self.plan, &weights).run(&mut cx, given, &mut |_| {}).expect("a run");
        drop(cx);
        self.lap(links, &mut sent, "online");
        (done.outputs[0].to_vec(), bytes)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |i: usize, default: usize| arguments.get(i).map_or(default, |a| a.parse().expect("a number"));
    let (n, parties, bits) = (number(0, 100_000), number(1, 2), number(3, 64) as u32);
    let source = source(arguments.get(2).map_or("ss4", String::as_str));
    let (plan, ring) = (relu(n, bits), Ring::new(bits));
    let seeds = [Seed::random(), Seed::random()].map(|seed| all_seeds(parties, &seed));
    let x = Seed::random().stream().elements(ring, n);
    let mut input = x.clone();
    for seed in &seeds[1] {
        let mask = seed.operand_mask(&plan, 0);
        input.iter_mut().zip(mask.iter()).for_each(|(x, m)| *x = ring.wrap(x.wrapping_add(*m)));
    }
    let bench = Bench {
        plan: &plan,
        source,
        public: Seed::random(),
        seeds: [&seeds[0], &seeds[1]],
        input,
        together: Barrier::new(parties),
        laps: Mutex::default(),
        last: Mutex::new((Instant::now(), cpu_seconds())),
    };
    let all = Mesh::new(parties).run(|links| bench.party(links));
    for (i, x) in x.iter().enumerate() {
        let y = all.iter().fold(0u64, |sum, (share, _)| sum.wrapping_add(share[i]));
        assert_eq!(ring.wrap(y), if ring.signed(*x) < 0 { 0 } else { *x }, "element {i}");
    }
    println!("{n} ReLU of {bits} bits, {parties} parties, {source:?}");
    for Lap { what, seconds, processors, bytes } in bench.laps.into_inner().expect("laps") {
        let mb = bytes as f64 / 1e6;
        println!("{what:>8} {seconds:7.3} s, {processors:7.3} s of processors, {mb:8.3} MB from party 0");
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    println!(
        "record {:.1} bytes an element; peak memory of all parties {}",
        all[0].1 as f64 / n as f64,
        peak.trim()
    );
}
