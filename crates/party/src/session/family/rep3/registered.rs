//! What the registry knows of `rep3`.

use super::{Rep3, Rep3Outside};
use crate::config::Place;
use crate::events::Events;
use crate::registry::Registered;
use crate::session::links::Links;
use crate::session::party::{ServeError, serve_family, served};
use privet_kernels::Device;
use privet_plan::Program;
use privet_rep3::PartyId;
use std::sync::Arc;

/// The family.
pub(crate) static REGISTERED: Registered = Registered {
    facts: &privet_rep3::FACTS,
    forecast: |chosen| Box::new(privet_rep3::Rep3 { security: chosen.security }),
    serve,
    serve_clients: None,
    outside: &Rep3Outside,
    dealer: None,
    compares_by_kernel: false,
};

fn serve(
    me: u8,
    links: Arc<Links>,
    program: Arc<Program>,
    device: Arc<dyn Device>,
    events: Events,
) -> Result<(), ServeError> {
    let party = PartyId::new(me).ok_or(ServeError::NotAParty(Place::Party(me)))?;
    let security = links.config.deployment.security;
    let family = |_: &str, plan| Ok(Rep3::new(party, security, plan, device.clone()));
    let plans = served(&program, family)?;
    serve_family(me, links, program, plans, events)
}
