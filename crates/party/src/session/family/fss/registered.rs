//! What the registry knows of `fss`.

use super::Fss;
use super::deal::{DealerSession, FssDealer};
use crate::events::Events;
use crate::registry::{DealerService, Registered};
use crate::session::family::dealing;
use crate::session::family::masked::{MaskedOutside, stores};
use crate::session::links::Links;
use crate::session::party::{ServeError, serve_family, served};
use privet_kernels::Device;
use privet_plan::Program;
use std::sync::Arc;

/// The family.
pub(crate) static REGISTERED: Registered = Registered {
    facts: &privet_fss::FACTS,
    forecast: |_| Box::new(privet_fss::Fss),
    serve,
    serve_clients: None,
    outside: &MaskedOutside,
    dealer: Some(DealerService {
        serve: dealing::serve::<FssDealer>,
        session: |parties, plan, device| Box::new(DealerSession::new(parties, plan, device)),
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
    let stores = stores(&links.config.node, &program);
    let family = |name: &str, plan| {
        Ok(Fss::new(me, links.clone(), plan, stores(name)?, device.clone(), events.clone()))
    };
    let plans = served(&program, family)?;
    serve_family(me, links, program, plans, events)
}
