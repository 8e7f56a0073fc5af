//! Bytes on the wire of Falcon's networks under rep3, with verification: at most what Falcon publishes, for 32 bits and 128
//! samples, and little more for malicious parties than for semi-honest ones.

use privet_plan::cost::{Cost, Network};
use privet_plan::lower::RoundingMode;
use privet_plan::suite::workload::shapes;
use privet_plan::{Estimate, Precision, Rates, Target, estimate, lower};
use privet_rep3::{Rep3, Security};

const BATCH: usize = 128;

/// Falcon (Wagh et al., PoPETs 2021), inference of one sample, MB a party: semi-honest, malicious.
///
/// Fraction bits of activations and weights are those with which the argmax of the integer plan is that of float64.
const PUBLISHED: [(&str, u32, u32, f64, f64); 8] = [
    ("mlp", 13, 13, 0.012, 0.31),
    ("network-b", 13, 13, 0.049, 0.52),
    ("network-c", 13, 13, 0.51, 3.37),
    ("lenet", 13, 13, 0.74, 5.69),
    ("alexnet-cifar", 13, 13, 1.35, 8.85),
    ("vgg16-cifar", 11, 14, 13.51, 90.1),
    ("alexnet-tiny", 12, 14, 19.21, 130.0),
    ("vgg16-tiny", 11, 14, 52.56, 395.7),
];

fn estimated(name: &str, f: u32, g: u32, rounding: RoundingMode, family: &dyn Target) -> Estimate {
    let (graph, params) = shapes(name, BATCH);
    let precision = Precision {
        bits: Some(32),
        fraction: Some(f),
        weight_fraction: Some(g),
        rounding,
        ..Precision::default()
    };
    let lowered = lower(&graph, &params, &precision, family).unwrap_or_else(|e| panic!("{name}: {e}"));
    estimate(&lowered.plan, family, &Rates::default(), &Network::LAN)
}

/// The operations that send the most, in bytes of a sample.
fn largest(estimate: &Estimate) -> String {
    let mut kinds: Vec<(&str, u64)> = Vec::new();
    for node in &estimate.nodes {
        match kinds.iter_mut().find(|(kind, _)| *kind == node.op) {
            Some((_, bytes)) => *bytes += node.cost.wire_bytes.most(),
            None => kinds.push((&node.op, node.cost.wire_bytes.most())),
        }
    }
    kinds.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
    let list = kinds.iter().filter(|(_, bytes)| *bytes > 0);
    list.map(|(kind, bytes)| format!("{kind} {}", bytes / BATCH as u64)).collect::<Vec<_>>().join(", ")
}

fn printed(over: &mut Vec<String>, within: bool, line: String) {
    println!("{line}");
    if !within {
        over.push(line);
    }
}

#[test]
fn a_sample_costs_no_more_bytes_than_falcon_publishes() {
    let mut over = Vec::new();
    for (name, f, g, semi_honest, malicious) in PUBLISHED {
        for (security, most) in [(Security::SemiHonest, semi_honest), (Security::Malicious, malicious)] {
            for rounding in [RoundingMode::Nearest, RoundingMode::OneUlp] {
                let found = estimated(name, f, g, rounding, &Rep3 { security });
                let mb = found.total.wire_bytes.most() as f64 / BATCH as f64 / 1e6;
                let line = format!(
                    "{name} {security} {rounding:?}: {mb:.4} MB of {most}, {} rounds; {}",
                    found.total.rounds,
                    largest(&found)
                );
                printed(&mut over, mb <= most, line);
            }
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
}

/// Proofs grow with the logarithm of what is proved, so that in a large run they hardly count; this bound leaves room for the
/// smallest network.
#[test]
fn malicious_runs_send_at_most_three_times_as_much() {
    const MOST: f64 = 3.0;
    let mut over = Vec::new();
    for (name, f, g, ..) in PUBLISHED {
        for rounding in [RoundingMode::Nearest, RoundingMode::OneUlp] {
            let of = |security| estimated(name, f, g, rounding, &Rep3 { security });
            let (trusted, proved) = (of(Security::SemiHonest), of(Security::Malicious));
            assert_eq!(trusted.whole_run, Cost::default());
            let proofs = proved.whole_run;
            assert!(proofs.wire_bytes.most() > 0 && proofs.rounds > 0, "{name}: proofs are in the estimate");
            let mut layers = proofs;
            proved.layers.iter().for_each(|layer| layers += layer.cost);
            assert_eq!(layers, proved.total, "{name}: layers and proofs are all there is");
            let ratio = proved.total.wire_bytes.most() as f64 / trusted.total.wire_bytes.most() as f64;
            let line = format!(
                "{name} {rounding:?}: {ratio:.3} times; proofs of a run {} bytes, {} rounds",
                proofs.wire_bytes.most(),
                proofs.rounds
            );
            printed(&mut over, ratio <= MOST, line);
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
}
