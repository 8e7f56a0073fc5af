//! A client of running parties.

use crate::door::pass;
use crate::errors::Failure;
use privet_net::NetworkProfile;
use privet_party::config::Loaded;
use privet_party::family::forecast;
use privet_party::report::{Observer, from_run};
use privet_party::session::client::Client as Connection;
use privet_party::session::links::Links;
use privet_party::sys;
use privet_party::tensors::{self, Tensors};
use privet_plan::Plan;
use privet_plan::lower::MODEL_OWNER;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
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
    dealt: Dealt,
}

/// Deals whose keys are not used up yet.
#[derive(Default)]
struct Dealt {
    runs: u64,
    seconds: f64,
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
    /// security than the model was compiled for.
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

    /// Have keys dealt for so many runs, checking the dealer with so many sessions more; begin the session, where
    /// this client owns the model.
    #[pyo3(signature = (runs, checks = 0))]
    fn prepare(&self, py: Python<'_>, runs: u64, checks: u64) -> PyResult<()> {
        self.with(py, move |inner| inner.prepare(runs, checks))
    }

    /// Outputs by name and the run report as JSON.
    fn run<'py>(&self, py: Python<'py>, inputs: &[u8]) -> PyResult<(Bound<'py, PyBytes>, String)> {
        let inputs = Zeroizing::new(inputs.to_vec());
        let (outputs, report) = self.with(py, move |inner| inner.run(&inputs))?;
        Ok((PyBytes::new(py, &outputs), report))
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
        let plan = Arc::new(Plan::from_json(plan.as_bytes())?);
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
        let links = Links::new(config.clone(), &plan, NetworkProfile::LAN).map_err(Failure::session)?;
        let mut connection = Connection::new(links, plan);
        connection.status()?;
        Ok(Inner { connection, config, weights, dealt: Dealt::default() })
    }

    fn prepare(&mut self, runs: u64, checks: u64) -> Result<(), Failure> {
        let dealt = self.connection.prepare(runs, checks)?;
        self.dealt.add(runs, dealt.seconds);
        let Some(weights) = &self.weights else { return Ok(()) };
        // Checked keys are a new session's; one that is open is used up first.
        if self.connection.status()?.iter().any(|s| !s.can_run()) {
            self.connection.share_weights(weights)?;
        }
        Ok(())
    }

    fn run(&mut self, inputs: &[u8]) -> Result<(Vec<u8>, String), Failure> {
        let inputs = tensors::decode(inputs)?;
        let outcome = self.connection.run(&inputs);
        let offline_s = self.dealt.take();
        let outcome = outcome?;
        let family = forecast(self.config.deployment.protocol, self.config.deployment.security);
        let seen = Observer {
            family: &*family,
            me: &self.config.node.me,
            roles: &self.config.deployment.roles,
            offline_s,
            peak_rss_bytes: sys::peak_rss_bytes(),
        };
        let report = from_run(self.connection.plan(), &outcome, &seen);
        let report = serde_json::to_string(&report).map_err(Failure::value)?;
        Ok((tensors::encode(&outcome.outputs)?, report))
    }
}
