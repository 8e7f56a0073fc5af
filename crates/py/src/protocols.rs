//! What Python has to know of the protocol families.

use privet_family::Parameters;
use privet_party::registry::Protocol;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The facts of every family, in order: name, fewest and most parties, whether there is a dealer, what a run uses up (or
/// `None`), and what it withstands, the default first.
#[pyfunction]
pub fn protocols(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let one = |protocol: Protocol| {
        let (facts, dict) = (protocol.facts(), PyDict::new(py));
        dict.set_item("name", facts.name)?;
        dict.set_item("about", facts.about)?;
        dict.set_item("parties", (*facts.parties.start(), *facts.parties.end()))?;
        dict.set_item("collusion", facts.collusion)?;
        dict.set_item("dealer", facts.has_dealer(&Parameters::default()))?;
        dict.set_item("dealer_where", facts.dealer_text())?;
        dict.set_item("uses_up", facts.uses_up)?;
        dict.set_item("streams", facts.streams)?;
        dict.set_item("trains", protocol.trains())?;
        let withstands: Vec<String> = facts.withstands.iter().map(ToString::to_string).collect();
        dict.set_item("withstands", withstands)?;
        Ok(dict)
    };
    Protocol::all().map(one).collect()
}
