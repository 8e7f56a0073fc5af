//! The jobs that events belong to: every event of a job says whose it is and which plan it runs.

use super::event::Event;
use super::public::{Number, ShortId};
use super::stream::Events;
use super::words::Name;
use crate::config::Place;
use crate::session::control::{Id, Request};
use crate::session::order::Order;
use privet_plan::{Plan, Program};
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};

/// Between two events of one job's progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// A plan of the deployment's program: its name there, and the beginning of its hash, which all nodes have alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanName {
    name: Name,
    digest: ShortId,
}

impl PlanName {
    /// Of a plan of the program.
    pub fn of(name: &str, plan: &Plan) -> PlanName {
        let mut start = [0; 16];
        start.copy_from_slice(&plan.hash()[..16]);
        PlanName { name: Name::of(name), digest: Id(start).into() }
    }

    /// By its name in the program; none where it has none of that name.
    pub fn find(program: &Program, name: &str) -> Option<PlanName> {
        program.plan(name).map(|plan| PlanName::of(name, plan))
    }

    /// Its name alone.
    pub fn name(&self) -> &Name {
        &self.name
    }
}

impl Display for PlanName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.digest)
    }
}

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobKind {
    /// Answer how things stand.
    Status,
    /// Have ready what runs use up.
    Prepare,
    /// Begin a session.
    Begin,
    /// Run a plan.
    Run,
    /// Begin a training.
    BeginTraining,
    /// Resume a training.
    Resume,
    /// The dealer's part in a preparation.
    Deal,
}

impl JobKind {
    /// Of a request.
    pub fn of(request: &Request) -> JobKind {
        match request {
            Request::Status { .. } => JobKind::Status,
            Request::Prepare { .. } => JobKind::Prepare,
            Request::ShareWeights { .. } => JobKind::Begin,
            Request::Run { .. } => JobKind::Run,
            Request::BeginTraining { .. } => JobKind::BeginTraining,
            Request::Resume { .. } => JobKind::Resume,
        }
    }

    /// Its word in logs and metrics.
    pub fn word(self) -> &'static str {
        match self {
            JobKind::Status => "status",
            JobKind::Prepare => "prepare",
            JobKind::Begin => "begin",
            JobKind::Run => "run",
            JobKind::BeginTraining => "begin_training",
            JobKind::Resume => "resume",
            JobKind::Deal => "deal",
        }
    }
}

impl Display for JobKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A job: what it does, for whom, with which plan. Its name is the same at all parties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The least of the clients' requests, or the session that begins without any.
    pub id: ShortId,
    /// What it does.
    pub kind: JobKind,
    /// Who asked for it, in order; nobody where a session begins by itself.
    pub clients: Vec<Place>,
    /// The plan, where it is about one.
    pub plan: Option<PlanName>,
}

impl Job {
    /// Of the requests of those who ask for it together, at least one.
    pub fn asked<'a>(
        program: &Program,
        callers: impl Iterator<Item = (&'a Place, &'a Request)>,
    ) -> Option<Job> {
        let mut callers: Vec<_> = callers.collect();
        callers.sort_by(|a, b| a.0.cmp(b.0));
        let (_, first) = callers.iter().min_by_key(|(_, request)| request.id())?;
        let kind = JobKind::of(first);
        let plan = first.plan().and_then(|plan| PlanName::find(program, plan));
        Some(Job {
            id: first.id().into(),
            kind,
            clients: callers.into_iter().map(|(p, _)| p.clone()).collect(),
            plan,
        })
    }

    /// Of an order of party 0 that nobody asked for by itself.
    pub fn ordered(program: &Program, order: &Order) -> Job {
        let (id, kind) = match order {
            Order::Prepare { id, .. } => (*id, JobKind::Prepare),
            Order::Begin { id, .. } => (*id, JobKind::Begin),
            Order::BeginFrom { session, .. } => (*session, JobKind::Begin),
            Order::Run { ids, session, .. } => (ids.iter().min().copied().unwrap_or(*session), JobKind::Run),
            Order::BeginTraining { training, .. } => (*training, JobKind::BeginTraining),
            Order::Resume { id, .. } => (*id, JobKind::Resume),
        };
        let plan = order.plan().and_then(|plan| PlanName::find(program, plan));
        Job { id: id.into(), kind, clients: Vec::new(), plan }
    }

    /// A dealer's.
    pub fn deal(deal: Id, plan: Option<PlanName>) -> Job {
        Job { id: deal.into(), kind: JobKind::Deal, clients: Vec::new(), plan }
    }

    /// Who asked for it, with commas.
    pub fn who(&self) -> String {
        self.clients.iter().map(Place::to_string).collect::<Vec<_>>().join(", ")
    }
}

impl Display for Job {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.id)?;
        if !self.clients.is_empty() {
            write!(f, " of {}", self.who())?;
        }
        if let Some(plan) = &self.plan {
            write!(f, ", plan {}", plan.name())?;
        }
        Ok(())
    }
}

/// Where the events of one job go.
#[derive(Clone)]
pub struct JobEvents {
    events: Events,
    job: Job,
    begun: Instant,
}

impl JobEvents {
    /// For a job that begins now.
    pub fn new(events: Events, job: Job) -> JobEvents {
        JobEvents { events, job, begun: Instant::now() }
    }

    /// Tell of something in this job.
    pub fn emit(&self, event: impl FnOnce(Job) -> Event) {
        self.events.emit(event(self.job.clone()));
    }

    /// Since it began.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// For an evaluator or a dealer to call after every node of the plan; some of the calls become events.
    pub fn progress<'a>(&'a self, plan: &'a Plan) -> impl FnMut(usize) + 'a {
        let mut told = Instant::now();
        move |node| {
            if told.elapsed() < PROGRESS_EVERY {
                return;
            }
            told = Instant::now();
            let layer = plan.nodes.get(node).map_or_else(|| Name::of(""), |n| Name::of(&n.layer));
            let (node, nodes) = (Number::from(node + 1), plan.nodes.len().into());
            self.emit(|job| Event::Progress { job, node, nodes, layer });
        }
    }
}
