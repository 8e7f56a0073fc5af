//! A client of running parties.

use crate::door::pass;
use crate::errors::Failure;
use privet_net::NetworkProfile;
use privet_party::config::Loaded;
use privet_party::report::{Observer, from_run};
use privet_party::session::client::{Client as Connection, Publics};
use privet_party::session::control::{At, Id};
use privet_party::session::links::Links;
use privet_party::session::outcome::Outcome;
use privet_party::session::owner::Shared;
use privet_party::store::{hex, unhex};
use privet_party::sys;
use privet_party::tensors::{self, Tensors};
use privet_plan::Program;
use privet_plan::lower::MODEL_OWNER;
use privet_plan::program::ONLY_PLAN;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use zeroize::Zeroizing;

/// A connection to running parties. One call at a time.
#[pyclass(frozen)]
pub struct Client {
    inner: Arc<Mutex<Option<Inner>>>,
}

struct Inner {
    connection: Connection,
    config: Loaded,
    /// The model, where this client owns it.
    weights: Option<Tensors>,
    /// By plan.
    dealt: BTreeMap<String, Dealt>,
    /// All runs of a plan so far, with the seconds that dealing their keys took.
    done: BTreeMap<String, (Outcome, f64)>,
}

/// Deals whose keys are not used up yet.
#[derive(Default)]
struct Dealt {
    runs: u64,
    seconds: f64,
    /// Whether the last deal is a stream, and seconds that the ones before it took.
    streams: bool,
    streamed_s: f64,
}

impl Dealt {
    fn add(&mut self, runs: u64, seconds: f64) {
        self.runs += runs;
        self.seconds += seconds;
    }

    /// The seconds that one run's keys took; none where they were dealt before this client came.
    fn take(&mut self) -> f64 {
        let share = if self.runs > 0 { self.seconds / self.runs as f64 } else { 0.0 };
        self.runs = self.runs.saturating_sub(1);
        self.seconds -= share;
        share
    }
}

#[pymethods]
impl Client {
    /// Dial the parties named in the node file and wait until all answer. Refuses a deployment of another protocol or
    /// security than the model was compiled for. `plan_json` is a plan, or a program of several.
    #[staticmethod]
    #[pyo3(signature = (config_toml_path, plan_json, params, protocol, security))]
    fn connect(
        py: Python<'_>,
        config_toml_path: PathBuf,
        plan_json: &str,
        params: Option<&[u8]>,
        protocol: &str,
        security: &str,
    ) -> PyResult<Client> {
        let (plan, family) = (plan_json.to_owned(), (protocol.to_owned(), security.to_owned()));
        let params = params.map(|p| Zeroizing::new(p.to_vec()));
        let inner = pass(py, move || Inner::connect(&config_toml_path, &plan, params, &family))?;
        Ok(Client { inner: Arc::new(Mutex::new(Some(inner))) })
    }

    /// Have keys dealt for so many runs of a plan, checking the dealer with so many sessions more; begin the session,
    /// where this client owns the model.
    /// As a stream it returns when the first run's part is there, and the rest comes while runs use it up.
    #[pyo3(signature = (runs, checks = 0, plan = ONLY_PLAN, stream = false))]
    fn prepare(&self, py: Python<'_>, runs: u64, checks: u64, plan: &str, stream: bool) -> PyResult<()> {
        let plan = plan.to_owned();
        self.with(py, move |inner| inner.prepare(&plan, runs, checks, stream))
    }

    /// Outputs of a plan by name and the report of this run as JSON.
    #[pyo3(signature = (inputs, plan = ONLY_PLAN))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: &[u8],
        plan: &str,
    ) -> PyResult<(Bound<'py, PyBytes>, String)> {
        let (plan, inputs) = (plan.to_owned(), Zeroizing::new(inputs.to_vec()));
        let (outputs, report) = self.with(py, move |inner| {
            let (outcome, offline_s) = inner.step(&plan, &inputs, &Publics::new())?;
            let made = (tensors::encode(&outcome.outputs)?, inner.report(&plan, &outcome, offline_s)?);
            inner.keep(&plan, outcome, offline_s);
            Ok(made)
        })?;
        Ok((PyBytes::new(py, &outputs), report))
    }

    /// Share the first values of the states that this client owns, which begins a training at step 0; gives its name.
    /// Parties write a checkpoint now and every so many steps where that is not 0.
    #[pyo3(signature = (states, checkpoint_every = 0))]
    fn begin_training(&self, py: Python<'_>, states: &[u8], checkpoint_every: u64) -> PyResult<String> {
        let states = Zeroizing::new(states.to_vec());
        self.with(py, move |inner| {
            let id = inner.connection.begin_training(&tensors::decode(&states)?, checkpoint_every)?;
            Ok(hex(&id.0))
        })
    }

    /// Go on with a training at the last step that all parties have; gives that step.
    fn resume(&self, py: Python<'_>, training: &str) -> PyResult<u64> {
        let id = unhex(training).map(Id);
        self.with(py, move |inner| {
            let id = id.ok_or_else(|| Failure::value("a training's name is 32 hexadecimal digits"))?;
            Ok(inner.connection.resume(id)?.step)
        })
    }

    /// Go where all parties are, after another client began or resumed a training or after a failure; name and step.
    fn join_training(&self, py: Python<'_>) -> PyResult<(String, u64)> {
        self.with(py, |inner| {
            let At { training, step } = inner.connection.join_training()?;
            Ok((hex(&training.0), step))
        })
    }

    /// One run of a plan, with all its public numbers. One that reads states runs at this client's step of the training;
    /// after one that updates them it is at the next. After an error the same call does the step again. Outputs by name.
    fn step<'py>(
        &self,
        py: Python<'py>,
        plan: &str,
        inputs: &[u8],
        publics: BTreeMap<String, f64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (plan, inputs) = (plan.to_owned(), Zeroizing::new(inputs.to_vec()));
        let outputs = self.with(py, move |inner| {
            let (outcome, offline_s) = inner.step(&plan, &inputs, &publics)?;
            let outputs = tensors::encode(&outcome.outputs)?;
            inner.keep(&plan, outcome, offline_s);
            Ok(outputs)
        })?;
        Ok(PyBytes::new(py, &outputs))
    }

    /// One report of all runs of a plan so far, as JSON; none where there was none. Keys of a stream count as long as
    /// they took to come, also where runs went on meanwhile.
    fn report(&self, py: Python<'_>, plan: &str) -> PyResult<Option<String>> {
        let plan = plan.to_owned();
        self.with(py, move |inner| {
            let streamed_s = inner.streamed_s(&plan)?;
            let all = inner.done.get(&plan);
            all.map(|(all, offline_s)| inner.report(&plan, all, offline_s + streamed_s)).transpose()
        })
    }

    /// How things stand at every party: a JSON list of objects with `plans` (by name: `sessions`, `open`, `runs_left`, which
    /// is null where runs use nothing up), `training` (null, or its name `training` and `step`) and `peers`.
    fn status(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |inner| serde_json::to_string(&inner.connection.status()?).map_err(Failure::value))
    }

    /// Hang up. A call that was interrupted hangs up when it is done.
    fn close(&self) {
        if let Ok(mut inner) = self.inner.try_lock() {
            *inner = None;
        }
    }

    fn __repr__(&self) -> &'static str {
        "Client(..)"
    }
}

impl Client {
    fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Inner) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        let shared = self.inner.clone();
        pass(py, move || work(held(&shared)?.as_mut().ok_or_else(closed)?))
    }
}

fn held(shared: &Mutex<Option<Inner>>) -> Result<MutexGuard<'_, Option<Inner>>, Failure> {
    shared.try_lock().map_err(|e| match e {
        TryLockError::WouldBlock => Failure::session(
            "this session is still busy with a call that was interrupted, or with another thread's: open another one",
        ),
        TryLockError::Poisoned(_) => closed(),
    })
}

fn closed() -> Failure {
    Failure::session("this session is closed; open another one")
}

impl Inner {
    fn connect(
        path: &Path,
        plan: &str,
        params: Option<Zeroizing<Vec<u8>>>,
        (protocol, security): &(String, String),
    ) -> Result<Inner, Failure> {
        let program = Arc::new(Program::from_json(plan.as_bytes())?);
        let config = Loaded::load(path)?;
        let found = (config.deployment.protocol.to_string(), config.deployment.security.to_string());
        if (&found.0, &found.1) != (protocol, security) {
            return Err(Failure::Session(format!(
                "{} says protocol {}, {}, but the model was compiled for {protocol}, {security}: compile it for \
                 that, or correct the deployment at every node",
                config.node.deployment.display(),
                found.0,
                found.1
            )));
        }
        let owner = config.roles().contains(&MODEL_OWNER);
        let weights = params.filter(|_| owner).map(|bytes| tensors::decode(&bytes)).transpose()?;
        let links = Links::new(config.clone(), &program, NetworkProfile::LAN).map_err(Failure::session)?;
        let mut connection = Connection::new(links, program);
        connection.status()?;
        Ok(Inner { connection, config, weights, dealt: BTreeMap::new(), done: BTreeMap::new() })
    }

    fn prepare(&mut self, plan: &str, runs: u64, checks: u64, stream: bool) -> Result<(), Failure> {
        if stream && checks > 0 {
            return Err(Failure::value(
                "a stream of keys cannot be checked: prepare with checks, without a stream",
            ));
        }
        if stream {
            let streamed_s = self.streamed_s(plan)?;
            self.connection.prepare_stream(plan, runs)?;
            let dealt = self.dealt.entry(plan.to_owned()).or_default();
            (dealt.streams, dealt.streamed_s) = (true, streamed_s);
        } else {
            let dealt = self.connection.prepare(plan, runs, checks)?;
            self.dealt.entry(plan.to_owned()).or_default().add(runs, dealt.seconds);
        }
        let Some(weights) = &self.weights else { return Ok(()) };
        let has_weights = !Shared::Weights.all(self.connection.plan(plan)?).is_empty();
        // Checked keys are a new session's; one that is open is used up first.
        if has_weights && self.connection.status()?.iter().any(|s| !s.can_run(plan)) {
            self.connection.share_weights(plan, weights)?;
        }
        Ok(())
    }

    /// Seconds in which keys of a plan's streams came, at the slower party.
    fn streamed_s(&mut self, plan: &str) -> Result<f64, Failure> {
        let Some(dealt) = self.dealt.get(plan).filter(|d| d.streams) else { return Ok(0.0) };
        let before = dealt.streamed_s;
        let all = self.connection.status()?;
        let streams = all.iter().filter_map(|s| s.plans.get(plan)?.stream.as_ref());
        Ok(before + streams.map(|s| s.receiving_s).fold(0.0, f64::max))
    }

    /// What a run gave, and the seconds that dealing its keys took.
    fn step(&mut self, plan: &str, inputs: &[u8], publics: &Publics) -> Result<(Outcome, f64), Failure> {
        let inputs = tensors::decode(inputs)?;
        let outcome = self.connection.step(plan, &inputs, publics);
        let offline_s = self.dealt.get_mut(plan).map_or(0.0, Dealt::take);
        Ok((outcome?, offline_s))
    }

    /// Add a run to the others of its plan.
    fn keep(&mut self, plan: &str, outcome: Outcome, offline_s: f64) {
        match self.done.get_mut(plan) {
            Some((all, seconds)) => {
                all.add(outcome);
                *seconds += offline_s;
            }
            None => drop(self.done.insert(plan.to_owned(), (outcome, offline_s))),
        }
    }

    fn report(&self, plan: &str, outcome: &Outcome, offline_s: f64) -> Result<String, Failure> {
        let deployment = &self.config.deployment;
        let family = deployment.protocol.forecast(&deployment.chosen());
        let seen = Observer {
            family: &*family,
            me: &self.config.node.me,
            roles: &self.config.deployment.roles,
            offline_s,
            peak_rss_bytes: sys::peak_rss_bytes(),
        };
        serde_json::to_string(&from_run(self.connection.plan(plan)?, outcome, &seen)).map_err(Failure::value)
    }
}
