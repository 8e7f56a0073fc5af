//! The only source of randomness: seeds from the operating system, AES-CTR expansion, and the fixed-key
//! AES hashes of the trees.
//!
//! Nothing else in privet draws random numbers. A [`Seed`] is secret, wiped on drop and never printed.

mod cap;
mod cipher;
mod ctr;
mod hash;
mod seed;
pub mod wiped;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use cap::{CPU_VARIABLE, CpuCap, CpuCapError};
pub use hash::{HashKeys, TREES, TreeHash};
pub use seed::{Domain, Prg, Seed};
pub use wiped::Wiped;
