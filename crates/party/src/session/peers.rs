//! Connections to the other parties: one each, and the party of the higher number dials.

use super::control::Talk;
use super::job::JobError;
use super::links::{Links, Purpose};
use crate::config::Place;
use privet_net::{Channel, Liveness, NetError, TcpChannel};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Connections that no job is using.
pub(super) struct Peers {
    links: Arc<Links>,
    held: BTreeMap<u8, TcpChannel>,
    /// The service's.
    liveness: Liveness,
}

impl Peers {
    pub fn new(links: Arc<Links>, liveness: Liveness) -> Peers {
        Peers { links, held: BTreeMap::new(), liveness }
    }

    /// What passes over a connection is the service's, and it shows the other party how far the service is.
    fn served(&self, mut channel: TcpChannel) -> TcpChannel {
        channel.show(&self.liveness);
        channel.count_for(Some(&self.liveness));
        channel
    }

    /// Keep a connection; an older one to the same party is dropped, without a farewell that a peer which is gone would
    /// keep this party waiting for.
    pub fn put(&mut self, party: u8, channel: TcpChannel) {
        let channel = self.served(channel);
        if let Some(mut older) = self.held.insert(party, channel) {
            older.sever();
        }
    }

    /// The connection to a party, unless there is none or it has ended.
    pub fn take(&mut self, party: u8) -> Option<TcpChannel> {
        self.held.remove(&party).filter(TcpChannel::is_open)
    }

    /// Whether there is a connection to a party that has not ended.
    pub fn has(&self, party: u8) -> bool {
        self.held.get(&party).is_some_and(TcpChannel::is_open)
    }

    /// Dial a party of a lower number.
    pub fn dial(&self, party: u8, patience: Duration) -> Result<TcpChannel, NetError> {
        Ok(self.served(self.links.dial_within(&Place::Party(party), Purpose::Parties, patience)?))
    }

    /// Take a job's connections back. After a failure in the middle the parties may be at different steps, or wait for
    /// this one: all are told why, and none of these connections is used again.
    pub fn keep(&mut self, others: Others, result: &Result<(), JobError>) {
        match result {
            Err(e) if others.engaged => others.abort(&e.to_string()),
            _ => self.held.extend(others.channels),
        }
    }
}

/// The connections to all other parties during a job.
pub(super) struct Others {
    channels: BTreeMap<u8, TcpChannel>,
    engaged: bool,
}

impl Others {
    /// Connections on which nothing was sent for the job yet. A peer that lets this party wait for longer than
    /// `step` in one step ends the job, however alive it is.
    pub fn new(mut channels: BTreeMap<u8, TcpChannel>, step: Duration) -> Others {
        channels.values_mut().for_each(|c| c.set_patience(Some(step)));
        Others { channels, engaged: false }
    }

    /// From here on the parties count on each other.
    pub fn engage(&mut self) {
        self.engaged = true;
    }

    /// All connections, in the order of the parties.
    pub fn all(&mut self) -> impl Iterator<Item = (u8, &mut TcpChannel)> {
        self.channels.iter_mut().map(|(&party, channel)| (party, channel))
    }

    /// Why a connection ended that another party has ended.
    pub fn last_word(&mut self) -> Option<NetError> {
        let ended = self.channels.values_mut().find(|c| !c.is_open())?;
        // Whatever came before the end is of no use any more.
        loop {
            if let Err(e) = ended.recv_up_to(&Talk::Work.step(), 1) {
                return Some(e);
            }
        }
    }

    /// All other parties.
    pub fn parties(&self) -> Vec<u8> {
        self.channels.keys().copied().collect()
    }

    /// The connection to a party.
    pub fn to(&mut self, party: u8) -> Result<&mut TcpChannel, JobError> {
        self.engaged = true;
        self.channels.get_mut(&party).ok_or(JobError::NoParty(party))
    }

    /// The connections to two parties.
    pub fn pair(&mut self, a: u8, b: u8) -> Result<(&mut TcpChannel, &mut TcpChannel), JobError> {
        self.engaged = true;
        let (mut first, mut second) = (Err(JobError::NoParty(a)), Err(JobError::NoParty(b)));
        for (&party, channel) in &mut self.channels {
            if party == a {
                first = Ok(channel);
            } else if party == b {
                second = Ok(channel);
            }
        }
        Ok((first?, second?))
    }

    /// Tell everybody why this party gives up, and hang up.
    pub fn abort(self, reason: &str) {
        abort(self.channels.into_values(), reason);
    }
}

/// Tell the parties behind `channels` why this one gives up, and hang up. Each gets its word even where others are slow
/// to take theirs.
pub(super) fn abort(channels: impl IntoIterator<Item = TcpChannel>, reason: &str) {
    std::thread::scope(|scope| {
        for mut channel in channels {
            scope.spawn(move || channel.abort(reason));
        }
    });
}
