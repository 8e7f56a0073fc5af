//! Public tables at a secret place: keys of shares that are zero but at the place that the mask says.
//!
//! A table of n bits at x: `x = xh - r`, so with a word 1 at r the sum over all points p of share(p) times what stands at
//! `xh - p` is a share of the table at x.
//!
//! A piecewise quadratic: the upper n bits of xh and of r differ by the index of `x + r_low`, whatever the lower ones are,
//! and `t = xh_low - r_low` is what remains of x. With words 1, r_low and r_low^2 at the upper bits of r the coefficients and
//! their products with powers of r_low are sums over public tables, and `c0 + c1 t + c2 t^2` is linear in them with public
//! factors. So one opening is all there is.

use crate::dealer::Dealt;
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::keys::{KeyError, frame_elements};
use crate::masks::Mask;
use crate::mutation;
use crate::price;
use crate::public::Public;
use crate::{Deal, Eval, EvalError, Opened, Secret, Wire};
use privet_family::OpeningList;
use privet_kernels::{LookupShape, Read};
use privet_plan::cost::{Cost, Operation};
use privet_plan::tables::Pieces;
use privet_ring::Ring;
use zeroize::Zeroizing;

/// Keys of `words` at the points `alpha`.
fn deal_keys(
    cx: &mut Deal,
    wire: Wire,
    shape: LookupShape,
    alpha: &[u64],
    words: &[u64],
) -> Result<(), KeyError> {
    let (mut random, mut hashes) = (cx.secret(wire, 0), cx.public().hashes(wire));
    let chunk = frame_elements(shape.key_row());
    let (mut key0, mut key1, mut blocks) = (Vec::new(), Vec::new(), Zeroizing::new(Vec::new()));
    for (alpha, words) in alpha.chunks(chunk).zip(words.chunks(chunk * shape.words)) {
        let shape = LookupShape { count: alpha.len(), ..shape };
        key0.resize(shape.key_bytes(), 0);
        key1.resize(shape.key_bytes(), 0);
        blocks.resize(2 * alpha.len(), 0u128);
        random.fill_blocks(&mut blocks);
        let (roots, deltas) = blocks.split_at(alpha.len());
        cx.device.lookup_gen(&hashes.next(), shape, alpha, words, roots, deltas, &mut key0, &mut key1);
        mutation::lookup_keys(shape, words, [&mut key0, &mut key1]);
        cx.put([&mut key0, &mut key1])?;
        let path = shape.bits as u64 - 1 + shape.leaf_blocks() as u64;
        cx.stats.aes_calls += 2 * path * alpha.len() as u64;
    }
    Ok(())
}

/// Shares of what is read at the public `points`, in order of elements, then of tables. `read(start, count)` says of what.
fn eval_keys<'t>(
    cx: &mut Eval,
    wire: Wire,
    shape: LookupShape,
    points: &[u64],
    read: impl Fn(usize, usize) -> Read<'t>,
) -> Result<Vec<u64>, EvalError> {
    let chunk = frame_elements(shape.key_row());
    let (device, mut hashes, second) = (cx.device, cx.public().hashes(wire), !cx.leads());
    let mut out = Vec::new();
    for (start, points) in (0..).step_by(chunk).zip(points.chunks(chunk)) {
        let shape = LookupShape { count: points.len(), ..shape };
        let keys = cx.take(shape.key_bytes())?;
        let read = read(start, points.len());
        out.extend(device.lookup_eval(&hashes.next(), shape, second, keys, points, &read));
        cx.stats.aes_calls += shape.aes_calls() as u64;
        cx.stats.macs += read.products() as u64 * (shape.points() * shape.count) as u64;
    }
    Ok(out)
}

fn table_shape(from: Ring) -> LookupShape {
    LookupShape { bits: from.bits(), words: 1, count: 1 }
}

fn pieces_shape(pieces: &Pieces) -> LookupShape {
    LookupShape { bits: pieces.index_bits(), words: 3, count: 1 }
}

/// Deal tables for a value with mask `r`.
fn deal(cx: &mut Deal, wire: Wire, from: Ring, r: &[u64]) -> Result<(), KeyError> {
    let turned = if mutation::active("lookup-not-rotated") { 0 } else { u64::MAX };
    let alpha: Secret = r.iter().map(|&r| from.wrap(r & turned)).collect();
    deal_keys(cx, wire, table_shape(from), &alpha, &vec![1; r.len()])
}

/// Read them; gives the masked results in `to`, table after table. One round of its bits for each.
fn eval(
    cx: &mut Eval,
    wire: Wire,
    [from, to]: [Ring; 2],
    tables: &[Vec<i64>],
    xh: &[u64],
) -> Result<Opened, EvalError> {
    let points: Vec<u64> = xh.iter().map(|&x| from.wrap(x)).collect();
    let by_element = eval_keys(cx, wire, table_shape(from), &points, |_, _| Read::Tables(tables))?;
    let mut y = cx.result_mask_share(wire, to, tables.len() * xh.len());
    for (t, y) in y.chunks_exact_mut(xh.len().max(1)).enumerate() {
        for (y, read) in y.iter_mut().zip(by_element.chunks_exact(tables.len())) {
            *y = to.wrap(y.wrapping_add(read[t]));
        }
    }
    cx.open_masked("looked up", to, y.expose())
}

/// Deal a piecewise quadratic for a value with mask `r`.
fn deal_pieces(cx: &mut Deal, wire: Wire, pieces: &Pieces, r: &[u64]) -> Result<(), KeyError> {
    let alpha: Secret = r.iter().map(|&r| pieces.split(r).0 as u64).collect();
    let low = r.iter().map(|&r| pieces.split(r).1);
    let words: Secret = low.flat_map(|r| [1, r, r.wrapping_mul(r)]).collect();
    deal_keys(cx, wire, pieces_shape(pieces), &alpha, &words)
}

/// Evaluate it; gives the masked result in `to`. One round of its bits.
fn eval_pieces(
    cx: &mut Eval,
    wire: Wire,
    to: Ring,
    pieces: &Pieces,
    xh: &[u64],
) -> Result<Opened, EvalError> {
    let (points, low): (Vec<u64>, Vec<u64>) =
        xh.iter().map(|&x| pieces.split(x)).map(|(i, l)| (i as u64, l)).unzip();
    let read = |start: usize, count: usize| Read::Quadratics(pieces.pieces, &low[start..start + count]);
    let mut y = eval_keys(cx, wire, pieces_shape(pieces), &points, read)?;
    for (y, s) in y.iter_mut().zip(cx.result_mask_share(wire, to, xh.len()).iter()) {
        *y = to.wrap(y.wrapping_add(*s));
    }
    cx.open_masked("looked up", to, y)
}

/// [`privet_plan::ir::Op::Lookup`].
pub(crate) struct Tables<'a>(pub &'a [Vec<i64>]);

impl Gate for Tables<'_> {
    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let r = x.mask(cx, 0);
        deal(cx, x.at.wire(), x.at.from(), &r)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        eval(cx, x.at.wire(), [x.at.from(), x.at.to()], self.0, &x.value(0))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "looked up");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let (n, tables) = (of.elements(), self.0.len() as u64);
        price::looked_up(n / tables, of.operand_bits(), 1, n, of.result_bits())
    }
}

/// [`privet_plan::ir::Op::Piecewise`].
pub(crate) struct Quadratics<'a> {
    pub shift: u32,
    pub pieces: &'a [[i64; 3]],
}

impl Quadratics<'_> {
    fn pieces(&self) -> Pieces<'_> {
        Pieces { shift: self.shift, pieces: self.pieces }
    }
}

impl Gate for Quadratics<'_> {
    fn deal(&self, cx: &mut Deal, x: &Dealt) -> Result<(), KeyError> {
        let r = x.mask(cx, 0);
        deal_pieces(cx, x.at.wire(), &self.pieces(), &r)
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        eval_pieces(cx, x.at.wire(), x.at.to(), &self.pieces(), &x.value(0))
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens(list, "looked up");
    }

    /// What is below the index in the mask.
    fn coins(&self, _: &At, _: &Public, mask: &dyn Fn() -> Mask) -> Option<Vec<u64>> {
        Some(mask().iter().map(|r| self.pieces().split(*r).1).collect())
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let n = of.elements();
        price::looked_up(n, of.operand_bits() - self.shift, 3, n, of.result_bits())
    }
}
