use std::path::{Path, PathBuf};

/// Why a configuration was refused: which file, which key, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not TOML, an unknown key, or a value of the wrong kind; the message shows the line.
    #[error("{}{}", file_prefix(file), message.trim_end())]
    Syntax {
        /// The file, once known.
        file: Option<PathBuf>,
        /// What the parser says, with the line.
        message: String,
    },
    /// The file parses, but does not describe something that can run.
    #[error("{}`{key}`: {problem}", file_prefix(file))]
    Invalid {
        /// The file, once known.
        file: Option<PathBuf>,
        /// The key, dotted.
        key: String,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        remedy: String,
    },
}

impl ConfigError {
    /// What the user can do about it.
    pub fn remedy(&self) -> String {
        match self {
            ConfigError::Read { .. } => {
                "check the path given with `--config`, or create the files with `privet init`".into()
            }
            ConfigError::Syntax { .. } => "correct that line; docs/operators.md lists every key".into(),
            ConfigError::Invalid { remedy, .. } => remedy.clone(),
        }
    }

    pub(super) fn invalid(
        key: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        ConfigError::Invalid { file: None, key: key.into(), problem: problem.into(), remedy: remedy.into() }
    }

    /// The same error, about another table than the one that was checked in its place.
    pub(super) fn about(mut self, checked: &str, table: &str) -> Self {
        if let ConfigError::Invalid { key, .. } = &mut self
            && let Some(rest) = key.strip_prefix(checked)
        {
            *key = format!("{table}{rest}");
        }
        self
    }

    pub(super) fn syntax(e: toml::de::Error) -> Self {
        ConfigError::Syntax { file: None, message: e.to_string() }
    }

    /// The same error with the file it was found in.
    pub(super) fn in_file(mut self, path: &Path) -> Self {
        match &mut self {
            ConfigError::Syntax { file, .. } | ConfigError::Invalid { file, .. } => {
                *file = Some(path.to_owned())
            }
            ConfigError::Read { .. } => {}
        }
        self
    }
}

fn file_prefix(file: &Option<PathBuf>) -> String {
    file.as_ref().map(|f| format!("{}: ", f.display())).unwrap_or_default()
}
