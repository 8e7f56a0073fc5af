//! The form of every comparison: chosen by prices under a network, within so many key bytes, and kept.

mod common;

use common::build::Model;
use privet_plan::cost::{
    Aim, Cost, Network, Operation, PerParty, Prices, Security, TooManyKeys, alternatives, choose_forms,
};
use privet_plan::form::summary;
use privet_plan::graph::GraphOp;
use privet_plan::ir::{Plan, Type};
use privet_plan::program::{NamedPlan, PROGRAM_VERSION, Program};
use privet_plan::suite::Toll;
use privet_plan::{Form, LowerError, Lowered, Precision, Rates, Refusal, Target, estimate, lower_for};

/// [`Toll`] with chunks: a sixteenth of the keys and two rounds more, or an eighth and one.
struct Chunky;

const SMALL: Form = Form::Chunks { width: 4, fan: 4 };
const MIDDLE: Form = Form::Chunks { width: 7, fan: 9 };

impl Prices for Chunky {
    fn protocol(&self) -> &'static str {
        "chunky"
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    fn operation(&self, operation: &Operation<'_>) -> Cost {
        let tree = Toll.operation(operation);
        let (part, rounds) = match operation.form {
            None | Some(Form::Tree | Form::WithTruncation | Form::AfterTruncation) => return tree,
            Some(MIDDLE) => (8, 1),
            Some(Form::Chunks { .. }) => (16, 2),
        };
        let key_bytes = PerParty::alike(tree.key_bytes.most() / part);
        Cost { key_bytes, aes: 0, rounds: tree.rounds + rounds, ..tree }
    }

    fn output(&self, ty: &Type) -> Cost {
        Toll.output(ty)
    }

    fn forms(&self, operation: &Operation<'_>) -> Vec<Form> {
        if Form::applies(operation.op) { vec![Form::Tree, MIDDLE, SMALL] } else { Vec::new() }
    }
}

impl Target for Chunky {
    fn refusals(&self, _: &Plan) -> Vec<Refusal> {
        Vec::new()
    }
}

/// A wide layer, of which the keys are worth rounds, and a narrow one, of which they are not.
fn model(rows: usize) -> Model {
    let mut m = Model::new(7, rows);
    let x = m.input(&[rows, 10]);
    let wide = m.linear(x, 4000);
    let relu = m.map(GraphOp::Relu, wide);
    let narrow = m.linear(relu, 2);
    let last = m.map(GraphOp::Relu, narrow);
    m.finish(last);
    m
}

fn aim(network: Network, max_key_bytes: Option<u64>) -> Aim {
    Aim { network, max_key_bytes }
}

fn precision() -> Precision {
    Precision { bits: Some(64), fraction: Some(16), ..Precision::default() }
}

fn compiled(m: &Model, aim: &Aim) -> Result<Lowered, LowerError> {
    lower_for(&m.graph, &m.params, &precision(), &Chunky, aim)
}

fn cost(plan: &Plan) -> Cost {
    estimate(plan, &Chunky, &Rates::default(), &Network::LAN).total
}

#[test]
fn distant_parties_get_fewer_rounds_and_near_ones_fewer_keys() {
    let m = model(24);
    let [lan, wan] = [Network::LAN, Network::WAN].map(|n| compiled(&m, &aim(n, None)).unwrap());
    let of = |l: &Lowered| (cost(&l.plan).rounds, cost(&l.plan).key_bytes.most());
    let (near, far) = (of(&lan), of(&wan));
    assert!(far.0 < near.0 && far.1 > near.1, "{near:?} {far:?}");
    // exactly the comparisons state a form
    for node in &lan.plan.nodes {
        assert_eq!(node.form.is_some(), Form::applies(&node.op), "{:?}", node.op);
    }
    // the narrow layer is not worth a round, even near
    let forms: Vec<Form> = lan.plan.nodes.iter().filter_map(|n| n.form).collect();
    assert!(forms.contains(&Form::Tree) && forms.contains(&SMALL), "{forms:?}");
    let note = lan.notes.iter().find(|n| n.starts_with("comparisons: ")).unwrap();
    assert_eq!(note, &format!("comparisons: {}; network lan", summary(&lan.plan).unwrap()));
    assert!(note.contains(" by chunks of 4, 4 at a time; ") && note.contains(" by tree; "), "{note}");
    assert!(wan.notes.iter().any(|n| n.ends_with(" by tree; network wan")), "{:?}", wan.notes);
}

#[test]
fn equal_models_get_equal_plans() {
    for network in [Network::LAN, Network::WAN, Network { rtt: 5e-3, bandwidth: 1e8 }] {
        let aim = aim(network, Some(3_000_000));
        let [a, b] = [(); 2].map(|()| compiled(&model(8), &aim).unwrap());
        assert_eq!((a.plan.hash(), a.notes), (b.plan.hash(), b.notes));
    }
}

#[test]
fn keys_keep_to_the_cap_and_a_cap_that_is_too_small_is_told_the_least() {
    let m = model(8);
    let free = cost(&compiled(&m, &aim(Network::WAN, None)).unwrap().plan);
    let refused = compiled(&m, &aim(Network::WAN, Some(1000))).unwrap_err();
    let LowerError::Keys(TooManyKeys { least, most: 1000 }) = refused else { panic!("{refused}") };
    assert!(refused.to_string().contains(&format!("at least {least} bytes")), "{refused}");
    assert!(least < free.key_bytes.most() / 8);
    let mut rounds = free.rounds;
    for most in [
        free.key_bytes.most(),
        free.key_bytes.most() - 1,
        free.key_bytes.most() / 3,
        free.key_bytes.most() / 10,
        least,
    ] {
        let capped = compiled(&m, &aim(Network::WAN, Some(most))).unwrap();
        let found = cost(&capped.plan);
        assert!(found.key_bytes.most() <= most, "{} for {most}", found.key_bytes.most());
        assert!(found.rounds >= rounds, "fewer keys take more rounds");
        rounds = found.rounds;
        let says = format!("at most {most} bytes of keys");
        assert!(capped.notes.iter().any(|n| n.ends_with(&says)), "{:?}", capped.notes);
    }
    assert!(rounds > free.rounds);
    assert!(compiled(&m, &aim(Network::WAN, Some(least - 1))).is_err());
}

/// Where a family has nothing to choose the plan is that of before, and a cap holds or is refused.
#[test]
fn one_way_needs_no_choice() {
    let m = model(2);
    let of = |aim: &Aim| lower_for(&m.graph, &m.params, &precision(), &Toll, aim);
    let plan = of(&Aim::default()).unwrap();
    assert_eq!(plan.plan.hash(), of(&aim(Network::WAN, None)).unwrap().plan.hash());
    assert!(!plan.notes.iter().any(|n| n.starts_with("comparisons")));
    let keys = cost(&plan.plan).key_bytes.most();
    assert!(of(&aim(Network::LAN, Some(keys))).is_ok());
    let LowerError::Keys(refused) = of(&aim(Network::LAN, Some(keys - 1))).unwrap_err() else { panic!() };
    assert_eq!(refused, TooManyKeys { least: keys, most: keys - 1 });
    assert!(alternatives(&plan.plan, &Toll, &Rates::default()).is_empty());
}

#[test]
fn forms_are_kept_in_files_programs_and_other_batches() {
    let m = model(8);
    let plan = compiled(&m, &aim(Network::LAN, None)).unwrap().plan;
    assert_eq!(Plan::from_json(&plan.to_json()), Ok(plan.clone()));
    let plans = ["run", "again"].map(|name| NamedPlan { name: name.into(), plan: plan.clone() });
    let program = Program { version: PROGRAM_VERSION, name: "net".into(), plans: plans.to_vec() };
    assert_eq!(Program::from_json(&program.to_json()), Ok(program));
    // a plan without forms means what it meant
    let mut old = plan.clone();
    old.nodes.iter_mut().for_each(|n| n.form = None);
    assert!(!String::from_utf8(old.to_json()).unwrap().contains("form"));
    assert!(cost(&old).key_bytes.most() > cost(&plan).key_bytes.most() && old.hash() != plan.hash());
    // another batch is chosen for by its own sizes
    let one = m.graph.with_batch(1).unwrap();
    let tall = lower_for(&one, &m.params, &precision(), &Chunky, &aim(Network::LAN, None)).unwrap();
    assert_eq!(tall.plan.batch, 1);
    assert!(tall.plan.nodes.iter().all(|n| n.form.is_some() == Form::applies(&n.op)));
}

/// An estimate shows what other networks would choose, whatever the plan itself states.
#[test]
fn alternatives_are_what_compiling_for_them_gives() {
    let m = model(8);
    let [lan, wan] = [Network::LAN, Network::WAN].map(|n| compiled(&m, &aim(n, None)).unwrap().plan);
    let from_lan = alternatives(&lan, &Chunky, &Rates::default());
    let from_wan = alternatives(&wan, &Chunky, &Rates::default());
    assert_eq!(from_lan[1..], from_wan[1..]);
    assert_eq!(
        from_lan.iter().map(|a| a.compiled_for.as_str()).collect::<Vec<_>>(),
        ["this plan", "lan", "wan"]
    );
    let [own, near, far] = &from_lan[..] else { panic!() };
    assert_eq!((own.key_bytes, own.rounds, own.lan_s), (near.key_bytes, near.rounds, near.lan_s));
    assert_eq!(far.rounds, cost(&wan).rounds);
    assert!(far.wan_s < near.wan_s && near.lan_s < far.lan_s);
    // choosing again changes nothing
    let mut again = lan.clone();
    choose_forms(&mut again, &Chunky, &aim(Network::LAN, None)).unwrap();
    assert_eq!(again, lan);
}

#[test]
fn networks_are_written_as_they_are_read() {
    for text in ["lan", "wan", "rtt=60ms,bandwidth=36.625MB/s", "rtt=0.02ms,bandwidth=5000MB/s"] {
        let network: Network = text.parse().unwrap();
        assert_eq!(network.to_string(), text);
    }
}
