//! One corrupt party that changes what it sends, and a judge of what the honest ones then do.

use super::{World, parties, three};
use privet_net::{Channel, NetError};
use privet_rep3::{Outcome, PartyId, RunError, Share};
use privet_testkit::{Attack, Mesh, Sent};
use std::time::Duration;

/// A run to its end at every party.
pub struct Trial {
    /// Shares of the outputs and of the states that were updated, or why there are none.
    pub results: [Result<Vec<Share>, RunError>; 3],
    /// What the parties' protocol code sent, before the attacker changed it.
    pub sent: [Vec<Sent>; 3],
    /// Steps that a party may have sent by the time it reads what came at one: more than none where a proof goes on beside the protocol.
    ahead: u32,
}

impl Trial {
    /// Every party runs `program` over links that the attack, if there is one, goes through.
    pub fn of(
        attack: Option<&Attack>,
        patience: Duration,
        program: impl Fn(PartyId, &mut dyn Channel, &mut dyn Channel) -> Result<Outcome, RunError> + Sync,
    ) -> Trial {
        let mut mesh = Mesh::patient(3, patience);
        if let Some(attack) = attack {
            mesh.attack(attack);
        }
        let log = mesh.record();
        let all =
            |outcome: Outcome| outcome.outputs.into_iter().chain(outcome.states.into_values()).collect();
        let results = parties(mesh, |id, prev, next| program(id, prev, next).map(all));
        Trial { results, sent: three(log.all()), ahead: 0 }
    }

    /// Nobody cheats.
    pub fn honest(world: &World) -> Trial {
        Trial::run(world, None, Duration::from_secs(60))
    }

    /// The world's run under an attack.
    pub fn attacked(world: &World, attack: &Attack, patience: Duration) -> Trial {
        Trial::run(world, Some(attack), patience)
    }

    fn run(world: &World, attack: Option<&Attack>, patience: Duration) -> Trial {
        let trial = Trial::of(attack, patience, |id, prev, next| world.evaluate(id, prev, next));
        Trial { ahead: if world.beside.is_some() { 2 } else { 0 }, ..trial }
    }

    pub fn outputs(&self, id: PartyId) -> &[Share] {
        self.results[id.index()].as_ref().unwrap_or_else(|e| panic!("{id}: {e}"))
    }
}

/// How an attack ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both honest parties ended with an error.
    Detected,
    /// Both ended with the right shares.
    Harmless,
    /// One of them has the right shares, the other an error: nobody but the attacker can put the outputs together.
    Halved,
    /// An honest party accepted wrong shares.
    Accepted,
}

/// The two that follow the protocol.
pub fn honest(corrupt: PartyId) -> [PartyId; 2] {
    [corrupt.next(), corrupt.prev()]
}

fn same(a: &[Share], b: &[Share]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.own == b.own && a.next == b.next)
}

/// Compares with the honest run of the same world. A run is a function of keys, inputs and messages, and a message that
/// passes the checks is the one that the protocol asks for, so whoever accepts has exactly the honest run's shares.
pub fn verdict(truth: &Trial, trial: &Trial, corrupt: PartyId) -> Verdict {
    let ends = honest(corrupt)
        .map(|id| trial.results[id.index()].as_ref().ok().map(|shares| same(shares, truth.outputs(id))));
    match ends {
        [Some(false), _] | [_, Some(false)] => Verdict::Accepted,
        [Some(true), Some(true)] => Verdict::Harmless,
        [None, None] => Verdict::Detected,
        _ => Verdict::Halved,
    }
}

/// The step at which a party found something wrong by itself, where it has a number.
pub fn step_of(error: &RunError) -> Option<u32> {
    let number = |text: &str| text[..text.find(|c: char| !c.is_ascii_digit())?].parse().ok();
    let text = error.to_string();
    match error {
        // Another found it, at its own step.
        RunError::Net(NetError::Aborted { .. }) => None,
        RunError::Net(NetError::Desync { my_step, .. }) => number(my_step),
        _ => number(&text[text.find("step ")? + 5..]),
    }
}

/// What has to hold of every attack on a run that withstands one corrupt party.
#[track_caller]
pub fn judge(truth: &Trial, trial: &Trial, attack: &Attack) -> Verdict {
    let by = PartyId::ALL[attack.by];
    let what = format!("{} by {by}", attack.what);
    let verdict = verdict(truth, trial, by);
    assert_ne!(verdict, Verdict::Accepted, "{what}: a wrong output was accepted");
    let mut named = false;
    for id in honest(by) {
        let Err(error) = &trial.results[id.index()] else { continue };
        let text = error.to_string();
        named |= text.contains("step") && text.contains(&by.to_string());
        silent_after(&what, id, error, trial);
    }
    match verdict {
        Verdict::Detected => {
            let errors = honest(by).map(|id| trial.results[id.index()].as_ref().err());
            assert!(named, "{what}: no error names step and suspect: {errors:?}");
        }
        Verdict::Halved => {
            // Whoever ended with an error had accepted everything before, and said so.
            for id in honest(by) {
                let (sent, all) = (trial.sent[id.index()].len(), truth.sent[id.index()].len());
                assert_eq!(sent, all, "{what}: the other went on before {id} had accepted");
            }
        }
        Verdict::Harmless | Verdict::Accepted => {}
    }
    verdict
}

/// After the step at which it found something wrong a party says that, and nothing else.
#[track_caller]
fn silent_after(what: &str, id: PartyId, error: &RunError, trial: &Trial) {
    let sent = &trial.sent[id.index()];
    let last = sent.last().map_or(0, |sent| sent.step.id);
    let Some(step) = step_of(error) else { return };
    // what its own checks found has the number of the last step
    let ahead = if matches!(error, RunError::Net(_)) { trial.ahead } else { 0 };
    assert!(last <= step + ahead, "{what}: {id} went on to step {last} after {error}");
    if matches!(error, RunError::Dishonest { .. }) {
        for word in sent.iter().filter(|sent| sent.step.id == step) {
            assert!(
                word.bytes == [0] && word.step.name.ends_with("proof: verdicts"),
                "{what}: {id} sent {} bytes at step {} after it had found the proof wrong",
                word.bytes.len(),
                word.step
            );
        }
    }
}
