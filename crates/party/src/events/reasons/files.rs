//! Errors of tensors from files and clients, and of checkpoints.

use crate::events::{Count, ErrorKind, KeyFile, Name, Number, Reason, ShortId, Term, Told, Why, reason};
use crate::session::checkpoint::{CheckpointError, Problem};
use crate::session::owner::OwnerError;
use crate::tensors::TensorsError;
use privet_plan::EncodeError;

impl Why for TensorsError {
    fn why(&self) -> Reason {
        match self {
            TensorsError::Read { source, .. } => {
                reason!("tensors.file", "the file of tensors: {kind}", kind = ErrorKind::from(source))
            }
            TensorsError::Form(_) => reason!("tensors.form", "the file of tensors is no safetensors file"),
            TensorsError::Type { name, .. } => reason!(
                "tensors.type",
                "tensor `{name}` has elements of another type: convert it to float32 or float64",
                name = Name::of(name),
            ),
        }
    }
}

impl Why for EncodeError {
    fn why(&self) -> Reason {
        match self {
            EncodeError::Missing { what, name } => {
                reason!(
                    "encode.missing",
                    "{what} `{name}` was not given",
                    what = Name::of(what),
                    name = Name::of(name)
                )
            }
            EncodeError::Shape { what, name, .. } => reason!(
                "encode.shape",
                "{what} `{name}` has another shape than the plan's",
                what = Name::of(what),
                name = Name::of(name),
            ),
            EncodeError::Number { what, name, .. } => reason!(
                "encode.number",
                "{what} `{name}` has a number that does not fit: calibrate with inputs like it",
                what = Name::of(what),
                name = Name::of(name),
            ),
        }
    }
}

impl Why for OwnerError {
    fn why(&self) -> Reason {
        match self {
            OwnerError::Talk(e) => e.why(),
            OwnerError::Form { name, .. } => {
                reason!(
                    "owner.form",
                    "tensor `{name}` came in a form that cannot be read",
                    name = Name::of(name)
                )
            }
            OwnerError::Length { name, expected, found } => reason!(
                "owner.length",
                "`{name}` needs {expected} elements, but {found} were given",
                name = Name::of(name),
                expected = Count::from(*expected),
                found = Count::from(*found),
            ),
            OwnerError::Party(said) => reason!("owner.party", "{said}", said = Told::of(said)),
        }
    }
}

impl Why for CheckpointError {
    fn why(&self) -> Reason {
        match self {
            CheckpointError::Write { path, source } => reason!(
                "checkpoint.write",
                "checkpoint {file} cannot be written, so the step is not taken: {kind}; make room or correct the rights, then \
                 repeat the step",
                file = KeyFile::of(path),
                kind = ErrorKind::from(source),
            ),
            CheckpointError::Read { path, source } => reason!(
                "checkpoint.read",
                "checkpoint {file} cannot be read: {kind}",
                file = KeyFile::of(path),
                kind = ErrorKind::from(source),
            ),
            CheckpointError::Refused { problem, .. } => problem.why(),
        }
    }
}

impl Why for Problem {
    fn why(&self) -> Reason {
        match self {
            Problem::CutOff => reason!("checkpoint.cut_off", "it is cut off"),
            Problem::NoCheckpoint => reason!("checkpoint.not_one", "it is no checkpoint"),
            Problem::LongHeader | Problem::Header => {
                reason!("checkpoint.header", "its header was changed or is of another version")
            }
            Problem::Digest => {
                reason!("checkpoint.digest", "its digest is wrong: it is cut off, or was changed")
            }
            Problem::Format { found } => reason!(
                "checkpoint.format",
                "it has format {found}, which this build does not read",
                found = Count::of(u64::from(*found)),
            ),
            Problem::Protocol { .. } => reason!("checkpoint.protocol", "it is of another protocol"),
            Problem::Program { found, ours } => reason!(
                "checkpoint.program",
                "it is of program {found}, but this deployment runs {ours}",
                found = Term::of(found),
                ours = Term::of(ours),
            ),
            Problem::Training { found, ours } => reason!(
                "checkpoint.training",
                "it is of training {found}, not {ours}",
                found = ShortId::from(*found),
                ours = ShortId::from(*ours),
            ),
            Problem::Party { found, ours } => reason!(
                "checkpoint.party",
                "it is party {found}'s, and this is party {ours}",
                found = Number::of(u64::from(*found)),
                ours = Number::of(u64::from(*ours)),
            ),
            Problem::Step { found } => reason!(
                "checkpoint.step",
                "it holds step {found}, which its name does not say",
                found = Number::of(*found),
            ),
            Problem::Replaced => reason!("checkpoint.replaced", "it was replaced meanwhile"),
        }
    }
}
