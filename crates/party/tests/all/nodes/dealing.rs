//! A dealer that a test plays, against parties that are processes.

use super::{Nodes, small};
use privet_fss::keys::{KeyError, KeySink};
use privet_net::tcp::Listener;
use privet_net::{Channel, NetError, TcpChannel};
use privet_party::config::Place;
use privet_party::session::control::{Id, Talk, hear, say};
use privet_party::session::family::dealing::messages::{DealReply, DealRequest};
use privet_party::session::family::fss::deal::DealerSession;
use privet_party::session::links::Links;
use privet_party::store::format::{Header, RecordWriter};
use privet_party::store::{SessionFile, SessionId};
use privet_prg::Seed;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the dealer answers: a session, numbers, and what it takes the keys from, for each party.
pub struct Answer {
    pub session: Id,
    pub indices: Vec<u64>,
    pub keys: [Arc<DealerSession>; 2],
    /// The records' sets as the sessions have them, or the same for both parties.
    pub set: Option<[u8; 16]>,
}

/// A dealer with the right certificate that answers as a test likes.
pub struct Played {
    links: Links,
    listener: Listener,
}

impl Played {
    pub fn new(nodes: &Nodes) -> Played {
        let (links, _) = nodes.links("dealer");
        // One that was just closed stays bound for as long as a process that another test begins has not become its program.
        let begun = Instant::now();
        let listener = loop {
            match links.listen() {
                Err(NetError::PortInUse { .. }) if begun.elapsed() < Duration::from_secs(5) => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                listener => break listener.unwrap(),
            }
        };
        Played { links, listener }
    }

    /// Answer the next deal that both parties ask for; gives the request. What the parties refuse ends early.
    pub fn answer(&self, answer: impl Fn(&DealRequest) -> Answer) -> DealRequest {
        self.deliver(answer, usize::MAX).0
    }

    /// The same, with so many records at most of those that it announces. Gives the connections, too: a dealer that holds them
    /// is alive and silent.
    pub fn deliver(
        &self,
        answer: impl Fn(&DealRequest) -> Answer,
        records: usize,
    ) -> (DealRequest, Vec<TcpChannel>) {
        let mut both = BTreeMap::new();
        while both.len() < 2 {
            let caller = self.listener.accept(Duration::from_secs(30)).unwrap();
            let (channel, place, _) = self.links.welcome(caller).unwrap();
            both.insert(place, channel);
        }
        let order: Vec<Place> = both.keys().cloned().collect();
        assert_eq!(order, [0, 1].map(Place::Party));
        Played::deliver_on(both.into_values().collect(), answer, records)
    }

    /// The same on the parties' connections, in their order.
    pub fn deliver_on(
        mut both: Vec<TcpChannel>,
        answer: impl Fn(&DealRequest) -> Answer,
        records: usize,
    ) -> (DealRequest, Vec<TcpChannel>) {
        let asked = |channel: &mut TcpChannel| {
            channel.set_patience(Some(Duration::from_secs(30)));
            hear(channel, Talk::Deal).unwrap()
        };
        let requests: Vec<DealRequest> = both.iter_mut().map(asked).collect();
        let request = requests[0].clone();
        assert_eq!(request, requests[1]);
        let Answer { session, indices, keys, set } = answer(&request);
        for (party, channel) in (0..).zip(&mut both) {
            let dealt = &keys[usize::from(party)];
            let id = SessionId { session: session.0, party, plan: small().hash() };
            let file = dealt.files().swap_remove(usize::from(party));
            let reply = DealReply::Dealing { session, indices: indices.clone() };
            let _ = say(channel, Talk::Deal, &reply);
            let file = SessionFile { id, ..file };
            let _ = channel.send(&Talk::Keys.step(), file.encode().to_vec());
            for &index in indices.iter().take(records) {
                let Header { set: own, seed, .. } = dealt.headers(index).swap_remove(usize::from(party));
                let header = Header { id: id.record(index), set: set.unwrap_or(own), seed };
                let mut one = One { party, record: RecordWriter::new(Vec::new(), &header).unwrap() };
                dealt.frames(index, &mut one, &mut |_| {}).unwrap();
                let bytes = one.record.finish().unwrap();
                let mut deliver = || {
                    channel.recv(&Talk::Credit.step(), 0)?;
                    channel.send(&Talk::Keys.step(), bytes.clone())?;
                    channel.send(&Talk::Keys.step(), Vec::new())?;
                    channel.recv(&Talk::Credit.step(), 0)
                };
                if deliver().is_err() {
                    break;
                }
            }
        }
        (request, both)
    }
}

/// The frames of one party.
pub struct One {
    pub party: u8,
    pub record: RecordWriter<Vec<u8>>,
}

impl KeySink for One {
    fn put(&mut self, frames: [&mut Vec<u8>; 2]) -> Result<(), KeyError> {
        let frame = &frames[usize::from(self.party)];
        if frame.is_empty() { Ok(()) } else { Ok(self.record.frame(frame)?) }
    }
}

/// Keys of the small plan.
pub fn dealt() -> Arc<DealerSession> {
    Arc::new(DealerSession::from_master(2, Arc::new(small()), privet_kernels::cpu(1), Seed::random()))
}
