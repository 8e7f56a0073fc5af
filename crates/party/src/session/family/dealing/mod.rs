//! What families with a dealer share, for any number of parties: a session at the dealer ([`Session`]), its service, and a
//! party's side of a deal. What is dealt, and what a party is given of a session, is the family's ([`Deals`]).

pub mod fetch;
mod known;
pub mod messages;
mod reasons;
pub mod sending;
mod service;
mod session;

pub use service::serve;
pub use session::{Session, SessionSeed};

use crate::session::control::TalkError;
use messages::DealRequest;
use privet_family::NodeStats;
use privet_family::keys::KeyError;
use privet_kernels::Device;
use privet_net::TcpChannel;
use privet_plan::Plan;
use privet_prg::Seed;
use zeroize::Zeroizing;

/// Where a dealer puts what it deals: a stream of frames a party.
pub trait Streams {
    /// Append a frame to a party's stream. The buffer may be kept, and another one left in its place, with any contents: frames are
    /// large, and a copy of each would cost a dealer as much as dealing it.
    fn put(&mut self, party: usize, frame: &mut Vec<u8>) -> Result<(), KeyError>;
}

/// A family's dealer within one session. Everything follows from the session's secret seed and those of its records.
pub trait Deals: Send + Sync + Sized + 'static {
    /// For so many parties, from the session's seed.
    fn new(plan: &Plan, device: &dyn Device, parties: usize, seed: &Seed) -> Self;
    /// What each party keeps of the session; secret.
    fn keys(&self) -> Vec<Zeroizing<Vec<u8>>>;
    /// The secret seeds that a record gives the parties.
    fn record_seeds(&self, record: &Seed) -> Vec<Seed>;
    /// Deal the frames of a record, its randomness all from its seed; gives the costs of each node.
    fn deal(
        &self,
        plan: &Plan,
        device: &dyn Device,
        index: u64,
        record: &Seed,
        sink: &mut dyn Streams,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<NodeStats>, KeyError>;
    /// How its dealer is checked; none where it cannot be.
    fn checks() -> Option<Checks<Self>> {
        None
    }
}

/// A session of a master seed.
pub type OfMaster<'a, D> = dyn Fn(Seed) -> Session<D> + 'a;

/// How a dealer lets its deals be checked.
pub struct Checks<D: Deals> {
    /// Why it does not deal what was asked, if so.
    pub refusal: fn(&DealRequest) -> Option<&'static str>,
    /// Deal with checks; the session that is kept, if any.
    pub deal: CheckedDeal<D>,
}

/// Both ends of a deal with checks at the dealer: connections, what was asked, sessions by master seed, progress.
pub type CheckedDeal<D> = fn(
    &mut [TcpChannel],
    &DealRequest,
    &OfMaster<'_, D>,
    &mut dyn FnMut(usize),
) -> Result<Option<Session<D>>, TalkError>;
