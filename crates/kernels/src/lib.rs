//! The hot kernels behind one [`Device`] trait: comparison by trees and by chunks, table look-ups, ring matmul/convolution and bit planes.
//!
//! One folder a kernel: `spec` is the plain definition that every fast path is tested against, `cpu`
//! holds the paths chosen at run time; a GPU's paths would stand beside them, and [`open`] is where a node's
//! choice of device becomes one.

mod aside;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod bits;
mod choice;
pub mod chunks;
pub mod compare;
pub mod cuda;
pub mod device;
mod device_cpu;
pub mod fold;
pub mod linear;
pub mod lookup;
#[cfg(target_arch = "x86_64")]
mod near;
pub mod probe;
mod secret;
mod threads;
mod wide;

pub use aside::Aside;
pub use choice::{DeviceError, DeviceKind, open};
pub use chunks::Chunks;
pub use compare::{CompareKeys, CompareShape};
pub use device::{CompareOut, Device, cpu, try_cpu};
pub use linear::{LinearShape, Weights};
pub use lookup::{LookupShape, Read};
pub use privet_prg::{CPU_VARIABLE, CpuCap, CpuCapError};
pub use threads::{in_parallel, in_two};
pub use wide::in_wide_registers;
