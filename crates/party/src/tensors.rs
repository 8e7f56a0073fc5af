//! Tensor files: safetensors with F64, F32 or F16 elements in, F64 out.

use privet_plan::FloatTensor;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::BTreeMap;
use std::path::Path;
use thiserror::Error;

/// Tensors by name.
pub type Tensors = BTreeMap<String, FloatTensor>;

/// Why a tensor file is refused.
#[derive(Debug, Error)]
pub enum TensorsError {
    /// It could not be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Not safetensors.
    #[error("not a safetensors file: {0}")]
    Form(#[from] safetensors::SafeTensorError),
    /// Elements of another kind.
    #[error("tensor `{name}` has elements of type {dtype}: convert it to float32 or float64")]
    Type {
        /// The tensor.
        name: String,
        /// Its type.
        dtype: String,
    },
}

/// Parse untrusted bytes.
pub fn decode(bytes: &[u8]) -> Result<Tensors, TensorsError> {
    let file = SafeTensors::deserialize(bytes)?;
    let mut tensors = Tensors::new();
    for (name, view) in file.tensors() {
        let data = elements(&view)
            .ok_or_else(|| TensorsError::Type { name: name.clone(), dtype: format!("{:?}", view.dtype()) })?;
        let tensor = FloatTensor::new(view.shape().to_vec(), data)
            .ok_or(TensorsError::Form(safetensors::SafeTensorError::TensorInvalidInfo))?;
        tensors.insert(name, tensor);
    }
    Ok(tensors)
}

fn elements(view: &TensorView) -> Option<Vec<f64>> {
    let bytes = view.data();
    Some(match view.dtype() {
        Dtype::F64 => bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
        Dtype::F32 => bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b) as f64).collect(),
        Dtype::F16 => bytes.as_chunks::<2>().0.iter().map(|b| half(u16::from_le_bytes(*b))).collect(),
        _ => return None,
    })
}

/// IEEE 754 binary16.
fn half(h: u16) -> f64 {
    let (sign, exponent, fraction) = (h >> 15, (h >> 10) & 31, (h & 1023) as f64);
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        e => (1024.0 + fraction) * 2f64.powi(e as i32 - 25),
    };
    if sign == 1 { -magnitude } else { magnitude }
}

/// As bytes of a file, F64.
pub fn encode(tensors: &Tensors) -> Result<Vec<u8>, TensorsError> {
    let bytes: Vec<(&String, &FloatTensor, Vec<u8>)> = tensors
        .iter()
        .map(|(name, t)| (name, t, t.data.iter().flat_map(|v| v.to_le_bytes()).collect()))
        .collect();
    let views: Result<Vec<_>, _> = bytes
        .iter()
        .map(|(name, t, b)| Ok((name.as_str(), TensorView::new(Dtype::F64, t.shape.clone(), b)?)))
        .collect();
    Ok(safetensors::serialize(views.map_err(TensorsError::Form)?, None)?)
}

/// Read a file.
pub fn load(path: &Path) -> Result<Tensors, TensorsError> {
    let read = |source| TensorsError::Read { path: path.display().to_string(), source };
    decode(&std::fs::read(path).map_err(read)?)
}

/// Write a file.
pub fn save(path: &Path, tensors: &Tensors) -> Result<(), TensorsError> {
    let write = |source| TensorsError::Read { path: path.display().to_string(), source };
    std::fs::write(path, encode(tensors)?).map_err(write)
}
