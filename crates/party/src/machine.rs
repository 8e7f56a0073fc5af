//! This machine's profile: where it is kept, and what is said of one that is not there.

use privet_plan::Rates;
use privet_plan::cost::{MACHINE_VERSION, Machine, Prices};
use std::path::PathBuf;

/// `privet/machine.json` in the user's cache folder (`XDG_CACHE_HOME`, else `~/.cache`).
pub fn path() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("privet").join("machine.json"))
}

/// What was measured on this machine; nothing where nobody has, or where it was another machine or version.
pub fn measured() -> Option<Machine> {
    let machine: Machine = serde_json::from_slice(&std::fs::read(path()?).ok()?).ok()?;
    let same = machine.version == MACHINE_VERSION && machine.cpu == crate::sys::cpu_name();
    (same && machine.cores == crate::sys::cores()).then_some(machine)
}

/// A family's rates, each party on a machine like this one, and where they are from: for whoever reads an estimate.
pub fn rates(prices: &dyn Prices) -> (Rates, &'static str) {
    match measured().filter(|machine| machine.knows(prices)) {
        Some(machine) => (machine.rates(prices), "rates measured on this machine"),
        None => (
            prices.rates(),
            "rates of the shipped profile; `privet bench --calibrate` measures this machine's",
        ),
    }
}

/// Keep a profile. Gives the file.
pub fn save(machine: &Machine) -> std::io::Result<PathBuf> {
    let none = || std::io::Error::other("neither XDG_CACHE_HOME nor HOME names a folder");
    let path = path().ok_or_else(none)?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // a reader finds the old file or the new one, never a part
    let new = path.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&new, serde_json::to_vec_pretty(machine)?)?;
    std::fs::rename(&new, &path)?;
    Ok(path)
}
