//! What to do about an operation that has no private implementation yet.

/// Operation name fragments (lower case, as in `aten.gelu.default`) and their remedies. The first match wins.
const REMEDIES: &[(&str, &str)] = &[
    ("mish", "replace Mish by SiLU or GELU, or write it as x * tanh(log(1 + exp(x)))"),
    ("hardswish", "replace Hardswish by ReLU, or write it as x * clamp(x + 3, 0, 6) / 6"),
    ("hardsigmoid", "write it as clamp(x / 6 + 0.5, 0, 1), which is supported"),
    ("softmax", "take it along one dimension of at most 65536 classes, of float32 or float64 numbers"),
    ("log_sigmoid", "write it as log(sigmoid(x))"),
    ("softplus", "write it as log(1 + exp(x)), or replace it by ReLU and fine-tune"),
    ("elu", "replace ELU/SELU/CELU by ReLU or LeakyReLU and fine-tune"),
    ("prelu", "replace PReLU by LeakyReLU with a fixed slope"),
    ("layer_norm", "normalise over the last dimensions of the operand"),
    (
        "group_norm",
        "write it with mean, var and rsqrt, or replace GroupNorm by BatchNorm, which is folded away",
    ),
    (
        "instance_norm",
        "write it with mean, var and rsqrt, or replace InstanceNorm by BatchNorm, which is folded away",
    ),
    ("local_response_norm", "remove LocalResponseNorm or replace it by BatchNorm"),
    (
        "batch_norm",
        "the layer is in training mode: call model.eval() before compiling, and keep track_running_stats=True",
    ),
    ("dropout", "the layer is in training mode: call model.eval() before compiling"),
    ("lstm", "unroll the recurrence with Linear, sigmoid, tanh and products"),
    ("gru", "unroll the recurrence with Linear, sigmoid, tanh and products"),
    ("rnn", "unroll the recurrence with Linear and tanh or ReLU"),
    (
        "embedding",
        "look the embedding up before sharing and make the vectors the private input, or multiply one-hot inputs by the table with Linear",
    ),
    (
        "scaled_dot_product_attention",
        "write it as softmax(q @ k.transpose(-2, -1) * scale) @ v; masks are added as constants",
    ),
    ("attention", "write it with Linear, matmul and softmax"),
    ("log2", "write it as log(x) times a constant"),
    ("log10", "write it as log(x) times a constant"),
    ("log1p", "write it as log(1 + x)"),
    ("expm1", "write it as exp(x) - 1"),
    ("exp2", "write it as exp of a multiple of x"),
    ("erf", "use GELU, or write it with sigmoid or tanh"),
    ("div", "divide by a number, a parameter, or a private value of float type, without rounding"),
    ("pow", "write it as products, x * x, with sqrt, rsqrt and reciprocal, or as exp(y * log(x))"),
    (
        "interpolate",
        "use a fixed transposed arrangement: repeat with expand and reshape for nearest, or resize outside the model",
    ),
    ("upsample", "use expand and reshape for nearest-neighbour upsampling, or resize outside the model"),
    ("grid_sampl", "resample outside the model, before the input is shared"),
    ("conv_transpose", "use nearest upsampling by expand and reshape followed by Conv2d"),
    ("conv1d", "write Conv1d as Conv2d with height 1 (unsqueeze, Conv2d, squeeze)"),
    ("conv3d", "3-D convolutions are not there; fold one dimension into the channels with reshape"),
    ("max_pool1d", "write it as MaxPool2d with height 1"),
    ("max_pool3d", "pool two dimensions at a time with MaxPool2d"),
    ("adaptive_max_pool", "use MaxPool2d with an explicit window"),
    ("avg_pool1d", "write it as AvgPool2d with height 1"),
    ("bmm", "write it as torch.matmul of values with equal leading dimensions"),
    ("einsum", "write it with torch.matmul, permute and reshape"),
    ("topk", "reveal the logits and take top-k in the clear, or use argmax"),
    ("sort", "sort the revealed result in the clear"),
    ("argmin", "write it as argmax of the negated value"),
    ("amax", "use MaxPool2d over the dimension"),
    ("max", "use MaxPool2d, argmax, or relu(a - b) + b for two values"),
    ("min", "write min(a, b) as a - relu(a - b)"),
    ("where", "data-dependent selection is not captured; write it with relu or clamp"),
    ("abs", "write it as relu(x) + relu(-x)"),
    ("sign", "signs of private values are not captured; use relu or clamp"),
    ("index", "use slices with fixed bounds"),
    ("gather", "use slices with fixed bounds"),
    ("gt", "comparisons are not captured; compare the revealed result, or use relu"),
    ("lt", "comparisons are not captured; compare the revealed result, or use relu"),
    ("ge", "comparisons are not captured; compare the revealed result, or use relu"),
    ("le", "comparisons are not captured; compare the revealed result, or use relu"),
    ("eq", "comparisons are not captured; compare the revealed result"),
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
        "rewrite this part with supported operations (convolution, linear, ReLU family, pooling, sums, products, reshaping), or move it outside the private part of the model",
        |(_, remedy)| remedy,
    )
}
