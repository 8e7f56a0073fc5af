//! The dealer's side: deal some sessions, open all but the one that both parties name.

use crate::session::control::{Id, Talk, TalkError, hear, say};
use crate::session::family::dealing::OfMaster;
use crate::session::family::dealing::messages::{DealRequest, OpenReply, OpenRequest};
use crate::session::family::dealing::sending::send_session;
use crate::session::family::fss::deal::{DealerSession, FssDealer};
use crate::store::hex;
use privet_net::Channel;
use privet_prg::Seed;

/// Deal `checks + 1` sessions, open the others, and give the kept one; none where the parties disagree.
///
/// A session is opened here, right after it was dealt, or never: opened ones are forgotten, and the kept one is
/// out of reach before the first run can use it. Its masks are made twice, so that the dealer never holds the
/// masked weights of more than one session.
pub fn deal<C: Channel>(
    channels: &mut [C],
    request: &DealRequest,
    session: &OfMaster<'_, FssDealer>,
    progress: &mut dyn FnMut(usize),
) -> Result<Option<DealerSession>, TalkError> {
    let mut masters: Vec<Seed> = (0..=request.checks).map(|_| Seed::random()).collect();
    for master in &masters {
        send_session(channels, &session(master.clone()), request.runs, &mut |_| Ok(()), progress)?;
    }
    let mut choices = Vec::new();
    for channel in channels.iter_mut() {
        choices.push(hear::<OpenRequest>(channel, Talk::Open)?.keep);
    }
    let keep = choices.first().copied().unwrap_or_default();
    if choices.iter().any(|choice| *choice != keep) || keep > request.checks {
        let reason = "the two parties did not name the same session to keep".to_owned();
        for channel in channels {
            say(channel, Talk::Open, &OpenReply::Refused { reason: reason.clone() })?;
        }
        return Ok(None);
    }
    let kept = masters.remove(keep as usize);
    let opened = OpenReply::Opened { seeds: masters.iter().map(|m| hex(m.expose())).collect() };
    for channel in channels {
        say(channel, Talk::Open, &opened)?;
    }
    let kept = session(kept);
    kept.take_indices(request.runs);
    Ok(Some(kept))
}

/// Why the dealer does not deal what was asked, if so.
pub fn refusal(request: &DealRequest) -> Option<&'static str> {
    match request {
        DealRequest { checks: 0, .. } => None,
        DealRequest { session: Some(Id(_)), .. } => Some("only a new session can be dealt with checks"),
        DealRequest { checks, .. } if *checks > super::MAX_CHECKS => Some("more than 255 checks at once"),
        _ => None,
    }
}
