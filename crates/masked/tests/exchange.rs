//! What n parties open together, and what a party refuses of another one.

use privet_family::{Secret, States};
use privet_masked::{EvalError, Exchange, open_states, unmask};
use privet_net::Channel;
use privet_plan::Plan;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Type, Update};
use privet_prg::Seed;
use privet_ring::{BitVec, Ring};
use privet_testkit::{Links, Mesh};

fn peers(links: &mut Links) -> Vec<&mut dyn Channel> {
    links.others().map(|(_, channel)| channel).collect()
}

fn words(ring: Ring, n: usize) -> Vec<u64> {
    Seed::random().stream().elements(ring, n)
}

fn sums(ring: Ring, all: &[Vec<u64>]) -> Vec<u64> {
    (0..all[0].len()).map(|i| ring.wrap(all.iter().fold(0u64, |sum, x| sum.wrapping_add(x[i])))).collect()
}

#[test]
fn summands_add_up_at_every_party_and_every_byte_is_counted() {
    for parties in [2, 3, 5] {
        for bits in [1, 13, 63, 64] {
            let ring = Ring::new(bits);
            let given: Vec<_> = (0..parties).map(|_| (words(ring, 7), words(Ring::R64, 3))).collect();
            let values: Vec<_> = given.iter().map(|(a, _)| a.clone()).collect();
            let summed = sums(Ring::R64, &given.iter().map(|(_, p)| p.clone()).collect::<Vec<_>>());
            let planes = (0..3).map(|i| given.iter().fold(0, |all, (_, p)| all ^ p[i])).collect::<Vec<_>>();
            let opened = Mesh::new(parties).run_with(given, |links, (value, planes)| {
                let mut exchange = Exchange::new(peers(links));
                exchange.enter("layer");
                let one = exchange.open_masked("value", ring, value.clone()).unwrap();
                let one = exchange.receive(one).unwrap();
                // both are on their way, and what is waited for first was sent last
                let first = exchange.open_masked("a", ring, value).unwrap();
                let second = exchange.open_masked("b", Ring::R64, planes.clone()).unwrap();
                let second = exchange.receive(second.then(|sum| vec![sum[1], sum[0]])).unwrap();
                assert_eq!(exchange.stats.rounds, 2);
                // one that nobody has waited for shares the round of the planes
                let late = exchange.open_masked("late", Ring::R64, planes.clone()).unwrap();
                let planes = exchange.open_masked_planes("planes", planes).unwrap();
                assert_eq!(exchange.stats.rounds, 3);
                assert_eq!(one, exchange.receive(first).unwrap());
                let late = exchange.receive(late).unwrap();
                assert_eq!(second, [late[1], late[0]]);
                let bytes = 2 * ring.packed_bytes(7) + 3 * 24;
                assert_eq!(exchange.stats.sent_bytes, (bytes * (parties - 1)) as u64);
                assert_eq!(exchange.stats.rounds, 3);
                let steps: Vec<_> = exchange.openings().iter().map(|o| (o.step, &*o.what, o.bits)).collect();
                let bits = 7 * u64::from(bits);
                let wanted = [
                    (1, "layer / value", bits),
                    (2, "layer / a", bits),
                    (3, "layer / b", 192),
                    (4, "layer / late", 192),
                    (5, "layer / planes", 192),
                ];
                assert_eq!(steps, wanted);
                (one, late, planes)
            });
            for (value, late, bits) in opened {
                assert_eq!(value, sums(ring, &values), "{parties} parties, {bits:?}");
                assert_eq!(late, summed);
                assert_eq!(bits, planes);
            }
        }
    }
}

/// Two parties that send far more than a connection takes before either receives.
#[test]
fn what_is_on_its_way_is_bounded() {
    let opened = Mesh::new(2).run(|links| {
        let mut exchange = Exchange::new(peers(links)).holding(100);
        let begun: Vec<_> = (0..10)
            .map(|i| {
                exchange.open_masked("words", Ring::R64, vec![i; [4, 4, 20, 1][i as usize % 4]]).unwrap()
            })
            .collect();
        // 32 + 32 bytes, then 160 alone, then 8 + 32 + 32, and so on
        assert_eq!(exchange.stats.rounds, 5);
        begun.into_iter().map(|value| exchange.receive(value).unwrap()[0]).collect::<Vec<_>>()
    });
    let wanted: Vec<u64> = (0..10).map(|i| 2 * i).collect();
    assert_eq!(opened, [wanted.clone(), wanted]);
}

#[test]
fn bits_past_the_end_are_refused_and_their_sender_is_named() {
    let mut links = Mesh::new(3).into_links();
    let step = privet_net::Step { id: 1, name: "layer / bits".into() };
    for (me, bits) in [(1, 0b1000), (2, 0b111)] {
        links[me].to(0).send(&step, vec![bits]).unwrap();
    }
    let mut exchange = Exchange::new(peers(&mut links[0]));
    exchange.enter("layer");
    let error = exchange.open_masked_bits("bits", BitVec::zeros(3)).unwrap_err().to_string();
    assert!(error.contains("layer / bits") && error.contains("party 1"), "{error}");
}

fn states_plan(ring: Ring) -> Plan {
    let ty = Type { shape: vec![5], bits: ring.bits(), frac: 0 };
    let node = |name: &str| Node {
        op: Op::State { name: name.into(), owner: "owner".into() },
        inputs: vec![],
        ty: ty.clone(),
        layer: name.into(),
        form: None,
    };
    let nodes = vec![node("v"), node("w")];
    let outputs = vec![Output { value: 0, name: "y".into(), to: "receiver".into() }];
    let updates = vec![Update { state: 0, value: 1 }];
    Plan { version: PLAN_VERSION, name: "states".into(), batch: 1, nodes, outputs, updates }
}

#[test]
fn states_are_opened_under_masks_and_shared_again() {
    let ring = Ring::new(40);
    let plan = states_plan(ring);
    let shares: Vec<[Vec<u64>; 2]> = (0..3).map(|_| [words(ring, 5), words(ring, 5)]).collect();
    let masks: Vec<[Vec<u64>; 2]> = (0..3).map(|_| [words(ring, 5), words(ring, 5)]).collect();
    let ends = Mesh::new(3).run(|links| {
        let me = links.me();
        let mut states = States::new();
        states.insert("v", shares[me][0].clone());
        let mut exchange = Exchange::new(peers(links));
        let mask = |v: usize, _, _| Secret::new(masks[me][v].clone());
        // One is missing, and nothing was sent before that was seen.
        let error = open_states(&mut exchange, &plan, &states, mask).unwrap_err();
        assert!(matches!(error, EvalError::Missing(ref what) if what.contains("`w`")), "{error}");
        assert_eq!(exchange.stats.sent_bytes, 0);
        states.insert("w", shares[me][1].clone());
        let opened = open_states(&mut exchange, &plan, &states, mask).unwrap();
        let again = (0..2).map(|v| {
            let (masked, bytes) = &opened[&v];
            assert_eq!(*bytes, 2 * ring.packed_bytes(5) as u64);
            unmask(me == 0, ring, masked, Secret::new(masks[me][v].clone())).expose()
        });
        (
            opened.iter().map(|(v, (masked, _))| (*v, masked.clone())).collect::<Vec<_>>(),
            again.collect::<Vec<_>>(),
        )
    });
    for v in 0..2 {
        let column = |all: &[[Vec<u64>; 2]]| all.iter().map(|one| one[v].clone()).collect::<Vec<_>>();
        let (value, mask) = (sums(ring, &column(&shares)), sums(ring, &column(&masks)));
        assert!(ends.iter().all(|(opened, _)| opened[v] == (v, sums(ring, &[value.clone(), mask.clone()]))));
        let again: Vec<_> = ends.iter().map(|(_, again)| again[v].clone()).collect();
        assert_eq!(sums(ring, &again), value);
    }
}
