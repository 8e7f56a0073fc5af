//! Control messages between clients, parties and the dealer: small JSON at fixed steps of a channel.

use crate::config::{Protocol, Security};
use crate::store::{hex, unhex};
use privet_family::{NodeStats, Opening};
use privet_net::{Channel, NetError, Step};
use privet_prg::Seed;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// Largest control message, bytes. Seeds of masks of a network with many weights take about 100 bytes each.
const MAX_CONTROL: usize = 16 << 20;

/// Steps of control messages; protocol steps count up from 1 and never get here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Talk {
    /// A client's request.
    Request = 0xFFFF_0001,
    /// A party's answer.
    Reply,
    /// Party 0's order to another party, its answer, and the last word; a digest of the order between the others.
    Order,
    /// Tensors from their owner: masked, or a portion of their shares.
    Tensor,
    /// Shares of a result, to its receiver.
    Result,
    /// Comparison of digests between parties, and of the steps of a training that they have.
    Digest,
    /// A party's request to the dealer, and its answer.
    Deal,
    /// Key records from the dealer.
    Keys,
    /// A party's word that it stored what came so far.
    Credit,
    /// Coin toss between parties: a commitment, then what it commits to.
    Coin,
    /// Which of the dealt sessions the dealer must open, and their seeds.
    Open,
    /// What a party found in the opened sessions.
    Verdict,
    /// Between parties that prepare: that this one is at work, or has finished a part of it.
    Work,
}

impl Talk {
    /// The channel's step.
    pub fn step(self) -> Step {
        let name = match self {
            Talk::Request => "request",
            Talk::Reply => "reply",
            Talk::Order => "order",
            Talk::Tensor => "shared tensor",
            Talk::Result => "result",
            Talk::Digest => "digest of the shared tensors",
            Talk::Deal => "deal request",
            Talk::Keys => "keys",
            Talk::Credit => "keys stored",
            Talk::Coin => "coin toss",
            Talk::Open => "opened sessions",
            Talk::Verdict => "verdict on the opened sessions",
            Talk::Work => "word of a preparation",
        };
        Step::new(self as u32, name)
    }
}

/// A conversation that broke.
#[derive(Debug, Error)]
pub enum TalkError {
    /// The channel.
    #[error("{0}")]
    Net(#[from] NetError),
    /// A message that is no JSON of the expected form.
    #[error("{peer} sent a {what} that cannot be read ({cause}): it runs another version or is broken")]
    Garbled {
        /// The sender.
        peer: String,
        /// The kind of message.
        what: String,
        /// What the parser says; never the content.
        cause: String,
    },
}

/// Send a control message.
pub fn say<T: Serialize>(channel: &mut dyn Channel, talk: Talk, message: &T) -> Result<(), TalkError> {
    let bytes = serde_json::to_vec(message).map_err(|e| TalkError::Garbled {
        peer: "this process".into(),
        what: talk.step().name.to_string(),
        cause: e.to_string(),
    })?;
    Ok(channel.send(&talk.step(), bytes)?)
}

/// Receive a control message.
pub fn hear<T: DeserializeOwned>(channel: &mut dyn Channel, talk: Talk) -> Result<T, TalkError> {
    hear_up_to(channel, talk, MAX_CONTROL)
}

/// The same, of at most `max` bytes.
pub fn hear_up_to<T: DeserializeOwned>(
    channel: &mut dyn Channel,
    talk: Talk,
    max: usize,
) -> Result<T, TalkError> {
    let bytes = channel.recv_up_to(&talk.step(), max)?;
    serde_json::from_slice(&bytes).map_err(|e| TalkError::Garbled {
        peer: channel.peer().to_owned(),
        what: talk.step().name.to_string(),
        cause: format!("{:?} at line {}", e.classify(), e.line()),
    })
}

/// A random name for a request, so that all parties mean the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub [u8; 16]);

impl Id {
    /// A fresh one.
    pub fn fresh() -> Id {
        Id(*Seed::random().expose())
    }

    /// Its beginning, for logs.
    pub fn short(self) -> String {
        hex(&self.0[..6])
    }
}

impl Id {
    /// Another name that all parties derive alike: for the same request, asked a second time.
    pub fn again(self) -> Id {
        let mut next = [0; 16];
        next.copy_from_slice(&blake3::hash(&self.0).as_bytes()[..16]);
        Id(next)
    }
}

impl Serialize for Id {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Id, D::Error> {
        let text = String::deserialize(d)?;
        unhex(&text).map(Id).ok_or_else(|| serde::de::Error::custom("not 32 hexadecimal digits"))
    }
}

/// The states of a training after so many steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct At {
    /// The training.
    pub training: Id,
    /// Steps that it has done.
    pub step: u64,
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "step {} of training {}", self.step, self.training.short())
    }
}

/// How much is to be prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// For how many runs.
    pub runs: u64,
    /// Sessions that the dealer deals beside the one to keep, for the parties to open and check.
    pub checks: u64,
    /// Be ready when there is enough for the first run; the rest comes while runs use it up.
    pub stream: bool,
}

/// What a client asks of all parties.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// How things stand.
    Status {
        /// Name of the request.
        id: Id,
    },
    /// Have ready what `runs` runs of a plan use up: keys from the dealer, where there is one.
    Prepare {
        /// Name of the request.
        id: Id,
        /// The plan, by its name in the program.
        plan: String,
        /// How much.
        amount: Amount,
    },
    /// Begin a session of a plan: share the model's weights.
    ShareWeights {
        /// Name of the request.
        id: Id,
        /// The plan.
        plan: String,
    },
    /// Begin a training: share the first values of the program's states that the client owns.
    BeginTraining {
        /// Name of the request.
        id: Id,
        /// Steps from one checkpoint to the next; none are written where it is 0. All owners say the same.
        checkpoint_every: u64,
    },
    /// Go on with a training at the last step that all parties have, in memory or as a checkpoint.
    Resume {
        /// Name of the request.
        id: Id,
        /// The training.
        training: Id,
    },
    /// Take part in the next run of a plan, in every role the client has.
    Run {
        /// Name of the request.
        id: Id,
        /// The plan.
        plan: String,
        /// Where the plan reads states: which. All callers say the same.
        #[serde(default)]
        from: Option<At>,
        /// The plan's public numbers, all of them. All callers say the same.
        #[serde(default)]
        publics: BTreeMap<String, f64>,
    },
}

impl Request {
    /// The same request under a new name: to be asked a second time, of parties that may know the first.
    pub fn anew(&self) -> Request {
        let mut again = self.clone();
        match &mut again {
            Request::Status { id }
            | Request::Prepare { id, .. }
            | Request::ShareWeights { id, .. }
            | Request::BeginTraining { id, .. }
            | Request::Resume { id, .. }
            | Request::Run { id, .. } => *id = Id::fresh(),
        }
        again
    }

    /// Its name.
    pub fn id(&self) -> Id {
        match self {
            Request::Status { id }
            | Request::Prepare { id, .. }
            | Request::ShareWeights { id, .. }
            | Request::BeginTraining { id, .. }
            | Request::Resume { id, .. }
            | Request::Run { id, .. } => *id,
        }
    }
}

/// What several callers ask for together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A run of a plan.
    Run(&'a str),
    /// The beginning of a training.
    Training,
}

impl Request {
    /// What several callers ask for together; none where a request stands for itself.
    pub fn subject(&self) -> Option<Subject<'_>> {
        match self {
            Request::Run { plan, .. } => Some(Subject::Run(plan)),
            Request::BeginTraining { .. } => Some(Subject::Training),
            _ => None,
        }
    }

    /// The plan that it is about, where it is about one.
    pub fn plan(&self) -> Option<&str> {
        match self {
            Request::Prepare { plan, .. }
            | Request::ShareWeights { plan, .. }
            | Request::Run { plan, .. } => Some(plan),
            Request::Status { .. } | Request::BeginTraining { .. } | Request::Resume { .. } => None,
        }
    }
}

/// What a party answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// To [`Request::Status`].
    Status(Status),
    /// To [`Request::Prepare`], when everything is there at all parties, or the first run's part of a stream.
    Prepared {
        /// Seconds that it took.
        seconds: f64,
        /// Bytes of keys this party got; 0 where runs use up nothing.
        key_bytes: u64,
        /// Bytes that this party sent for it, to all others and the dealer.
        sent_bytes: u64,
        /// Bytes that it received for it, keys among them.
        received_bytes: u64,
        /// Rounds: how often it waited for somebody after it had sent something, over all connections.
        rounds: u64,
    },
    /// The parties agreed to the request: the client may send the tensors that it owns.
    Share {
        /// Where tensors are masked: the seeds of this party's shares of their masks, by name, hexadecimal. Whoever
        /// has all parties' seeds of a tensor can mask it, and could unmask it: they go to its owner alone.
        seeds: BTreeMap<String, String>,
    },
    /// To [`Request::BeginTraining`] and [`Request::Resume`]: the states that all parties hold now.
    Training {
        /// Which.
        at: At,
    },
    /// All went well.
    Done {
        /// The account of the run, where there was one.
        account: Option<Box<PartyRun>>,
    },
    /// It did not; nothing was revealed by this run.
    Failed {
        /// Cause and remedy.
        reason: String,
    },
}

/// How things stand at a party.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// Every plan of the program.
    pub plans: BTreeMap<String, PlanStatus>,
    /// The training whose states it holds, and the step that they are at.
    pub training: Option<At>,
    /// Whether the other parties are connected, as far as this one keeps connections while nothing is to do.
    pub peers: bool,
}

/// How keys come while runs use them up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyStream {
    /// Records that came; one is for one run.
    pub came: u64,
    /// Records that are to come.
    pub to_come: u64,
    /// Records that came and that no run has asked for.
    pub unused: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// Seconds spent on receiving them, without waiting for room.
    pub receiving_s: f64,
    /// Seconds that runs waited for their record.
    pub waited_s: f64,
    /// Why no more come, where they stopped coming too early.
    pub failure: Option<String>,
}

/// A preparation under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preparing {
    /// Records that came; one is for one run, or a part of a check.
    pub came: u64,
    /// Records that are to come before it is done.
    pub to_come: u64,
    /// Bytes of keys that came, those of a record that is not complete among them.
    pub bytes: u64,
    /// Seconds since it began.
    pub seconds: f64,
}

/// How things stand with one plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanStatus {
    /// Prepared sessions that nobody began.
    pub sessions: usize,
    /// Whether a session is open: the model is shared.
    pub open: bool,
    /// Runs for which the open session has keys left; none where runs use nothing up.
    pub runs_left: Option<usize>,
    /// How the last preparation as a stream goes on.
    #[serde(default)]
    pub stream: Option<KeyStream>,
    /// The preparation under way.
    pub preparing: Option<Preparing>,
}

impl Status {
    /// Whether a run of a plan can begin as things stand.
    pub fn can_run(&self, plan: &str) -> bool {
        self.plans.get(plan).is_some_and(|p| p.open && p.runs_left != Some(0))
    }
}

/// One party's account of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartyRun {
    /// The plan that was run.
    pub plan: String,
    /// The states after it, where it read any.
    pub at: Option<At>,
    /// The protocol family.
    pub protocol: Protocol,
    /// What it withstood.
    pub security: Security,
    /// Whether a dealer made what the run used up.
    pub dealer: bool,
    /// Inputs shared to outputs ready, seconds.
    pub online_s: f64,
    /// Costs of every node.
    pub nodes: Vec<NodeStats>,
    /// Costs of verifying all nodes, which are in none of `nodes`; zero where nothing is verified.
    pub checks: NodeStats,
    /// What was opened, in order.
    pub openings: Vec<Opening>,
    /// Peak resident memory of the process, bytes.
    pub peak_rss_bytes: u64,
    /// Whether the connections are encrypted.
    pub encrypted: bool,
}
