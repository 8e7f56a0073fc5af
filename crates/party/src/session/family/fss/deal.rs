//! The dealer of `fss` within a session: the masks, and two streams of frames.

use super::checks::open;
use super::keys::keys_of_party;
use crate::session::family::dealing::{Checks, Deals, Session, Streams};
use privet_family::NodeStats;
use privet_fss::keys::{KeyError, KeySink};
use privet_fss::{Dealer, SessionMasks};
use privet_kernels::Device;
use privet_plan::Plan;
use privet_prg::Seed;
use zeroize::Zeroizing;

/// A session at the dealer of `fss`, which has two parties.
pub type DealerSession = Session<FssDealer>;

/// Its masks.
pub struct FssDealer(SessionMasks);

impl Deals for FssDealer {
    fn new(plan: &Plan, device: &dyn Device, _: usize, seed: &Seed) -> FssDealer {
        FssDealer(SessionMasks::new(plan, device, seed))
    }

    fn keys(&self) -> Vec<Zeroizing<Vec<u8>>> {
        self.0.party_seeds().iter().map(|party| keys_of_party(party.seed(), self.0.hash_keys())).collect()
    }

    fn record_seeds(&self, record: &Seed) -> Vec<Seed> {
        Dealer::record_seeds(record).into()
    }

    fn deal(
        &self,
        plan: &Plan,
        device: &dyn Device,
        index: u64,
        record: &Seed,
        sink: &mut dyn Streams,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<NodeStats>, KeyError> {
        Dealer::new(plan, device, &self.0).deal(index, record, &mut Both(sink), progress)
    }

    fn checks() -> Option<Checks<FssDealer>> {
        Some(Checks { refusal: open::refusal, deal: open::deal })
    }
}

impl DealerSession {
    /// Deal the frames of record `index`, both parties' side by side; gives the cost of each node.
    pub fn frames(
        &self,
        index: u64,
        sink: &mut dyn KeySink,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<NodeStats>, KeyError> {
        let dealer = Dealer::new(&self.plan, self.device.as_ref(), &self.dealer.0);
        dealer.deal(index, &self.record(index), sink, progress)
    }
}

/// Both parties' streams.
struct Both<'a>(&'a mut dyn Streams);

impl KeySink for Both<'_> {
    fn put(&mut self, frames: [&mut Vec<u8>; 2]) -> Result<(), KeyError> {
        let mut frames = frames.into_iter().enumerate().filter(|(_, frame)| !frame.is_empty());
        frames.try_for_each(|(party, frame)| self.0.put(party, frame))
    }
}
