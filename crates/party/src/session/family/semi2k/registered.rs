//! What the registry knows of `semi2k`.

use super::Semi2k;
use super::deal::Semi2kDealer;
use crate::events::Events;
use crate::registry::{DealerService, Registered};
use crate::session::family::dealing::{self, Session};
use crate::session::family::masked::{MaskedOutside, stores};
use crate::session::links::Links;
use crate::session::party::{ServeError, serve_family, served};
use privet_kernels::Device;
use privet_plan::Program;
use std::sync::Arc;

/// The family.
pub(crate) static REGISTERED: Registered = Registered {
    facts: &privet_semi2k::FACTS,
    forecast: |chosen| {
        let helper = privet_semi2k::FACTS.has_dealer(&chosen.parameters);
        let source = privet_semi2k::source(&chosen.parameters);
        let owned = chosen.model_at.is_some() && !helper;
        let alone = privet_semi2k::Semi2k::alone(chosen.parties);
        let records = chosen.together.unwrap_or(alone.records);
        Box::new(privet_semi2k::Semi2k { helper, source, owned, records, ..alone })
    },
    serve,
    serve_clients: None,
    outside: &MaskedOutside,
    dealer: Some(DealerService {
        serve: dealing::serve::<Semi2kDealer>,
        session: |parties, plan, device| Box::new(Session::<Semi2kDealer>::new(parties, plan, device)),
    }),
    compares_by_kernel: false,
};

fn serve(
    me: u8,
    links: Arc<Links>,
    program: Arc<Program>,
    device: Arc<dyn Device>,
    events: Events,
) -> Result<(), ServeError> {
    let stores = stores(&links.config.node, &program);
    let family = |name: &str, plan| {
        Ok(Semi2k::new(me, links.clone(), plan, stores(name)?, device.clone(), events.clone()))
    };
    let plans = served(&program, family)?;
    serve_family(me, links, program, plans, events)
}
