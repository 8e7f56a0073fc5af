//! Errors on their way to Python: classes of `privet.errors`, with messages that name cause and remedy.

use privet_party::config::ConfigError;
use privet_party::session::client::ClientError;
use privet_party::tensors::TensorsError;
use privet_plan::lower::Problem;
use privet_plan::{CheckReport, EncodeError, InterpretError, PlanError};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::fmt::Display;

/// What a call can fail with; becomes an exception once the interpreter lock is held again.
#[derive(Debug)]
pub enum Failure {
    /// `UnsupportedModel` with its report.
    Unsupported(CheckReport),
    /// `PrecisionError`.
    Precision(String),
    /// `InputError`.
    Input(String),
    /// `SessionError`.
    Session(String),
    /// `ValueError`: an argument that the Python side never makes, or a damaged file.
    Value(String),
    /// `RuntimeError`: a bug.
    Panic,
}

impl Failure {
    /// Anything that goes wrong with a connection or a party.
    pub fn session(e: impl Display) -> Failure {
        Failure::Session(e.to_string())
    }

    /// Anything that is wrong with an argument.
    pub fn value(e: impl Display) -> Failure {
        Failure::Value(e.to_string())
    }

    /// As an exception.
    pub fn raise(self, py: Python<'_>) -> PyErr {
        let made = match self {
            Failure::Unsupported(report) => unsupported(py, &report),
            Failure::Precision(text) => of_class(py, "PrecisionError", text),
            Failure::Input(text) => of_class(py, "InputError", text),
            Failure::Session(text) => of_class(py, "SessionError", text),
            Failure::Value(text) => Ok(PyValueError::new_err(text)),
            Failure::Panic => {
                let text =
                    "privet's engine stopped on a bug; its message is on standard error: please report it";
                Ok(PyRuntimeError::new_err(text))
            }
        };
        made.unwrap_or_else(|error| error)
    }
}

impl From<ClientError> for Failure {
    fn from(e: ClientError) -> Failure {
        match e {
            ClientError::Encode(e) => Failure::Input(e.to_string()),
            other => Failure::session(other),
        }
    }
}

impl From<EncodeError> for Failure {
    fn from(e: EncodeError) -> Failure {
        Failure::Input(e.to_string())
    }
}

impl From<ConfigError> for Failure {
    fn from(e: ConfigError) -> Failure {
        let remedy = e.remedy();
        Failure::Session(format!("{e}; {remedy}"))
    }
}

impl From<PlanError> for Failure {
    fn from(e: PlanError) -> Failure {
        Failure::value(e)
    }
}

impl From<InterpretError> for Failure {
    fn from(e: InterpretError) -> Failure {
        Failure::value(e)
    }
}

impl From<TensorsError> for Failure {
    fn from(e: TensorsError) -> Failure {
        Failure::value(e)
    }
}

fn of_class(py: Python<'_>, class: &str, message: String) -> PyResult<PyErr> {
    let class = py.import("privet.errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call1((message,))?))
}

fn unsupported(py: Python<'_>, report: &CheckReport) -> PyResult<PyErr> {
    let class = py.import("privet.errors")?.getattr("UnsupportedModel")?;
    Ok(PyErr::from_value(class.call1((report.to_string(), problems(py, report)?))?))
}

/// The entries of `_native.check` and `UnsupportedModel.report`.
pub fn problems<'py>(py: Python<'py>, report: &CheckReport) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let entry = |p: &Problem| {
        let entry = PyDict::new(py);
        entry.set_item("op", &p.op)?;
        entry.set_item("layer", &p.layer)?;
        entry.set_item("source", &p.source)?;
        entry.set_item("what", &p.what)?;
        entry.set_item("remedy", &p.remedy)?;
        Ok(entry)
    };
    report.problems.iter().map(entry).collect()
}
