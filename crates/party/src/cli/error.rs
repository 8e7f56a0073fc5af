use crate::config::ConfigError;
use crate::report::ReportError;
use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

/// What the exit code of the process says; listed in `privet --help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// A file, a peer or the network failed.
    Failed = 1,
    /// Wrong usage.
    Usage = 2,
    /// The configuration was refused.
    Config = 3,
    /// A check found a failure; what it found has been printed.
    Unsound = 4,
}

/// Why a command ends early: one cause, one remedy, one exit code.
#[derive(Debug)]
pub struct CliError {
    message: Option<String>,
    remedy: String,
    exit: Exit,
}

impl CliError {
    /// Something outside failed.
    pub fn failed(cause: impl Display, remedy: impl Into<String>) -> CliError {
        CliError { message: Some(cause.to_string()), remedy: remedy.into(), exit: Exit::Failed }
    }

    /// The options do not go together.
    pub fn usage(cause: impl Display, remedy: impl Into<String>) -> CliError {
        CliError { message: Some(cause.to_string()), remedy: remedy.into(), exit: Exit::Usage }
    }

    /// A file operation failed.
    pub fn file(doing: &str, path: &Path, e: std::io::Error) -> CliError {
        use std::io::ErrorKind;
        let remedy = match e.kind() {
            ErrorKind::NotFound => "check the path",
            ErrorKind::PermissionDenied => "check the permissions, or run as the user that owns it",
            ErrorKind::AlreadyExists => {
                "privet does not overwrite it: choose another place, or remove it yourself"
            }
            ErrorKind::StorageFull => "make room on that disk",
            _ => "check the disk and the path",
        };
        CliError::failed(format!("cannot {doing} {}: {e}", path.display()), remedy)
    }

    /// A check failed, and its findings are on standard output already.
    pub fn unsound() -> CliError {
        CliError { message: None, remedy: String::new(), exit: Exit::Unsound }
    }

    /// Nobody reads standard output any more: end quietly.
    pub fn reader_left() -> CliError {
        CliError { message: None, remedy: String::new(), exit: Exit::Done }
    }

    /// The cause alone.
    pub fn message(&self) -> &str {
        self.message.as_deref().unwrap_or_default()
    }

    /// Print the message to standard error and give the exit code.
    pub fn report(&self) -> ExitCode {
        use std::io::Write;
        if let Some(message) = &self.message {
            let mut err = std::io::stderr().lock();
            let _ = writeln!(err, "error: {}", message.trim_end().replace('\n', "\n  "));
            if !self.remedy.is_empty() {
                let _ = writeln!(err, "  fix: {}", self.remedy);
            }
        }
        ExitCode::from(self.exit as u8)
    }
}

impl From<ConfigError> for CliError {
    fn from(e: ConfigError) -> CliError {
        CliError { message: Some(e.to_string()), remedy: e.remedy(), exit: Exit::Config }
    }
}

impl From<privet_net::NetError> for CliError {
    fn from(e: privet_net::NetError) -> CliError {
        // Its messages carry their remedy.
        CliError::failed(e, "")
    }
}

impl From<ReportError> for CliError {
    fn from(e: ReportError) -> CliError {
        CliError::failed(e, "give the JSON file that `privet run --report` wrote")
    }
}
