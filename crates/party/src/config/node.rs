use super::deployment::MAX_TEXT;
use super::{Address, ConfigError, Place};
use crate::events::Level;
use crate::events::log::LogFormat;
use privet_kernels::{DeviceError, DeviceKind};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Most worker threads that a node may ask for.
const MAX_THREADS: usize = 1024;

/// Records of a stream that wait to be used: one is ready while another comes.
const DEFAULT_AHEAD: usize = 2;

/// Trainings whose checkpoints stay: the one under way, and some to go back to.
const DEFAULT_CHECKPOINTS_KEPT: usize = 4;

/// The word for plain TCP on addresses that are not this machine's own.
pub const NO_ENCRYPTION: &str = "i-accept-no-encryption";

/// What one process needs to know about itself. Private to its operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The place it takes.
    pub me: Place,
    /// The deployment file.
    pub deployment: PathBuf,
    /// Its certificate, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM; readable by its owner only.
    pub key: PathBuf,
    /// Directory of preprocessing.
    pub store: PathBuf,
    /// Directory of checkpoints.
    pub checkpoints: PathBuf,
    /// Trainings whose checkpoints stay when another one begins, which is one of them.
    pub checkpoints_kept: usize,
    /// Bind here instead of the address that the deployment gives (behind a NAT or proxy).
    pub listen: Option<Address>,
    /// Weights to share, safetensors; for the model owner.
    pub weights: Option<PathBuf>,
    /// Worker threads; the machine's cores when absent.
    pub threads: Option<usize>,
    /// Where kernels run.
    pub device: DeviceKind,
    /// Plain TCP. Stamped on every report.
    pub insecure: bool,
    /// Plain TCP also where others can reach it: the operator wrote [`NO_ENCRYPTION`] instead of `true`.
    pub insecure_anywhere: bool,
    /// Most bytes that preprocessing may take on disk.
    pub disk_budget: Option<Bytes>,
    /// Bytes of streamed keys that are held in memory, an eighth of the machine's when absent; what does not fit goes to
    /// disk.
    pub memory_budget: Option<Bytes>,
    /// Most records of a stream that are there before a run asks for them.
    pub ahead: usize,
    /// What the log says, and how.
    pub log: LogSettings,
    /// Where metrics can be scraped.
    pub metrics: Option<MetricsSettings>,
}

/// `[log]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// Least grave events that are written; `info` when absent.
    pub level: Option<Level>,
    /// How lines look; text when absent.
    pub format: Option<LogFormat>,
}

/// `[metrics]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsSettings {
    /// Served here.
    pub listen: Address,
    /// Also where others can reach it: metrics are served in the clear, to everybody.
    #[serde(default)]
    pub anywhere: bool,
}

/// A size in bytes: an integer, or text with a unit (`"50 GB"`, `"1.5 GB"`, `"512MiB"`). Parts of a byte are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl std::str::FromStr for Bytes {
    type Err = String;

    fn from_str(s: &str) -> Result<Bytes, String> {
        let wrong =
            || format!("`{}` is not a size; write for example \"50 GB\" or \"512 MiB\"", s.escape_debug());
        let s = s.trim();
        let split = s.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(s.len());
        let unit: u64 = match s[split..].trim() {
            "" | "B" => 1,
            "kB" | "KB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "TB" => 1_000_000_000_000,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            "TiB" => 1 << 40,
            _ => return Err(wrong()),
        };
        let number = &s[..split];
        if unit == 1 && number.contains('.') {
            return Err(wrong());
        }
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let parsed = |digits: &str| digits.parse::<u64>().map(u128::from).map_err(|_| wrong());
        let scale = 10u128.checked_pow(part.len() as u32).ok_or_else(wrong)?;
        let beside = parsed(part)? * u128::from(unit) / scale;
        let bytes = parsed(whole)? * u128::from(unit) + beside;
        u64::try_from(bytes).map(Bytes).map_err(|_| wrong())
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(de: D) -> Result<Bytes, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Text {
            Number(u64),
            Unit(String),
        }
        match Text::deserialize(de)? {
            Text::Number(n) => Ok(Bytes(n)),
            Text::Unit(s) => s.parse().map_err(serde::de::Error::custom),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    me: Place,
    deployment: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    store: Option<PathBuf>,
    checkpoints: Option<PathBuf>,
    checkpoints_kept: Option<usize>,
    listen: Option<Address>,
    weights: Option<PathBuf>,
    threads: Option<usize>,
    device: Option<String>,
    #[serde(default)]
    insecure: Insecure,
    disk_budget: Option<Bytes>,
    memory_budget: Option<Bytes>,
    ahead: Option<usize>,
    #[serde(default)]
    log: LogSettings,
    metrics: Option<MetricsSettings>,
}

/// Where plain TCP may be used.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Insecure {
    #[default]
    Nowhere,
    OnThisMachine,
    Anywhere,
}

impl<'de> Deserialize<'de> for Insecure {
    fn deserialize<D: serde::Deserializer<'de>>(de: D) -> Result<Insecure, D::Error> {
        struct Word;
        impl serde::de::Visitor<'_> for Word {
            type Value = Insecure;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                write!(f, "a boolean or \"{NO_ENCRYPTION}\"")
            }

            fn visit_bool<E>(self, insecure: bool) -> Result<Insecure, E> {
                Ok(if insecure { Insecure::OnThisMachine } else { Insecure::Nowhere })
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Insecure, E> {
                match word == NO_ENCRYPTION {
                    true => Ok(Insecure::Anywhere),
                    false => Err(E::invalid_value(serde::de::Unexpected::Str(word), &self)),
                }
            }
        }
        de.deserialize_any(Word)
    }
}

/// Parse and check `node.toml`. Paths stay as written.
///
/// Takes untrusted text: bounded, never panics.
pub fn parse_node(text: &str) -> Result<Node, ConfigError> {
    if text.len() > MAX_TEXT {
        return Err(ConfigError::invalid("node", "the file is larger than 1 MiB", "give the right file"));
    }
    let raw: Raw = toml::from_str(text).map_err(ConfigError::syntax)?;
    if raw.threads.is_some_and(|n| !(1..=MAX_THREADS).contains(&n)) {
        let remedy = format!("give 1 to {MAX_THREADS}, or remove the key to use every core");
        return Err(ConfigError::invalid("threads", "out of range", remedy));
    }
    if raw.listen.is_some() && !raw.me.listens() {
        return Err(ConfigError::invalid("listen", "clients do not listen", "remove the key"));
    }
    if raw.disk_budget == Some(Bytes(0)) {
        return Err(ConfigError::invalid(
            "disk_budget",
            "nothing fits into 0 bytes",
            "raise it or remove the key",
        ));
    }
    if raw.ahead == Some(0) {
        return Err(ConfigError::invalid(
            "ahead",
            "a stream of 0 records",
            "give 1 or more, or remove the key",
        ));
    }
    if raw.checkpoints_kept == Some(0) {
        return Err(ConfigError::invalid(
            "checkpoints_kept",
            "the training under way is one of them",
            "give 1 or more, or remove the key",
        ));
    }
    if raw.metrics.is_some() && !raw.me.listens() {
        return Err(ConfigError::invalid("metrics", "clients serve none", "remove the table"));
    }
    if raw.metrics.as_ref().is_some_and(|m| !m.anywhere && !m.listen.is_loopback()) {
        return Err(ConfigError::invalid(
            "metrics.listen",
            "others could reach it, and metrics are served in the clear to everybody",
            "listen on 127.0.0.1, or say that you accept that with `anywhere = true`",
        ));
    }
    let device = raw.device.as_deref().unwrap_or("cpu").parse().map_err(|e: DeviceError| {
        ConfigError::invalid("device", e.to_string(), "correct it or remove the key")
    })?;
    Ok(Node {
        me: raw.me,
        deployment: raw.deployment,
        certificate: raw.certificate,
        key: raw.key,
        store: raw.store.unwrap_or_else(|| "store".into()),
        checkpoints: raw.checkpoints.unwrap_or_else(|| "checkpoints".into()),
        checkpoints_kept: raw.checkpoints_kept.unwrap_or(DEFAULT_CHECKPOINTS_KEPT),
        listen: raw.listen,
        weights: raw.weights,
        threads: raw.threads,
        device,
        insecure: raw.insecure != Insecure::Nowhere,
        insecure_anywhere: raw.insecure == Insecure::Anywhere,
        disk_budget: raw.disk_budget,
        memory_budget: raw.memory_budget,
        ahead: raw.ahead.unwrap_or(DEFAULT_AHEAD),
        log: raw.log,
        metrics: raw.metrics,
    })
}

impl Node {
    /// The same node with every path taken relative to `dir`.
    pub(super) fn relative_to(mut self, dir: &Path) -> Node {
        let files = [&mut self.deployment, &mut self.certificate, &mut self.key];
        let paths = files.into_iter().chain([&mut self.store, &mut self.checkpoints]);
        for path in paths.chain(self.weights.as_mut()) {
            *path = dir.join(&*path);
        }
        self
    }

    /// Worker threads: as configured, or the cores that this process may use.
    pub fn thread_count(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
    }
}
