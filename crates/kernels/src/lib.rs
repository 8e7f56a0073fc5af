//! The hot kernels behind one [`Device`] trait: comparison walks and ring matmul/convolution.
//!
//! One folder a kernel: `spec` is the plain definition that every fast path is tested against, `cpu`
//! holds the paths chosen at run time, `cuda` the GPU's.

mod cap;
pub mod compare;
pub mod device;
mod device_cpu;
pub mod linear;
pub mod probe;
mod threads;

pub use cap::{CPU_VARIABLE, CpuCap, CpuCapError};
pub use compare::{CompareKeys, CompareShape};
pub use device::{CompareOut, Device, cpu, try_cpu};
pub use linear::{LinearShape, Weights};
