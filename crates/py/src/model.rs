//! From a captured graph to a plan, and what can be said about a plan without running it.

use crate::door::pass;
use crate::errors::{Failure, problems};
use privet_family::{Chosen, Forecast, Parameters};
use privet_party::config::named;
use privet_party::machine;
use privet_party::registry::Protocol;
use privet_party::tensors::{self, Tensors};
use privet_plan::encode::fixed_point;
use privet_plan::ir::ValueId;
use privet_plan::lower::check_graph;
use privet_plan::{
    Aim, Coins, FloatTensor, Graph, LowerError, Network, Plan, Precision, Promises, admit, encode_inputs,
    encode_weights, interpret_all, interpret_beyond,
};
use privet_prg::{Prg, Seed};
use privet_ring::Ring;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use zeroize::Zeroizing;

type Lowered<'py> = (String, Bound<'py, PyBytes>, Vec<String>);

/// What a deployment sets of its family: names and values as people write them.
type Set = Vec<(String, String)>;

/// The family of that name, against parties of that kind, with so many of them: as few as it does with where none is said.
fn family(
    protocol: &str,
    security: &str,
    parties: Option<usize>,
    set: &Set,
) -> Result<(Box<dyn Forecast>, usize), Failure> {
    let protocol: Protocol = protocol.parse().map_err(Failure::value)?;
    let security = protocol.choose(Some(named(security).map_err(Failure::value)?)).map_err(Failure::value)?;
    let facts = protocol.facts();
    let parties = parties.unwrap_or(facts.fewest_parties());
    if !facts.parties.contains(&parties) {
        let can = facts.parties_text();
        return Err(Failure::value(format!(
            "protocol {protocol} computes with {can} parties, not {parties}"
        )));
    }
    let mut parameters = Parameters::default();
    for (name, value) in set {
        let known = facts.parameters.iter().find(|parameter| parameter.name == name);
        let good = known.is_some_and(|p| p.parse(value).is_some_and(|value| parameters.set(p, value)));
        if !good {
            return Err(Failure::value(format!(
                "protocol {protocol} has no parameter `{name}` that can be `{value}`"
            )));
        }
    }
    let chosen = Chosen { security, parties, parameters, model_at: None, together: None };
    Ok((protocol.forecast(&chosen), parties))
}

/// Plan, folded weights and remarks.
#[pyfunction]
#[pyo3(signature = (graph_json, params_safetensors, precision_json, protocol, security, aim, parties = None, set = Set::new()))]
#[expect(clippy::too_many_arguments, reason = "one a thing that Python says")]
pub fn lower<'py>(
    py: Python<'py>,
    graph_json: &str,
    params_safetensors: &[u8],
    precision_json: &str,
    protocol: &str,
    security: &str,
    aim: (String, Option<u64>),
    parties: Option<usize>,
    set: Set,
) -> PyResult<Lowered<'py>> {
    let (family, _) = family(protocol, security, parties, &set).map_err(|failure| failure.raise(py))?;
    let network = link(&aim.0).map_err(|failure| failure.raise(py))?;
    let aim = Aim { network, max_key_bytes: aim.1 };
    let graph = graph_json.to_owned();
    let params = Zeroizing::new(params_safetensors.to_vec());
    let precision = precision_json.to_owned();
    let (plan, weights, notes) = pass(py, move || {
        let graph = Graph::from_json(graph.as_bytes())?;
        let params = tensors::decode(&params)?;
        let precision: Precision =
            serde_json::from_str(&precision).map_err(|e| Failure::Precision(e.to_string()))?;
        // What passes this check can be lowered, unless the numbers do not fit.
        privet_plan::lower::check(&graph, &params).map_err(Failure::Unsupported)?;
        let lowered = privet_plan::lower_for(&graph, &params, &precision, &*family, &aim);
        let lowered = lowered.map_err(|error| match error {
            LowerError::Model(report) => Failure::Precision(report.to_string()),
            LowerError::Keys(keys) => Failure::value(keys),
        })?;
        let plan = String::from_utf8(lowered.plan.to_json()).map_err(Failure::value)?;
        Ok((plan, tensors::encode(&lowered.parameters)?, lowered.notes))
    })?;
    Ok((plan, PyBytes::new(py, &weights), notes))
}

/// What keeps the graph from being lowered.
#[pyfunction]
pub fn check<'py>(py: Python<'py>, graph_json: &str) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let graph = Graph::from_json(graph_json.as_bytes()).map_err(|e| Failure::from(e).raise(py))?;
    match check_graph(&graph) {
        Ok(()) => Ok(Vec::new()),
        Err(report) => problems(py, &report),
    }
}

fn link(text: &str) -> Result<Network, Failure> {
    text.parse().map_err(Failure::value)
}

/// A network as it is written.
#[pyfunction]
pub fn network(py: Python<'_>, text: &str) -> PyResult<String> {
    link(text).map(|link| link.to_string()).map_err(|failure| failure.raise(py))
}

/// Predicted cost as JSON.
#[pyfunction]
#[pyo3(signature = (plan_json, network, protocol, security, local, parties = None, set = Set::new()))]
#[expect(clippy::too_many_arguments, reason = "one a thing that Python says")]
pub fn estimate(
    py: Python<'_>,
    plan_json: &str,
    network: &str,
    protocol: &str,
    security: &str,
    local: bool,
    parties: Option<usize>,
    set: Set,
) -> PyResult<String> {
    let text = Plan::from_json(plan_json.as_bytes()).map_err(Failure::from).and_then(|plan| {
        let (family, parties) = family(protocol, security, parties, &set)?;
        admit(&plan, &plan.name, &*family).map_err(Failure::value)?;
        let link = link(network)?;
        let (alone, rates_from) = machine::rates(&*family);
        let rates = if local { alone.together(parties) } else { alone };
        let estimate = privet_plan::estimate(&plan, &*family, &rates, &link);
        let estimate = estimate.by(rates_from).with_alternatives(&plan, &*family, &rates);
        serde_json::to_string(&estimate).map_err(Failure::value)
    });
    text.map_err(|failure| failure.raise(py))
}

/// The plan over integers in the clear. Where values break what truncations ask for it goes on `beyond` them, as protocols do,
/// or refuses to.
#[pyfunction]
#[pyo3(signature = (plan_json, params, inputs, all_values, beyond = false))]
pub fn interpret<'py>(
    py: Python<'py>,
    plan_json: &str,
    params: &[u8],
    inputs: &[u8],
    all_values: bool,
    beyond: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let plan = plan_json.to_owned();
    let (params, inputs) = (Zeroizing::new(params.to_vec()), Zeroizing::new(inputs.to_vec()));
    let values = pass(py, move || {
        let plan = Plan::from_json(plan.as_bytes())?;
        let weights = encode_weights(&plan, None, &tensors::decode(&params)?)?;
        let inputs = encode_inputs(&plan, None, &tensors::decode(&inputs)?)?;
        let mut coins = Coin(Seed::random().stream());
        let promises = if beyond { Promises::Broken } else { Promises::Kept };
        let values = match all_values {
            true => every_value(&plan, &interpret_all(&plan, &inputs, &weights, promises, &mut coins)?),
            false => {
                let run = if beyond { interpret_beyond } else { privet_plan::interpret };
                let outputs = run(&plan, &inputs, &weights, &mut coins)?;
                let names = plan.outputs.iter().map(|o| o.name.clone());
                names.zip(privet_plan::decode_outputs(&plan, &outputs)).collect()
            }
        };
        Ok(tensors::encode(&values)?)
    })?;
    Ok(PyBytes::new(py, &values))
}

/// Fresh randomness for stochastic rounding.
struct Coin(Prg);

impl Coins for Coin {
    fn draw(&mut self, _node: ValueId, count: usize, shift: u32) -> Option<Vec<u64>> {
        Some(self.0.elements(Ring::new(shift), count))
    }
}

/// Outputs under their names, node 7 under `#7`.
fn every_value(plan: &Plan, values: &[privet_ring::Tensor]) -> Tensors {
    let decode = |id: usize| {
        let tensor = &values[id];
        let data = fixed_point(&plan.nodes[id]).decode(tensor.data());
        FloatTensor { shape: tensor.shape().to_vec(), data }
    };
    let nodes = (0..values.len()).map(|id| (format!("#{id}"), decode(id)));
    let outputs = plan.outputs.iter().map(|o| (o.name.clone(), decode(o.value)));
    nodes.chain(outputs).collect()
}

/// The plan's hash, hexadecimal.
#[pyfunction]
pub fn fingerprint(py: Python<'_>, plan_json: &str) -> PyResult<String> {
    let plan = Plan::from_json(plan_json.as_bytes()).map_err(|e| Failure::from(e).raise(py))?;
    Ok(privet_party::store::hex(&plan.hash()))
}
