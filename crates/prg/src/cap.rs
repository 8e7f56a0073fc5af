use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The most that the CPU kernels may use; each level includes those before it.
///
/// What runs is the best path that the machine has within the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CpuCap {
    /// No instruction-set extension beyond what the target guarantees.
    Portable,
    /// AES-NI for comparison walks; portable arithmetic.
    Aesni,
    /// AVX2.
    Avx2,
    /// VAES on 256-bit registers.
    Vaes,
    /// AVX-512, with VAES on 512-bit registers.
    Avx512,
    /// AMX int8 tiles.
    Amx,
}

/// The environment variable that lowers the cap.
pub const CPU_VARIABLE: &str = "PRIVET_CPU";

/// A cap that does not exist.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "PRIVET_CPU={found:?} is not a CPU level; use one of portable, aesni, avx2, vaes, avx512, amx, or unset it"
)]
pub struct CpuCapError {
    /// What was given.
    pub found: String,
}

impl CpuCap {
    /// Every level, lowest first.
    pub const ALL: [CpuCap; 6] =
        [CpuCap::Portable, CpuCap::Aesni, CpuCap::Avx2, CpuCap::Vaes, CpuCap::Avx512, CpuCap::Amx];

    /// The cap that [`CPU_VARIABLE`] asks for; the highest when it is unset.
    pub fn from_env() -> Result<CpuCap, CpuCapError> {
        match std::env::var_os(CPU_VARIABLE) {
            None => Ok(CpuCap::Amx),
            Some(v) => v.to_string_lossy().parse(),
        }
    }
}

impl FromStr for CpuCap {
    type Err = CpuCapError;

    fn from_str(s: &str) -> Result<CpuCap, CpuCapError> {
        CpuCap::ALL
            .into_iter()
            .find(|c| c.to_string() == s)
            .ok_or_else(|| CpuCapError { found: s.chars().take(40).collect() })
    }
}

impl fmt::Display for CpuCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CpuCap::Portable => "portable",
            CpuCap::Aesni => "aesni",
            CpuCap::Avx2 => "avx2",
            CpuCap::Vaes => "vaes",
            CpuCap::Avx512 => "avx512",
            CpuCap::Amx => "amx",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names_and_an_order() {
        for cap in CpuCap::ALL {
            assert_eq!(cap.to_string().parse(), Ok(cap));
        }
        assert!(CpuCap::ALL.is_sorted());
    }

    #[test]
    fn anything_else_is_refused_with_the_choices() {
        for wrong in ["", "AVX2", "avx512 ", "sse"] {
            let error = wrong.parse::<CpuCap>().expect_err(wrong).to_string();
            assert!(CpuCap::ALL.iter().all(|c| error.contains(&c.to_string())), "{error}");
        }
    }
}
