//! The crates that families depend on name no family.

use std::path::Path;

/// Every family of this version; whoever adds one adds its name.
const FAMILIES: [&str; 4] = ["fss", "rep3", "semi2k", "heot"];

fn naming(folder: &Path, found: &mut Vec<String>) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files += naming(&path, found);
            continue;
        }
        files += 1;
        let text = std::fs::read_to_string(&path).unwrap_or_default().to_lowercase();
        for (i, line) in text.lines().enumerate() {
            if FAMILIES.iter().any(|name| line.contains(name)) {
                found.push(format!("{}:{}: {}", path.display(), i + 1, line.trim()));
            }
        }
    }
    files
}

#[test]
fn plans_and_what_families_share_name_no_family() {
    let crates = privet_plan::suite::repository().join("crates");
    for folder in ["plan", "ot", "he", "family"] {
        let mut found = Vec::new();
        assert!(naming(&crates.join(folder).join("src"), &mut found) > 3, "{folder} has files");
        assert!(found.is_empty(), "crates/{folder} names a family:\n{}", found.join("\n"));
    }
    for folder in ["ring", "prg", "net", "plan", "kernels", "ot", "he", "family"] {
        let manifest = std::fs::read_to_string(crates.join(folder).join("Cargo.toml")).unwrap();
        assert!(!FAMILIES.iter().any(|name| manifest.contains(name)), "crates/{folder} depends on a family");
    }
}
