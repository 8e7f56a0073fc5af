//! What to do about an operation that has no private implementation yet.

/// Operation name fragments (lower case, as in `aten.gelu.default`) and their remedies. The first match wins.
const REMEDIES: &[(&str, &str)] = &[
    (
        "a constant of",
        "add it to scores that only a softmax reads, or give a number of the size of the other values",
    ),
    (
        "convolution_backward",
        "of convolutions Conv1d and Conv2d are trained: freeze this one, or enlarge with Upsample and a Conv2d",
    ),
    (
        "_backward",
        "freeze this layer and those before it, or take another one: docs/training.md lists what is trained",
    ),
    ("_loss", "compute the loss in the clear, from the revealed result; training has losses of its own"),
    ("kl_div", "compute the loss in the clear, from the revealed result; training has losses of its own"),
    (
        "binary_cross_entropy",
        "compute the loss in the clear, from the revealed result; training has losses of its own",
    ),
    ("ctc", "compute the loss in the clear, from the revealed result"),
    ("fractional_max_pool", "its windows are random: use MaxPool2d with fixed windows"),
    ("max_unpool", "positions of maxima are secret: enlarge with Upsample instead"),
    ("with_indices", "positions of maxima are secret: use the maxima alone"),
    ("max_pool", "use windows that lie within the operand"),
    ("softmax", "take it along one dimension of at most 65536 classes, of float32 or float64 numbers"),
    ("layer_norm", "normalise over the last dimensions of the operand"),
    (
        "batch_norm",
        "the layer is in training mode: call model.eval() before compiling, and keep track_running_stats=True",
    ),
    ("dropout", "the layer is in training mode: call model.eval() before compiling"),
    ("embedding", "look the row up by an input of integers, and keep its table a parameter"),
    (
        "scaled_dot_product_attention",
        "leave dropout out, and let the mask be a constant, an input of 0 and 1, or made of these by comparisons and sums",
    ),
    ("attention", "write it with Linear, matmul and softmax"),
    ("rand", "draw random numbers outside, and give them as an input"),
    ("normal", "draw random numbers outside, and give them as an input"),
    ("bernoulli", "draw random numbers outside, and give them as an input"),
    ("multinomial", "reveal the probabilities and draw in the clear"),
    ("exponential", "draw random numbers outside, and give them as an input"),
    ("erf", "use GELU, or write it with sigmoid or tanh"),
    ("div", "divide by a number, a parameter, or a private value of float type, without rounding"),
    ("floor", "rounding of private values is not captured: round the revealed result"),
    ("ceil", "rounding of private values is not captured: round the revealed result"),
    ("round", "rounding of private values is not captured: round the revealed result"),
    ("trunc", "rounding of private values is not captured: round the revealed result"),
    ("fmod", "remainders of private values are not captured: compute them of the revealed result"),
    ("remainder", "remainders of private values are not captured: compute them of the revealed result"),
    ("pow", "write it as products, or as exp(y * log(x)) of a positive x"),
    ("sin", "angles of private values are not captured: give sine and cosine as inputs"),
    ("cos", "angles of private values are not captured: give sine and cosine as inputs"),
    ("tan", "angles of private values are not captured: give sine and cosine as inputs"),
    ("grid_sampl", "resample outside the model, before the input is shared"),
    ("linalg", "solve and factor matrices of the revealed result, in the clear"),
    ("fft", "take the transform outside the model, or multiply by its matrix as a constant"),
    ("stft", "take the transform outside the model, or multiply by its matrix as a constant"),
    ("view_as_complex", "complex numbers are not captured: compute with real and imaginary parts"),
    ("view_as_real", "complex numbers are not captured: compute with real and imaginary parts"),
    ("nonzero", "a shape would depend on secret values: use a mask of fixed shape"),
    ("masked_select", "a shape would depend on secret values: multiply by the mask instead"),
    ("unique", "a shape would depend on secret values: compute it of the revealed result"),
    ("bincount", "a shape would depend on secret values: compute it of the revealed result"),
    ("index", "index by constants, or by an argmax along one dimension"),
    ("gather", "index by constants, or by an argmax along one dimension"),
    ("cond", "compute both branches, and choose with torch.where"),
    ("while_loop", "run a fixed number of steps"),
];

/// The remedy for an operation's name.
pub fn remedy(op: &str) -> &'static str {
    let op = op.to_ascii_lowercase();
    let base =
        op.split('.').find(|part| !matches!(*part, "aten" | "torch" | "nn" | "functional")).unwrap_or(&op);
    let hit = REMEDIES.iter().find(|(name, _)| {
        // short names must match as a whole word, or "le" would claim "leaky"
        if name.len() <= 4 {
            base.trim_matches('_').split('_').any(|word| word == *name)
        } else {
            base.contains(name)
        }
    });
    hit.map_or(
        "there is no rule for it: write it with others (docs/models.md lists what runs), or move it outside the private part of the model",
        |(_, remedy)| remedy,
    )
}
