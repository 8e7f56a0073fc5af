//! Faults that links share, attacks made from an honest run, records and tallies.

use privet_net::Step;
use privet_prg::Seed;
use privet_testkit::{Action, Attack, Kind, Mesh, Sent, Tally, Target, When, record, spread};
use std::time::Duration;

/// What party 1 sends: at every step to 0, then to 2.
fn message(step: u32, to: usize) -> Vec<u8> {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&step.to_le_bytes());
    bytes[4] = to as u8;
    bytes[11] = 0x80;
    bytes.to_vec()
}

const STEPS: u32 = 4;

/// Party 1 sends, the others receive what they can; what each of them got, by its number.
fn run(mut mesh: Mesh) -> ([Vec<Vec<u8>>; 3], Vec<Sent>) {
    let log = mesh.record();
    let got = mesh.run(|links| {
        let mut got = Vec::new();
        for id in 1..=STEPS {
            let step = Step::new(id, format!("s{id}"));
            if links.me() != 1 {
                let Ok(bytes) = links.to(1).recv_up_to(&step, 100) else { break };
                got.push(bytes);
                continue;
            }
            for to in [0, 2] {
                let _ = links.to(to).send(&step, message(id, to));
            }
        }
        got
    });
    (got.try_into().unwrap(), log.of(1))
}

fn mesh() -> Mesh {
    Mesh::patient(3, Duration::from_secs(20))
}

fn expected(to: usize) -> Vec<Vec<u8>> {
    (1..=STEPS).map(|id| message(id, to)).collect()
}

#[test]
fn messages_of_a_script_are_counted_over_all_links_of_its_party() {
    let mut faulty = mesh();
    let script =
        faulty.corrupt(1, [(When::Message(3), Action::FlipBit(40)), (When::Message(100), Action::Drop)]);
    let ([to_0, _, to_2], _) = run(faulty);
    // number 3 is the second to party 2
    let mut changed = expected(2);
    changed[1][5] ^= 1;
    assert_eq!((to_0, to_2), (expected(0), changed));
    assert_eq!(script.pending(), [(When::Message(100), Action::Drop)]);
}

#[test]
fn changes_of_content_and_step_are_made_as_said() {
    let one = |action| {
        let mut faulty = mesh();
        faulty.fault(1, 2, [(When::Message(1), action)]);
        let ([to_0, _, to_2], sent) = run(faulty);
        assert_eq!(to_0, expected(0), "the other link is sound");
        assert_eq!(sent.len(), 8, "the log is of what the party meant to send");
        to_2
    };
    let mut xored = expected(2);
    xored[1][0] ^= 0xF0;
    assert_eq!(one(Action::Xor(vec![0xF0])), xored);
    let mut replaced = expected(2);
    replaced[1] = vec![7; 3];
    assert_eq!(one(Action::Replace(vec![7; 3])), replaced);
    // under another step it is a disagreement, and nothing after it is taken
    assert_eq!(one(Action::OtherStep(1)), expected(2)[..1]);
    assert_eq!(one(Action::OtherStep(u32::MAX)), expected(2)[..1]);
    assert_eq!(one(Action::Kill), expected(2)[..1]);
}

/// Every kind on every message: what it says it does is what arrives, and what arrives differs from the honest run.
#[test]
fn every_kind_of_attack_reaches_its_receiver() {
    let (honest, sent) = run(mesh());
    let other: Vec<Sent> = sent
        .iter()
        .map(|sent| Sent { bytes: sent.bytes.iter().map(|byte| !byte).collect(), ..sent.clone() })
        .collect();
    let target = Target { by: 1, sent: &sent, other: &other };
    let tally = Tally::<Kind, 3>::default();
    let numbers = Kind::ALL.len() * sent.len();
    spread(numbers, 2, |i| {
        let (kind, number) = (Kind::ALL[i / sent.len()], i % sent.len());
        let Some(attack) = target.attack(kind, number, &mut Seed::random().stream()) else {
            return tally.count(kind, 2);
        };
        assert_eq!((attack.by, attack.changes[0].0), (1, number));
        let mut attacked = mesh();
        let script = attacked.attack(&attack);
        let (got, again) = run(attacked);
        assert!(script.pending().is_empty(), "{}", attack.what);
        assert_eq!(again, sent, "{}: what the party's program sent", attack.what);
        tally.count(kind, usize::from(got == honest));
    });
    let counts = tally.counts();
    assert_eq!(counts.values().flatten().sum::<usize>(), numbers);
    for (kind, [changed, same, none]) in counts {
        match kind {
            // of the first message of each link there is no earlier, and behind the last nobody reads
            Kind::Replay => assert_eq!((changed, same, none), (7, 0, 1), "{kind:?}"),
            Kind::Twice => assert_eq!((changed, same, none), (6, 2, 0), "{kind:?}"),
            // the pair of a message is the one to the other party at the same step, behind it
            Kind::OtherToEach => assert_eq!((changed, same, none), (4, 0, 4), "{kind:?}"),
            _ => assert_eq!((changed, same, none), (8, 0, 0), "{kind:?}"),
        }
    }
}

#[test]
fn an_attack_shifted_to_other_messages_makes_the_same_difference() {
    let (_, from) = run(mesh());
    let to: Vec<Sent> = from.iter().map(|sent| Sent { bytes: vec![9; 12], ..sent.clone() }).collect();
    let target = Target { by: 1, sent: &from, other: &[] };
    let attack = target.attack(Kind::FlipAny, 5, &mut Seed::random().stream()).unwrap();
    let shifted = attack.shifted(&from, &to);
    let (Action::Replace(a), Action::Replace(b)) = (&attack.changes[0].1, &shifted.changes[0].1) else {
        panic!("{attack:?}")
    };
    let difference = |a: &[u8], b: &[u8]| a.iter().zip(b).map(|(a, b)| a ^ b).collect::<Vec<u8>>();
    assert_eq!(difference(a, &from[5].bytes), difference(b, &to[5].bytes));
    assert_eq!(difference(a, &from[5].bytes).iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
}

#[test]
fn random_attacks_have_one_to_three_changes() {
    let (_, sent) = run(mesh());
    let target = Target { by: 1, sent: &sent, other: &sent };
    let mut random = Seed::random().stream();
    let mut seen = [0; 5];
    for _ in 0..200 {
        let attack: Attack = target.any(&[Kind::FlipAny, Kind::OtherToEach], &mut random);
        seen[attack.changes.len()] += 1;
        assert!(!attack.what.is_empty());
    }
    // a pair of changes counts as two, so that there may be four
    assert!(seen[0] == 0 && seen[1] > 0 && seen[2] > 0 && seen[3] > 0, "{seen:?}");
}

#[test]
fn digests_are_of_heads_lengths_and_order() {
    let digest = |messages: &[([u8; 1], &[u8])]| record::digest(messages.iter().copied());
    let all = [
        digest(&[]),
        digest(&[([1], b"ab")]),
        digest(&[([2], b"ab")]),
        digest(&[([1], b"a"), ([1], b"b")]),
        digest(&[([1], b"b"), ([1], b"a")]),
        digest(&[([1], b"ab"), ([1], b"")]),
    ];
    for (i, digest) in all.iter().enumerate() {
        assert!(all[..i].iter().all(|earlier| earlier != digest), "{i}");
    }
}

#[test]
fn work_is_spread_and_each_of_it_done_once() {
    let tally = Tally::<usize, 2>::default();
    spread(100, 7, |i| tally.count(i % 3, i % 2));
    assert_eq!(tally.total(), [50, 50]);
    assert_eq!(tally.counts()[&0], [17, 17]);
    assert_eq!(tally.to_string().lines().next(), Some("  0: [17, 17]"));
}
