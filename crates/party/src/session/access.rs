//! Who may ask what: one function for every request ([`Access::callers`]), one for every connection ([`admits`]), and one for
//! whose deployment a connection is for ([`tenant`]). The
//! client applies the first before it asks, party 0 when it picks a job, and every party before it consents.
//!
//! | to | who may |
//! |---|---|
//! | ask how things stand | every party and client of the deployment |
//! | prepare runs of a plan | whoever has a role in that plan |
//! | share a plan's weights | the place with the roles of all their owners |
//! | run a plan | owners of its inputs and receivers of its outputs, all together |
//! | begin a training | the owners of the program's states, all together |
//! | resume a training | whoever has a role in the program, where it has states |
//!
//! A server of many clients has a deployment for each. The certificate that a caller has shown says in which one it asks
//! ([`tenant`]); nothing that it says does.
//!
//! The dealer asks for nothing: whoever deals keys and could have a part in their use, too, would choose both.

use super::control::Request;
use super::links::Purpose;
use super::owner::{Shared, roles, roles_of, states};
use crate::config::{CLIENT_PARTY, Deployment, Place, Roles, Server};
use privet_net::Fingerprint;
use privet_plan::{Plan, Program};
use thiserror::Error;

/// Why somebody may not ask for something.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AccessError {
    /// Another place has the role that it takes.
    #[error("{place} has no role in this: {what} is for {roles}; see [roles] in the deployment file")]
    NoRole {
        /// Who asked.
        place: Place,
        /// For what.
        what: String,
        /// The roles that it takes, each with who has it.
        roles: String,
    },
    /// No such plan.
    #[error("there is no plan `{plan}` in the program, which has {names}")]
    NoPlan {
        /// What was asked for.
        plan: String,
        /// What there is.
        names: String,
    },
    /// A plan without weights.
    #[error("plan `{0}` has no weights to share: its sessions begin by themselves when it is run")]
    NothingToShare(String),
    /// A program without states.
    #[error("there are no states to train: this program has none")]
    NoStates,
}

impl AccessError {
    /// A plan that `program` does not have, by the name that somebody gave it.
    pub fn no_plan(plan: &str, program: &Program) -> AccessError {
        let plan = plan.chars().take(80).flat_map(char::escape_debug).collect();
        let names: Vec<&str> = program.plans.iter().map(|p| p.name.as_str()).collect();
        AccessError::NoPlan { plan, names: names.join(", ") }
    }
}

/// The client of a server in whose deployment a caller asks: the one with the certificate that the caller has shown. The error says
/// why there is none, for both logs.
pub fn tenant<'a>(server: &'a Server, certificate: Option<&Fingerprint>) -> Result<&'a str, &'static str> {
    let shown = certificate.ok_or("this server knows its clients by certificates alone")?;
    let whose = |deployment: &Deployment| deployment.fingerprint(&Place::Party(CLIENT_PARTY)) == Some(shown);
    let mut clients = server.clients();
    let found = clients.find(|(_, deployment)| whose(deployment)).map(|(client, _)| client);
    found.ok_or("this certificate is no client's of this server")
}

/// Whether party `me` serves a connection of `place` for `purpose`. The error says why not, for both logs.
pub fn admits(me: u8, place: &Place, purpose: Purpose) -> Result<(), &'static str> {
    match (place, purpose) {
        // Of two parties the one of the higher number dials.
        (Place::Party(party), Purpose::Parties | Purpose::Preparation) if *party > me => Ok(()),
        (Place::Party(_) | Place::Client(_), Purpose::Client) => Ok(()),
        (_, Purpose::Doctor) => Ok(()),
        (Place::Dealer, Purpose::Client) => {
            Err("this party does not serve that: the dealer is no client, whatever the protocol")
        }
        _ => Err("this party does not serve that"),
    }
}

/// What the deployment and the program say about who may ask what.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    roles: &'a Roles,
    program: &'a Program,
}

/// Who must ask for a request to be served.
enum Who {
    /// Every place that is let in, alone.
    Everybody,
    /// A place with one of these roles, alone.
    AnyOf(Vec<String>),
    /// A place with all these roles, alone.
    OneWithAll(Vec<String>),
    /// All places with one of these roles, together.
    AllOf(Vec<String>),
}

impl<'a> Access<'a> {
    /// For a program in a deployment.
    pub fn new(deployment: &'a Deployment, program: &'a Program) -> Access<'a> {
        Access { roles: &deployment.roles, program }
    }

    /// The places that must ask for this together, in order: `place` and whom it needs. Refuses a place that may not ask
    /// for it, with the roles that may, who has them and who asked.
    pub fn callers(&self, place: &Place, request: &Request) -> Result<Vec<Place>, AccessError> {
        let alone = || vec![place.clone()];
        let mine = self.roles.of(place);
        let (may, callers, roles) = match self.who(request)? {
            // Not even that: it is refused as a caller already, and here once more.
            Who::Everybody => (*place != Place::Dealer, alone(), Vec::new()),
            Who::AnyOf(roles) => (roles.iter().any(|r| mine.contains(&&**r)), alone(), roles),
            Who::OneWithAll(roles) => (roles.iter().all(|r| mine.contains(&&**r)), alone(), roles),
            Who::AllOf(roles) => {
                let callers = self.places(&roles);
                (callers.contains(place), callers, roles)
            }
        };
        match may {
            true => Ok(callers),
            false => Err(AccessError::NoRole {
                place: place.clone(),
                what: what(request),
                roles: self.said(&roles),
            }),
        }
    }

    /// Whether a session of a plan may begin with the weights in the node file of party `owner`, or with none.
    pub fn begins_with(&self, name: &str, owner: Option<u8>) -> Result<(), AccessError> {
        let plan = self.plan(name)?;
        match (self.party_with_the_model(plan), owner) {
            (Ok(with), owner) if with == owner => Ok(()),
            (Ok(None), _) => Err(AccessError::NothingToShare(name.to_owned())),
            (_, owner) => Err(AccessError::NoRole {
                // Without an owner it is party 0 that asks for it.
                place: Place::Party(owner.unwrap_or(0)),
                what: format!("beginning a session of plan `{name}`"),
                roles: self.said(&owners(Shared::Weights, plan)),
            }),
        }
    }

    /// The party whose node file has the weights of a plan; none where the plan has no weights. An error where a client
    /// has to share them.
    pub(super) fn party_with_the_model(&self, plan: &Plan) -> Result<Option<u8>, ()> {
        party_with_the_model(self.roles, plan)
    }

    fn who(&self, request: &Request) -> Result<Who, AccessError> {
        Ok(match request {
            Request::Status { .. } => Who::Everybody,
            Request::Prepare { plan, .. } => Who::AnyOf(roles_of(self.plan(plan)?)),
            Request::ShareWeights { plan: name, .. } => match owners(Shared::Weights, self.plan(name)?) {
                owners if owners.is_empty() => return Err(AccessError::NothingToShare(name.clone())),
                owners => Who::OneWithAll(owners),
            },
            Request::Run { plan, .. } => {
                let plan = self.plan(plan)?;
                let receivers = plan.outputs.iter().map(|o| o.to.clone());
                Who::AllOf(owners(Shared::Inputs, plan).into_iter().chain(receivers).collect())
            }
            Request::BeginTraining { .. } => Who::AllOf(self.owners_of_states()?),
            Request::Resume { .. } => {
                self.owners_of_states()?;
                Who::AnyOf(roles(self.program))
            }
        })
    }

    fn plan(&self, name: &str) -> Result<&'a Plan, AccessError> {
        self.program.plan(name).ok_or_else(|| AccessError::no_plan(name, self.program))
    }

    fn owners_of_states(&self) -> Result<Vec<String>, AccessError> {
        let owners: Vec<String> = states(self.program).into_iter().map(|p| p.owner).collect();
        if owners.is_empty() { Err(AccessError::NoStates) } else { Ok(owners) }
    }

    /// Who plays some roles, in order, each once.
    fn places(&self, roles: &[String]) -> Vec<Place> {
        places(self.roles, roles)
    }

    /// Roles with who has them, for people.
    fn said(&self, roles: &[String]) -> String {
        let mut roles = roles.to_vec();
        roles.sort();
        roles.dedup();
        let said = roles.iter().map(|role| match self.roles.get(role) {
            Some(place) => format!("{role} ({place})"),
            None => format!("{role} (nobody)"),
        });
        said.collect::<Vec<_>>().join(", ")
    }
}

/// What is asked for, for people.
fn what(request: &Request) -> String {
    match request {
        Request::Status { .. } => "the status".into(),
        Request::Prepare { plan, .. } => format!("preparing runs of plan `{plan}`"),
        Request::ShareWeights { plan, .. } => format!("sharing the weights of plan `{plan}`"),
        Request::BeginTraining { .. } => "beginning a training".into(),
        Request::Resume { .. } => "resuming a training".into(),
        Request::Run { plan, .. } => format!("a run of plan `{plan}`"),
    }
}

/// As [`Access::party_with_the_model`], of a plan alone.
pub(super) fn party_with_the_model(roles: &Roles, plan: &Plan) -> Result<Option<u8>, ()> {
    match places(roles, &owners(Shared::Weights, plan))[..] {
        [] => Ok(None),
        [Place::Party(party)] => Ok(Some(party)),
        _ => Err(()),
    }
}

fn places(all: &Roles, roles: &[String]) -> Vec<Place> {
    let mut places: Vec<Place> = roles.iter().filter_map(|role| all.get(role).cloned()).collect();
    places.sort();
    places.dedup();
    places
}

fn owners(kind: Shared, plan: &Plan) -> Vec<String> {
    kind.all(plan).into_iter().map(|p| p.owner).collect()
}
