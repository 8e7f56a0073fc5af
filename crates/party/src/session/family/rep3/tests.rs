use super::*;
use crate::session::control::Amount;
use privet_net::mem;
use privet_plan::ir::{Op, Output, PLAN_VERSION, Type};
use privet_prg::Seed;

/// A party with a session open, of a plan without weights.
fn party() -> Rep3 {
    let op = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 1.0 };
    let ty = Type { shape: vec![1], bits: 16, frac: 4 };
    let nodes = vec![privet_plan::ir::Node { op, inputs: vec![], ty, layer: String::new(), form: None }];
    let outputs = vec![Output { value: 0, name: "y".into(), to: "receiver".into() }];
    let plan = Arc::new(Plan {
        version: PLAN_VERSION,
        name: "one".into(),
        batch: 1,
        nodes,
        outputs,
        updates: vec![],
    });
    let (me, device) = (PartyId::ALL[0], privet_kernels::cpu(1));
    let [own, next, common] = [1, 2, 3].map(|b| Seed::from_bytes([b; 16]));
    let keys = Keys { own, next, common };
    // of no weights: nothing is sent
    let [(mut prev, _), (mut next, _)] = [mem::pair(), mem::pair()];
    let mut cx =
        Party::new(me, Security::Malicious, device.as_ref(), keys.derive(WEIGHTS), &mut prev, &mut next);
    let weights = SharedWeights::new(&mut cx, &plan, BTreeMap::new()).unwrap();
    let mut party = Rep3::new(me, Security::Malicious, plan, device);
    party.open = Some(OpenSession { id: Id::fresh(), keys, weights, last: WEIGHTS, failed: 0 });
    party
}

/// Which numbers a party takes where run `next` is next.
fn taken(next: u64) -> Vec<u64> {
    let numbers = [0, 1, 2, 3, 4, 5, 8, 24, 1 << 32, u64::MAX];
    let takes = |index: u64| {
        let mut party = party();
        (1..next).for_each(|run| {
            party.claim(run).unwrap();
            party.go_on();
        });
        let taken = party.claim(index);
        assert_eq!(party.open.is_some(), taken.is_ok(), "whoever lost count begins another session");
        match taken {
            Ok(()) => true,
            Err(e) => {
                let says = format!("ordered run {index} of a session of which run {next} is next");
                assert!(e.to_string().contains(&says), "{e}");
                false
            }
        }
    };
    numbers.into_iter().filter(|&index| takes(index)).collect()
}

/// A number that party 0 chose would be a choice of the run's coins.
#[test]
fn only_the_next_number_is_taken() {
    for next in [1, 2, 4] {
        assert_eq!(taken(next), [next]);
    }
}

#[test]
fn a_number_is_used_as_soon_as_all_agreed_and_not_before() {
    let mut party = party();
    assert_eq!(party.next_run().unwrap(), 1);
    party.claim(1).unwrap();
    // Called off before anything was done under its keys: it is next again, at whoever consented and whoever did not.
    party.give_up_claim();
    assert_eq!(party.next_run().unwrap(), 1);
    party.go_on();
    assert_eq!(party.next_run().unwrap(), 1, "without a claim nothing is used");
    party.claim(1).unwrap();
    party.go_on();
    // It failed before its inputs were there: the number is used all the same.
    assert_eq!(party.next_run().unwrap(), 2);
    assert!(party.claim(1).is_err());
}

#[test]
fn a_closed_session_has_no_runs() {
    let mut party = party();
    party.claim(1).unwrap();
    party.close();
    assert!(party.open_session().is_none() && party.claimed.is_none());
    assert!(matches!(party.claim(2), Err(JobError::NotOpen)));
    assert!(matches!(party.next_run(), Err(JobError::NotOpen)));
}

#[test]
fn there_is_nothing_to_check_where_there_is_no_dealer() {
    let party = party();
    let amount = |checks| Amount { runs: 3, checks, stream: false };
    let what = |checks| Preparation { deal: Id::fresh(), session: None, amount: amount(checks) };
    assert!(party.may_prepare(&what(0)).is_ok());
    assert!(party.may_prepare(&what(1)).unwrap_err().to_string().contains("no dealer"));
}
