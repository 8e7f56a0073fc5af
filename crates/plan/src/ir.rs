//! The integer plan: what all protocols run and the interpreter defines.

use crate::form::Form;
use crate::functions::Function;
use privet_ring::{Conv2d, Pool2d};
use serde::{Deserialize, Serialize};

/// Format version of [`Plan`]; parties refuse others.
pub const PLAN_VERSION: u32 = 1;

/// Index of a node, and of the value it makes.
pub type ValueId = usize;

/// A typed, serialisable program over rings. Nodes are in topological order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`PLAN_VERSION`].
    pub version: u32,
    /// The model's name.
    pub name: String,
    /// Rows of one run (extent of dimension 0 of the inputs).
    pub batch: usize,
    /// The operations.
    pub nodes: Vec<Node>,
    /// What is revealed, and to whom. Nothing else ever is.
    pub outputs: Vec<Output>,
    /// What replaces the parties' states when a run has ended well; a state without one stays as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<Update>,
}

/// The next value of a state ([`Op::State`]), of the same type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// The state's node.
    pub state: ValueId,
    /// The value that takes its place.
    pub value: ValueId,
}

/// A revealed result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// The value.
    pub value: ValueId,
    /// Its name for the user.
    pub name: String,
    /// The role that learns it, for example `receiver`.
    pub to: String,
}

/// One operation and the type of the value it makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// What it computes.
    pub op: Op,
    /// Its operands.
    pub inputs: Vec<ValueId>,
    /// The type of its value.
    pub ty: Type,
    /// The layer of the model it belongs to, for reports and error messages.
    pub layer: String,
    /// How it compares; none leaves it to the family. Only operations of which [`Form::applies`] have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
}

/// Type of a value: a tensor of `shape` over Z_2^`bits`, read as fixed point with `frac` fraction bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Type {
    /// Extents.
    pub shape: Vec<usize>,
    /// k, 1..=64.
    pub bits: u32,
    /// f.
    pub frac: u32,
}

/// How a truncation rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// Towards minus infinity, exactly: `x >> f` on the signed value.
    Floor,
    /// Up with probability `(x mod 2^f) / 2^f`, down otherwise, independently for every element.
    Stochastic,
    /// [`Rounding::Floor`]'s result, one more or one less, modulo 2^k', as is cheapest for the family: it must not fail
    /// in any other way, whatever x is. The interpreter gives the floor; a family of three
    /// summands may add their floors and one, at no cost, which is `x / 2^f - 1/2` on average. With the masks of n
    /// parties it is half of n, rounded up, either way, so that more than two parties need more than a unit.
    /// [`crate::slack_within`] says how far the values that follow may be off.
    OneUlp,
}

/// The operations. `x`, `y` are operands; k and k' the ring bits of operand and result.
///
/// Results are always reduced modulo 2^k'. "Local" operations cost no key and no byte on the wire in
/// every linear secret sharing; operands and result of a local operation have the same `bits` unless said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Op {
    /// A secret tensor that `owner` shares for this run. `limit`: largest magnitude accepted.
    Input {
        /// Its name.
        name: String,
        /// Role that shares it.
        owner: String,
        /// Largest magnitude accepted when encoding.
        limit: f64,
    },
    /// A secret tensor that `owner` shares once a session.
    Weight {
        /// Its name in the (folded) parameter file.
        name: String,
        /// Role that shares it.
        owner: String,
    },

    /// A secret tensor that the parties keep shares of from run to run (a parameter in training, what an optimiser
    /// remembers): `owner` shares it once, at the beginning; every run reads it, and its [`Update`] replaces it.
    State {
        /// Its name.
        name: String,
        /// Role that shares its first value.
        owner: String,
    },
    /// A number that everybody knows and that is given anew with every run (a learning rate). Its shape is `[]`.
    Public {
        /// Its name.
        name: String,
        /// Largest magnitude accepted when encoding.
        limit: f64,
    },

    /// Local: x + y, equal shapes.
    Add,
    /// Local: x - y, equal shapes.
    Sub,
    /// Local: -x.
    Neg,
    /// Local: x + value.
    AddConst {
        /// The public integer.
        value: i64,
    },
    /// Local: x * value.
    MulConst {
        /// The public integer.
        value: i64,
    },
    /// Local: sums over windows of NCHW, padding counts as zero.
    SumPool2d {
        /// The window.
        window: Pool2d,
    },
    /// Local: sums over adaptive windows; all windows must be of equal size.
    AdaptiveSumPool2d,
    /// Local: sums over `dims`; the result's shape may keep them or not.
    Sum {
        /// Dimensions.
        dims: Vec<usize>,
    },
    /// Local: reduce modulo a smaller ring, k' <= k.
    Reduce,
    /// Local: change how the fraction bits are read, not the integers.
    Rescale,
    /// Local: same elements, other shape.
    Reshape,
    /// Local: dimension i of the result is dimension `dims[i]` of x.
    Permute {
        /// The order.
        dims: Vec<usize>,
    },
    /// Local: `x[start:end:step]` along `dim`.
    Slice {
        /// Dimension.
        dim: usize,
        /// First index.
        start: usize,
        /// One past the last.
        end: usize,
        /// Step.
        step: usize,
    },
    /// Local: concatenation.
    Concat {
        /// Dimension.
        dim: usize,
    },
    /// Local: the elements of `dims` in reverse order.
    Reverse {
        /// Dimensions, each once.
        dims: Vec<usize>,
    },
    /// Local: zero padding.
    Pad {
        /// `[before, after]` for every dimension.
        amounts: Vec<[usize; 2]>,
    },
    /// Local: broadcast to the result's shape (numpy rules).
    Expand,
    /// Local: `sum over j of rows[i][j] x[j]` along dimension 0, at index i of the result; the numbers are public.
    Mix {
        /// As many rows as the result has indices, as many numbers in each as x has.
        rows: Vec<Vec<i64>>,
    },
    /// Local: `x 2^shift` in k' = k + shift bits, read with `shift` more fraction bits: the same number with zeros
    /// behind it.
    ShiftUp {
        /// Bits.
        shift: u32,
    },
    /// Local: `[x, y]`: y, which approximates the function of x. No integers change; where the plan is read as one over
    /// real numbers ([`mod@crate::real`]), the value is the function's.
    Approximates {
        /// The function.
        function: Function,
    },

    /// `[x, w]`, optionally `[x, w, bias]`: `x W^T + b`, x `[m, k]`, w `[n, k]`, bias `[n]`; all of k' bits.
    Linear,
    /// `[x, y]`: `x y`, x `[m, k]`, y `[k, n]` (or equal leading batch dimensions before them).
    MatMul,
    /// `[x, w]`, optionally `[x, w, bias]`; bias `[out_channels]`; all of k' bits.
    Conv2d {
        /// The convolution (its batch is x's).
        geometry: Conv2d,
    },
    /// `[x, y]`, or more pairs of factors `[x_1, y_1, x_2, y_2, ...]`: elementwise `x_1 y_1 + x_2 y_2 + ...`, equal shapes; of k' bits or more.
    Mul,

    /// `[x, p]`: x times the [`Op::Public`] number p; both of k' bits.
    Scale,
    /// x where a public coin says so, else 0; the coins of a run are alike wherever `stream` is, and independent for
    /// every element: element i is kept where the i-th 32-bit number of the stream is below `keep`.
    Dropout {
        /// Which coins.
        stream: u32,
        /// 2^32 times the probability of keeping an element.
        keep: u32,
    },

    /// Truncate: `signed(x) >> shift` rounded as said, in k' bits.
    ///
    /// Truncate-reduce, k' = k - shift: for every x. With k' > k - shift, up to 64, `shift <= k - 2`, and x must be in
    /// [-2^(k-2), 2^(k-2)): the families then need no comparison to extend the sign. Beyond that the result is
    /// whatever, and the interpreter refuses it.
    Truncate {
        /// f.
        shift: u32,
        /// How.
        rounding: Rounding,
    },
    /// `floor((x + d) / 2^shift)`, d uniform in `[0, 2^shift)` and known to the parties: the same distribution as
    /// [`Rounding::Stochastic`], elements of fresh masks independently, and rings as there; where no coins are given, d
    /// is the middle. For values inside a function, where masked values make it cost next to nothing.
    Dither {
        /// Bits.
        shift: u32,
    },
    /// A piecewise quadratic in whole numbers: the k bits of x are an index of `pieces` and `shift` bits below it. With d
    /// uniform in `[0, 2^shift)` (zero where no coins are given) the index is that of `x + d` modulo 2^k, t is what
    /// has to be added to the piece's first number to get x, between `-2^shift` and `2^shift`, and the result is
    /// `c0 + c1 t + c2 t^2` modulo 2^k'. So pieces must serve on both sides of their first number, and the first one after
    /// the last. [`crate::tables`] has it as a function.
    Piecewise {
        /// Bits of t.
        shift: u32,
        /// Coefficients; their number is a power of two.
        pieces: Vec<[i64; 3]>,
    },
    /// Public tables read at the unsigned value of x, of at most 12 bits: `tables[i][x]` at index i of a new first dimension,
    /// modulo 2^k'.
    Lookup {
        /// One number for each value of x in each.
        tables: Vec<Vec<i64>>,
    },
    /// e^(x 2^scale) in rows along a new first dimension, as [`crate::tables::Exponential`] says: exact integers once coins are given,
    /// near that whatever they are. x is a number modulo `2^(k - f)`, from the first row's first whole number on.
    Exponential {
        /// Fraction bits of the factor that x's fraction gives.
        first: u32,
        /// Where a row begins, in increasing order, and the fraction bits of its other factor; elsewhere it is 0.
        rows: Vec<(i32, u32)>,
        /// 0 or 1: larger steps of x's whole number make shorter tables, and a first factor of more bits.
        #[serde(default, skip_serializing_if = "is_zero")]
        scale: u32,
    },
    /// A sum of cosines and sines of multiples of the angle `2 pi step x / 2^k`, in whole numbers as [`crate::waves::Waves`]
    /// says: exact once coins are given, near the sum whatever they are. The result has `30 + digits` fraction bits.
    Waves {
        /// What x is multiplied by.
        step: u32,
        /// Fraction bits of the coefficients.
        digits: u32,
        /// Of the cosine and of the sine of once, twice, ... the angle.
        waves: Vec<[i64; 2]>,
    },
    /// `signed_k(x) > 0 ? x : 0` in k' >= k bits.
    Relu,
    /// `signed_k(x)` in k' >= k bits.
    Extend,
    /// Maximum over windows, first over a window's rows, then over its columns ([`crate::tournament::max_pool`]);
    /// within an axis a balanced tournament in index order where `max(a, b) = b + relu(a - b mod 2^k)`, so the meaning is fixed even where a - b wraps.
    /// Exact maximum whenever all |x| < 2^(k-2).
    MaxPool2d {
        /// The window.
        window: Pool2d,
    },
    /// Elementwise `y + relu(x - y mod 2^k)`.
    Max,
    /// `1` where x < 0 else `0`, in k' bits; of one bit it is what [`Op::Choose`] takes, and costs least.
    IsNegative,
    /// `1` where x = y else `0`, in k' bits.
    Equal,
    /// `[b, x]`: x where b = 1 else 0, in x's k bits; b is of one bit.
    Choose,
    /// `[b_1, ..., b_m, x]`: x where all m bits are 1 else 0, in x's k bits; 2 to [`MOST_CHOSEN_BY`] of them, of one bit each.
    ChooseEvery,
    /// `[c, x, y]`: x where c = 1, y where c = 0 (c is a 0/1 value of k' bits; x, y of k' bits).
    Select,
    /// Index of the largest element along `dim`, in k' bits, by a balanced tournament in index order that
    /// keeps the left one on ties (so ties go to the smallest index). Exact whenever all |x| < 2^(k-2).
    Argmax {
        /// Dimension.
        dim: usize,
    },
}

/// The operations of one kind, as a pattern: `source` (what owners share and everybody knows), `local` (those of
/// [`crate::apply_local`]) or `gate` (all others). Kinds of gates are `bilinear`, `public` (by numbers that everybody
/// knows), `rounding`, `comparison` (of bits, and choices by them) and `table`.
///
/// Whoever has something to say of some operations names each of them, and the kinds of the others. So an operation that
/// is forgotten does not compile. There are no wildcards over [`Op`], and the modules that dispatch on it deny them.
#[macro_export]
macro_rules! ops {
    (source) => {
        $crate::ir::Op::Input { .. }
            | $crate::ir::Op::Weight { .. }
            | $crate::ir::Op::State { .. }
            | $crate::ir::Op::Public { .. }
    };
    (local) => {
        $crate::ir::Op::Add
            | $crate::ir::Op::Sub
            | $crate::ir::Op::Neg
            | $crate::ir::Op::AddConst { .. }
            | $crate::ir::Op::MulConst { .. }
            | $crate::ir::Op::SumPool2d { .. }
            | $crate::ir::Op::AdaptiveSumPool2d
            | $crate::ir::Op::Sum { .. }
            | $crate::ir::Op::Reduce
            | $crate::ir::Op::Rescale
            | $crate::ir::Op::Reshape
            | $crate::ir::Op::Permute { .. }
            | $crate::ir::Op::Slice { .. }
            | $crate::ir::Op::Concat { .. }
            | $crate::ir::Op::Reverse { .. }
            | $crate::ir::Op::Pad { .. }
            | $crate::ir::Op::Expand
            | $crate::ir::Op::Mix { .. }
            | $crate::ir::Op::ShiftUp { .. }
            | $crate::ir::Op::Approximates { .. }
    };
    (gate) => {
        $crate::ops!(bilinear)
            | $crate::ops!(public)
            | $crate::ops!(rounding)
            | $crate::ops!(comparison)
            | $crate::ops!(table)
    };
    (bilinear) => {
        $crate::ir::Op::Linear | $crate::ir::Op::MatMul | $crate::ir::Op::Conv2d { .. } | $crate::ir::Op::Mul
    };
    (public) => {
        $crate::ir::Op::Scale | $crate::ir::Op::Dropout { .. }
    };
    (rounding) => {
        $crate::ir::Op::Truncate { .. } | $crate::ir::Op::Dither { .. }
    };
    (comparison) => {
        $crate::ir::Op::Relu
            | $crate::ir::Op::Extend
            | $crate::ir::Op::MaxPool2d { .. }
            | $crate::ir::Op::Max
            | $crate::ir::Op::IsNegative
            | $crate::ir::Op::Equal
            | $crate::ir::Op::Choose
            | $crate::ir::Op::ChooseEvery
            | $crate::ir::Op::Select
            | $crate::ir::Op::Argmax { .. }
    };
    (table) => {
        $crate::ir::Op::Lookup { .. }
            | $crate::ir::Op::Piecewise { .. }
            | $crate::ir::Op::Exponential { .. }
            | $crate::ir::Op::Waves { .. }
    };
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Most bits of [`Op::ChooseEvery`]: a family that deals a table has an entry for every value of all.
pub const MOST_CHOSEN_BY: usize = 7;

impl Op {
    /// Whether it is a sum of waves.
    pub fn is_waves(&self) -> bool {
        matches!(self, Op::Waves { .. })
    }

    /// Its name in JSON, reports and messages.
    pub fn kind(&self) -> String {
        let json = serde_json::to_value(self).ok();
        json.and_then(|v| Some(v.get("kind")?.as_str()?.to_owned())).unwrap_or_default()
    }
}

impl Type {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// True when there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
