//! Tensor files.

use crate::Target;
use privet_party::tensors::{decode, encode};

/// A safetensors file of weights, inputs or results.
pub const TENSORS: Target = Target {
    name: "tensors",
    run: tensors,
    seeds: tensors_seeds,
    words: &[
        "\"dtype\":",
        "\"F16\"",
        "\"F32\"",
        "\"F64\"",
        "\"BF16\"",
        "\"shape\":",
        "\"data_offsets\":",
        "[0,0]",
        "18446744073709551615",
    ],
};

fn tensors(data: &[u8]) {
    let Ok(found) = decode(data) else { return };
    for tensor in found.values() {
        assert_eq!(tensor.shape.iter().product::<usize>(), tensor.data.len());
    }
    let again = encode(&found).and_then(|bytes| decode(&bytes)).expect("what was written is read");
    assert_eq!(again.len(), found.len());
    for (name, tensor) in &found {
        let bits = |data: &[f64]| data.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert!(again[name].shape == tensor.shape && bits(&again[name].data) == bits(&tensor.data));
    }
}

fn tensors_seeds() -> Vec<Vec<u8>> {
    let file = |header: &str, data: &[u8]| {
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
    };
    vec![
        file(r#"{"x":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}"#, &[0; 8]),
        file(
            r#"{"w":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"F64","shape":[],"data_offsets":[4,12]}}"#,
            &[1; 12],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_valid() {
        assert!(tensors_seeds().iter().all(|s| decode(s).is_ok()));
    }
}
