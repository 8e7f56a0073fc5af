//! A party's side of a deal: ask the dealer, store what comes.

use super::messages::{DealReply, DealRequest};
use super::sending::{CHUNK_BYTES, CREDIT_CHUNKS};
use crate::session::control::{Id, Talk, TalkError, hear, say};
use crate::session::work::Progress;
use crate::store::{SessionFile, Shelf, Staged, StoreError};
use privet_net::Channel;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;
use zeroize::Zeroizing;

/// Most bytes of what a party is given of a session.
const MOST_KEYS: usize = 4096;

/// Why keys did not arrive.
#[derive(Debug, Error)]
pub enum FetchError {
    /// The dealer or the way to it.
    #[error("{0}")]
    Talk(#[from] TalkError),
    /// The store.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The dealer refused.
    #[error("the dealer refused: {0}")]
    Refused(String),
    /// The dealer was restarted.
    #[error("the dealer does not know the session any more, it was restarted: ask for keys again")]
    Forgotten,
    /// This party does not want the rest.
    #[error("the keys are not needed any more")]
    Stopped,
    /// The dealer sent something else.
    #[error("the dealer sent keys of another {0}; check that all run the same plan and deployment")]
    Foreign(&'static str),
}

impl From<privet_net::NetError> for FetchError {
    fn from(e: privet_net::NetError) -> Self {
        FetchError::Talk(e.into())
    }
}

/// What the dealer begins to send.
pub struct Accepted {
    /// The session.
    pub session: Id,
    /// Numbers of its records, in the order in which they come.
    pub indices: Vec<u64>,
}

/// Fetch a deal without checks onto `shelf`; gives the session and the bytes stored.
pub fn fetch(
    channel: &mut dyn Channel,
    shelf: &Shelf,
    party: u8,
    plan: &[u8; 32],
    request: &DealRequest,
    progress: &Progress,
) -> Result<(Id, u64), FetchError> {
    say(channel, Talk::Deal, request)?;
    receive(channel, shelf, party, plan, request, progress)
}

/// Receive one session of a deal onto `shelf`. Records count only once complete.
pub fn receive(
    channel: &mut dyn Channel,
    shelf: &Shelf,
    party: u8,
    plan: &[u8; 32],
    request: &DealRequest,
    progress: &Progress,
) -> Result<(Id, u64), FetchError> {
    let Accepted { session, indices } = begin(channel, shelf, party, plan, request)?;
    let mut bytes = 0;
    for index in indices {
        let mut file = shelf.file(&session.0, index)?;
        bytes += record(channel, &mut file, &AtomicBool::new(false), progress)?;
        file.commit()?;
        progress.came();
        stored(channel)?;
    }
    Ok((session, bytes))
}

/// Hear what the dealer begins to send. The keys of a new session are stored, if its name is new; further records of a session
/// are admitted, if the dealer gives the same keys of it again and numbers that are all new. What the store holds stays as it is
/// whatever the dealer says.
pub fn begin(
    channel: &mut dyn Channel,
    shelf: &Shelf,
    party: u8,
    plan: &[u8; 32],
    request: &DealRequest,
) -> Result<Accepted, FetchError> {
    let (session, indices) = match hear(channel, Talk::Deal)? {
        DealReply::Dealing { session, indices } => (session, indices),
        DealReply::Forgotten => return Err(FetchError::Forgotten),
        DealReply::Refused { reason } => return Err(FetchError::Refused(reason)),
    };
    let file = Zeroizing::new(channel.recv_up_to(&Talk::Keys.step(), MOST_KEYS)?);
    let file = SessionFile::decode(&file).map_err(|_| FetchError::Foreign("form"))?;
    if file.id.session != session.0 || file.id.party != party {
        return Err(FetchError::Foreign("session"));
    }
    if &file.id.plan != plan || request.session.is_some_and(|s| s != session) {
        return Err(FetchError::Foreign("plan"));
    }
    // A new session's records are numbered from 0, the same at all parties; all are numbered upwards.
    let new = request.session.is_none();
    let upwards = indices.windows(2).all(|w| w[0] < w[1]);
    let all = indices.len() as u64 == request.runs;
    if !all || !upwards || new && !indices.iter().copied().eq(0..request.runs) {
        return Err(FetchError::Foreign("number"));
    }
    // What this party checks, and not what it is told.
    let file = SessionFile { checks: request.checks, ..file };
    if new {
        shelf.new_session(&file, request.runs)?
    } else {
        shelf.further_records(&file, &indices)?
    }
    Ok(Accepted { session, indices })
}

/// Tell the dealer that there is room for the next record, and receive it; gives its bytes. The caller commits it,
/// and says so with [`stored`].
pub fn record(
    channel: &mut dyn Channel,
    into: &mut Staged<'_>,
    stop: &AtomicBool,
    progress: &Progress,
) -> Result<u64, FetchError> {
    channel.send(&Talk::Credit.step(), Vec::new())?;
    let (mut bytes, mut chunks) = (0, 0);
    loop {
        let chunk = channel.recv_up_to(&Talk::Keys.step(), CHUNK_BYTES)?;
        if stop.load(Ordering::Relaxed) {
            return Err(FetchError::Stopped);
        }
        if chunk.is_empty() {
            return Ok(bytes);
        }
        bytes += chunk.len() as u64;
        progress.got(chunk.len() as u64);
        into.append(chunk)?;
        chunks += 1;
        if chunks % CREDIT_CHUNKS == 0 {
            channel.send(&Talk::Credit.step(), Vec::new())?;
        }
    }
}

/// Tell the dealer that the record is stored.
pub fn stored(channel: &mut dyn Channel) -> Result<(), FetchError> {
    Ok(channel.send(&Talk::Credit.step(), Vec::new())?)
}
