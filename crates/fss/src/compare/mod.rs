//! A batch of comparisons whose result bit is opened under a dealt mask: the one door for every gate that compares.
//!
//! The node's form says how (`docs/fss.md`): [`tree`] in one round, [`chunks`] from fewer bytes of keys in several. Both end
//! in XOR shares of the result, so that what follows knows neither.

mod chunks;
mod planes;
mod tree;

pub(crate) use planes::frame_comparisons;

use crate::keys::KeyError;
use crate::{Deal, Eval, EvalError, Secret, Wire};
use privet_kernels::Chunks;
use privet_plan::Form;
use privet_ring::BitVec;

/// What is asked of a public x and a dealt alpha.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Predicate {
    /// `1{x < alpha}`.
    Less,
    /// `1{x = alpha}`.
    Equal,
}

/// What is compared, whatever the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Bits of x and alpha.
    pub bits: u32,
    pub predicate: Predicate,
}

impl Comparison {
    /// `1{x < alpha}`.
    pub fn less(bits: u32) -> Comparison {
        Comparison { bits, predicate: Predicate::Less }
    }

    /// `1{x = alpha}`.
    pub fn equal(bits: u32) -> Comparison {
        Comparison { bits, predicate: Predicate::Equal }
    }

    /// How it is cut, in a form that cuts.
    pub fn chunks(self, form: Form) -> Option<Chunks> {
        match form {
            // what says nothing of chunks is as where nothing is stated
            Form::Tree | Form::WithTruncation | Form::AfterTruncation => None,
            Form::Chunks { width, fan } => {
                let equal = self.predicate == Predicate::Equal;
                Some(Chunks::new(self.bits, width.into(), fan.into(), equal))
            }
        }
    }
}

/// Deal for the thresholds `alpha` and return the bits `m` that mask the results.
///
/// m is the XOR of one pseudorandom bit from each evaluator's seed: it costs no key byte, and each
/// evaluator knows half of it only.
pub(crate) fn deal(
    cx: &mut Deal,
    wire: Wire,
    what: Comparison,
    alpha: &[u64],
) -> Result<Secret<BitVec>, KeyError> {
    deal_keys(cx, wire, what, alpha)?;
    Ok(cx.bit_mask(wire, alpha.len()))
}

/// Deal for the thresholds `alpha`.
pub(crate) fn deal_keys(cx: &mut Deal, wire: Wire, what: Comparison, alpha: &[u64]) -> Result<(), KeyError> {
    match what.chunks(cx.form) {
        None => tree::deal(cx, wire, what.bits, alpha),
        Some(chunks) => chunks::deal(cx, wire, &chunks, alpha),
    }
}

/// Compare the public points `x(i)` and open `c ^ m`; the opening is called `name`.
pub(crate) fn eval(
    cx: &mut Eval,
    wire: Wire,
    name: &str,
    what: Comparison,
    n: usize,
    x: impl Fn(usize) -> u64,
) -> Result<BitVec, EvalError> {
    let mut share = walk(cx, wire, name, what, n, x)?;
    share.xor_assign(&cx.bit_mask_share(wire, n));
    cx.open_masked_bits(name, share)
}

/// Compare the public points `x(i)`; gives this evaluator's XOR shares of the results.
pub(crate) fn walk(
    cx: &mut Eval,
    wire: Wire,
    name: &str,
    what: Comparison,
    n: usize,
    x: impl Fn(usize) -> u64,
) -> Result<BitVec, EvalError> {
    match what.chunks(cx.form) {
        None => tree::walk(cx, wire, what, n, x),
        Some(chunks) => chunks::walk(cx, wire, name, &chunks, n, x),
    }
}

/// What the opening before level `level` of the chunks of a comparison is called.
pub(crate) fn level_name(name: &str, level: usize) -> String {
    format!("{name}, level {}", level + 1)
}
