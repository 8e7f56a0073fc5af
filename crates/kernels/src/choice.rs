//! Which device: the one place that knows them all.

use crate::{CpuCapError, Device, try_cpu};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

/// The kinds of device that a node can be told to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceKind {
    /// The processor, best paths chosen at run time.
    #[default]
    Cpu,
    /// An NVIDIA GPU. Its kernels ([`crate::cuda`]) are no [`Device`] yet: [`open`] says so.
    Cuda,
}

/// Why a device cannot be had.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DeviceError {
    /// `PRIVET_CPU` holds no level.
    #[error("{0}")]
    Cap(#[from] CpuCapError),
    /// No device of a GPU.
    #[error("this version runs nothing on GPUs: set `device = \"cpu\"` in the node file, or remove the key")]
    NoCuda,
    /// A word that names no device.
    #[error("`{0}` is no device: write \"cpu\" or \"cuda\"")]
    Unknown(String),
}

impl FromStr for DeviceKind {
    type Err = DeviceError;

    fn from_str(s: &str) -> Result<DeviceKind, DeviceError> {
        match s {
            "cpu" => Ok(DeviceKind::Cpu),
            "cuda" => Ok(DeviceKind::Cuda),
            _ => Err(DeviceError::Unknown(s.chars().take(40).flat_map(char::escape_debug).collect())),
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Cuda => "cuda",
        })
    }
}

/// Open a device; `threads` are worker threads of the host.
pub fn open(kind: DeviceKind, threads: usize) -> Result<Arc<dyn Device>, DeviceError> {
    match kind {
        DeviceKind::Cpu => Ok(try_cpu(threads)?),
        DeviceKind::Cuda => Err(DeviceError::NoCuda),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_and_refused_by_name() {
        for kind in [DeviceKind::Cpu, DeviceKind::Cuda] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert!(matches!("gpu".parse::<DeviceKind>(), Err(DeviceError::Unknown(_))));
        assert!(open(DeviceKind::Cpu, 1).is_ok());
        assert_eq!(open(DeviceKind::Cuda, 1).err(), Some(DeviceError::NoCuda));
    }
}
