//! Counters for Prometheus, made of the events and nothing else.

use super::event::{Event, ROWS};
use super::job::Job;
use super::stream::Inline;
use crate::session::links::Purpose;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Kinds of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
}

macro_rules! metrics {
    ($($variant:ident = $name:literal $kind:ident $about:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        enum Metric { $($variant),* }

        /// Every metric: its name, kind and meaning.
        pub const METRICS: &[(&str, Kind, &str)] = &[$(($name, Kind::$kind, $about)),*];
    };
}

metrics! {
    Started = "privet_start_time_seconds" Gauge "When this node began to serve, seconds since 1970.";
    Events = "privet_events_total" Counter "Events, by name (`event`).";
    Jobs = "privet_jobs_total" Counter "Jobs that ended, by `kind`, `plan` and `outcome` (`done`, `failed`).";
    Failures = "privet_failures_total" Counter "Events with a reason, by its code (`reason`).";
    Connections = "privet_connections" Gauge "Connections that are open, of clients and for preparations, by `purpose`.";
    Runs = "privet_runs_total" Counter "Runs that ended well here, by `plan`.";
    RunSeconds = "privet_run_seconds_total" Counter "Seconds from shared inputs to shares of the outputs, by `plan`.";
    Sent = "privet_run_sent_bytes_total" Counter "Bytes sent to other parties in runs, by `plan`.";
    Rounds = "privet_run_rounds_total" Counter "Rounds of runs, by `plan`.";
    Node = "privet_run_node" Gauge "The node of the plan that the last run or deal has got to, by `plan`; now and then.";
    RunsLeft = "privet_runs_left" Gauge "Runs for which the open session has keys left, by `plan`; after each run.";
    Keys = "privet_key_bytes_total" Counter "Bytes of keys that came, by `plan`.";
    PrepareSeconds = "privet_prepare_seconds_total" Counter "Seconds of preparations that ended well, by `plan`.";
    Dealt = "privet_dealt_runs_total" Counter "Runs that this dealer dealt keys for, by `plan`.";
    Step = "privet_training_step" Gauge "The step of the last checkpoint, or at which a training was resumed.";
}

/// Labels, in the order in which they are written.
type Labels = Vec<(&'static str, String)>;

/// What is counted. Each value has a place of its own, of which there are few: labels are plans of the program, and words of
/// this program.
#[derive(Default)]
pub struct Metrics {
    values: Mutex<BTreeMap<(Metric, Labels), f64>>,
}

impl Inline for Metrics {
    fn take(&self, event: &Event) {
        self.count(event);
    }
}

impl Metrics {
    fn add(&self, metric: Metric, labels: Labels, n: f64) {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        *values.entry((metric, labels)).or_default() += n;
    }

    fn set(&self, metric: Metric, labels: Labels, n: f64) {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).insert((metric, labels), n);
    }

    /// What an event changes.
    fn count(&self, event: &Event) {
        self.add(Metric::Events, vec![("event", ROWS[event.index()].name.into())], 1.0);
        if let Some(reason) = event.common().reason {
            self.add(Metric::Failures, vec![("reason", reason.code().into())], 1.0);
        }
        let ended = |job: &Job, outcome: &str| {
            let [kind, plan] = [("kind", job.kind.word().to_owned()), plan(job)];
            self.add(Metric::Jobs, vec![kind, plan, ("outcome", outcome.into())], 1.0);
        };
        let opened = |purpose: &Purpose, n: f64| {
            self.add(Metric::Connections, vec![("purpose", purpose.word().into())], n);
        };
        // Without a wildcard: whoever adds an event decides here what it counts as.
        match event {
            Event::Started { place, protocol, .. } => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let labels = vec![("place", place.to_string()), ("protocol", protocol.to_string())];
                self.set(Metric::Started, labels, now.as_secs_f64().floor());
            }
            Event::Opened { purpose, .. } => opened(purpose, 1.0),
            Event::Closed { purpose, .. } => opened(purpose, -1.0),
            Event::JobDone { job } => ended(job, "done"),
            Event::JobFailed { job, .. } | Event::DealFailed { job, .. } | Event::DealRefused { job, .. } => {
                ended(job, "failed");
            }
            Event::RunDone { job, online, sent, rounds, .. } => {
                self.add(Metric::Runs, vec![plan(job)], 1.0);
                self.add(Metric::RunSeconds, vec![plan(job)], online.get());
                self.add(Metric::Sent, vec![plan(job)], sent.get() as f64);
                self.add(Metric::Rounds, vec![plan(job)], rounds.get() as f64);
            }
            Event::Progress { job, node, .. } => self.set(Metric::Node, vec![plan(job)], node.get() as f64),
            Event::RunsLeft { job, left } => self.set(Metric::RunsLeft, vec![plan(job)], left.get() as f64),
            Event::PreparationDone { job, took, .. } => {
                self.add(Metric::PrepareSeconds, vec![plan(job)], took.get());
            }
            Event::KeysStored { job, keys, .. } | Event::StreamBegan { job, keys, .. } => {
                self.add(Metric::Keys, vec![plan(job)], keys.get() as f64);
            }
            Event::DealDone { job, runs, .. } => {
                ended(job, "done");
                self.add(Metric::Dealt, vec![plan(job)], runs.get() as f64);
            }
            Event::CheckpointWritten { step, .. } | Event::TrainingResumed { step, .. } => {
                self.set(Metric::Step, vec![], step.get() as f64);
            }
            Event::Listening { .. }
            | Event::MetricsServed { .. }
            | Event::EventsLost { .. }
            | Event::Refused { .. }
            | Event::Stranger { .. }
            | Event::Broken { .. }
            | Event::PeerConnected { .. }
            | Event::PeerLost { .. }
            | Event::LeaderConnected { .. }
            | Event::LeaderAway { .. }
            | Event::NoOrder { .. }
            | Event::ThreadPanicked { .. }
            | Event::NoThread { .. }
            | Event::ClientsServed { .. }
            | Event::ClientsUnread { .. }
            | Event::ClientOver { .. }
            | Event::ClientFailed { .. }
            | Event::ServicePanicked { .. }
            | Event::HintsMade { .. }
            | Event::Asked { .. }
            | Event::JobBegan { .. }
            | Event::SessionLost { .. }
            | Event::PassedOver { .. }
            | Event::SessionOpen { .. }
            | Event::RunBegan { .. }
            | Event::RunsFailed { .. }
            | Event::Deviation { .. }
            | Event::PreparationBegan { .. }
            | Event::Preparing { .. }
            | Event::NothingToPrepare { .. }
            | Event::StreamEnded { .. }
            | Event::DealerForgot { .. }
            | Event::SessionsChecked { .. }
            | Event::KeysLeftBehind { .. }
            | Event::TrainingBegan { .. }
            | Event::CheckpointRefused { .. }
            | Event::CheckpointsRemoved { .. }
            | Event::CheckpointsLeft { .. }
            | Event::DealBegan { .. } => {}
        }
    }

    /// All of them, in the text format of Prometheus.
    pub fn text(&self) -> String {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (mut text, mut last) = (String::new(), None);
        for ((metric, labels), value) in values {
            let (name, kind, about) = METRICS[metric as usize];
            if last != Some(metric) {
                let kind = if kind == Kind::Counter { "counter" } else { "gauge" };
                let _ = writeln!(text, "# HELP {name} {about}\n# TYPE {name} {kind}");
                last = Some(metric);
            }
            // Words and names have neither quotes nor line ends.
            let labels: Vec<String> = labels.iter().map(|(k, v)| format!("{k}=\"{v}\"")).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(text, "{name}{labels} {value}");
        }
        text
    }
}

fn plan(job: &Job) -> (&'static str, String) {
    ("plan", job.plan.as_ref().map_or_else(String::new, |p| p.name().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_metric_is_written_and_every_event_is_counted() {
        let metrics = Metrics::default();
        for _ in 0..3 {
            Event::samples().iter().for_each(|event| Inline::take(&metrics, event));
        }
        let text = metrics.text();
        for (name, _, about) in METRICS {
            assert!(text.contains(&format!("# HELP {name} {about}")), "{name} is made of no event: {text}");
        }
        for row in ROWS {
            assert!(text.contains(&format!("privet_events_total{{event=\"{}\"}} 3\n", row.name)), "{text}");
        }
        assert!(text.contains("privet_connections{purpose=\"client\"} 0\n"), "as many left as came: {text}");
        assert!(text.contains("privet_runs_total{plan=\"infer\"} 3\n"), "{text}");
        assert!(text.contains("privet_run_seconds_total{plan=\"infer\"} 3.75\n"), "{text}");
        assert!(
            text.contains("privet_jobs_total{kind=\"run\",plan=\"infer\",outcome=\"failed\"} 9\n"),
            "{text}"
        );
        let names: BTreeSet<&str> = METRICS.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names.len(), METRICS.len());
    }
}
