//! 32 bits suffice: the integer plans of the benchmark's networks choose the class that float64 chooses.

mod common;

use common::lower;
use privet_plan::lower::RoundingMode;
use privet_plan::suite::workload::{inputs, workload};
use privet_plan::{
    FloatTensor, NoCoins, Precision, decode_outputs, encode_inputs, encode_weights, interpret, interpret_real,
};

fn classes(scores: &FloatTensor) -> Vec<usize> {
    let best = |row: &[f64]| (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
    scores.data.chunks(scores.shape[1]).map(best).collect()
}

/// Rows of `batch` whose class is another than that over real numbers, and the largest difference of a score.
fn differing(name: &str, batch: usize, f: u32, g: u32) -> (usize, f64) {
    let (graph, params) = workload(name, batch);
    let inputs = inputs(&graph);
    let precision = Precision {
        bits: Some(32),
        fraction: Some(f),
        weight_fraction: Some(g),
        rounding: RoundingMode::OneUlp,
        ..Precision::default()
    };
    let lowered = lower(&graph, &params, &precision).unwrap_or_else(|e| panic!("{name}: {e}"));
    let plan = &lowered.plan;
    let encoded = encode_inputs(plan, None, &inputs).unwrap();
    let weights = encode_weights(plan, None, &lowered.parameters).unwrap();
    let found = decode_outputs(plan, &interpret(plan, &encoded, &weights, &mut NoCoins).unwrap());
    let real = interpret_real(plan, &inputs, &lowered.parameters).unwrap();
    let differing = classes(&found[0]).iter().zip(classes(&real[0])).filter(|(a, b)| **a != *b).count();
    let error = found[0].data.iter().zip(&real[0].data).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    (differing, error)
}

#[test]
fn falcons_fraction_holds_the_small_networks() {
    for (name, batch, largest) in
        [("mlp", 128, 0.01), ("network-b", 128, 0.01), ("network-c", 128, 0.01), ("lenet", 64, 0.02)]
    {
        let (differing, error) = differing(name, batch, 13, 13);
        assert!(differing * 100 <= batch, "{name}: {differing} of {batch} rows are classified otherwise");
        assert!(error < largest, "{name}: a score differs by {error}");
    }
}

#[test]
fn batch_normalisation_with_plausible_statistics_fits() {
    let (differing, error) = differing("alexnet-cifar", 16, 13, 13);
    assert_eq!(differing, 0);
    assert!(error < 0.01, "a score differs by {error}");
}
