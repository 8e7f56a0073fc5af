//! What the registry knows of `heot`.

use super::Heot;
use super::owner::HeotOutside;
use crate::config::Place;
use crate::events::Events;
use crate::registry::Registered;
use crate::session::family::masked::stores;
use crate::session::links::Links;
use crate::session::party::{ServeError, serve_family, served};
use privet_heot::Side;
use privet_kernels::Device;
use privet_plan::Program;
use std::sync::Arc;

/// The family.
pub(crate) static REGISTERED: Registered = Registered {
    facts: &privet_heot::FACTS,
    forecast: |_| Box::new(privet_heot::Heot),
    serve,
    outside: &HeotOutside,
    dealer: None,
    compares_by_kernel: false,
};

fn serve(
    me: u8,
    links: Arc<Links>,
    program: Arc<Program>,
    _: Arc<dyn Device>,
    events: Events,
) -> Result<(), ServeError> {
    let side = Side::ALL
        .into_iter()
        .find(|side| *side as u8 == me)
        .ok_or(ServeError::NotAParty(Place::Party(me)))?;
    let stores = stores(&links.config.node, &program);
    let family = |name: &str, plan| Ok(Heot::new(side, links.clone(), plan, stores(name)?, events.clone()));
    let plans = served(&program, family)?;
    serve_family(me, links, program, plans, events)
}
