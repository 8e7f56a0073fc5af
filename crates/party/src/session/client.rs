//! The side of whoever owns data, the model, or the result: shares tensors, asks for runs, learns outputs.

use super::control::{Id, PartyRun, Reply, Request, Status, Talk, TalkError, hear, say};
use super::family::{Outside, ResultError, outside};
use super::links::{Links, Purpose};
use super::owner::{OwnerError, Shared, encode};
use crate::config::Place;
use privet_family::NodeStats;
use privet_net::{Channel, NetError, TcpChannel};
use privet_plan::ir::{Plan, Type};
use privet_plan::{EncodeError, FloatTensor};
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
    /// Tensors that do not fit the plan.
    #[error("{0}")]
    Encode(#[from] EncodeError),
    /// A result that does not have the plan's size, or on which parties disagree.
    #[error("{0}")]
    Result(#[from] ResultError),
}

impl From<NetError> for ClientError {
    fn from(e: NetError) -> Self {
        ClientError::Talk(e.into())
    }
}

/// What a run gave.
pub struct Outcome {
    /// The outputs whose receiver this client is, by name.
    pub outputs: BTreeMap<String, FloatTensor>,
    /// The parties' accounts, in their order.
    pub accounts: Vec<PartyRun>,
    /// Seconds from the request to the outputs in hand, at the client.
    pub wall_s: f64,
}

impl Outcome {
    /// The slowest party's time from shared inputs to shared outputs.
    pub fn online_s(&self) -> f64 {
        self.accounts.iter().map(|a| a.online_s).fold(0.0, f64::max)
    }

    /// Node by node, the largest of the parties' costs.
    pub fn nodes(&self) -> Vec<NodeStats> {
        let Some((first, rest)) = self.accounts.split_first() else { return Vec::new() };
        let larger = |most: Vec<NodeStats>, a: &PartyRun| {
            most.iter().zip(&a.nodes).map(|(m, n)| m.larger(n)).collect()
        };
        rest.iter().fold(first.nodes.clone(), larger)
    }

    /// The largest of the parties' costs of verification.
    pub fn checks(&self) -> NodeStats {
        self.accounts.iter().fold(NodeStats::default(), |most, a| most.larger(&a.checks))
    }
}

/// What was prepared on request.
#[derive(Clone, Copy, Debug)]
pub struct Prepared {
    /// Seconds, of the slowest party.
    pub seconds: f64,
    /// Bytes of keys, of the party with the most; 0 where runs use up nothing.
    pub key_bytes: u64,
}

/// A client of a deployment.
pub struct Client {
    links: Links,
    plan: Arc<Plan>,
    family: Box<dyn Outside>,
    /// To every party, in order.
    channels: Option<Vec<TcpChannel>>,
}

impl Client {
    /// For a deployment and its plan; connects at the first request.
    pub fn new(links: Links, plan: Arc<Plan>) -> Client {
        let family = outside(links.config.deployment.protocol);
        Client { links, plan, family, channels: None }
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Whether connections are mutual TLS.
    pub fn encrypted(&self) -> bool {
        self.links.encrypted()
    }

    /// How things stand at every party.
    pub fn status(&mut self) -> Result<Vec<Status>, ClientError> {
        self.ask(|c, _, _| {
            let id = Id::fresh();
            say(c, Talk::Request, &Request::Status { id })?;
            match hear(c, Talk::Reply)? {
                Reply::Status(status) => Ok(status),
                other => Err(unexpected(c, other)),
            }
        })
    }

    /// Have ready what `runs` runs use up: the dealer deals keys, and all parties store them. Where there is no dealer,
    /// runs use up nothing, and the answer comes at once.
    ///
    /// With `checks` over 0 (at most 255) it deals so many sessions more, and the parties open and check all
    /// but one, chosen by a coin: a dealer that cheats in one is caught with probability
    /// `checks / (checks + 1)`. Then the keys are a new session's, even where one is open: it is begun once
    /// the model is shared again, or the open one's keys are used up. Time, and space until then, are
    /// `checks + 1` fold.
    pub fn prepare(&mut self, runs: u64, checks: u64) -> Result<Prepared, ClientError> {
        let id = Id::fresh();
        self.request(&Request::Prepare { id, runs, checks })?;
        let all = self.ask(|c, _, _| match hear(c, Talk::Reply)? {
            Reply::Prepared { seconds, key_bytes } => Ok(Prepared { seconds, key_bytes }),
            other => Err(unexpected(c, other)),
        })?;
        Ok(Prepared {
            seconds: all.iter().map(|p| p.seconds).fold(0.0, f64::max),
            key_bytes: all.iter().map(|p| p.key_bytes).max().unwrap_or(0),
        })
    }

    /// Begin a session: share the weights that this client owns. Refuses NaN, infinity and values that do
    /// not fit, naming tensor and index, before anything is sent.
    pub fn share_weights(&mut self, weights: &BTreeMap<String, FloatTensor>) -> Result<(), ClientError> {
        let encoded = self.encode(Shared::Weights, weights)?;
        self.request(&Request::ShareWeights { id: Id::fresh() })?;
        self.share(Shared::Weights, &encoded)?;
        self.ask(|c, _, _| match hear(c, Talk::Reply)? {
            Reply::Done { .. } => Ok(()),
            other => Err(unexpected(c, other)),
        })?;
        Ok(())
    }

    /// Take part in one run with the inputs that this client owns.
    pub fn run(&mut self, inputs: &BTreeMap<String, FloatTensor>) -> Result<Outcome, ClientError> {
        let encoded = self.encode(Shared::Inputs, inputs)?;
        let start = Instant::now();
        self.request(&Request::Run { id: Id::fresh() })?;
        self.share(Shared::Inputs, &encoded)?;
        let lens: Vec<usize> = self.mine().map(|(_, ty)| self.family.result_bytes(ty)).collect();
        let all = self.ask(|c, plan, _| {
            let account = match hear(c, Talk::Reply)? {
                Reply::Done { account } => account,
                other => return Err(unexpected(c, other)),
            };
            let failed = |reason: &str| ClientError::Failed { place: c.peer().into(), reason: reason.into() };
            let account = *account.ok_or_else(|| failed("it sent no account of the run"))?;
            if account.nodes.len() != plan.nodes.len() {
                return Err(failed("its account is of another plan"));
            }
            let results =
                lens.iter().map(|&len| c.recv(&Talk::Result.step(), len)).collect::<Result<_, _>>()?;
            Ok((account, results))
        })?;
        let wall_s = start.elapsed().as_secs_f64();
        let (accounts, results): (Vec<PartyRun>, Vec<Vec<Vec<u8>>>) = all.into_iter().unzip();
        let mut sent: Vec<_> = results.into_iter().map(Vec::into_iter).collect();
        let mut outputs = BTreeMap::new();
        for (name, ty) in self.mine() {
            let of_all: Vec<Vec<u8>> = sent.iter_mut().filter_map(Iterator::next).collect();
            let values = self.family.combine(name, ty, &of_all)?;
            let data = FixedPoint::new(Ring::new(ty.bits), ty.frac).decode(&values);
            outputs.insert(name.to_owned(), FloatTensor { shape: ty.shape.clone(), data });
        }
        Ok(Outcome { outputs, accounts, wall_s })
    }

    /// The outputs that this client receives.
    fn mine(&self) -> impl Iterator<Item = (&str, &Type)> {
        let roles = self.roles();
        let mine = self.plan.outputs.iter().filter(move |o| roles.contains(&o.to.as_str()));
        mine.map(|o| (o.name.as_str(), &self.plan.nodes[o.value].ty))
    }

    fn roles(&self) -> Vec<&'static str> {
        self.links.config.roles()
    }

    /// Encode the tensors that this client owns.
    fn encode(
        &self,
        kind: Shared,
        given: &BTreeMap<String, FloatTensor>,
    ) -> Result<BTreeMap<String, Vec<u64>>, ClientError> {
        Ok(encode(&self.plan, kind, &self.roles(), given)?)
    }

    /// Connections to all parties: those from before, or new ones.
    fn connect(&mut self) -> Result<&mut Vec<TcpChannel>, ClientError> {
        let channels = match self.channels.take() {
            Some(channels) => channels,
            None => {
                let parties = 0..self.links.config.deployment.parties.len() as u8;
                let dial = |party| self.links.dial(&Place::Party(party), Purpose::Client);
                parties.map(dial).collect::<Result<_, _>>()?
            }
        };
        Ok(self.channels.insert(channels))
    }

    fn request(&mut self, request: &Request) -> Result<(), ClientError> {
        // A connection kept from before may have died with a party that was restarted since.
        let kept = self.channels.is_some();
        match self.ask(|c, _, _| Ok(say(c, Talk::Request, request)?)) {
            Err(_) if kept => self.ask(|c, _, _| Ok(say(c, Talk::Request, request)?)).map(drop),
            other => other.map(drop),
        }
    }

    fn share(&mut self, kind: Shared, encoded: &BTreeMap<String, Vec<u64>>) -> Result<(), ClientError> {
        let (plan, roles) = (self.plan.clone(), self.roles());
        let mut channels = std::mem::take(self.connect()?);
        self.family.share(&mut channels, &plan, kind, &roles, encoded)?;
        self.channels = Some(channels);
        Ok(())
    }

    /// Do the same with every party; after an error all connections are given up, since a party may be in the
    /// middle of something.
    fn ask<T>(
        &mut self,
        mut each: impl FnMut(&mut TcpChannel, &Plan, &[&str]) -> Result<T, ClientError>,
    ) -> Result<Vec<T>, ClientError> {
        let (plan, roles) = (self.plan.clone(), self.roles());
        let all: Result<_, _> = self.connect()?.iter_mut().map(|c| each(c, &plan, &roles)).collect();
        if all.is_err() {
            self.channels = None;
        }
        all
    }
}

fn unexpected(c: &TcpChannel, reply: Reply) -> ClientError {
    let reason = match reply {
        Reply::Failed { reason } => reason,
        _ => "it answered out of turn".into(),
    };
    ClientError::Failed { place: c.peer().into(), reason }
}
