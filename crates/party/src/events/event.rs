//! Every event: one table of its name, its fields, how grave it is, and its text.

use super::job::{Job, JobKind};
use super::public::{Bytes, Count, DeviceName, Number, Public, Purpose, Secs, ShortId, ThreadName};
use super::reason::Reason;
use super::words::{KeyFile, Name};
use crate::config::{Address, Place};
use std::fmt::{self, Display, Formatter};

/// How grave an event is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Somebody has to look: a party deviates, or a thread panicked.
    Error,
    /// Something failed.
    Warn,
    /// What a node does.
    Info,
    /// In more detail.
    Debug,
}

/// A row of the table of events.
#[derive(Debug)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// How grave it is.
    pub level: Level,
    /// Names of its fields, without those that all events of a job or with a reason have.
    pub fields: &'static [&'static str],
    /// What happened.
    pub about: &'static str,
}

/// What all events of a job, and all with a reason, have.
#[derive(Default)]
pub(super) struct Common<'a> {
    pub job: Option<&'a Job>,
    pub reason: Option<&'a Reason>,
}

trait InCommon {
    fn put<'a>(&'a self, common: &mut Common<'a>);
}

impl InCommon for Job {
    fn put<'a>(&'a self, common: &mut Common<'a>) {
        common.job = Some(self);
    }
}

impl InCommon for Reason {
    fn put<'a>(&'a self, common: &mut Common<'a>) {
        common.reason = Some(self);
    }
}

macro_rules! events {
    ($(
        $(#[doc = $doc:literal])*
        $variant:ident = $name:literal $([$($common:ident: $kind:ty),*])? { $($field:ident: $ty:ty),* } $level:ident $text:literal;
    )*) => {
        /// Something that a node did or found. Every field is [`Public`].
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "the fields are what the texts say they are")]
        pub enum Event {
            $($(#[doc = $doc])* $variant { $($($common: $kind,)*)? $($field: $ty),* },)*
        }

        /// The table, in order.
        pub const ROWS: &[Row] = &[
            $(Row {
                name: $name,
                level: Level::$level,
                fields: &[$(stringify!($field)),*],
                about: concat!($($doc),*),
            },)*
        ];

        // The types of all fields are public.
        const _: fn() = || {
            fn is_public<T: Public>() {}
            $($($(is_public::<$kind>();)*)? $(is_public::<$ty>();)*)*
        };

        impl Event {
            /// Its place in [`ROWS`].
            pub fn index(&self) -> usize {
                #[allow(non_camel_case_types, clippy::enum_variant_names)]
                enum Index { $($variant),* }
                match self {
                    $(Event::$variant { .. } => Index::$variant as usize,)*
                }
            }

            pub(super) fn common(&self) -> Common<'_> {
                #[allow(unused_mut, reason = "not all have any")]
                match self {
                    $(Event::$variant { $($($common,)*)? .. } => {
                        let mut common = Common::default();
                        $($($common.put(&mut common);)*)?
                        common
                    })*
                }
            }

            /// To the subscriber of `tracing` that is the default here; `client` is whose deployment it is of, at a server of many.
            pub(super) fn trace(&self, client: Option<&Place>) {
                let Common { job, reason } = self.common();
                let plan = job.and_then(|j| j.plan.as_ref());
                let whose = client.map_or_else(String::new, |client| format!("{client}: "));
                match self {
                    $(Event::$variant { $($field,)* .. } => tracing::event!(
                        target: "privet",
                        trace_level!($level),
                        event = $name,
                        client = client.map(|c| tracing::field::display(c)),
                        job = job.map(|j| tracing::field::display(&j.id)),
                        kind = job.map(|j| j.kind.word()),
                        clients = job.map(|j| tracing::field::display(j.who())),
                        plan = plan.map(|p| tracing::field::display(p)),
                        reason = reason.map(Reason::code),
                        $($field = Public::shown($field),)*
                        "{whose}{self}"
                    ),)*
                }
            }

            /// One of each, for tests.
            #[cfg(test)]
            pub fn samples() -> Vec<Event> {
                use super::samples::Sample;
                vec![$(Event::$variant { $($($common: <$kind>::sample(),)*)? $($field: <$ty>::sample()),* }),*]
            }
        }

        impl Display for Event {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                match self {
                    $(#[allow(unused_variables, reason = "not every field stands in the text")]
                    Event::$variant { $($($common,)*)? $($field),* } => write!(f, $text),)*
                }
            }
        }
    };
}

macro_rules! trace_level {
    (Error) => {
        tracing::Level::ERROR
    };
    (Warn) => {
        tracing::Level::WARN
    };
    (Info) => {
        tracing::Level::INFO
    };
    (Debug) => {
        tracing::Level::DEBUG
    };
}

events! {
    /// A node begins to serve.
    Started = "started" { place: Place, protocol: Name, device: DeviceName } Info
        "{place} serves {protocol}, device: {device}";
    /// Others can reach it.
    Listening = "listening" { place: Place, address: Address } Info "{place} listens on {address}";
    /// The metrics can be scraped.
    MetricsServed = "metrics_served" { address: Address } Info "metrics at http://{address}/metrics";
    /// A subscriber did not keep up.
    EventsLost = "events_lost" { lost: Count } Warn "{lost} events are missing here: too many at once";

    /// A client, or a party for a preparation, has connected.
    Opened = "connection_opened" { connection: Number, place: Place, purpose: Purpose } Info
        "connection {connection}: {place} connected ({purpose})";
    /// That connection ended.
    Closed = "connection_closed" { connection: Number, place: Place, purpose: Purpose } Info
        "connection {connection}: {place} left ({purpose})";
    /// A place that is known was turned away.
    Refused = "refused" [reason: Reason] { connection: Number, place: Place, purpose: Purpose } Warn
        "connection {connection}: refused {place} ({purpose}): {reason}";
    /// Somebody who is no place of the deployment was turned away, or a call broke off before it was known whose it was.
    Stranger = "stranger_refused" [reason: Reason] {} Warn "refused a connection: {reason}";
    /// A connection broke while it was set up, or sent what nobody can read.
    Broken = "connection_broken" [reason: Reason] { connection: Number } Warn "connection {connection}: lost: {reason}";
    /// Another party has connected for orders and runs.
    PeerConnected = "peer_connected" { connection: Number, place: Place } Info "connection {connection}: {place} connected";
    /// The connection to another party was lost; a new one is made.
    PeerLost = "peer_lost" [reason: Reason] { place: Place } Warn
        "lost the connection to {place}, which needs a new one: {reason}";
    /// This party is connected to party 0.
    LeaderConnected = "leader_connected" { connection: Number } Info "connection {connection}: connected to party 0";
    /// Party 0 cannot be reached; it is tried again and again.
    LeaderAway = "leader_away" [reason: Reason] {} Warn "party 0 cannot be reached: {reason}";
    /// The connection on which party 0 gives orders ended.
    NoOrder = "no_order" [reason: Reason] {} Warn "no order from party 0: {reason}";
    /// A thread that served one connection panicked.
    ThreadPanicked = "thread_panicked" { thread: ThreadName } Error
        "thread {thread} panicked and its connection is dropped: report this as a bug";
    /// The system gives no thread.
    NoThread = "no_thread" [reason: Reason] { thread: ThreadName } Error
        "the system gives no thread for {thread}, so its connection is dropped: {reason}";

    /// A server reads whom it serves, when it starts and when the deployment file changes.
    ClientsServed = "clients_served" { clients: Count } Info "{clients} clients may call, each with a deployment of its own";
    /// The deployment file changed, and is not taken in.
    ClientsUnread = "clients_unread" [reason: Reason] {} Warn "the changed deployment file is not taken in: {reason}";
    /// A client's certificate is not in the deployment file any more.
    ClientOver = "client_over" { place: Place } Info "{place} is served no more: its certificate is not in the deployment file";
    /// A client's deployment cannot be served.
    ClientFailed = "client_failed" [reason: Reason] { place: Place } Error "{place} cannot be served: {reason}";
    /// The thread that serves one client panicked; the client's next call starts another.
    ServicePanicked = "service_panicked" { place: Place } Error
        "the service of {place} panicked, and begins anew with its next call: report this as a bug";

    /// A client has asked for something.
    Asked = "asked" { connection: Number, place: Place, request: ShortId, asks: JobKind } Debug
        "connection {connection}: {place} asks for `{asks}`, request {request}";
    /// All parties agreed to do it.
    JobBegan = "job_began" [job: Job] {} Debug "{job}: all parties agreed";
    /// It ended well.
    JobDone = "job_done" [job: Job] {} Debug "{job}: done";
    /// It failed.
    JobFailed = "job_failed" [job: Job, reason: Reason] {} Warn "{job}: a request failed: {reason}";
    /// A party has no part in a session that party 0 believes to be open.
    SessionLost = "session_lost" [job: Job] {} Warn "{job}: another party was restarted: the open session is over";
    /// Another party lacks what this run uses up; the next is tried.
    PassedOver = "run_passed_over" [job: Job, reason: Reason] {} Warn "{job}: a run is passed over: {reason}";
    /// A session is open.
    SessionOpen = "session_open" [job: Job] { session: ShortId } Info "{job}: session {session} is open";
    /// A party takes part in a run.
    RunBegan = "run_began" [job: Job] { session: ShortId, run: Number } Info "{job}: run {run} of session {session}";
    /// How far a run or a deal is.
    Progress = "progress" [job: Job] { node: Number, nodes: Count, layer: Name } Debug
        "{job}: node {node} of {nodes} (layer {layer})";
    /// A run ended well here. Bytes and rounds are those between the parties.
    RunDone = "run_done" [job: Job] { run: Number, online: Secs, sent: Bytes, rounds: Count } Info
        "{job}: run {run} took {online}, {sent} sent, {rounds} rounds";
    /// Runs for which the open session has keys left.
    RunsLeft = "runs_left" [job: Job] { left: Count } Debug "{job}: keys for {left} runs are left";
    /// Runs of a session failed after they had begun.
    RunsFailed = "runs_failed" [job: Job] { failed: Count, all: Count } Warn
        "{job}: {failed} of {all} runs of this session failed after they had begun";
    /// A party deviates from the protocol: people have to look.
    Deviation = "deviation" [job: Job, reason: Reason] {} Error
        "{job}: the session is over: a party does not follow the protocol: {reason}";

    /// A preparation begins.
    PreparationBegan = "preparation_began" [job: Job] { runs: Count, checks: Count } Info "{job}: preparing {runs} runs";
    /// How far a preparation is, in records of keys.
    Preparing = "preparation_progress" [job: Job] { came: Count, expected: Count, bytes: Bytes } Debug
        "{job}: {came} of {expected} records, {bytes}";
    /// A preparation ended well.
    PreparationDone = "preparation_done" [job: Job] { runs: Count, keys: Bytes, took: Secs } Info
        "{job}: prepared {runs} runs in {took}, {keys} of keys";
    /// Runs of this family use up nothing.
    NothingToPrepare = "nothing_to_prepare" [job: Job] {} Info "{job}: nothing to prepare: runs use up no keys";
    /// Keys are stored.
    KeysStored = "keys_stored" [job: Job] { runs: Count, keys: Bytes } Info "{job}: stored keys for {runs} runs, {keys}";
    /// The first keys of a stream are stored.
    StreamBegan = "stream_began" [job: Job] { runs: Count, keys: Bytes } Info
        "{job}: stored the first keys of a stream for {runs} runs, {keys}";
    /// A stream of keys ended early.
    StreamEnded = "stream_ended" [job: Job, reason: Reason] {} Warn "{job}: a stream of keys has ended: {reason}";
    /// The dealer was restarted: further keys belong to a new session.
    DealerForgot = "dealer_forgot" [job: Job] {} Warn
        "{job}: the open session is over (the dealer was restarted and does not know it): asking for a new one";
    /// The dealer's sessions were opened and found right.
    SessionsChecked = "sessions_checked" [job: Job] { checks: Count } Info
        "{job}: opened {checks} sessions of the dealer: their keys are right";
    /// Keys of a session that ended are still on the disk.
    KeysLeftBehind = "keys_left_behind" [reason: Reason] {} Warn "the keys of an ended session could not be removed: {reason}";

    /// The server made hints at its weights, which sessions share from now on.
    HintsMade = "hints_made" { plan: Name, runs: Count, bytes: Bytes, serves: Count } Info
        "made hints at the weights of plan {plan}, {bytes}, packed for {runs} runs a client; they serve {serves} runs in all";

    /// A training begins.
    TrainingBegan = "training_began" [job: Job] { training: ShortId } Info "{job}: training {training} begins";
    /// The parties go on with a training.
    TrainingResumed = "training_resumed" [job: Job] { training: ShortId, step: Number } Info
        "{job}: going on at step {step} of training {training}";
    /// A checkpoint is on the disk.
    CheckpointWritten = "checkpoint_written" [job: Job] { training: ShortId, step: Number } Info
        "{job}: wrote a checkpoint of step {step} of training {training}";
    /// A checkpoint cannot be used.
    CheckpointRefused = "checkpoint_refused" [job: Job, reason: Reason] { file: KeyFile } Warn "{job}: {file} is refused: {reason}";
    /// Checkpoints of an old training made room.
    CheckpointsRemoved = "checkpoints_removed" [job: Job] { training: ShortId } Info
        "{job}: removed the checkpoints of training {training}";
    /// Checkpoints of old trainings are still there.
    CheckpointsLeft = "checkpoints_left" [job: Job, reason: Reason] {} Warn
        "{job}: checkpoints of old trainings could not be removed: {reason}";

    /// Both parties asked the dealer for the same.
    DealBegan = "deal_began" [job: Job] { runs: Count, checks: Count } Info "{job}: dealing keys for {runs} runs";
    /// Both parties have stored their keys.
    DealDone = "deal_done" [job: Job] { runs: Count, took: Secs } Info "{job}: dealt keys for {runs} runs in {took}";
    /// The dealer does not deal what it was asked for.
    DealRefused = "deal_refused" [job: Job, reason: Reason] {} Warn "{job}: refused: {reason}";
    /// A deal broke off.
    DealFailed = "deal_failed" [job: Job, reason: Reason] {} Warn "{job}: dealing ended early: {reason}";
}
