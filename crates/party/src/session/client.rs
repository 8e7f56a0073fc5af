//! The side of whoever owns data, the model, or the result: shares tensors, asks for runs, learns outputs.

mod talk;
mod watch;

use super::access::{Access, AccessError};
use super::control::{Amount, At, Id, PartyRun, Reply, Request, Status, Talk, TalkError, hear};
use super::family::{Outside, ResultError};
use super::links::Links;
use super::outcome::Outcome;
use super::owner::{OwnerError, Shared, encode, encode_all_states, owned, states};
use crate::events::{Bytes, Count, Event, Events, Job, JobEvents, Peer, Reason, Secs, Told, Why, reason};
use privet_net::{Channel, NetError, TcpChannel};
use privet_plan::ir::{Op, Plan, Type};
use privet_plan::program::ONLY_PLAN;
use privet_plan::{EncodeError, FloatTensor, Program, encode_publics};
use privet_ring::{FixedPoint, Ring};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use thiserror::Error;

/// Why a client's request failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// A connection.
    #[error("{0}")]
    Talk(#[from] TalkError),
    /// Sharing tensors.
    #[error("{0}")]
    Owner(#[from] OwnerError),
    /// A party said no.
    #[error("{place}: {reason}")]
    Failed {
        /// Which.
        place: String,
        /// Cause and remedy.
        reason: String,
    },
    /// Tensors or public numbers that do not fit the plan.
    #[error("{0}")]
    Encode(#[from] EncodeError),
    /// A result that does not have the plan's size, or on which parties disagree.
    #[error("{0}")]
    Result(#[from] ResultError),
    /// Not for this client to ask.
    #[error("{0}")]
    Access(#[from] AccessError),
    /// No states to start from.
    #[error("the parties hold no training: begin one, or resume yours")]
    NoTraining,
    /// The parties are not in the same training.
    #[error("the parties do not hold the same training ({0}): resume yours")]
    Apart(String),
}

impl Why for ClientError {
    fn why(&self) -> Reason {
        match self {
            ClientError::Talk(e) => e.why(),
            ClientError::Owner(e) => e.why(),
            ClientError::Failed { place, reason } => {
                reason!("client.refused", "{place}: {said}", place = Peer::of(place), said = Told::of(reason))
            }
            ClientError::Encode(e) => e.why(),
            ClientError::Result(_) => reason!("client.result", "a result cannot be put together"),
            ClientError::Access(e) => e.why(),
            ClientError::NoTraining | ClientError::Apart(_) => {
                reason!(
                    "client.no_training",
                    "the parties do not hold the same training: begin one, or resume yours"
                )
            }
        }
    }
}

impl From<NetError> for ClientError {
    fn from(e: NetError) -> Self {
        ClientError::Talk(e.into())
    }
}

/// Public numbers of a run, by name.
pub type Publics = BTreeMap<String, f64>;

/// What was prepared on request.
#[derive(Clone, Copy, Debug)]
pub struct Prepared {
    /// Seconds, of the slowest party.
    pub seconds: f64,
    /// Bytes of keys, of the party with the most; 0 where runs use up nothing.
    pub key_bytes: u64,
    /// Bytes that a party sent for it, of the one with the most.
    pub sent_bytes: u64,
    /// Bytes that a party received for it, of the one with the most.
    pub received_bytes: u64,
    /// Rounds of a party, of the one with the most.
    pub rounds: u64,
}

/// A client of a deployment.
pub struct Client {
    links: Arc<Links>,
    program: Arc<Program>,
    events: Events,
    family: &'static dyn Outside,
    /// To every party, in order.
    channels: Option<Vec<TcpChannel>>,
    /// The training that this client takes part in, and the step that its next one starts from.
    training: Option<At>,
}

impl Client {
    /// For a deployment and its program; connects at the first request.
    pub fn new(links: Links, program: Arc<Program>) -> Client {
        let family = links.config.deployment.protocol.registered().outside;
        Client {
            links: Arc::new(links),
            program,
            events: Events::unheard(),
            family,
            channels: None,
            training: None,
        }
    }

    /// Tell of what it does from now on.
    pub fn telling(self, events: Events) -> Client {
        Client { events, ..self }
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// A plan of the program.
    pub fn plan(&self, name: &str) -> Result<&Plan, ClientError> {
        Ok(self.program.plan(name).ok_or_else(|| AccessError::no_plan(name, &self.program))?)
    }

    /// Whether connections are mutual TLS.
    pub fn encrypted(&self) -> bool {
        self.links.encrypted()
    }

    /// How things stand at every party.
    pub fn status(&mut self) -> Result<Vec<Status>, ClientError> {
        let request = Request::Status { id: Id::fresh() };
        let ask = |client: &mut Client| {
            client.send(&request)?;
            client.hear_all(|c| match hear(c, Talk::Reply)? {
                Reply::Status(status) => Ok(status),
                other => Err(unexpected(c, other)),
            })
        };
        // A connection kept from before may have died with a party that was restarted since.
        let kept = self.channels.is_some();
        match ask(self) {
            Err(_) if kept => ask(self),
            other => other,
        }
    }

    /// Have ready what `runs` runs of a plan use up: the dealer deals keys, and all parties store them. Where runs
    /// use up nothing, the answer comes at once.
    ///
    /// With `checks` over 0 (at most 255) it deals so many sessions more, and the parties open and check all
    /// but one, chosen by a coin: a dealer that cheats in one is caught with probability
    /// `checks / (checks + 1)`. Then the keys are a new session's, even where one is open: it is begun once
    /// the model is shared again, or the open one's keys are used up. Time, and space until then, are
    /// `checks + 1` fold.
    pub fn prepare(&mut self, plan: &str, runs: u64, checks: u64) -> Result<Prepared, ClientError> {
        self.ask_for_keys(plan, Amount { runs, checks, stream: false })
    }

    /// Have what `runs` runs of a plan use up come while they use it up: this returns when there is enough for the first
    /// run. A run whose part has not come yet waits for it. Parties hold no more in advance than their node files say
    /// (`ahead`, `disk_budget`, `memory_budget`). Where the stream ends early, the next run that lacks keys says why, and
    /// another preparation continues.
    pub fn prepare_stream(&mut self, plan: &str, runs: u64) -> Result<Prepared, ClientError> {
        self.ask_for_keys(plan, Amount { runs, checks: 0, stream: true })
    }

    fn ask_for_keys(&mut self, plan: &str, amount: Amount) -> Result<Prepared, ClientError> {
        let request = Request::Prepare { id: Id::fresh(), plan: plan.to_owned(), amount };
        let job = self.job(&request);
        self.request(&request)?;
        let (runs, checks) = (Count::of(amount.runs), Count::of(amount.checks));
        job.emit(|job| Event::PreparationBegan { job, runs, checks });
        let watched = self.events.heard().then(|| watch::preparation(self.links.clone(), plan, job.clone()));
        let all = self.hear_all(|c| match hear(c, Talk::Reply)? {
            Reply::Prepared { seconds, key_bytes, sent_bytes, received_bytes, rounds } => {
                Ok(Prepared { seconds, key_bytes, sent_bytes, received_bytes, rounds })
            }
            other => Err(unexpected(c, other)),
        });
        drop(watched);
        let all = all.inspect_err(|e| job.emit(|job| Event::JobFailed { job, reason: e.why() }))?;
        let most = |of: fn(&Prepared) -> u64| all.iter().map(of).max().unwrap_or(0);
        let keys = Bytes::of(most(|p| p.key_bytes));
        job.emit(|of| Event::PreparationDone { job: of, runs, keys, took: Secs::of(job.elapsed()) });
        Ok(Prepared {
            seconds: all.iter().map(|p| p.seconds).fold(0.0, f64::max),
            key_bytes: most(|p| p.key_bytes),
            sent_bytes: most(|p| p.sent_bytes),
            received_bytes: most(|p| p.received_bytes),
            rounds: most(|p| p.rounds),
        })
    }

    /// Begin a session of a plan: share the weights that this client owns. Refuses NaN, infinity and values that do
    /// not fit, naming tensor and index, before anything is sent.
    pub fn share_weights(
        &mut self,
        plan: &str,
        weights: &BTreeMap<String, FloatTensor>,
    ) -> Result<(), ClientError> {
        let kind = Shared::Weights;
        let pieces = owned(kind.all(self.plan(plan)?), &self.roles());
        let encoded = encode(self.plan(plan)?, kind, &self.roles(), weights)?;
        let request = Request::ShareWeights { id: Id::fresh(), plan: plan.to_owned() };
        self.request_and_share(&request, kind, &pieces, &encoded)?;
        self.hear_all(|c| match hear(c, Talk::Reply)? {
            Reply::Done { .. } => Ok(()),
            other => Err(unexpected(c, other)),
        })?;
        Ok(())
    }

    /// Take part in one run of a deployment's only plan, with the inputs that this client owns.
    pub fn run(&mut self, inputs: &BTreeMap<String, FloatTensor>) -> Result<Outcome, ClientError> {
        self.step(ONLY_PLAN, inputs, &Publics::new())
    }

    /// Begin a training: share the first values of the states that this client owns, checked like weights. With
    /// `checkpoint_every` over 0 all parties write a checkpoint now and after every so many steps. Gives its name, by
    /// which it can be resumed. Whoever owns other states of the program must ask for the same at the same time.
    pub fn begin_training(
        &mut self,
        first: &BTreeMap<String, FloatTensor>,
        checkpoint_every: u64,
    ) -> Result<Id, ClientError> {
        let pieces = owned(states(&self.program), &self.roles());
        let encoded = encode_all_states(&self.program, &self.roles(), first)?;
        let request = Request::BeginTraining { id: Id::fresh(), checkpoint_every };
        self.request_and_share(&request, Shared::States, &pieces, &encoded)?;
        Ok(self.hear_training()?.training)
    }

    /// Go on with a training at the last step that all parties have, in memory or as a checkpoint; gives where that is.
    /// Steps after it are lost and done again.
    pub fn resume(&mut self, training: Id) -> Result<At, ClientError> {
        self.request(&Request::Resume { id: Id::fresh(), training })?;
        self.hear_training()
    }

    /// Where all parties are, which is where this client's next step starts: to be asked for when another client began or
    /// resumed the training, and after a step that failed for one client and may have ended well for another.
    pub fn join_training(&mut self) -> Result<At, ClientError> {
        let all: Vec<Option<At>> = self.status()?.into_iter().map(|s| s.training).collect();
        let Some(&Some(first)) = all.first() else { return Err(apart(&all)) };
        if all.iter().any(|at| at.is_none_or(|at| at.training != first.training)) {
            return Err(apart(&all));
        }
        // A party that is a step ahead of another still holds the states before it.
        let at = all.into_iter().flatten().min_by_key(|at| at.step).unwrap_or(first);
        self.training = Some(at);
        Ok(at)
    }

    /// The training that this client takes part in, and the step that its next one starts from.
    pub fn training(&self) -> Option<At> {
        self.training
    }

    /// Say where this client's next step starts, instead of where all parties are: to do a step again, for example, that the
    /// parties still hold.
    pub fn set_training(&mut self, at: At) {
        self.training = Some(at);
    }

    /// Take part in one run of a plan, with the inputs that this client owns and the plan's public numbers, all of them.
    ///
    /// A plan that reads states runs at this client's step of the training (it joins the one under way where it has begun
    /// or resumed none); one that updates them ends at the next. After an error the step stays, and the same call does it
    /// again.
    pub fn step(
        &mut self,
        name: &str,
        inputs: &BTreeMap<String, FloatTensor>,
        publics: &Publics,
    ) -> Result<Outcome, ClientError> {
        let (kind, roles) = (Shared::Inputs, self.roles());
        let plan = self.plan(name)?;
        let pieces = owned(kind.all(plan), &roles);
        let encoded = encode(plan, kind, &roles, inputs)?;
        encode_publics(plan, publics)?;
        let reads_states = plan.nodes.iter().any(|n| matches!(n.op, Op::State { .. }));
        let (nodes, updates, mine) = (plan.nodes.len(), !plan.updates.is_empty(), mine(plan, &roles));
        let from = match (reads_states, self.training) {
            (false, _) => None,
            (true, Some(at)) => Some(at),
            (true, None) => Some(self.join_training()?),
        };

        let start = Instant::now();
        let (plan, publics) = (name.to_owned(), publics.clone());
        let request = Request::Run { id: Id::fresh(), plan, from, publics };
        self.request_and_share(&request, kind, &pieces, &encoded)?;
        let lens: Vec<usize> = mine.iter().map(|(_, ty)| self.family.result_bytes(ty)).collect();
        let all = self.hear_all(|c| {
            let account = match hear(c, Talk::Reply)? {
                Reply::Done { account } => account,
                other => return Err(unexpected(c, other)),
            };
            let failed = |reason: &str| ClientError::Failed { place: c.peer().into(), reason: reason.into() };
            let account = *account.ok_or_else(|| failed("it sent no account of the run"))?;
            if account.nodes.len() != nodes {
                return Err(failed("its account is of another plan"));
            }
            let results =
                lens.iter().map(|&len| c.recv(&Talk::Result.step(), len)).collect::<Result<_, _>>()?;
            Ok((account, results))
        })?;
        let wall_s = start.elapsed().as_secs_f64();
        if let (Some(at), true) = (from, updates) {
            self.training = Some(At { step: at.step + 1, ..at });
        }
        let (accounts, results): (Vec<PartyRun>, Vec<Vec<Vec<u8>>>) = all.into_iter().unzip();
        let mut sent: Vec<_> = results.into_iter().map(Vec::into_iter).collect();
        let mut outputs = BTreeMap::new();
        for (name, ty) in mine {
            let of_all: Vec<Vec<u8>> = sent.iter_mut().filter_map(Iterator::next).collect();
            let values = self.family.combine(&name, &ty, &of_all)?;
            let data = FixedPoint::new(Ring::new(ty.bits), ty.frac).decode(&values);
            outputs.insert(name, FloatTensor { shape: ty.shape, data });
        }
        Ok(Outcome { outputs, accounts, wall_s, runs: 1 })
    }

    /// Where the events of one of its requests go.
    fn job(&self, request: &Request) -> JobEvents {
        let me = &self.links.config.node.me;
        let job = Job::asked(&self.program, std::iter::once((me, request)));
        JobEvents::new(self.events.clone(), job.unwrap_or_else(|| Job::deal(request.id(), None)))
    }

    fn roles(&self) -> Vec<String> {
        self.links.config.roles().into_iter().map(str::to_owned).collect()
    }

    /// Whether this client may ask for the beginning of a session of a plan; nobody is asked.
    pub fn may_share_weights(&self, plan: &str) -> Result<(), ClientError> {
        self.may_ask(&Request::ShareWeights { id: Id::fresh(), plan: plan.to_owned() })
    }

    fn may_ask(&self, request: &Request) -> Result<(), ClientError> {
        let config = &self.links.config;
        Access::new(&config.deployment, &self.program).callers(&config.node.me, request)?;
        Ok(())
    }

    /// The parties' answer to a request that ends with all of them at a step.
    fn hear_training(&mut self) -> Result<At, ClientError> {
        let all = self.hear_all(|c| match hear(c, Talk::Reply)? {
            Reply::Training { at } => Ok(Some(at)),
            other => Err(unexpected(c, other)),
        })?;
        match all.first() {
            Some(&Some(at)) if all.iter().all(|other| *other == Some(at)) => {
                self.training = Some(at);
                Ok(at)
            }
            _ => Err(apart(&all)),
        }
    }
}

/// The outputs of a plan that one of `roles` receives.
fn mine(plan: &Plan, roles: &[String]) -> Vec<(String, Type)> {
    let mine = plan.outputs.iter().filter(|o| roles.contains(&o.to));
    mine.map(|o| (o.name.clone(), plan.nodes[o.value].ty.clone())).collect()
}

fn apart(all: &[Option<At>]) -> ClientError {
    if all.iter().all(Option::is_none) {
        return ClientError::NoTraining;
    }
    let of = |(party, at): (usize, &Option<At>)| match at {
        Some(at) => format!("party {party} is at {at}"),
        None => format!("party {party} holds none"),
    };
    ClientError::Apart(all.iter().enumerate().map(of).collect::<Vec<_>>().join(", "))
}

fn unexpected(c: &TcpChannel, reply: Reply) -> ClientError {
    let reason = match reply {
        Reply::Failed { reason } => reason,
        _ => "it answered out of turn".into(),
    };
    ClientError::Failed { place: c.peer().into(), reason }
}
