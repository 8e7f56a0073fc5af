//! What a run cost and what it told to whom: written as JSON by a run, shown as one HTML page.

mod format;
mod from_run;
mod html;
mod sums;
mod svg;

pub use format::{bits, bytes, count, seconds};
pub use from_run::{Observer, from_run};
pub use html::render as html;
pub use sums::{busiest, sum, verification};

use crate::sys;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Format version of [`RunReport`].
pub const REPORT_VERSION: u32 = 2;

/// One run, from the first input to the last output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunReport {
    /// [`REPORT_VERSION`].
    pub version: u32,
    /// The plan's name.
    pub plan: String,
    /// The plan's hash, hexadecimal.
    pub plan_hash: String,
    /// Protocol family, for example `fss`.
    pub protocol: String,
    /// What the protocol withstood: `semi-honest` or `malicious` parties.
    pub security: String,
    /// How the messages were protected.
    pub transport: Transport,
    /// Rows of a run.
    pub batch: usize,
    /// How many runs: the steps of a training make one report. Costs are those of all together.
    #[serde(default = "one_run", skip_serializing_if = "is_one_run")]
    pub runs: u64,
    /// Simulated network (`lan`, `wan`, ...); absent when the network was as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Who took part.
    pub parties: Vec<PartyReport>,
    /// Cost layer by layer, in the order of the plan.
    pub layers: Vec<LayerReport>,
    /// Cost of proving and checking that all parties followed the protocol; absent where nothing is verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Cost of the whole run, with verification.
    pub totals: Totals,
    /// What was opened.
    pub openings: Openings,
    /// How far the result is from the plaintext model; absent when nobody could tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Accuracy>,
    /// The machine that wrote this report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

fn one_run() -> u64 {
    1
}

fn is_one_run(runs: &u64) -> bool {
    *runs == 1
}

/// How the messages of a run were protected; stamped on every report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// Mutual TLS 1.3 with pinned certificates.
    #[serde(rename = "TLS")]
    Tls,
    /// Plain TCP (`--insecure`): anybody on the path could read and change everything.
    #[serde(rename = "INSECURE")]
    Insecure,
    /// Threads of one process.
    #[serde(rename = "MEMORY")]
    Memory,
}

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Transport::Tls => "TLS",
            Transport::Insecure => "INSECURE",
            Transport::Memory => "MEMORY",
        })
    }
}

/// One process of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartyReport {
    /// `party:0`, `dealer`, `client:alice`.
    pub place: String,
    /// Roles it played: `data_owner`, `model_owner`, `receiver`; a computing party may have none.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Peak resident memory, bytes; absent when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_rss_bytes: Option<u64>,
    /// Bytes it sent online.
    #[serde(default)]
    pub bytes_sent: u64,
    /// What it learned, one sentence each; empty when nothing but sizes and timing.
    #[serde(default)]
    pub learned: Vec<String>,
}

/// Cost of one layer, of the party where it is largest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerReport {
    /// The layer's name in the model.
    pub layer: String,
    /// Operations of the plan in it, for example `conv2d, truncate, relu`.
    pub ops: String,
    /// Online seconds.
    pub seconds: f64,
    /// Bytes sent online.
    pub bytes_sent: u64,
    /// Online rounds.
    pub rounds: u64,
    /// Bytes of preprocessing used.
    pub key_bytes: u64,
    /// Largest difference to the plaintext model after this layer, from `compare`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_error: Option<f64>,
}

/// Cost of verification, of the party where it is largest.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// Online seconds.
    pub seconds: f64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Rounds.
    pub rounds: u64,
}

/// Cost of the whole run, of the party where it is largest.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Inputs shared to outputs ready, seconds.
    pub online_s: f64,
    /// Preprocessing, seconds.
    pub offline_s: f64,
    /// Bytes sent online.
    pub bytes_sent: u64,
    /// Online rounds.
    pub rounds: u64,
    /// Bytes of preprocessing used.
    pub key_bytes: u64,
}

/// Everything that was opened in a run.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Openings {
    /// Values shared or opened under a uniform mask, and words of proofs: they tell nothing.
    pub masked: u64,
    /// Bits in them.
    pub masked_bits: u64,
    /// Values that somebody learned.
    pub revealed: Vec<Revealed>,
}

/// A value that its receiver learned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revealed {
    /// The output's name.
    pub name: String,
    /// Who learned it.
    pub to: String,
    /// Shape of the tensor.
    pub shape: Vec<usize>,
    /// Ring bits an element.
    pub bits: u32,
}

/// Private results against plaintext ones.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accuracy {
    /// Rows compared.
    pub samples: u64,
    /// Accuracy of the plaintext model, 0..=1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plaintext: Option<f64>,
    /// Accuracy of the private run, 0..=1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private: Option<f64>,
    /// Share of rows where both give the same class, 0..=1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<f64>,
    /// Largest difference of an output to the plaintext model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_abs_err: Option<f64>,
}

/// The machine a report was written on.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Version of privet.
    pub privet: String,
    /// Processor's name.
    pub cpu: String,
    /// Cores that the process may use.
    pub cores: usize,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Kernel paths in use, for example `cpu (AMX int8, VAES-512)`.
    pub device: String,
}

impl Machine {
    /// This machine; `device` is the name of the kernels' device in use.
    pub fn here(device: &str) -> Machine {
        Machine {
            privet: env!("CARGO_PKG_VERSION").into(),
            cpu: sys::cpu_name(),
            cores: sys::cores(),
            memory_bytes: sys::total_memory_bytes().unwrap_or(0),
            device: device.into(),
        }
    }
}

/// Why a report could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not a report.
    #[error("{path} is not a run report: {message}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What the parser found.
        message: String,
    },
    /// Written by another version.
    #[error("{path} has report version {found}; this privet reads version {REPORT_VERSION}")]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
}

/// Parse a report; the error is the parser's message.
pub fn parse(text: &str) -> Result<RunReport, String> {
    serde_json::from_str(text).map_err(|e| e.to_string())
}

/// Read a report that a run wrote.
pub fn load(path: &Path) -> Result<RunReport, ReportError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ReportError::Read { path: path.to_owned(), source })?;
    let syntax = |message| ReportError::Syntax { path: path.to_owned(), message };
    // The version comes first: fields of another version would otherwise read as nonsense.
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|e| syntax(e.to_string()))?;
    match value.get("version").and_then(serde_json::Value::as_u64) {
        Some(v) if v == u64::from(REPORT_VERSION) => parse(&text).map_err(syntax),
        Some(found) => Err(ReportError::Version { path: path.to_owned(), found }),
        None => Err(syntax("there is no `version`".into())),
    }
}
