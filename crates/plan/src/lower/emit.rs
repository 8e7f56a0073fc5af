//! One plan operation (or a few) for every captured operation.

use super::attention::attention;
use super::demand::{halvings, small_integer};
use super::forms::{DATA_OWNER, Emitter, Form, RECEIVER};
use super::infer::geometry;
use super::inner;
use super::narrow::Narrow;
use super::norm;
use super::precision::Format;
use super::report::Problem;
use super::smooth::smooth;
use super::training;
use crate::graph::GraphOp;
use crate::ir::{Op, Output};

pub(super) type Emitted = Result<Form, Problem>;

/// Emit all nodes and the outputs.
pub(super) fn emit(e: &mut Emitter<'_>) -> Result<(), Problem> {
    for v in 0..e.draft.graph.nodes.len() {
        let forms = if e.is_parameter(v) || e.is_part(v) { vec![] } else { vec![node(e, v)?] };
        e.forms.push(forms);
    }
    for output in &e.draft.graph.outputs {
        let v = output.node;
        let form = match e.is_parameter(v) {
            true => e.weight(v, e.format(v).k, e.format(v).f),
            // whatever the operation made: the receiver decodes any fraction, so a truncation here saves nothing
            false => e.native(v),
        };
        let to = output.to.clone().unwrap_or_else(|| RECEIVER.into());
        e.plan.outputs.push(Output { value: form.id, name: output.name.clone(), to });
    }
    training::updates(e);
    Ok(())
}

fn node(e: &mut Emitter<'_>, v: usize) -> Emitted {
    let (n, format) = (e.node(v), e.format(v));
    let shape = n.shape.as_slice();
    match &n.op {
        GraphOp::Input { name, owner } => Ok(input(e, v, name, owner.as_deref())),
        GraphOp::State { name, frac, owner } => training::state(e, v, name, *frac, owner.as_deref()),
        GraphOp::Public { name, limit } => training::public(e, v, name, *limit),
        GraphOp::Positive => Ok(training::positive(e, v)),
        GraphOp::Choose => Ok(training::choose(e, v)),
        GraphOp::Reverse { dims } => local(e, v, Op::Reverse { dims: dims.clone() }),
        GraphOp::Dropout { stream, keep } => {
            let keep = (keep * 2f64.powi(32)).round().clamp(1.0, u32::MAX.into()) as u32;
            local(e, v, Op::Dropout { stream: *stream, keep })
        }
        GraphOp::InRange { limit } => Ok(training::in_range(e, v, *limit)),
        GraphOp::Mul if training::reads_public(e, v) => Ok(training::scale(e, v)),
        GraphOp::MulScalar { value } if e.formats.keep_ring => training::mul_scalar(e, v, *value),
        GraphOp::Conv2d { .. } => {
            let x = &e.node(n.inputs[0]).shape;
            let geometry = geometry(&n.op, x, &e.node(n.inputs[1]).shape)
                .map_err(|what| e.problem(v, what, "capture the model again"))?;
            Ok(product(e, v, Op::Conv2d { geometry }, shape))
        }
        GraphOp::Linear => Ok(linear(e, v)),
        GraphOp::MatMul => match e.softmaxes.remove(&v) {
            Some(softmax) => attention(e, v, softmax),
            None => Ok(product(e, v, Op::MatMul, shape)),
        },
        GraphOp::Mul => match e.norms.remove(&v) {
            Some(found) => Ok(norm::normalised(e, v, &found)),
            None => Ok(product(e, v, Op::Mul, shape)),
        },
        GraphOp::MulScalar { value } => mul_scalar(e, v, *value),
        GraphOp::Relu => {
            let x = match e.promised_cut(n.inputs[0], format, e.wide[v]) {
                Some(cut) => cut,
                None => e.at_most(n.inputs[0], format.m(), format.f),
            };
            let bits = e.wide[v].unwrap_or(x.bits).max(x.bits);
            Ok(e.unary(v, Op::Relu, x, bits, x.frac))
        }
        GraphOp::MaxPool2d { window } => {
            let x = compared(e, v);
            Ok(e.push(v, Op::MaxPool2d { window: *window }, vec![x.id], shape, x.bits, x.frac))
        }
        GraphOp::Smooth { function } => smooth(e, v, *function),
        GraphOp::Argmax { dim, .. } => Ok(argmax(e, v, *dim)),
        GraphOp::AvgPool2d { window, divisor: Some(1), .. } => {
            let elements = window.kernel[0] * window.kernel[1];
            let x = summand(e, v, elements);
            Ok(e.push(v, Op::SumPool2d { window: *window }, vec![x.id], shape, x.bits, x.frac))
        }
        GraphOp::Sum { dims, .. } => {
            if let Some(&found) = e.inner.get(&v) {
                return inner::product(e, v, found);
            }
            let elements = dims.iter().map(|&d| e.node(n.inputs[0]).shape[d]).product();
            let x = summand(e, v, elements);
            Ok(e.push(v, Op::Sum { dims: dims.clone() }, vec![x.id], shape, x.bits, x.frac))
        }
        GraphOp::Add => binary(e, v, Op::Add),
        GraphOp::Sub => binary(e, v, Op::Sub),
        GraphOp::Neg => local(e, v, Op::Neg),
        GraphOp::AddScalar { value } => {
            let x = common(e, v)[0];
            let scaled = (value * 2f64.powi(x.frac as i32)).round_ties_even();
            if scaled.abs() >= 2f64.powi(x.bits as i32 - 1) {
                let what = format!("the constant {value} does not fit into {} bits", x.bits);
                return Err(e.problem(v, what, "use more ring bits or fewer fraction bits"));
            }
            Ok(e.unary(v, Op::AddConst { value: scaled as i64 }, x, x.bits, x.frac))
        }
        GraphOp::Reshape => local(e, v, Op::Reshape),
        GraphOp::Permute { dims } => local(e, v, Op::Permute { dims: dims.clone() }),
        &GraphOp::Slice { dim, start, end, step } => local(e, v, Op::Slice { dim, start, end, step }),
        GraphOp::Concat { dim } => local(e, v, Op::Concat { dim: *dim }),
        GraphOp::Pad { amounts } => local(e, v, Op::Pad { amounts: amounts.clone() }),
        GraphOp::Expand => local(e, v, Op::Expand),
        // rules turn these into others, where they can
        GraphOp::Parameter { .. }
        | GraphOp::Unsupported { .. }
        | GraphOp::Conv2dInputGrad { .. }
        | GraphOp::Conv2dWeightGrad { .. }
        | GraphOp::MaxPool2dGrad { .. }
        | GraphOp::AvgPool2dGrad { .. }
        | GraphOp::BatchNorm { .. }
        | GraphOp::Clamp { .. }
        | GraphOp::LeakyRelu { .. }
        | GraphOp::AvgPool2d { .. }
        | GraphOp::AdaptiveAvgPool2d { .. }
        | GraphOp::Mean { .. } => Err(e.problem(
            v,
            "is not lowered".into(),
            super::remedies::remedy(&super::precision::op_name(&n.op)),
        )),
    }
}

fn input(e: &mut Emitter<'_>, v: usize, name: &str, owner: Option<&str>) -> Form {
    let format = e.format(v);
    let bits = e.wide[v].unwrap_or(format.k);
    let largest = 2f64.powi((format.k - format.f - format.g) as i32 - 1);
    let limit = e.node(v).range.map_or(largest, |[lo, hi]| {
        (lo.abs().max(hi.abs()).max(f64::MIN_POSITIVE) * 2f64.powi(e.formats.inputs as i32)).min(largest)
    });
    let op = Op::Input { name: name.into(), owner: owner.unwrap_or(DATA_OWNER).into(), limit };
    let shape = e.node(v).shape.clone();
    e.push(v, op, vec![], &shape, bits, format.f)
}

/// `[x, w]` or `[x, w, bias]`: w a parameter with g fraction bits or a value with f, bias at the product's fraction.
fn factors(e: &mut Emitter<'_>, v: usize) -> (Vec<Form>, u32) {
    let (n, format) = (e.node(v), e.format(v));
    let (need, y) = (e.need(v), n.inputs[1]);
    let second =
        if e.is_parameter(y) { e.weight(y, format.k, format.g) } else { e.factor(y, format, format.f, need) };
    let first = e.factor(n.inputs[0], format, second.frac, need);
    let frac = first.frac + second.frac;
    let mut factors = vec![first, second];
    if let Some(&bias) = n.inputs.get(2) {
        factors.push(e.obtain(bias, format.k, frac));
    }
    (factors, frac)
}

fn product(e: &mut Emitter<'_>, v: usize, op: Op, shape: &[usize]) -> Form {
    let k = e.format(v).k;
    let (mut factors, frac) = factors(e, v);
    if op == Op::Mul {
        factors = factors.into_iter().map(|x| expanded(e, v, x, shape)).collect();
    }
    let ids = factors.iter().map(|x| x.id).collect();
    e.push(v, op, ids, shape, k, frac)
}

/// The plan's `Linear` takes matrices: leading dimensions are joined before and split after it.
fn linear(e: &mut Emitter<'_>, v: usize) -> Form {
    let (n, k) = (e.node(v), e.format(v).k);
    let (factors, frac) = factors(e, v);
    let mut ids: Vec<usize> = factors.iter().map(|x| x.id).collect();
    let matrix = |shape: &[usize]| {
        let last = shape[shape.len() - 1];
        [shape.iter().product::<usize>() / last, last]
    };
    let x = &e.node(n.inputs[0]).shape;
    if x.len() != 2 {
        ids[0] = e.push(v, Op::Reshape, vec![ids[0]], &matrix(x), k, factors[0].frac).id;
    }
    let y = e.push(v, Op::Linear, ids, &matrix(&n.shape), k, frac);
    if n.shape.len() == 2 { y } else { e.push(v, Op::Reshape, vec![y.id], &n.shape, k, frac) }
}

/// x * c: an integer product, a shift of the point, or a product with `round(c * 2^gc)` where gc gives the constant
/// a relative error of at most 2^-g if there is room.
fn mul_scalar(e: &mut Emitter<'_>, v: usize, value: f64) -> Emitted {
    if let Some(value) = small_integer(value) {
        return local(e, v, Op::MulConst { value });
    }
    if let Some(j) = halvings(value) {
        let x = common(e, v)[0];
        let x = if value < 0.0 { e.unary(v, Op::Neg, x, x.bits, x.frac) } else { x };
        return Ok(e.unary(v, Op::Rescale, x, x.bits, x.frac + j));
    }
    let (x, format, need) = (e.node(v).inputs[0], e.format(v), e.need(v));
    let leading = (-value.abs().log2()).ceil().max(0.0) as u32;
    let x = e.factor(x, format, format.g + leading, need);
    let room = format.k.saturating_sub(x.frac + need).min(60 - x.frac.min(60));
    let gc = room.min(format.g + leading);
    if gc < leading + 4 {
        let what = format!("the factor {value} leaves only {room} bits for its fraction");
        let remedy = "multiply in several steps, or use more ring bits or fewer fraction bits";
        return Err(e.problem(v, what, remedy));
    }
    let scaled = (value * 2f64.powi(gc as i32)).round_ties_even();
    let y = e.unary(v, Op::MulConst { value: scaled as i64 }, x, x.bits, x.frac);
    Ok(e.unary(v, Op::Rescale, y, x.bits, x.frac + gc))
}

/// The operand of a maximum: as its operation made it where maxima come before truncations, else as an activation.
fn compared(e: &mut Emitter<'_>, v: usize) -> Form {
    let (x, format) = (e.node(v).inputs[0], e.format(v));
    if e.formats.late && !e.is_parameter(x) && e.uses[x] == 1 {
        let native = e.native(x);
        if native.frac > format.f && native.frac + e.need(x) <= native.bits {
            return native;
        }
    }
    e.at_most(x, format.m(), format.f)
}

/// On the operand as it comes when its differences fit, which saves a truncation, else as an activation.
fn argmax(e: &mut Emitter<'_>, v: usize, dim: usize) -> Form {
    let (n, format) = (e.node(v), e.format(v));
    let x = n.inputs[0];
    let native = if e.is_parameter(x) { e.weight(x, format.m(), format.f) } else { e.native(x) };
    let fits = native.frac + e.need(x) <= native.bits;
    let x_form = if fits && e.uses[x] == 1 { native } else { e.at_most(x, format.m(), format.f) };
    let extent = e.node(x).shape[dim];
    let bits = (usize::BITS - (extent - 1).leading_zeros() + 1).max(8);
    e.push(v, Op::Argmax { dim }, vec![x_form.id], &n.shape, bits, 0)
}

/// The operand of a sum over `elements` numbers, in a form in which the sum does not wrap.
fn summand(e: &mut Emitter<'_>, v: usize, elements: usize) -> Form {
    let (x, format) = (e.node(v).inputs[0], e.format(v));
    let need = e.need(x) + usize::BITS - (elements - 1).leading_zeros();
    if e.is_parameter(x) {
        return e.weight(x, format.k, format.f);
    }
    if let Some(form) = e.wide[v].and_then(|k| e.find(x, k, format.f)) {
        return form;
    }
    let native = e.native(x);
    if native.frac + need <= native.bits && (native.frac <= format.f || e.uses[x] == 1) {
        return native;
    }
    if format.f + need <= format.m() && !e.formats.keep_ring {
        // wide at once, where that is what readers extend it to
        let bits = e.wide[v].filter(|&k| e.widens(x, k, format.f)).unwrap_or(format.m());
        return e.obtain(x, bits, format.f);
    }
    e.obtain(x, format.k, e.frac(v))
}

/// All operands in one ring with one fraction: wide where that is wanted and there already; as their operations made
/// them where that saves truncations; else as activations.
pub(super) fn common(e: &mut Emitter<'_>, v: usize) -> Vec<Form> {
    let inputs = &e.node(v).inputs;
    alike(e, v, inputs)
}

/// Operands `operands` of `v` in one ring with one fraction.
pub(super) fn alike(e: &mut Emitter<'_>, v: usize, operands: &[usize]) -> Vec<Form> {
    let format = e.format(v);
    let values: Vec<usize> = operands.iter().copied().filter(|&x| !e.is_parameter(x)).collect();
    let (bits, frac) = common_numbers(e, v, &values, format);
    let of = |e: &mut Emitter<'_>, x: usize| {
        if e.is_parameter(x) {
            return e.weight(x, bits, frac);
        }
        let native = e.native(x);
        if native.bits == bits && native.frac < frac && e.find(x, bits, frac).is_none() {
            return e.raise(v, native, frac);
        }
        e.obtain(x, bits, frac)
    };
    operands.iter().map(|&x| of(e, x)).collect()
}

fn common_numbers(e: &mut Emitter<'_>, v: usize, values: &[usize], format: Format) -> (u32, u32) {
    let (k, f) = (format.k, e.frac(v));
    if values.is_empty() {
        return (k, f);
    }
    if values.iter().any(|&x| e.native(x).bits == 1) {
        return (1, 0);
    }
    if let Some(k) = e.wide[v]
        && values.iter().all(|&x| e.find(x, k, f).is_some())
    {
        return (k, f);
    }
    if e.narrow[v] != Narrow::No && values.iter().all(|&x| e.may_be_narrow(x)) {
        for &x in values {
            e.narrowed(x);
        }
        return format.narrow();
    }
    let natives: Vec<Form> = values.iter().map(|&x| e.native(x)).collect();
    let bits = natives[0].bits;
    let frac = natives.iter().map(|n| n.frac).max().unwrap_or(f);
    // a truncation before the operation may be of fewer elements than one behind it; what others read as well is truncated for them
    let len = |x: usize| e.node(x).shape.iter().product::<usize>();
    let finer = values.iter().zip(&natives).any(|(_, n)| n.frac > f);
    let alone = values.iter().zip(&natives).filter(|(x, n)| n.frac > f && e.uses[**x] == 1);
    let saved = alone.map(|(&x, _)| len(x)).sum::<usize>();
    let lazily = natives.iter().all(|n| n.bits == bits) && (!finer || len(v) <= saved);
    // sums of narrow values may leave their ring
    let lazily = lazily && !values.iter().any(|&x| e.is_narrow(x, e.native(x)));
    if lazily && frac >= f && frac + e.need(v) <= bits {
        return (bits, frac);
    }
    if e.formats.keep_ring {
        return (k, f);
    }
    if let Some(k) = e.wide[v]
        && values.iter().all(|&x| e.widens(x, k, f))
    {
        return (k, f);
    }
    let acts: Vec<u32> = values.iter().map(|&x| e.at_most(x, format.m(), f).bits).collect();
    let least = acts.into_iter().min().unwrap_or(format.m());
    (if f + e.need(v) <= least { least } else { format.m() }, f)
}

/// A local operation on operands in common numbers.
pub(super) fn local(e: &mut Emitter<'_>, v: usize, op: Op) -> Emitted {
    let xs = common(e, v);
    let shape = e.node(v).shape.clone();
    Ok(e.push(v, op, xs.iter().map(|x| x.id).collect(), &shape, xs[0].bits, xs[0].frac))
}

fn binary(e: &mut Emitter<'_>, v: usize, op: Op) -> Emitted {
    let xs = common(e, v);
    let shape = e.node(v).shape.clone();
    let ids = xs.iter().map(|&x| expanded(e, v, x, &shape).id).collect();
    Ok(e.push(v, op, ids, &shape, xs[0].bits, xs[0].frac))
}

fn expanded(e: &mut Emitter<'_>, v: usize, x: Form, shape: &[usize]) -> Form {
    if e.plan.nodes[x.id].ty.shape == shape {
        return x;
    }
    e.push(v, Op::Expand, vec![x.id], shape, x.bits, x.frac)
}
