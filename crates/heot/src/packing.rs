//! Packings of layers with weights. Each is looked for once in a process: there are a million candidates, and layers of one shape, sessions,
//! estimates and refusals ask for the same ones.

use crate::gate::At;
use privet_family::Products;
use privet_he::layout::{ConvLayout, Matmul, MatmulLayout, Windowed};
use privet_he::torus::{NoTorus, PackingAim, TorusCost, TorusParameters};
use privet_kernels::LinearShape;
use privet_ring::Ring;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Parameters, layout, and what both cost.
pub(crate) type Packing = (TorusParameters, Arc<dyn Windowed>, TorusCost);

/// What a packing follows from. AGREEMENT: both sides find the same one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    shape: LinearShape,
    count: usize,
    ring: Ring,
    norm_bits: u32,
    aim: PackingAim,
}

/// Packings that are remembered: far more than a network has.
const REMEMBERED: usize = 1 << 12;

static KNOWN: Mutex<Option<HashMap<Key, Packing>>> = Mutex::new(None);

/// The packing of a layer with weights whose filters have a norm of at most 2^`norm_bits`.
pub(crate) fn packing(at: &At, norm_bits: u32, aim: PackingAim) -> Result<Packing, NoTorus> {
    let Products { shape, count } = Products::of(at.plan, at.node()).expect("a product");
    let key = Key { shape, count, ring: at.to(), norm_bits, aim };
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known().as_ref().and_then(|known| known.get(&key)) {
        return Ok(found.clone());
    }
    let found = key.best()?;
    let mut known = known();
    let known = known.get_or_insert_default();
    if known.len() >= REMEMBERED {
        known.clear();
    }
    known.insert(key, found.clone());
    Ok(found)
}

impl Key {
    fn best(&self) -> Result<Packing, NoTorus> {
        let Key { count: groups, ring, norm_bits, aim, .. } = *self;
        match self.shape {
            LinearShape::Conv2d(geometry) => {
                let (p, layout, cost) = ConvLayout::for_torus(geometry, ring, norm_bits, aim)?;
                Ok((p, Arc::new(layout), cost))
            }
            LinearShape::MatMul { m, k, n: o } | LinearShape::MatMulT { m, k, n: o } => {
                let shape = Matmul { groups, m, k, o };
                let (p, layout, cost) = MatmulLayout::for_torus(shape, ring, norm_bits, aim)?;
                Ok((p, Arc::new(layout), cost))
            }
        }
    }
}
