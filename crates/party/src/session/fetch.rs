//! A party's side of a deal: ask the dealer, store what comes.

use super::control::{DealReply, DealRequest, Id, Talk, TalkError, hear, say};
use super::dealer::{CHUNK_BYTES, CREDIT_CHUNKS};
use crate::store::{SessionKeys, Store, StoreError, pending_record};
use privet_net::{Channel, TcpChannel};
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
    /// The dealer sent something else.
    #[error("the dealer sent keys of another {0}; check that all run the same plan and deployment")]
    Foreign(&'static str),
}

impl From<privet_net::NetError> for FetchError {
    fn from(e: privet_net::NetError) -> Self {
        FetchError::Talk(e.into())
    }
}

/// Fetch a deal into the store; gives the session and the bytes stored. Records count only once complete.
pub fn fetch(
    channel: &mut TcpChannel,
    store: &Store,
    party: u8,
    plan: &[u8; 32],
    request: &DealRequest,
) -> Result<(Id, u64), FetchError> {
    say(channel, Talk::Deal, request)?;
    let (session, indices) = match hear(channel, Talk::Deal)? {
        DealReply::Dealing { session, indices } => (session, indices),
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
    if indices.len() as u64 != request.runs {
        return Err(FetchError::Foreign("number"));
    }
    store.put_session(&keys)?;
    let mut bytes = 0;
    for index in indices {
        let mut file = pending_record(store.dir(), &session.0, index)?;
        let mut chunks = 0;
        loop {
            let chunk = channel.recv_up_to(&Talk::Keys.step(), CHUNK_BYTES)?;
            if chunk.is_empty() {
                break;
            }
            file.write_all(&chunk).map_err(|source| StoreError::Io {
                path: store.session_dir(&session.0).display().to_string(),
                source,
            })?;
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
