//! The side of whoever owns data, the model, or the result: shares tensors, asks for runs, learns outputs.

use super::control::{Id, PartyRun, Reply, Request, Status, Talk, TalkError, hear, say};
use super::links::{Links, Purpose};
use super::owner::{OwnerError, Shared, encode, share};
use crate::config::Place;
use privet_family::NodeStats;
use privet_net::{Channel, NetError, TcpChannel};
use privet_plan::ir::Plan;
use privet_plan::{EncodeError, FloatTensor};
use privet_ring::{FixedPoint, PackError, Ring, unpack};
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
    /// A result that does not have the plan's size.
    #[error("result `{name}`: {source}")]
    Result {
        /// The output.
        name: String,
        /// Why.
        source: PackError,
    },
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

/// Keys dealt on request.
#[derive(Clone, Copy, Debug)]
pub struct Prepared {
    /// Seconds, of the slower party.
    pub seconds: f64,
    /// Bytes of the party with more.
    pub key_bytes: u64,
}

/// A client of a deployment.
pub struct Client {
    links: Links,
    plan: Arc<Plan>,
    channels: Option<[TcpChannel; 2]>,
}

impl Client {
    /// For a deployment and its plan; connects at the first request.
    pub fn new(links: Links, plan: Arc<Plan>) -> Client {
        Client { links, plan, channels: None }
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Whether connections are mutual TLS.
    pub fn encrypted(&self) -> bool {
        self.links.encrypted()
    }

    /// How things stand at both parties.
    pub fn status(&mut self) -> Result<[Status; 2], ClientError> {
        self.ask(|c, _, _| {
            let id = Id::fresh();
            say(c, Talk::Request, &Request::Status { id })?;
            match hear(c, Talk::Reply)? {
                Reply::Status(status) => Ok(status),
                other => Err(unexpected(c, other)),
            }
        })
    }

    /// Have the dealer deal keys for `runs` runs and wait until both parties stored them.
    ///
    /// With `checks` over 0 (at most 255) it deals so many sessions more, and the parties open and check all
    /// but one, chosen by a coin: a dealer that cheats in one is caught with probability
    /// `checks / (checks + 1)`. Then the keys are a new session's, even where one is open: it is begun once
    /// the model is shared again, or the open one's keys are used up. Time, and space until then, are
    /// `checks + 1` fold.
    pub fn prepare(&mut self, runs: u64, checks: u64) -> Result<Prepared, ClientError> {
        let id = Id::fresh();
        self.request(&Request::Prepare { id, runs, checks })?;
        let both = self.ask(|c, _, _| match hear(c, Talk::Reply)? {
            Reply::Prepared { seconds, key_bytes } => Ok(Prepared { seconds, key_bytes }),
            other => Err(unexpected(c, other)),
        })?;
        Ok(Prepared {
            seconds: both[0].seconds.max(both[1].seconds),
            key_bytes: both[0].key_bytes.max(both[1].key_bytes),
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
        let [(a0, y0), (a1, y1)] = self.ask(|c, plan, roles| {
            let account = match hear(c, Talk::Reply)? {
                Reply::Done { account } => account,
                other => return Err(unexpected(c, other)),
            };
            let failed = |reason: &str| ClientError::Failed { place: c.peer().into(), reason: reason.into() };
            let account = *account.ok_or_else(|| failed("it sent no account of the run"))?;
            if account.nodes.len() != plan.nodes.len() {
                return Err(failed("its account is of another plan"));
            }
            Ok((account, receive(c, plan, roles)?))
        })?;
        let wall_s = start.elapsed().as_secs_f64();
        let outputs = y0.into_iter().zip(y1).map(|((name, ty, a), (_, _, b))| {
            let ring = Ring::new(ty.bits);
            let sum: Vec<u64> = a.iter().zip(b).map(|(a, b)| ring.wrap(a.wrapping_add(b))).collect();
            let data = FixedPoint::new(ring, ty.frac).decode(&sum);
            (name, FloatTensor { shape: ty.shape, data })
        });
        Ok(Outcome { outputs: outputs.collect(), accounts: vec![a0, a1], wall_s })
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

    fn connect(&mut self) -> Result<&mut [TcpChannel; 2], ClientError> {
        if self.channels.is_none() {
            let dial = |party| self.links.dial(&Place::Party(party), Purpose::Client);
            self.channels = Some([dial(0)?, dial(1)?]);
        }
        self.channels.as_mut().ok_or_else(|| unreachable!("connected above"))
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
        let [c0, c1] = self.connect()?;
        let result = share([c0, c1], &plan, kind, &roles, encoded);
        if result.is_err() {
            self.channels = None;
        }
        Ok(result?)
    }

    /// Do the same with both parties; after an error both connections are given up, since a party may be
    /// in the middle of something.
    fn ask<T>(
        &mut self,
        mut each: impl FnMut(&mut TcpChannel, &Plan, &[&str]) -> Result<T, ClientError>,
    ) -> Result<[T; 2], ClientError> {
        let (plan, roles) = (self.plan.clone(), self.roles());
        let [c0, c1] = self.connect()?;
        let both = each(c0, &plan, &roles).and_then(|a| Ok([a, each(c1, &plan, &roles)?]));
        if both.is_err() {
            self.channels = None;
        }
        both
    }
}

type OutputShare = (String, privet_plan::ir::Type, Vec<u64>);

fn receive(c: &mut TcpChannel, plan: &Plan, roles: &[&str]) -> Result<Vec<OutputShare>, ClientError> {
    let mine = plan.outputs.iter().filter(|o| roles.contains(&o.to.as_str()));
    mine.map(|o| {
        let ty = plan.nodes[o.value].ty.clone();
        let ring = Ring::new(ty.bits);
        let bytes = c.recv(&Talk::Result.step(), ring.packed_bytes(ty.len()))?;
        let share = unpack(ring, &bytes, ty.len())
            .map_err(|source| ClientError::Result { name: o.name.clone(), source })?;
        Ok((o.name.clone(), ty, share))
    })
    .collect()
}

fn unexpected(c: &TcpChannel, reply: Reply) -> ClientError {
    let reason = match reply {
        Reply::Failed { reason } => reason,
        _ => "it answered out of turn".into(),
    };
    ClientError::Failed { place: c.peer().into(), reason }
}
