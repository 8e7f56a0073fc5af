//! `privet._native`: text and bytes in, text and bytes out. Names, defaults and documentation for users live in
//! `python/privet`; `python/privet/_native.pyi` is the contract.

mod client;
mod door;
mod errors;
mod model;
mod protocols;
mod simulation;

use pyo3::prelude::*;

/// The module that Python imports.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::client::Client;
    #[pymodule_export]
    use crate::model::{check, estimate, fingerprint, interpret, lower, network};
    #[pymodule_export]
    use crate::protocols::protocols;
    #[pymodule_export]
    use crate::simulation::Simulation;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
