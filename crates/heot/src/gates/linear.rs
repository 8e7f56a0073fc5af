//! Linear layers. Of weights: the client's message of the run, and a product at the server. Of two shared operands: products of
//! random matrices that are made before the run; of elements, for small ones.

use crate::context::{Cx, RunError, Side};
use crate::gate::{At, Gate, Held};
use crate::gathered;
use crate::material::Need;
use crate::matrices::{self, Matrices, Way};
use crate::product::{self, Second};
use crate::uses::Uses;
use privet_family::{Products, spread_bias};
use privet_he::torus::{Hinted, Mask, Masked, TorusLayer};
use privet_kernels::LinearShape;
use privet_plan::ir::Op;
use privet_ring::transposed;

/// What a side prepared for a layer of a run.
pub(crate) enum Prepared<'a> {
    Server(&'a Hinted, Masked),
    Client(&'a TorusLayer, Mask),
}

impl Prepared<'_> {
    /// Bytes that this side stored for it.
    pub(crate) fn stored(&self) -> u64 {
        let bytes = match self {
            Prepared::Server(hinted, _) => hinted.layer().masked_bytes(),
            Prepared::Client(layer, _) => layer.mask_bytes(),
        };
        bytes as u64
    }
}

/// [`Op::Linear`], [`Op::MatMul`] and [`Op::Conv2d`].
pub(crate) struct Linear;

/// Whether the server knows the second operand: then the layer has a hint.
pub(crate) fn has_hint(at: &At) -> bool {
    Products::of(at.plan, at.node()).is_some() && at.is_static(1)
}

/// Weights in the layout's order: places times columns.
pub(crate) fn in_order(at: &At, w: &[u64]) -> Vec<u64> {
    match Products::of(at.plan, at.node()).expect("a product").shape {
        LinearShape::MatMulT { k, n, .. } => transposed(w, n, k),
        LinearShape::MatMul { .. } | LinearShape::Conv2d(_) => w.to_vec(),
    }
}

/// log2, rounded up, of the largest Euclidean norm of an output's weights.
pub(crate) fn norm_bits(at: &At, w: &[u64]) -> u32 {
    let (ring, products) = (at.to(), Products::of(at.plan, at.node()).expect("a product"));
    let mut norms: Vec<f64> = Vec::new();
    let square = |w: u64| (ring.signed(w) as f64).powi(2);
    let rows = |row: usize| w.chunks_exact(row).map(|f| f.iter().map(|w| square(*w)).sum::<f64>());
    match products.shape {
        LinearShape::Conv2d(g) => norms.extend(rows(w.len() / g.out_channels)),
        LinearShape::MatMulT { k, .. } => norms.extend(rows(k)),
        LinearShape::MatMul { k, n, .. } => {
            for group in w.chunks_exact(k * n) {
                let mut sums = vec![0.0; n];
                let add = |row: &[u64]| sums.iter_mut().zip(row).for_each(|(sum, w)| *sum += square(*w));
                group.chunks_exact(n).for_each(add);
                norms.append(&mut sums);
            }
        }
    }
    let largest = norms.into_iter().fold(1.0, f64::max);
    // squares are sums of doubles: a hair more than the truth
    (largest.log2() / 2.0 + 1e-9).ceil() as u32
}

impl Gate for Linear {
    fn eval(&self, cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
        let (ring, own) = (x.at.to(), x.share(0));
        if !has_hint(&x.at) {
            return secret_product(cx, x);
        }
        let mut out = cx.layer_product(x, &own)?;
        if x.at.node().inputs.len() > 2 {
            let bias = spread_bias(x.at.node(), &x.share(2));
            out.iter_mut().zip(bias).for_each(|(y, b)| *y = ring.wrap(y.wrapping_add(b)));
        }
        Ok(out)
    }

    fn uses(&self, at: &At) -> Uses {
        if !has_hint(at) {
            return match is_encrypted(at) {
                Some((of, count)) => matrices::uses(of, count),
                None => product::uses(at.to().bits(), terms(at).0, second(at)),
            };
        }
        // the bytes follow from the packing, which a session chooses: what it counts is its layer's `run_bytes`
        Uses { steps: 1, ..Uses::default() }
    }
}

/// Which of the operands is known to the server, if one is.
fn second(at: &At) -> Second {
    if at.is_static(0) { Second::AtServer } else { Second::Shared }
}

/// Products of elements that a product of matrices is made of, and how many are summed to an output.
fn terms(at: &At) -> (usize, usize) {
    let products = Products::of(at.plan, at.node()).expect("a product");
    let inner = match products.shape {
        LinearShape::MatMul { k, .. } | LinearShape::MatMulT { k, .. } => k,
        LinearShape::Conv2d(_) => 0,
    };
    (products.output_len() * inner, inner)
}

/// A product of two matrices that the server does not know both of, nor the second: what it is made of by encryption, and how many.
pub(crate) fn matrices(at: &At) -> Option<(Matrices, usize)> {
    let products = Products::of(at.plan, at.node()).filter(|_| !has_hint(at))?;
    match products.shape {
        LinearShape::MatMul { m, k, n: o } | LinearShape::MatMulT { m, k, n: o } => {
            Some((Matrices { ring: at.to(), m, k, o, way: Way::Blocks }, products.count))
        }
        LinearShape::Conv2d(_) => None,
    }
}

/// Products of a plan that are thought to share a preparation's keys. AGREEMENT.
const SHARING: u64 = 4;

/// Whether encrypted matrices take less than elements for it, and made which way. AGREEMENT.
fn is_encrypted(at: &At) -> Option<(Matrices, usize)> {
    let (of, count) = matrices(at).filter(|(of, _)| of.fits().is_ok())?;
    let weight = |uses: Uses| uses.needs.iter().map(Need::weight).sum::<u64>();
    let of_elements = weight(product::uses(at.to().bits(), terms(at).0, second(at)));
    let in_blocks = (weight(matrices::uses(of, count)), of);
    let gathered = |of| (weight(matrices::uses(of, count)) + gathered::keys_made().weight() / SHARING, of);
    let ways = [in_blocks].into_iter().chain(of.gathered().map(gathered));
    let (least, of) = ways.min_by_key(|(weight, _)| *weight)?;
    (least < of_elements).then_some((of, count))
}

/// A product of two matrices that neither side knows, or of which the server knows the first.
fn secret_product(cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
    let mut out = match is_encrypted(&x.at) {
        Some((of, count)) => matrices::multiply(cx, of, count, &x.share(0), &in_order(&x.at, &x.share(1)))?,
        None => of_elements(cx, x)?,
    };
    if let (Op::Linear, 3) = (&x.at.node().op, x.at.node().inputs.len()) {
        let (ring, bias) = (x.at.to(), spread_bias(x.at.node(), &x.share(2)));
        out.iter_mut().zip(bias).for_each(|(y, b)| *y = ring.wrap(y.wrapping_add(b)));
    }
    Ok(out)
}

/// The same for small ones, each product of elements by itself.
fn of_elements(cx: &mut Cx, x: &Held) -> Result<Vec<u64>, RunError> {
    let refused = || RunError::Refused("a convolution with a filter that the server does not know".into());
    let (Matrices { ring, m, k, o, .. }, count) = matrices(&x.at).ok_or_else(refused)?;
    let (a, b, total) = (x.share(0), in_order(&x.at, &x.share(1)), count * m * k * o);
    let (mut left, mut right) = (Vec::with_capacity(total), Vec::with_capacity(total));
    for row in 0..count * m {
        for column in 0..o {
            left.extend_from_slice(&a[row * k..][..k]);
            right.extend((0..k).map(|l| b[(row / m * k + l) * o + column]));
        }
    }
    let all = match second(&x.at) {
        Second::AtServer => product::multiply(cx, ring, &right, &left, Second::AtServer)?,
        second @ (Second::Shared | Second::Same) => product::multiply(cx, ring, &left, &right, second)?,
    };
    let sum = |terms: &[u64]| ring.wrap(terms.iter().fold(0u64, |sum, t| sum.wrapping_add(*t)));
    Ok(all.chunks(k.max(1)).map(sum).collect())
}

impl Cx<'_> {
    /// A side's share of a layer's product: the client sends, and the server multiplies.
    fn layer_product(&mut self, x: &Held, own: &[u64]) -> Result<Vec<u64>, RunError> {
        let prepared = x.layer.borrow_mut().take();
        let missing = || RunError::Missing("a layer was not prepared for this run".into());
        match prepared.ok_or_else(missing)? {
            Prepared::Client(layer, mask) => {
                debug_assert_eq!(self.side, Side::Client);
                let (body, share) = mask.run(own);
                debug_assert_eq!(body.len(), layer.run_bytes());
                self.exchange("masked operand", body, 0)?;
                Ok(share.to_vec())
            }
            Prepared::Server(hinted, masked) => {
                let body = self.exchange("masked operand", Vec::new(), hinted.layer().run_bytes())?;
                Ok(masked.run(hinted, &body, own).map_err(|e| self.wrong(e))?.to_vec())
            }
        }
    }
}
