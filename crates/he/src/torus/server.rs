//! The server: it knows the weights, hints at them once, prepares with every client, and multiplies.

use super::client::{divide, small};
use super::digits::{Cut, bits_of, gather, put_digits, signed_digits};
use super::layer::{Shape, TorusLayer};
use super::wide::{self, Wide, Wides};
use crate::context::Points;
use crate::mutation;
use crate::panel::Panel;
use crate::sample::{self, OFFSET};
use crate::wire::WireError;
use privet_kernels::Weights;
use privet_prg::{Prg, Wiped};
use privet_ring::{pack, unpack};
use std::sync::Arc;
use thiserror::Error;
use zeroize::Zeroizing;

/// Weights whose norm exceeds the bound that the parameters are for: hints of them would tell the client the weights.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "the weights of an output exceed the norm 2^{norm_bits} that these parameters are for; take parameters for a larger one"
)]
pub struct TooHeavy {
    /// log2 of the bound.
    pub norm_bits: u32,
}

/// The server's weights of a layer, hinted at; wiped on drop.
pub struct Hinted {
    shape: Arc<Shape>,
    /// For each group: rows are digits of the weights of each answer, columns operand polynomials.
    weights: Vec<Panel>,
    /// For each group, what hides each answer's hint. It serves this hint alone.
    hidings: Vec<Panel>,
    cuts: Cuts,
    /// The weights once more, for the products of runs.
    products: Vec<Arc<dyn Weights>>,
    /// Where the layer's outputs are among those of the products, if elsewhere.
    places: Option<Vec<u32>>,
}

/// How weights are cut, and how what they are multiplied with is.
#[derive(Clone, Copy)]
struct Cuts {
    weights: Cut,
    one_norm_bits: u32,
}

/// A prepared run at the server. It is used up by [`Masked::run`].
#[must_use = "the client has prepared for it"]
pub struct Masked {
    shape: Arc<Shape>,
    /// `floor((sum of w low + u b0) / delta) + 1` of each output.
    corrections: Zeroizing<Vec<u64>>,
}

impl Cuts {
    fn of(shape: &Shape) -> Cuts {
        const WORD: u32 = 16;
        let (p, taps) = (&shape.parameters, bits_of(shape.layout.coefficients()));
        match p.norm_bits() {
            // |w|_1 <= sqrt(taps) |w|_2
            norm if norm <= 24 => {
                Cuts { weights: Cut::of(norm + 1, norm + 1), one_norm_bits: norm + taps.div_ceil(2) }
            }
            norm => {
                let bits = (norm + 1).min(p.ring().bits());
                Cuts { weights: Cut::of(bits, WORD), one_norm_bits: WORD - 1 + taps }
            }
        }
    }

    /// For polynomials of so many bits that are multiplied with weights.
    fn operand(self, bits: u32) -> Cut {
        Cut::for_norm(bits, self.one_norm_bits)
    }
}

impl TorusLayer {
    /// Hints at weights, in the layout's order, elements of the ring. The hint may go to any number of clients, and serves
    /// any number of runs; what hides it is drawn here and never again. `prg` is the server's own.
    ///
    /// Fails where a packed filter's norm exceeds the bound; nothing has left then. Panics where the number of weights is
    /// another.
    pub fn hint(&self, w: &[u64], prg: &mut Prg) -> Result<(Hinted, Vec<u8>), TooHeavy> {
        let (s, b) = (&*self.shape, self.shape.layout.blocks());
        let (p, context) = (&s.parameters, &s.context);
        assert_eq!(w.len(), s.layout.weight_len(), "number of weights");
        let signed: Zeroizing<Vec<u64>> =
            Zeroizing::new(w.iter().map(|w| p.ring().signed(*w) as u64).collect());
        within_norm(s, &signed)?;
        let cuts = Cuts::of(s);
        let words = signed_digits(&signed, cuts.weights);
        let packed = |group: usize| {
            let mut panel = Panel::new(context, b.outputs * cuts.weights.count, b.inputs);
            for (digit, words) in words.iter().enumerate() {
                for answer in 0..b.outputs {
                    for input in 0..b.inputs {
                        let mut poly = Zeroizing::new(vec![0; p.degree()]);
                        s.layout.pack_weights(
                            (group * b.outputs + answer) * b.inputs + input,
                            words,
                            &mut poly,
                        );
                        let row = answer * cuts.weights.count + digit;
                        panel.put(row, input, &context.signed_points(&poly));
                    }
                }
            }
            panel
        };
        let weights: Vec<Panel> = (0..b.groups).map(packed).collect();
        let hiding = |_: usize| -> Vec<Vec<Points>> {
            let rows: Vec<Vec<Points>> = (0..b.outputs).map(|_| ternary(s, prg)).collect();
            if mutation::active("torus-hidings-repeat") { vec![rows[0].clone(); b.outputs] } else { rows }
        };
        let hidings: Vec<Panel> = (0..b.groups).map(hiding).map(|rows| s.rows(&rows)).collect();
        let (product, count) = s.layout.products();
        let products = s.device.prepare_each(p.ring(), product, count, &s.layout.product_weights(w));
        let shape = Arc::clone(&self.shape);
        let places = s.layout.output_places();
        let hinted = Hinted { shape, weights, hidings, cuts, products, places };
        let message = hinted.message(prg);
        Ok((hinted, message))
    }
}

/// Whether each packed filter's Euclidean norm is within the bound; no early end, so that only the answer tells anything.
fn within_norm(s: &Shape, signed: &[u64]) -> Result<(), TooHeavy> {
    let (b, norm_bits) = (s.layout.blocks(), s.parameters.norm_bits());
    // 2^12 polynomials of 2^12 squares below 2^104 are no more than 2^128
    let coarse = norm_bits.saturating_sub(52).min(64);
    let most = (norm_bits - coarse.min(norm_bits)).min(63);
    let mut heavy = 0u32;
    for filter in 0..b.groups * b.outputs {
        let mut squares = 0u128;
        for input in 0..b.inputs {
            let mut poly = Zeroizing::new(vec![0; s.parameters.degree()]);
            s.layout.pack_weights(filter * b.inputs + input, signed, &mut poly);
            for w in poly.iter() {
                let size = u128::from((*w as i64).unsigned_abs());
                // rounded up where it is coarse
                let size = (size + (1u128 << coarse) - 1) >> coarse;
                squares = squares.saturating_add(size * size);
            }
        }
        heavy |= u32::from(squares > 1u128 << (2 * most));
    }
    if heavy == 0 { Ok(()) } else { Err(TooHeavy { norm_bits }) }
}

fn ternary(s: &Shape, prg: &mut Prg) -> Vec<Points> {
    let mut poly = || {
        let mut u = sample::ternary(prg, s.parameters.degree());
        mutation::constant("torus-hint-not-hidden", &mut u, OFFSET);
        s.context.points(s.context.small(&u))
    };
    (0..s.parameters.rank()).map(|_| poly()).collect()
}

impl Hinted {
    /// The layer.
    pub fn layer(&self) -> TorusLayer {
        TorusLayer { shape: Arc::clone(&self.shape) }
    }

    /// `H_j = sum of w_ji A_i + u_j A0 + e1_j` of each answer, without its lowest bits.
    fn message(&self, prg: &mut Prg) -> Vec<u8> {
        let (s, context) = (&*self.shape, &self.shape.context);
        let (p, b) = (&s.parameters, s.layout.blocks());
        let (n, rank) = (p.degree(), p.rank());
        let ternary = s.ternary_cut();
        let operand = self.cuts.operand(p.modulus_bits());
        let zero_rows: Vec<Vec<Vec<Wide>>> = (0..rank).map(|row| s.public_of_zero(row)).collect();
        let mut message = Vec::new();
        for group in 0..b.groups {
            let mut publics: Vec<Panel> =
                (0..rank).map(|_| Panel::new(context, operand.count, b.inputs)).collect();
            for input in 0..b.inputs {
                for (panel, poly) in publics.iter_mut().zip(s.public(group, input)) {
                    put_digits(context, panel, [0, input], &poly, operand);
                }
            }
            let mut hints: Vec<Vec<Wides>> = (0..b.outputs).map(|_| Vec::with_capacity(rank)).collect();
            for (column, public) in publics.iter().enumerate() {
                let mut zeros = Panel::new(context, ternary.count, rank);
                for (row, polys) in zero_rows.iter().enumerate() {
                    put_digits(context, &mut zeros, [0, row], &polys[column], ternary);
                }
                for (answer, hint) in hints.iter_mut().enumerate() {
                    let mut errors = sample::errors(prg, n);
                    mutation::constant("torus-hint-without-error", &mut errors, OFFSET);
                    let mut sum: Wides = Zeroizing::new(errors.iter().map(|e| small(*e)).collect());
                    self.weigh(public, operand, [group, answer], 0..n, &mut sum);
                    let products = zeros.times(context, &self.hidings[group], answer..answer + 1);
                    for (digit, product) in products.into_iter().enumerate() {
                        gather(context, product, ternary.below(digit), 0..n, &mut sum);
                    }
                    hint.push(sum);
                }
            }
            for poly in hints.iter().flatten() {
                let kept: Vec<Wide> =
                    poly.iter().map(|v| v.rounded(p.dropped_bits(), p.modulus_bits())).collect();
                wide::put(p.kept_bits(), &kept, &mut message);
            }
        }
        message
    }

    /// Adds `sum of w v` of an answer at these coefficients; rows of the panel are the digits of all v.
    fn weigh(
        &self,
        digits: &Panel,
        cut: Cut,
        [group, answer]: [usize; 2],
        coefficients: impl Iterator<Item = usize> + Clone,
        into: &mut [Wide],
    ) {
        let (context, words) = (&self.shape.context, self.cuts.weights);
        let rows = answer * words.count..(answer + 1) * words.count;
        let sums = digits.times(context, &self.weights[group], rows);
        for (i, sum) in sums.into_iter().enumerate() {
            let (digit, word) = divide(i, words.count);
            gather(context, sum, cut.below(digit) + words.below(word), coefficients.clone(), into);
        }
    }

    /// Takes a client's preparation of one run, of exactly [`TorusLayer::prepare_bytes`] bytes.
    pub fn prepare(&self, message: &[u8]) -> Result<Masked, WireError> {
        let (s, context) = (&*self.shape, &self.shape.context);
        let (p, b) = (&s.parameters, s.layout.blocks());
        let expected = self.layer().prepare_bytes();
        if message.len() != expected {
            return Err(WireError::Length { expected, found: message.len() });
        }
        // where no operand stands, all of it is there
        let bits = if s.has_blanks() { p.modulus_bits() } else { p.step_bits() };
        let (ternary, operand) = (s.ternary_cut(), self.cuts.operand(bits));
        let mut from = message;
        let mut zeros = Vec::with_capacity(b.tiles);
        for _ in 0..b.tiles {
            let mut panel = Panel::new(context, ternary.count, p.rank());
            for column in 0..p.rank() {
                let kept = wide::take(p.kept_bits(), p.degree(), &mut from)?;
                let poly: Vec<Wide> = kept.iter().map(|v| v.up(p.dropped_bits())).collect();
                put_digits(context, &mut panel, [0, column], &poly, ternary);
            }
            zeros.push(panel);
        }
        let mut corrections = Zeroizing::new(vec![0; s.layout.output_len()]);
        for group in 0..b.groups {
            for (tile, zero) in zeros.iter().enumerate() {
                let mut lows = Panel::new(context, operand.count, b.inputs);
                for input in 0..b.inputs {
                    let query = (group * b.tiles + tile) * b.inputs + input;
                    let (held, blanks) = (s.held(query), s.blanks(query));
                    let mut poly = vec![Wide::default(); p.degree()];
                    for (held, low) in held.iter().zip(wide::take(p.step_bits(), held.len(), &mut from)?) {
                        poly[held.coefficient as usize] = low;
                    }
                    let whole = wide::take(p.modulus_bits(), s.blanks(query).count(), &mut from)?;
                    if !mutation::active("torus-blanks-forgotten") {
                        blanks.zip(whole).for_each(|(at, whole)| poly[at] = whole);
                    }
                    put_digits(context, &mut lows, [0, input], &poly, operand);
                }
                context
                    .each(b.outputs, |answer| {
                        let outputs = s.outputs([group, tile, answer]);
                        let places = outputs.iter().map(|o| o.coefficient);
                        let mut sums: Wides = Zeroizing::new(vec![Wide::default(); outputs.len()]);
                        self.weigh(&lows, operand, [group, answer], places.clone(), &mut sums);
                        let hidden = zero.times(context, &self.hidings[group], answer..answer + 1);
                        for (digit, product) in hidden.into_iter().enumerate() {
                            gather(context, product, ternary.below(digit), places.clone(), &mut sums);
                        }
                        sums
                    })
                    .into_iter()
                    .enumerate()
                    .for_each(|(answer, sums)| {
                        for (output, sum) in s.outputs([group, tile, answer]).iter().zip(sums.iter()) {
                            // the client's share is a floor too: without the unit half of all sums are one too small
                            let unit = u64::from(!mutation::active("torus-floors-without-a-unit"));
                            corrections[output.index] = s.share(sum).wrapping_add(unit);
                        }
                    });
            }
        }
        Ok(Masked { shape: Arc::clone(&self.shape), corrections })
    }
}

impl Hinted {
    /// What [`Masked::keep`] gave, of exactly [`TorusLayer::masked_bytes`] bytes.
    pub fn kept(&self, bytes: &[u8]) -> Result<Masked, WireError> {
        let (s, expected) = (&*self.shape, self.layer().masked_bytes());
        if bytes.len() != expected {
            return Err(WireError::Length { expected, found: bytes.len() });
        }
        let corrections = Zeroizing::new(unpack(s.parameters.ring(), bytes, s.layout.output_len())?);
        Ok(Masked { shape: Arc::clone(&self.shape), corrections })
    }
}

impl Masked {
    /// What [`Hinted::kept`] makes the preparation of again. A secret.
    pub fn keep(self) -> Zeroizing<Vec<u8>> {
        let bytes = TorusLayer { shape: Arc::clone(&self.shape) }.masked_bytes();
        let (ring, mut out) = (self.shape.parameters.ring(), Zeroizing::new(Vec::with_capacity(bytes)));
        let corrections: Zeroizing<Vec<u64>> =
            Zeroizing::new(self.corrections.iter().map(|c| ring.wrap(*c)).collect());
        pack(ring, &corrections, &mut out);
        out
    }

    /// This side's share of the product: of the client's message of exactly [`TorusLayer::run_bytes`] bytes, and this side's
    /// share of the operand.
    ///
    /// Panics where the number of values is another, or where it was prepared under other weights.
    pub fn run(mut self, hinted: &Hinted, body: &[u8], x: &[u64]) -> Result<Zeroizing<Vec<u64>>, WireError> {
        let s = &*self.shape;
        assert!(Arc::ptr_eq(&self.shape, &hinted.shape), "prepared under these weights");
        assert_eq!(x.len(), s.layout.input_len(), "number of values");
        let ring = s.parameters.ring();
        let expected = hinted.layer().run_bytes();
        if body.len() != expected {
            return Err(WireError::Length { expected, found: body.len() });
        }
        let mut windows = Wiped::zeros(s.layout.windows_len());
        let mut from = body;
        for query in 0..s.layout.queries() {
            let (held, window) = (s.held(query), s.layout.window(query));
            let (here, rest) = from.split_at(ring.packed_bytes(held.len()));
            for (held, c) in held.iter().zip(unpack(ring, here, held.len())?) {
                let index = held.index as usize;
                let at = window.map_or(index, |first| first + held.coefficient as usize);
                windows[at] = ring.wrap(c.wrapping_add(x[index]));
            }
            from = rest;
        }
        let (shape, _) = s.layout.products();
        match &hinted.places {
            None => {
                let out = &mut self.corrections;
                s.device.linear_acc_each(ring, shape, &windows, &hinted.products, out);
            }
            Some(places) => {
                let mut out = Wiped::zeros(s.layout.products_len());
                s.device.linear_acc_each(ring, shape, &windows, &hinted.products, &mut out);
                for (share, at) in self.corrections.iter_mut().zip(places) {
                    *share = share.wrapping_add(out[*at as usize]);
                }
            }
        }
        self.corrections.iter_mut().for_each(|share| *share = ring.wrap(*share));
        Ok(self.corrections)
    }
}

impl std::fmt::Debug for Masked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Masked(..)")
    }
}

impl std::fmt::Debug for Hinted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hinted(..)")
    }
}
