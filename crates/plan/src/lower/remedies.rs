//! What to do about an operation that has no private implementation yet.

/// Parts of the reason that stands behind a name, and their remedies. They are looked at first.
const REASONS: &[(&str, &str)] = &[
    (
        "a private mask keeps",
        "a shape would depend on secret values: multiply by the mask, or choose with torch.where",
    ),
    ("private places", "write at constant places, choose with torch.where, or multiply by one-hot rows"),
    ("windows that overlap", "let the windows of the max pool lie side by side, or enlarge with Upsample"),
    ("indices of maxima so far", "use the values alone, or an argmax over what is there at the end"),
    ("as a python number", "keep it a tensor: a private value cannot become a number of the program"),
];

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
    ("max_unpool", "give it the indices of a max pool, as that returned them"),
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
    ("randn", "draw random numbers outside, and give them as an input"),
    ("randint", "draw random numbers outside, and give them as an input"),
    ("randperm", "draw random numbers outside, and give them as an input"),
    ("rand", "draw random numbers outside, and give them as an input"),
    ("normal", "draw random numbers outside, and give them as an input"),
    ("bernoulli", "draw random numbers outside, and give them as an input"),
    ("multinomial", "reveal the probabilities and draw in the clear"),
    ("exponential", "draw random numbers outside, and give them as an input"),
    ("div", "divide by a number, a parameter, or a private value of float type, without rounding"),
    ("pow", "write it as products, or as exp(y * log(x)) of a positive x"),
    ("grid_sampl", "let the grid be a constant, or resample before the input is shared"),
    ("linalg", "solve and factor matrices of the revealed result, in the clear"),
    ("fft", "take the transform outside the model, or multiply by its matrix as a constant"),
    ("stft", "take the transform outside the model, or multiply by its matrix as a constant"),
    ("view_as_complex", "complex numbers are not captured: compute with real and imaginary parts"),
    ("view_as_real", "complex numbers are not captured: compute with real and imaginary parts"),
    ("nonzero", "a shape would depend on secret values: use a mask of fixed shape"),
    ("masked_select", "a shape would depend on secret values: multiply by the mask instead"),
    ("unique", "a shape would depend on secret values: compute it of the revealed result"),
    ("bincount", "a shape would depend on secret values: compute it of the revealed result"),
    ("scatter", "write at constant places, choose with torch.where, or multiply by one-hot rows"),
    ("index_put", "write at constant places, choose with torch.where, or multiply by one-hot rows"),
    ("mode", "take a median, or compare with each candidate and count"),
    ("histc", "give the ends of the range as numbers"),
    ("index", "index by constants, or by an argmax along one dimension"),
    ("gather", "index by constants, or by an argmax along one dimension"),
    ("cond", "compute both branches, and choose with torch.where"),
    ("while_loop", "run a fixed number of steps"),
];

/// The remedy for an operation's name.
pub fn remedy(op: &str) -> &'static str {
    let op = op.to_ascii_lowercase();
    if let Some((_, remedy)) = REASONS.iter().find(|(reason, _)| op.contains(reason)) {
        return remedy;
    }
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
