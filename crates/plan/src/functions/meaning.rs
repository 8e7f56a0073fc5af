//! The functions over real numbers.

use super::Function;
use crate::strided;

impl Function {
    /// The function of a tensor of `shape`.
    pub(crate) fn of(&self, shape: &[usize], x: &[f64]) -> Vec<f64> {
        if let Function::Normalise { eps } = self {
            let n = shape.last().copied().unwrap_or(1).max(1);
            return x.chunks(n).flat_map(|line| normalised(line, *eps)).collect();
        }
        match self.dim() {
            None => x.iter().map(|&v| self.at(v)).collect(),
            Some(dim) => {
                let log = matches!(self, Function::LogSoftmax { .. });
                let (outer, extent, inner) = strided::split(shape, dim);
                let mut y = x.to_vec();
                for line in (0..outer * inner).map(|i| i / inner * extent * inner + i % inner) {
                    let at = |j: usize| line + j * inner;
                    let largest = (0..extent).map(|j| x[at(j)]).fold(f64::NEG_INFINITY, f64::max);
                    let sum: f64 = (0..extent).map(|j| libm::exp(x[at(j)] - largest)).sum();
                    for j in 0..extent {
                        let z = x[at(j)] - largest;
                        y[at(j)] = if log { z - libm::log(sum) } else { libm::exp(z) / sum };
                    }
                }
                y
            }
        }
    }

    /// The function of one number; softmaxes and normalisations are functions of several.
    pub fn at(&self, x: f64) -> f64 {
        match self {
            Function::Exp => libm::exp(x),
            Function::Log => libm::log(x),
            Function::Reciprocal => 1.0 / x,
            Function::Sqrt => x.max(0.0).sqrt(),
            Function::Rsqrt => 1.0 / x.sqrt(),
            Function::Sigmoid => sigmoid(x),
            Function::Tanh => libm::tanh(x),
            Function::Erf => libm::erf(x),
            Function::Sin => libm::sin(x),
            Function::Cos => libm::cos(x),
            Function::Floor => x.floor(),
            Function::Gelu => x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2) / 2.0,
            Function::GeluTanh => x * sigmoid(1.595_769_121_605_730_7 * (x + 0.044715 * x * x * x)),
            Function::Silu => x * sigmoid(x),
            Function::GeluGrad => {
                let density = libm::exp(-x * x / 2.0) / (2.0 * std::f64::consts::PI).sqrt();
                libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2) / 2.0 + x * density
            }
            Function::GeluTanhGrad => {
                let (root, cubic) = (1.595_769_121_605_730_7, 0.044715);
                let y = sigmoid(root * (x + cubic * x * x * x));
                y + x * y * (1.0 - y) * root * (1.0 + 3.0 * cubic * x * x)
            }
            Function::SiluGrad => sigmoid(x) * (1.0 + x * sigmoid(-x)),
            Function::Softmax { .. } => 1.0,
            Function::LogSoftmax { .. } => 0.0,
            Function::Normalise { eps } => x / (x * x + eps).sqrt(),
        }
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

fn normalised(line: &[f64], eps: f64) -> Vec<f64> {
    let mean = line.iter().map(|v| v * v).sum::<f64>() / line.len() as f64;
    let root = (mean + eps).sqrt();
    line.iter().map(|v| if root > 0.0 { v / root } else { 0.0 }).collect()
}
