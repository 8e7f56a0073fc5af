//! What the registry knows of `fss`.

use super::deal::DealerSession;
use super::{Fss, FssOutside, dealer};
use crate::events::Events;
use crate::registry::{DealToFiles, DealerService, Registered};
use crate::session::links::Links;
use crate::session::party::{ServeError, serve_family, served};
use crate::store::{Store, StoreError};
use privet_family::NodeStats;
use privet_kernels::Device;
use privet_plan::Program;
use std::path::Path;
use std::sync::Arc;

/// The family.
pub(crate) static REGISTERED: Registered = Registered {
    facts: &privet_fss::FACTS,
    forecast: |_| Box::new(privet_fss::Fss),
    serve,
    outside: &FssOutside,
    dealer: Some(DealerService {
        serve: dealer::serve,
        session: |plan, device| Box::new(DealerSession::new(plan, device)),
    }),
    compares_by_kernel: true,
};

fn serve(
    me: u8,
    links: Arc<Links>,
    program: Arc<Program>,
    device: Arc<dyn Device>,
    events: Events,
) -> Result<(), ServeError> {
    let (bare, space) = (program.bare().is_some(), Fss::space(&links.config.node));
    let family = |name: &str, plan| {
        let dir = &links.config.node.store;
        // Keys are of one plan: each has a store of its own, but the room is the party's.
        let dir = if bare { dir.clone() } else { dir.join(name) };
        let store = Store::open(&dir)?.within(space.clone());
        Ok(Fss::new(me, links.clone(), plan, store, device.clone(), events.clone()))
    };
    let plans = served(&program, family)?;
    serve_family(me, links, program, plans, events)
}

impl DealToFiles for DealerSession {
    fn deal(&mut self, stores: [&Path; 2], runs: u64) -> Result<Vec<NodeStats>, StoreError> {
        let indices = self.take_indices(runs);
        self.deal_to_stores(stores, &indices, &mut |_| {})
    }
}
