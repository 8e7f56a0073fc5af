//! ReLU from k to k' >= k bits, and the selection that max, argmax and choose share with it.
//!
//! `MSB(x) = MSB(u) ^ MSB(H) ^ c` with `c = 1{u_low < H_low}` over k - 1 bits. Opened is `e = MSB(x) ^ kappa`, so the selector
//! is `d = 1 ^ MSB(x) = (1 - e) + (2 e - 1) kappa`, and
//!
//! - k' = k: `y + s = d xh - (1 - e) lambda - (2 e - 1) kappa lambda + s`: words kappa and `kappa lambda`;
//! - k' > k: over the integers `x = u - H + 2^k w` where, given x >= 0, `w = (1 - MSB(u)) MSB(H)`, and MSB(u) is public. So
//!   `y + s = d u - d H + 2^k (1 - MSB(u)) d MSB(H) + s`: words kappa, H, kappa H, and modulo 2^(k' - k) MSB(H) and
//!   kappa MSB(H).

use crate::Opened;
use crate::compare::{Comparison, Linked, Piece};
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::prepare::Given;
use crate::preprocess::{Kept, PrepareError, Preprocess};
use crate::price;
use crate::shares::{Bits, Words};
use privet_family::{OpeningList, Secret, Wire};
use privet_plan::Form;
use privet_plan::cost::{Cost, Operation};
use privet_ring::{BitVec, Ring};

/// The comparison that gives the sign of values of k bits.
pub(crate) fn sign_of(bits: u32) -> Comparison {
    Comparison::less(bits - 1)
}

/// The link of a wire whose sign is asked for, the record having `words` for each element.
pub(super) fn signed(wire: Wire, from: Ring, words: Vec<Ring>) -> Linked {
    Linked::compared(wire, from, sign_of(from.bits()), true, words)
}

/// Prepare signs: `rest(cx, piece, kappa, words)` keeps what comes after the masked bit, `words` being those of `parts`.
pub(super) fn prepare_sign(
    cx: &mut dyn Preprocess,
    form: Option<Form>,
    link: &Linked,
    lambda: &Words,
    parts: (Ring, &[std::ops::Range<u32>]),
    kappa: impl Fn(&dyn Preprocess, &Piece) -> Bits,
    mut rest: impl FnMut(&mut dyn Preprocess, &Piece, &Bits, Vec<Words>) -> Result<(), PrepareError>,
) -> Result<(), PrepareError> {
    link.prepare(cx, form, lambda, None, parts, |cx, piece, mut mask| {
        let kappa = kappa(cx, piece);
        let msb = mask.bits.pop().expect("the mask has bits");
        cx.keep(Kept::Bits(&kappa.xor(&msb)))?;
        rest(cx, piece, &kappa, mask.words)
    })
}

/// Open the public selector bits `e` of a masked value; gives them with what was read.
pub(super) fn eval_sign(
    cx: &mut Eval,
    link: &Linked,
    xh: &[u64],
) -> Result<(BitVec, crate::compare::Read), EvalError> {
    let mut read = link.read(cx, "sign bit", xh.len(), |i| xh[i])?;
    let mut e = read.open(cx, "sign bit")?;
    flip_by_msb(link.ring, &mut e, &read.u);
    Ok((e, read))
}

/// XOR the top bit of every element onto its bit.
pub(super) fn flip_by_msb(ring: Ring, bits: &mut BitVec, of: &[u64]) {
    for (w, x) in bits.words_mut().iter_mut().zip(of.chunks(64)) {
        *w ^= x.iter().enumerate().fold(0, |acc, (j, &x)| acc | ring.msb(x) << j);
    }
}

/// Keep the words of a selection: kappa, and kappa times the mask of what is selected.
pub(super) fn prepare_select(
    cx: &mut dyn Preprocess,
    kappa: &Bits,
    lambda: &Words,
) -> Result<(), PrepareError> {
    let word = cx.to_words(&[kappa], lambda.len(), lambda.ring())?;
    cx.keep(Kept::Words(&word[0]))?;
    let product = cx.times(&[(kappa, vec![lambda])])?;
    cx.keep(Kept::Words(&product[0][0]))
}

/// This party's share of `d x + s`, from its summands of x's mask and of `s`, and its words.
pub(super) fn select(
    ring: Ring,
    leads: bool,
    e: &BitVec,
    (xh, lambda): (&[u64], &[u64]),
    [kappa, product]: [&[u64]; 2],
    mut s: Secret,
) -> Vec<u64> {
    let leads = u64::from(leads);
    for (i, (y, (xh, lambda))) in s.iter_mut().zip(xh.iter().zip(lambda)).enumerate() {
        let e = e.get(i);
        // 2 e - 1
        let sign = (2 * e).wrapping_sub(1);
        let d = (leads * (1 - e)).wrapping_add(sign.wrapping_mul(kappa[i]));
        let mask = ((1 - e) * lambda).wrapping_add(sign.wrapping_mul(product[i]));
        *y = ring.wrap(y.wrapping_add(d.wrapping_mul(*xh)).wrapping_sub(mask));
    }
    s.expose()
}

/// The ring of what multiplies 2^k.
fn high(from: Ring, to: Ring) -> Ring {
    Ring::new(to.bits() - from.bits())
}

/// The link of ReLU.
fn link(wire: Wire, from: Ring, to: Ring) -> Linked {
    let words = match from == to {
        true => vec![from, from],
        false => vec![to, to, to, high(from, to), high(from, to)],
    };
    signed(wire, from, words)
}

/// The link of ReLU within k bits, for its price.
pub(crate) fn within(k: u32) -> Linked {
    link(Wire::node(0), Ring::new(k), Ring::new(k))
}

/// Prepare ReLU for a value with mask `lambda`; the result's mask is the fresh mask of `wire` in `to`.
pub(super) fn prepare(
    cx: &mut dyn Preprocess,
    form: Option<Form>,
    wire: Wire,
    [from, to]: [Ring; 2],
    lambda: &Words,
) -> Result<(), PrepareError> {
    let (link, k) = (link(wire, from, to), from.bits());
    let kappa = |cx: &dyn Preprocess, piece: &Piece| piece.result_bits(cx);
    if from == to {
        return prepare_sign(cx, form, &link, lambda, (from, &[]), kappa, |cx, piece, kappa, _| {
            prepare_select(cx, kappa, piece.lambda)
        });
    }
    prepare_sign(cx, form, &link, lambda, (to, &[0..k, k - 1..k]), kappa, |cx, piece, kappa, words| {
        let [whole, msb] = [&words[0], &words[1].reduced(high(from, to))];
        let bit = cx.to_words(&[kappa], piece.len(), to)?;
        let products = cx.times(&[(kappa, vec![whole, msb])])?;
        let kept = [&bit[0], whole, &products[0][0], msb, &products[0][1]];
        kept.into_iter().try_for_each(|words| cx.keep(Kept::Words(words)))
    })
}

/// Evaluate ReLU on a masked value, `lambda` being this party's summand of its mask; gives the masked result in `to`. Two
/// rounds after the comparison's levels: one bit, then k' bits.
pub(super) fn eval(
    cx: &mut Eval,
    wire: Wire,
    [from, to]: [Ring; 2],
    xh: &[u64],
    lambda: &[u64],
) -> Result<Opened, EvalError> {
    let (e, read) = eval_sign(cx, &link(wire, from, to), xh)?;
    let s = cx.result_mask(wire, to, xh.len());
    if from == to {
        let y = select(to, cx.leads(), &e, (xh, lambda), [&read.words[0], &read.words[1]], s);
        return cx.open_masked("relu", to, y);
    }
    let [kappa, whole, product, msb, both] = read.words.as_slice() else { unreachable!("five words") };
    let (leads, mut y) = (cx.leads() as u64, s);
    for (i, (y, u)) in y.iter_mut().zip(&read.u).enumerate() {
        let e = e.get(i);
        let sign = (2 * e).wrapping_sub(1);
        let d = (leads * (1 - e)).wrapping_add(sign.wrapping_mul(kappa[i]));
        let mask = ((1 - e) * whole[i]).wrapping_add(sign.wrapping_mul(product[i]));
        let wrap = (1 - from.msb(*u)) * ((1 - e) * msb[i]).wrapping_add(sign.wrapping_mul(both[i]));
        let x = d.wrapping_mul(*u).wrapping_sub(mask).wrapping_add(wrap << from.bits());
        *y = to.wrap(y.wrapping_add(x));
    }
    cx.open_masked("relu", to, y.expose())
}

/// [`privet_plan::ir::Op::Relu`].
pub(crate) struct Relu;

impl Gate for Relu {
    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let lambda = x.mask(cx, 0);
        prepare(cx, x.at.node().form, x.at.wire(), [x.at.from(), x.at.to()], &lambda)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let lambda = x.mask(cx, 0);
        eval(cx, x.at.wire(), [x.at.from(), x.at.to()], &x.value(0), lambda.own())
    }

    fn compares(&self, from: u32) -> Option<Comparison> {
        Some(sign_of(from))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens_bits_and(list, sign_of(at.from().bits()), "sign bit", "relu");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let [from, to] = [of.operand_bits(), of.result_bits()].map(Ring::new);
        price::gate(of, &link(Wire::node(0), from, to))
    }
}
