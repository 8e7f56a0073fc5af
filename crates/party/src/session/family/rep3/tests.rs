use super::*;
use crate::session::control::Amount;
use privet_plan::ir::{Op, Output, PLAN_VERSION, Type};
use privet_prg::Seed;

/// A party with a session open, of a plan without weights.
fn party() -> Rep3 {
    let op = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 1.0 };
    let ty = Type { shape: vec![1], bits: 16, frac: 4 };
    let nodes = vec![privet_plan::ir::Node { op, inputs: vec![], ty, layer: String::new() }];
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
    let weights = SharedWeights::new(&plan, device.as_ref(), me, BTreeMap::new()).unwrap();
    let [own, next, common] = [1, 2, 3].map(|b| Seed::from_bytes([b; 16]));
    let mut party = Rep3::new(me, Security::Malicious, plan, device, Arc::new(|_: &str| {}));
    party.open = Some(Open { id: Id::fresh(), keys: Keys { own, next, common }, weights, last: WEIGHTS });
    party
}

#[test]
fn a_number_of_a_run_is_taken_once_and_only_upwards() {
    let mut party = party();
    assert_eq!(party.next_run().unwrap(), 1);
    assert!(party.claim(WEIGHTS).is_err(), "the keys under which weights were compared");
    party.claim(1).unwrap();
    // Called off: the number stays used, and so does every lower one.
    party.give_up_claim();
    for used in [0, 1] {
        let message = party.claim(used).unwrap_err().to_string();
        assert!(message.contains(&format!("run {used} of this session is refused")), "{message}");
    }
    party.claim(7).unwrap();
    assert!(party.claim(7).is_err() && party.claim(6).is_err());
    assert_eq!(party.next_run().unwrap(), 8);
    party.claim(u64::MAX).unwrap();
    assert!(party.next_run().is_err() && party.claim(0).is_err(), "numbers do not begin again");
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
