//! What the registry knows of `heot`.

use super::Heot;
use super::hints::Pool;
use super::owner::HeotOutside;
use crate::config::{Node, Place};
use crate::events::Events;
use crate::registry::Registered;
use crate::session::clients::{self, Host};
use crate::session::engine::Served;
use crate::session::family::masked::stores;
use crate::session::links::Links;
use crate::session::party::{ServeError, serve_family, served};
use crate::store::StoreError;
use privet_heot::Side;
use privet_kernels::Device;
use privet_plan::{Plan, Program};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The family.
pub(crate) static REGISTERED: Registered = Registered {
    facts: &privet_heot::FACTS,
    forecast: |chosen| {
        Box::new(privet_heot::Heot { link: privet_heot::link(&chosen.parameters), runs: chosen.together })
    },
    serve,
    serve_clients: Some(serve_clients),
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
    let pools = pools(&program, &links.config.node, &events);
    let plans = plans(side, &links, &program, &pools, &events)?;
    serve_family(me, links, program, plans, events)
}

/// All clients' plans have the same hints.
fn serve_clients(host: Host, program: Arc<Program>, events: Events) -> Result<(), ServeError> {
    let pools = pools(&program, &host.config().node, &events);
    let of = program.clone();
    clients::serve_family(host, program, events, move |links, events| {
        plans(Side::Server, links, &of, &pools, events)
    })
}

/// Hints by plan.
type Pools = BTreeMap<String, Arc<Pool>>;

fn pools(program: &Program, node: &Node, events: &Events) -> Pools {
    let (threads, store) = (node.thread_count(), &node.store);
    let pool = |plan: &Plan| Arc::new(Pool::new(Arc::new(plan.clone()), threads, store, events.clone()));
    program.plans.iter().map(|named| (named.name.clone(), pool(&named.plan))).collect()
}

/// A side's part in all plans of a deployment, each with a store of its own.
fn plans(
    side: Side,
    links: &Arc<Links>,
    program: &Program,
    pools: &Pools,
    events: &Events,
) -> Result<BTreeMap<String, Served<Heot>>, StoreError> {
    let stores = stores(&links.config.node, program);
    served(program, |name, plan| {
        let hints = Arc::clone(&pools[name]);
        Ok(Heot::new(side, links.clone(), plan, stores(name)?, hints, events.clone()))
    })
}
