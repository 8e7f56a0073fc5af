//! A party's side of a deal: ask the dealer, store what comes.

use super::dealer::{CHUNK_BYTES, CREDIT_CHUNKS};
use super::messages::{DealReply, DealRequest};
use crate::session::control::{Id, Talk, TalkError, hear, say};
use crate::store::{SessionKeys, Shelf, StoreError};
use privet_net::Channel;
use std::io::Write;
use thiserror::Error;

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
    /// The dealer sent something else.
    #[error("the dealer sent keys of another {0}; check that all run the same plan and deployment")]
    Foreign(&'static str),
}

impl From<privet_net::NetError> for FetchError {
    fn from(e: privet_net::NetError) -> Self {
        FetchError::Talk(e.into())
    }
}

/// Fetch a deal without checks onto `shelf`; gives the session and the bytes stored.
pub fn fetch(
    channel: &mut dyn Channel,
    shelf: &Shelf,
    party: u8,
    plan: &[u8; 32],
    request: &DealRequest,
) -> Result<(Id, u64), FetchError> {
    say(channel, Talk::Deal, request)?;
    receive(channel, shelf, party, plan, request)
}

/// Receive one session of a deal onto `shelf`. Records count only once complete.
pub fn receive(
    channel: &mut dyn Channel,
    shelf: &Shelf,
    party: u8,
    plan: &[u8; 32],
    request: &DealRequest,
) -> Result<(Id, u64), FetchError> {
    let (session, indices) = match hear(channel, Talk::Deal)? {
        DealReply::Dealing { session, indices } => (session, indices),
        DealReply::Forgotten => return Err(FetchError::Forgotten),
        DealReply::Refused { reason } => return Err(FetchError::Refused(reason)),
    };
    let keys = channel.recv_up_to(&Talk::Keys.step(), 4096)?;
    let keys = SessionKeys::decode(&keys).ok_or(FetchError::Foreign("form"))?;
    if keys.session != session.0 || keys.party != party {
        return Err(FetchError::Foreign("session"));
    }
    if &keys.plan != plan || request.session.is_some_and(|s| s != session) {
        return Err(FetchError::Foreign("plan"));
    }
    // A new session's records are numbered from 0, the same at both parties.
    let new = request.session.is_none();
    if indices.len() as u64 != request.runs || new && !indices.iter().copied().eq(0..request.runs) {
        return Err(FetchError::Foreign("number"));
    }
    shelf.session(&keys)?;
    let mut bytes = 0;
    for index in indices {
        let mut file = shelf.record(&session.0, index)?;
        let mut chunks = 0;
        loop {
            let chunk = channel.recv_up_to(&Talk::Keys.step(), CHUNK_BYTES)?;
            if chunk.is_empty() {
                break;
            }
            file.write_all(&chunk)
                .map_err(|source| StoreError::Io { path: shelf.dir().display().to_string(), source })?;
            bytes += chunk.len() as u64;
            chunks += 1;
            if chunks % CREDIT_CHUNKS == 0 {
                channel.send(&Talk::Credit.step(), Vec::new())?;
            }
        }
        file.commit()?;
        channel.send(&Talk::Credit.step(), Vec::new())?;
    }
    Ok((session, bytes))
}
