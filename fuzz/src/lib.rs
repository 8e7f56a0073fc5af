//! Fuzz targets: everything that privet reads from a peer, a file or the command line.
//!
//! A target is a function of bytes that must return: a panic, an abort, a hang or more memory than
//! [`worker::MEMORY_BYTES`] is a finding. Besides not failing, targets check what the parser promises, for example that
//! what was read is written back as it was. The functions take plain bytes, so that any fuzzer can drive them; the driver
//! of this crate (`scripts/fuzz.sh`) needs nothing but stable Rust.

pub mod coverage;
pub mod mutate;
mod targets;
pub mod watch;
pub mod worker;

pub use targets::TARGETS;

/// One parser under test.
pub struct Target {
    /// Its name on the command line, and of its folder of regressions.
    pub name: &'static str,
    /// Feeds it one input.
    pub run: fn(&[u8]),
    /// Inputs that are valid, to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words of its language, for mutations.
    pub words: &'static [&'static str],
}

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|t| t.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_take_their_seeds_and_names_are_unique() {
        for (i, target) in TARGETS.iter().enumerate() {
            assert!(TARGETS[..i].iter().all(|t| t.name != target.name), "{}", target.name);
            let seeds = (target.seeds)();
            assert!(!seeds.is_empty(), "{}", target.name);
            seeds.iter().for_each(|s| (target.run)(s));
        }
    }
}
