//! What to do about an operation that has no private implementation yet.

/// Operation name fragments (lower case, as in `aten.gelu.default`) and their remedies. The first match wins.
const REMEDIES: &[(&str, &str)] = &[
    ("gelu", "replace GELU by ReLU and fine-tune, or wait for the table gates that will bring GELU"),
    ("silu", "replace SiLU/Swish by ReLU or Hardtanh and fine-tune; table gates will bring it"),
    ("swish", "replace SiLU/Swish by ReLU or Hardtanh and fine-tune; table gates will bring it"),
    ("mish", "replace Mish by ReLU and fine-tune"),
    ("hardswish", "replace Hardswish by ReLU, or write it as x * clamp(x + 3, 0, 6) / 6"),
    ("hardsigmoid", "write it as clamp(x / 6 + 0.5, 0, 1), which is supported"),
    (
        "log_softmax",
        "leave it out: it does not change the order of the classes; the receiver can apply it to the revealed logits",
    ),
    (
        "softmax",
        "leave a final softmax out (the receiver can apply it to the revealed logits, or reveal argmax only); inside attention it needs the table gates",
    ),
    ("logsigmoid", "leave a final one out; the receiver can apply it to the revealed value"),
    (
        "sigmoid",
        "leave a final sigmoid out (threshold the logit at 0 instead); inside the model use clamp(x / 4 + 0.5, 0, 1)",
    ),
    ("tanh", "use Hardtanh (clamp to [-1, 1]) and fine-tune; table gates will bring tanh"),
    ("softplus", "replace Softplus by ReLU and fine-tune"),
    ("elu", "replace ELU/SELU/CELU by ReLU or LeakyReLU and fine-tune"),
    ("prelu", "replace PReLU by LeakyReLU with a fixed slope"),
    ("layer_norm", "replace LayerNorm by BatchNorm, which is folded away; rsqrt tables will bring LayerNorm"),
    ("group_norm", "replace GroupNorm by BatchNorm, which is folded away"),
    ("instance_norm", "replace InstanceNorm by BatchNorm, which is folded away"),
    ("local_response_norm", "remove LocalResponseNorm or replace it by BatchNorm"),
    (
        "batch_norm",
        "the layer is in training mode: call model.eval() before compiling, and keep track_running_stats=True",
    ),
    ("dropout", "the layer is in training mode: call model.eval() before compiling"),
    ("lstm", "unroll the recurrence with supported operations; its sigmoid and tanh need the table gates"),
    ("gru", "unroll the recurrence with supported operations; its sigmoid and tanh need the table gates"),
    ("rnn", "unroll the recurrence with ReLU as its nonlinearity"),
    (
        "embedding",
        "look the embedding up before sharing and make the vectors the private input, or multiply one-hot inputs by the table with Linear",
    ),
    ("scaled_dot_product_attention", "attention needs softmax, which comes with the table gates"),
    ("attention", "attention needs softmax, which comes with the table gates"),
    ("exp", "exponentials come with the table gates; a final exp can be applied by the receiver"),
    ("log", "logarithms come with the table gates; a final log can be applied by the receiver"),
    ("rsqrt", "inverse square roots come with the table gates; divide by a constant instead where possible"),
    ("sqrt", "square roots come with the table gates; divide by a constant instead where possible"),
    ("reciprocal", "division by a private value comes with the table gates; divide by a constant instead"),
    ("div", "division by a private value comes with the table gates; dividing by a constant is supported"),
    ("pow", "write small integer powers as products, x * x"),
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
