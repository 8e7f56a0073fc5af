//! Plans that were compiled and dealt for stay the same plans: hashes of lowered networks.
//!
//! A change here means that keys in stores no longer fit. If it is meant, say so in CHANGELOG.md and run with
//! `PRINT_HASHES=1 cargo test -p privet-fss --test stable -- --nocapture`.

use privet_fss::Fss;
use privet_plan::suite::workload::workload;
use privet_plan::{Precision, lower};

fn precision(bits: u32, fraction: u32) -> Precision {
    Precision { bits: Some(bits), fraction: Some(fraction), ..Precision::default() }
}

#[test]
fn plans_for_fss_are_what_they_were() {
    let known = include_str!("stable.txt");
    let mut found = String::new();
    for name in ["mlp", "network-c", "lenet", "alexnet-cifar", "squeezenet", "resnet18"] {
        let (graph, params) = workload(name, 2);
        for (label, precision) in
            [("chosen", Precision::default()), ("64/24", precision(64, 24)), ("32/8", precision(32, 8))]
        {
            let hash = match lower(&graph, &params, &precision, &Fss) {
                Ok(lowered) => lowered.plan.hash().iter().map(|byte| format!("{byte:02x}")).collect(),
                Err(report) => format!("refused: {} problems", report.problems.len()),
            };
            found += &format!("{name} {label} {hash}\n");
        }
    }
    if std::env::var_os("PRINT_HASHES").is_some() {
        print!("{found}");
    }
    assert_eq!(found, known, "lowering makes other plans for fss than it did");
}
