//! The captured model: operations on real numbers, as the front end writes them (JSON).

use crate::functions::Function;
use privet_ring::Pool2d;
use serde::{Deserialize, Serialize};

/// Format version of [`Graph`].
pub const GRAPH_VERSION: u32 = 1;

/// A captured model in evaluation mode, or a step of training. Nodes are in topological order; a node's id is its index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// [`GRAPH_VERSION`].
    pub version: u32,
    /// The model's name.
    pub name: String,
    /// Extent of dimension 0 of every input at capture.
    pub batch: usize,
    /// The operations.
    pub nodes: Vec<GraphNode>,
    /// The model's results.
    pub outputs: Vec<GraphOutput>,
    /// In training: what replaces states when the step is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<GraphUpdate>,
}

/// The next value of a [`GraphOp::State`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphUpdate {
    /// The state's node.
    pub state: usize,
    /// The node whose value takes its place.
    pub node: usize,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphNode {
    /// What it computes.
    pub op: GraphOp,
    /// Ids of its operands.
    pub inputs: Vec<usize>,
    /// Shape of its value.
    pub shape: Vec<usize>,
    /// The module that made it, `features.3.squeeze` style; empty for the top level.
    pub layer: String,
    /// `file.py:12 in forward: x = self.conv1(x)`; empty when unknown.
    pub source: String,
    /// Smallest and largest value seen on the calibration inputs (for parameters: of the tensor itself).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
}

/// A named result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphOutput {
    /// The node.
    pub node: usize,
    /// Its name for the user.
    pub name: String,
    /// The role that learns it; [`crate::lower::RECEIVER`] if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// The operations that capture produces. Padding pairs are symmetric as in torch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum GraphOp {
    /// The data owner's tensor.
    Input {
        /// Its name.
        name: String,
        /// The role that shares it; [`crate::lower::DATA_OWNER`] if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
    },
    /// The model owner's tensor (weight, bias, running statistic or constant buffer).
    Parameter {
        /// Its name in the parameter file.
        name: String,
    },
    /// A tensor that runs replace. In training: the model owner's parameter or buffer at first, or what an optimiser
    /// remembers. In generation: the keys and values of earlier tokens.
    State {
        /// Its name.
        name: String,
        /// Its fraction bits, at least those of activations; as many as these have if absent. What is computed from it
        /// by sums and public factors keeps them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frac: Option<u32>,
        /// The role that shares its first value; [`crate::lower::MODEL_OWNER`] if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
    },
    /// In training, a number that everybody knows and that every step gives anew; shape `[]`. Only `Mul` reads it.
    Public {
        /// Its name.
        name: String,
        /// Largest magnitude that it will have.
        limit: f64,
    },
    /// 1 where x > 0 else 0; only `Choose` reads it. (Wrong at the most negative number of the ring alone.)
    Positive,
    /// `[b, x]`: x where b = 1 else 0; b is a `Positive` of x's shape, or what `Reshape`, `Permute`, `Slice`, `Concat`,
    /// `Expand` made of such.
    Choose,
    /// The elements of `dims` in reverse order.
    Reverse {
        /// Dimensions.
        dims: Vec<usize>,
    },
    /// x where a public coin says so, else 0, **not** scaled; the coins of a step are alike wherever `stream` is.
    Dropout {
        /// Which coins.
        stream: u32,
        /// Probability of keeping an element, above 0 and below 1.
        keep: f64,
    },
    /// `[w, g]`: the gradient of a `Conv2d` (same attributes) by its input, for the gradient g by its result; the node's
    /// shape is the input's.
    Conv2dInputGrad {
        /// Stride.
        stride: [usize; 2],
        /// Padding.
        padding: [usize; 2],
        /// Dilation.
        dilation: [usize; 2],
        /// Groups.
        groups: usize,
    },
    /// `[x, g]`: the gradient of a `Conv2d` by its weight; the node's shape is the weight's.
    Conv2dWeightGrad {
        /// Stride.
        stride: [usize; 2],
        /// Padding.
        padding: [usize; 2],
        /// Dilation.
        dilation: [usize; 2],
        /// Groups.
        groups: usize,
    },
    /// `[x, g]`: the gradient of a `MaxPool2d` of x by x: g goes to the first of a window's largest elements.
    MaxPool2dGrad {
        /// The window.
        window: Pool2d,
    },
    /// `[g]`: the gradient of an `AvgPool2d` (same attributes) by its operand, whose shape is the node's.
    AvgPool2dGrad {
        /// The window.
        window: Pool2d,
        /// Padding counts towards the divisor.
        count_include_pad: bool,
        /// Divisor in place of the window's size.
        #[serde(default)]
        divisor: Option<usize>,
    },
    /// Inputs `[x, w]` or `[x, w, bias]`.
    Conv2d {
        /// Stride.
        stride: [usize; 2],
        /// Padding.
        padding: [usize; 2],
        /// Dilation.
        dilation: [usize; 2],
        /// Groups.
        groups: usize,
    },
    /// `x W^T + b`; inputs `[x, w]` or `[x, w, bias]`; x may have any number of leading dimensions.
    Linear,
    /// Matrix product of two values.
    MatMul,
    /// Evaluation mode; inputs `[x, gamma, beta, mean, variance]`; channel is dimension 1.
    BatchNorm {
        /// Added to the variance.
        eps: f64,
    },
    /// max(x, 0).
    Relu,
    /// min(max(x, lo), hi); `ReLU6` is `[0, 6]`. Either bound may be absent.
    Clamp {
        /// Lower bound.
        #[serde(default)]
        lo: Option<f64>,
        /// Upper bound.
        #[serde(default)]
        hi: Option<f64>,
    },
    /// x where x >= 0, slope * x elsewhere.
    LeakyRelu {
        /// The slope.
        slope: f64,
    },
    /// Maximum over windows.
    MaxPool2d {
        /// The window.
        window: Pool2d,
    },
    /// Mean over windows.
    AvgPool2d {
        /// The window.
        window: Pool2d,
        /// Padding counts towards the divisor.
        count_include_pad: bool,
        /// Divisor in place of the window's size.
        #[serde(default)]
        divisor: Option<usize>,
    },
    /// Mean over adaptive windows (torch's rule for their borders).
    AdaptiveAvgPool2d {
        /// Output height and width.
        output: [usize; 2],
    },
    /// Mean over dimensions.
    Mean {
        /// Dimensions, non-negative.
        dims: Vec<usize>,
        /// Keep them with extent 1.
        keepdim: bool,
    },
    /// Sum over dimensions.
    Sum {
        /// Dimensions, non-negative.
        dims: Vec<usize>,
        /// Keep them with extent 1.
        keepdim: bool,
    },
    /// Broadcasting sum of two values.
    Add,
    /// Broadcasting difference.
    Sub,
    /// Broadcasting product of two values.
    Mul,
    /// -x.
    Neg,
    /// x + c.
    AddScalar {
        /// c.
        value: f64,
    },
    /// x * c.
    MulScalar {
        /// c.
        value: f64,
    },
    /// Same elements, the node's shape.
    Reshape,
    /// Dimension i of the result is dimension `dims[i]` of the operand.
    Permute {
        /// The order.
        dims: Vec<usize>,
    },
    /// `x[start:end:step]` along `dim`; end at most the extent.
    Slice {
        /// Dimension.
        dim: usize,
        /// First index.
        start: usize,
        /// One past the last.
        end: usize,
        /// Step, at least 1.
        step: usize,
    },
    /// Concatenation of all operands.
    Concat {
        /// Dimension.
        dim: usize,
    },
    /// Constant zero padding, `[before, after]` for every dimension.
    Pad {
        /// Amounts.
        amounts: Vec<[usize; 2]>,
    },
    /// Broadcast to the node's shape.
    Expand,
    /// Index of the largest value along `dim`; ties go to the smallest index.
    Argmax {
        /// Dimension.
        dim: usize,
        /// Keep it with extent 1.
        keepdim: bool,
    },
    /// In training, the guard: 1 (shape `[]`) if every element of every operand is below `limit` in magnitude, else 0; a
    /// power of two, at most 2^14. It looks at all ring bits, so that no wrapped value passes unseen.
    InRange {
        /// The limit.
        limit: f64,
    },
    /// A smooth function of every element, or a softmax along a dimension.
    Smooth {
        /// The function.
        function: Function,
    },
    /// Anything else: kept so that the check can name all of them at once.
    Unsupported {
        /// The operation's name, `aten.gelu.default` style.
        name: String,
    },
}
