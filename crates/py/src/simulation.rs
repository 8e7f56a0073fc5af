//! A training in the clear: the integer interpreter over a program's states.

use crate::door::pass;
use crate::errors::Failure;
use privet_party::tensors::{self, Tensors};
use privet_plan::ir::ValueId;
use privet_plan::program::NamedPlan;
use privet_plan::{
    Coins, FloatTensor, Program, decode_outputs, encode_inputs, encode_publics, encode_states,
    encode_weights, interpret_step,
};
use privet_prg::{Prg, Seed};
use privet_ring::{FixedPoint, Ring, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

/// A program's plans, run in the clear over states that stay here. One call at a time; the states are those of the last
/// run that ended well.
#[pyclass(frozen)]
pub struct Simulation {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    program: Program,
    /// By plan.
    weights: BTreeMap<String, BTreeMap<String, Tensor>>,
    states: BTreeMap<String, Tensor>,
    seeds: Prg,
}

#[pymethods]
impl Simulation {
    /// A program, the first values of its states and the weights of its plans (safetensors); `seed` makes all coins
    /// reproducible.
    #[new]
    #[pyo3(signature = (program_json, states, seed = None, weights = None))]
    fn new(
        py: Python<'_>,
        program_json: &str,
        states: &[u8],
        seed: Option<u64>,
        weights: Option<&[u8]>,
    ) -> PyResult<Simulation> {
        let (program, states) = (program_json.to_owned(), Zeroizing::new(states.to_vec()));
        let weights = weights.map(|weights| Zeroizing::new(weights.to_vec()));
        let inner =
            pass(py, move || Inner::new(&program, &states, weights.as_deref().map(Vec::as_slice), seed))?;
        Ok(Simulation { inner: Arc::new(Mutex::new(inner)) })
    }

    /// Run a plan by name: its outputs by name. What it updates is replaced.
    fn run<'py>(
        &self,
        py: Python<'py>,
        plan: &str,
        inputs: &[u8],
        publics: BTreeMap<String, f64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (plan, inputs) = (plan.to_owned(), Zeroizing::new(inputs.to_vec()));
        let inner = self.inner.clone();
        let outputs = pass(py, move || {
            inner.lock().unwrap_or_else(PoisonError::into_inner).run(&plan, &inputs, &publics)
        })?;
        Ok(PyBytes::new(py, &outputs))
    }

    /// All states (safetensors), exactly.
    fn states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let inner = self.inner.clone();
        let states = pass(py, move || inner.lock().unwrap_or_else(PoisonError::into_inner).decoded())?;
        Ok(PyBytes::new(py, &states))
    }

    fn __repr__(&self) -> &'static str {
        "Simulation(..)"
    }
}

impl Inner {
    fn new(
        program: &str,
        states: &[u8],
        weights: Option<&[u8]>,
        seed: Option<u64>,
    ) -> Result<Inner, Failure> {
        let program = Program::from_json(program.as_bytes())?;
        let given = tensors::decode(states)?;
        let owned = weights.map(tensors::decode).transpose()?.unwrap_or_default();
        let (mut encoded, mut weights) = (BTreeMap::new(), BTreeMap::new());
        for NamedPlan { name, plan } in &program.plans {
            encoded.extend(encode_states(plan, None, &given)?);
            weights.insert(name.clone(), encode_weights(plan, None, &owned)?);
        }
        let seed = seed.map_or_else(Seed::random, |s| Seed::from_bytes(u128::from(s).to_le_bytes()));
        Ok(Inner { program, weights, states: encoded, seeds: seed.stream() })
    }

    fn run(
        &mut self,
        plan: &str,
        inputs: &[u8],
        publics: &BTreeMap<String, f64>,
    ) -> Result<Vec<u8>, Failure> {
        let (name, Some(plan)) = (plan, self.program.plan(plan)) else {
            return Err(Failure::Value(format!("the program has no plan named {plan}")));
        };
        let mut given = encode_inputs(plan, None, &tensors::decode(inputs)?)?;
        given.extend(encode_publics(plan, publics)?);
        let mut held = self.weights[name].clone();
        held.extend(self.states.clone());
        let mut coins = StepCoins { seeds: &mut self.seeds, streams: HashMap::new() };
        let (outputs, updates) = interpret_step(plan, &given, &held, &mut coins)?;
        let names = plan.outputs.iter().map(|o| o.name.clone());
        let found: Tensors = names.zip(decode_outputs(plan, &outputs)).collect();
        let encoded = tensors::encode(&found)?;
        self.states.extend(updates);
        Ok(encoded)
    }

    fn decoded(&self) -> Result<Vec<u8>, Failure> {
        let types = self.program.states();
        let decode = |(name, tensor): (&String, &Tensor)| {
            let ty = &types.get(name)?.ty;
            let data = FixedPoint::new(Ring::new(ty.bits), ty.frac).decode(tensor.data());
            Some((name.clone(), FloatTensor { shape: tensor.shape().to_vec(), data }))
        };
        Ok(tensors::encode(&self.states.iter().filter_map(decode).collect())?)
    }
}

/// The coins of one run: those of a dropout are alike whenever they are asked for.
struct StepCoins<'a> {
    seeds: &'a mut Prg,
    streams: HashMap<u32, Seed>,
}

impl Coins for StepCoins<'_> {
    fn draw(&mut self, _node: ValueId, count: usize, shift: u32) -> Option<Vec<u64>> {
        Some(self.seeds.elements(Ring::new(shift), count))
    }

    fn dropout(&mut self, stream: u32, count: usize) -> Option<Vec<u64>> {
        let seed = self.streams.entry(stream).or_insert_with(|| self.seeds.seed());
        Some(seed.stream().elements(Ring::new(32), count))
    }
}
