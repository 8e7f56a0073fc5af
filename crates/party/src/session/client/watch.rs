//! How far a preparation is that a client waits for: party 0 is asked now and then, on a connection of its own.

use crate::config::Place;
use crate::events::{Bytes, Count, Event, JobEvents};
use crate::session::control::{Id, Reply, Request, Talk, TalkError, hear, say};
use crate::session::links::{Links, Purpose};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Between two questions.
const EVERY: Duration = Duration::from_millis(500);
/// For an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Watches until it is dropped.
pub(super) struct Watched(#[allow(dead_code, reason = "its end is the sign")] Sender<()>);

/// Tell of a preparation of `plan` as events of `job`. Where party 0 cannot be asked nothing is told: the preparation itself
/// will say what is wrong.
pub(super) fn preparation(links: Arc<Links>, plan: &str, job: JobEvents) -> Watched {
    let (over, until) = channel();
    let plan = plan.to_owned();
    let _ = std::thread::Builder::new().name("privet-watch".into()).spawn(move || {
        let _ = ask(&links, &plan, &job, &until);
    });
    Watched(over)
}

fn ask(links: &Links, plan: &str, job: &JobEvents, until: &Receiver<()>) -> Result<(), TalkError> {
    let mut party = None;
    while until.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        let party = match &mut party {
            Some(party) => party,
            // Most preparations are over before.
            none => none.insert(links.dial_within(&Place::Party(0), Purpose::Client, PATIENCE)?),
        };
        party.set_patience(Some(PATIENCE));
        say(party, Talk::Request, &Request::Status { id: Id::fresh() })?;
        let Reply::Status(status) = hear(party, Talk::Reply)? else { return Ok(()) };
        let Some(far) = status.plans.get(plan).and_then(|p| p.preparing.as_ref()) else { continue };
        let (came, expected) = (Count::of(far.came), Count::of(far.came + far.to_come));
        job.emit(|job| Event::Preparing { job, came, expected, bytes: Bytes::of(far.bytes) });
    }
    Ok(())
}
