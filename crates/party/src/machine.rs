//! This machine's profile: where it is kept, and what is said of one that is not there.

use privet_plan::Rates;
use privet_plan::cost::{MACHINE_VERSION, Machine, Prices};
use std::path::{Path, PathBuf};

/// `privet/machine.json` in the user's cache folder (`XDG_CACHE_HOME`, else `~/.cache`).
pub fn path() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("privet").join("machine.json"))
}

/// Names a file with the profile of another machine, for which estimates are then made.
const PROFILE: &str = "PRIVET_PROFILE";

/// What tells machines apart: the processor, and the paths that kernels take on it. Processors of one name may lack AMX.
pub fn name() -> String {
    let paths = privet_kernels::try_cpu(1).map(|device| device.name()).unwrap_or_default();
    format!("{}, {paths}", crate::sys::cpu_name())
}

/// What was measured on this machine; nothing where nobody has, or where it was another machine or version.
pub fn measured() -> Option<Machine> {
    read(&path()?).filter(|machine| machine.cpu == name() && machine.cores == crate::sys::cores())
}

/// The profile that the file holds; nothing where there is none, or one of another version.
fn read(path: &Path) -> Option<Machine> {
    let machine: Machine = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    (machine.version == MACHINE_VERSION).then_some(machine)
}

/// A family's rates, each party on a machine like this one, and where they are from: for whoever reads an estimate.
///
/// `PRIVET_PROFILE` names the profile of another machine. Where it holds nothing of the family, shipped rates are used, which is said.
pub fn rates(prices: &dyn Prices) -> (Rates, &'static str) {
    let (machine, from) = match std::env::var_os(PROFILE) {
        Some(path) => (read(Path::new(&path)), "rates of the profile in PRIVET_PROFILE"),
        None => (measured(), "rates measured on this machine"),
    };
    match machine.filter(|machine| machine.knows(prices)) {
        Some(machine) => (machine.rates(prices), from),
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
