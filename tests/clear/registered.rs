//! What the registry knows of `clear`.

use super::facts::{FACTS, Prices};
use super::{Clear, ClearOutside};
use crate::events::Events;
use crate::registry::Registered;
use crate::session::links::Links;
use crate::session::party::{ServeError, serve_family, served};
use crate::store::Store;
use privet_kernels::Device;
use privet_plan::Program;
use std::sync::Arc;

/// The family.
pub(crate) static REGISTERED: Registered = Registered {
    facts: &FACTS,
    forecast: |chosen| Box::new(Prices { parties: chosen.parties }),
    serve,
    serve_clients: None,
    outside: &ClearOutside,
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
    let (bare, parties) = (program.bare().is_some(), links.config.deployment.parties.len());
    let family = |name: &str, plan| {
        let dir = &links.config.node.store;
        let store = Store::open(&if bare { dir.clone() } else { dir.join(name) })?;
        Ok(Clear::new(me, parties, plan, store, events.clone()))
    };
    let plans = served(&program, family)?;
    serve_family(me, links, program, plans, events)
}
