//! The dealer of `semi2k` within a session: all parties' seeds, and a stream of frames to each.

use super::session::{By, SessionKeys};
use crate::session::family::dealing::{Deals, Streams};
use privet_family::NodeStats;
use privet_family::keys::KeyError;
use privet_kernels::Device;
use privet_plan::Plan;
use privet_prg::{Domain, Seed};
use privet_semi2k::{Helper, HelperSession, PartySeed, PrepareError, RecordSink, all_seeds, prepare};
use zeroize::Zeroizing;

/// A dealer, who knows all masks: it helps parties that trust it to collude with none of them.
pub(super) struct Semi2kDealer {
    session: HelperSession,
    public: Seed,
}

impl Deals for Semi2kDealer {
    fn new(plan: &Plan, device: &dyn Device, parties: usize, seed: &Seed) -> Semi2kDealer {
        let public = seed.derive(Domain::Public, 0);
        Semi2kDealer { session: HelperSession::new(plan, device, parties, seed, public.clone()), public }
    }

    fn keys(&self) -> Vec<Zeroizing<Vec<u8>>> {
        let keys = |party: &PartySeed| {
            let (own, public) = (party.seed().clone(), self.public.clone());
            SessionKeys { by: By::Dealer, owner: None, own, public }.encode()
        };
        self.session.seeds().iter().map(keys).collect()
    }

    fn record_seeds(&self, record: &Seed) -> Vec<Seed> {
        all_seeds(self.session.seeds().len(), record).iter().map(|party| party.seed().clone()).collect()
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
        let (seeds, mut all) = (all_seeds(self.session.seeds().len(), record), All(sink));
        let mut helper = Helper::new(device, &self.session, index, &seeds, &mut all);
        prepare(plan, &mut helper, progress).map_err(|e| match e {
            PrepareError::Record(e) => e,
            e => KeyError::Corrupt(e.to_string()),
        })
    }
}

/// The parties' streams.
struct All<'a>(&'a mut dyn Streams);

impl RecordSink for All<'_> {
    fn put(&mut self, place: usize, frame: &mut Vec<u8>) -> Result<(), KeyError> {
        self.0.put(place, frame)
    }
}
