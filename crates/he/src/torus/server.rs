//! The server: it knows the weights, hints at them once, prepares with every client, and multiplies.

use super::client::{divide, small};
use super::digits::{Cut, digits, gather, put_digits, signed_digits};
use super::layer::{Shape, TorusLayer};
use super::wide::{self, Wide, Wides};
use crate::context::Points;
use crate::mutation;
use crate::panel::Panel;
use crate::sample::{self, OFFSET};
use crate::wire::WireError;
use privet_kernels::Weights;
use privet_prg::{Prg, Seed, Wiped};
use privet_ring::{pack, unpack};
use std::ops::Range;
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
    /// For each group: rows are digits of the weights of each answer, columns operand polynomials; then, beside the lowest digit,
    /// what hides the answer's hint. That serves this hint alone.
    factors: Vec<Panel>,
    cuts: Cuts,
    /// The weights once more, for the products of runs.
    products: Vec<Arc<dyn Weights>>,
    /// Where the layer's outputs are among those of the products, if elsewhere.
    places: Option<Vec<u32>>,
}

/// How weights are cut, and how what they are multiplied with is. LOCAL: no message follows from it.
#[derive(Clone, Copy)]
struct Cuts {
    weights: Cut,
    operand: Cut,
}

/// Answers whose sums are made together: the operand is read once for all of them.
const ANSWERS: usize = 12;

/// A prepared run at the server. It is used up by [`Masked::run`].
#[must_use = "the client has prepared for it"]
pub struct Masked {
    shape: Arc<Shape>,
    /// `floor((sum of w low + u b0) / delta) + 1` of each output.
    corrections: Zeroizing<Vec<u64>>,
}

impl Cuts {
    /// Those with the fewest products: of weights as they are, or of words of them.
    fn of(shape: &Shape) -> Cuts {
        let p = &shape.parameters;
        let (taps, hiding) = (shape.layout.coefficients(), p.dimension() as f64);
        let bits = (p.norm_bits() + 1).min(p.ring().bits());
        let cut = |words: u32| {
            let weights = Cut::of(bits, bits.div_ceil(words));
            let squares = match weights.count {
                1 => 4f64.powi(p.norm_bits() as i32),
                // the last word may be one more than others by a carry
                _ => taps as f64 * (2f64.powi(weights.bits as i32 - 1) + 1.0).powi(2),
            };
            let operand = Cut::for_squares(p.modulus_bits(), squares + hiding, taps + p.dimension())?;
            Some(Cuts { weights, operand })
        };
        let cuts = (1..=bits).filter_map(cut);
        cuts.min_by_key(|cuts| cuts.weights.count * cuts.operand.count).expect("words of a bit are small")
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
        let hidings: Vec<Vec<Points>> = (0..b.groups * b.outputs).map(|_| ternary(s, prg)).collect();
        let packed = |group: usize| {
            let columns = b.inputs + p.rank();
            let mut panel = Panel::new(context, b.outputs * cuts.weights.count, columns);
            let mut poly = Zeroizing::new(vec![0; p.degree()]);
            for answer in 0..b.outputs {
                for (digit, words) in words.iter().enumerate() {
                    for input in 0..b.inputs {
                        poly.fill(0);
                        s.layout.pack_weights(
                            (group * b.outputs + answer) * b.inputs + input,
                            words,
                            &mut poly,
                        );
                        let row = answer * cuts.weights.count + digit;
                        panel.put(row, input, &context.signed_points(&poly));
                    }
                }
                let again = if mutation::active("torus-hidings-repeat") { 0 } else { answer };
                for (column, hiding) in hidings[group * b.outputs + again].iter().enumerate() {
                    panel.put(answer * cuts.weights.count, b.inputs + column, hiding);
                }
            }
            panel
        };
        let factors: Vec<Panel> = (0..b.groups).map(packed).collect();
        let (product, count) = s.layout.products();
        let products = s.device.prepare_each(p.ring(), product, count, &s.layout.product_weights(w));
        let shape = Arc::clone(&self.shape);
        let places = s.layout.output_places();
        let hinted = Hinted { shape, factors, cuts, products, places };
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
    let squares_of = |poly: &[u64]| {
        let sizes = poly.iter().map(|w| (*w as i64).unsigned_abs());
        if norm_bits < 31 {
            // as sizes are; one that is too large counts as 2^62
            let size = |size: u64| (size & u64::from(u32::MAX)) | (size >> 32).min(1) << 31;
            return u128::from(sizes.fold(0u64, |sum, s| sum.saturating_add(size(s) * size(s))));
        }
        // rounded up where it is coarse
        let size = |size: u64| (u128::from(size) + (1u128 << coarse) - 1) >> coarse;
        sizes.fold(0u128, |sum, s| sum.saturating_add(size(s) * size(s)))
    };
    let mut heavy = 0u32;
    let mut poly = Zeroizing::new(vec![0; s.parameters.degree()]);
    for filter in 0..b.groups * b.outputs {
        let mut squares = 0u128;
        for input in 0..b.inputs {
            poly.fill(0);
            s.layout.pack_weights(filter * b.inputs + input, signed, &mut poly);
            squares = squares.saturating_add(squares_of(&poly));
        }
        heavy |= u32::from(squares > 1u128 << (2 * most));
    }
    if heavy == 0 { Ok(()) } else { Err(TooHeavy { norm_bits }) }
}

fn errors(prg: &mut Prg, n: usize) -> Wides {
    let mut errors = sample::errors(prg, n);
    mutation::constant("torus-hint-without-error", &mut errors, OFFSET);
    Zeroizing::new(errors.iter().map(|e| small(*e)).collect())
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
        let (n, rank, cut) = (p.degree(), p.rank(), self.cuts.operand);
        let zero_rows: Vec<Vec<Vec<Wide>>> = (0..rank).map(|row| s.public_of_zero(row)).collect();
        let mut message = Vec::new();
        for group in 0..b.groups {
            let new = |_| Panel::new(context, cut.count, b.inputs + rank);
            let mut publics: Vec<Panel> = (0..rank).map(new).collect();
            for input in 0..b.inputs + rank {
                let row;
                let polys = match input.checked_sub(b.inputs) {
                    Some(zero) => &zero_rows[zero],
                    None => {
                        row = s.public(group, input);
                        &row
                    }
                };
                for (panel, poly) in publics.iter_mut().zip(polys) {
                    put_digits(context, panel, [0, input], poly, cut);
                }
            }
            let seeds: Vec<Seed> = (0..b.outputs).map(|_| prg.seed()).collect();
            let bytes_of = |answers: Range<usize>| {
                let mut streams: Vec<Prg> = seeds[answers.clone()].iter().map(Seed::stream).collect();
                let mut hints: Vec<Vec<Wides>> = streams.iter().map(|_| Vec::with_capacity(rank)).collect();
                for public in &publics {
                    let mut sums: Vec<Wides> = streams.iter_mut().map(|prg| errors(prg, n)).collect();
                    self.weigh(public, group, answers.clone(), |_| 0..n, &mut sums);
                    hints.iter_mut().zip(sums).for_each(|(hint, sum)| hint.push(sum));
                }
                let mut bytes = Vec::with_capacity(answers.len() * s.vector_bytes());
                for poly in hints.iter().flatten() {
                    let kept: Vec<Wide> =
                        poly.iter().map(|v| v.rounded(p.dropped_bits(), p.modulus_bits())).collect();
                    wide::put(p.kept_bits(), &kept, &mut bytes);
                }
                bytes
            };
            self.blocks(bytes_of).iter().for_each(|bytes| message.extend_from_slice(bytes));
        }
        message
    }

    /// What is made of some answers of a group at a time, in order.
    fn blocks<T: Send>(&self, of: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
        let outputs = self.shape.layout.blocks().outputs;
        let block = |i: usize| of(i * ANSWERS..outputs.min((i + 1) * ANSWERS));
        self.shape.context.each(outputs.div_ceil(ANSWERS), block)
    }

    /// Adds `sum of w v + u b` of some answers, at these coefficients of each; rows of the panel are the digits of all v and b.
    fn weigh<C: Iterator<Item = usize>>(
        &self,
        digits: &Panel,
        group: usize,
        answers: Range<usize>,
        coefficients: impl Fn(usize) -> C,
        into: &mut [Wides],
    ) {
        let (context, cut, words) = (&self.shape.context, self.cuts.operand, self.cuts.weights);
        let rows = answers.start * words.count..answers.end * words.count;
        let sums = digits.times(context, &self.factors[group], rows.clone());
        for (i, sum) in sums.into_iter().enumerate() {
            let (digit, row) = divide(i, rows.len());
            let (answer, word) = divide(row, words.count);
            let shift = cut.below(digit) + words.below(word);
            gather(context, sum, shift, coefficients(answers.start + answer), &mut into[answer]);
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
        let (rank, cut, mut from) = (p.rank(), self.cuts.operand, message);
        // of each tile: digits of each polynomial that encrypts 0
        let mut zeros: Vec<Vec<Vec<Points>>> = Vec::with_capacity(b.tiles);
        for _ in 0..b.tiles {
            let mut of_tile = Vec::with_capacity(rank);
            for _ in 0..rank {
                let kept = wide::take(p.kept_bits(), p.degree(), &mut from)?;
                let poly: Vec<Wide> = kept.iter().map(|v| v.up(p.dropped_bits())).collect();
                of_tile.push(digits(context, &poly, cut).collect());
            }
            zeros.push(of_tile);
        }
        let mut corrections = Zeroizing::new(vec![0; s.layout.output_len()]);
        let mut poly = vec![Wide::default(); p.degree()];
        for group in 0..b.groups {
            for (tile, zero) in zeros.iter().enumerate() {
                let mut operand = Panel::new(context, cut.count, b.inputs + rank);
                for input in 0..b.inputs {
                    let query = (group * b.tiles + tile) * b.inputs + input;
                    let (held, blanks) = (s.held(query), s.blanks(query));
                    poly.fill(Wide::default());
                    for (held, low) in held.iter().zip(wide::take(p.step_bits(), held.len(), &mut from)?) {
                        poly[held.coefficient as usize] = s.low(&low);
                    }
                    let whole = wide::take(p.modulus_bits(), s.blanks(query).count(), &mut from)?;
                    if !mutation::active("torus-blanks-forgotten") {
                        blanks.zip(whole).for_each(|(at, whole)| poly[at] = whole);
                    }
                    put_digits(context, &mut operand, [0, input], &poly, cut);
                }
                for (column, digits) in zero.iter().enumerate() {
                    for (row, digit) in digits.iter().enumerate() {
                        operand.put(row, b.inputs + column, digit);
                    }
                }
                let outputs = |answer: usize| s.outputs([group, tile, answer]);
                let sums = self.blocks(|answers| {
                    let zeros = |answer| Zeroizing::new(vec![Wide::default(); outputs(answer).len()]);
                    let mut sums: Vec<Wides> = answers.clone().map(zeros).collect();
                    let places = |answer| outputs(answer).iter().map(|o| o.coefficient);
                    self.weigh(&operand, group, answers, places, &mut sums);
                    sums
                });
                for (answer, sums) in sums.iter().flatten().enumerate() {
                    for (output, sum) in outputs(answer).iter().zip(sums.iter()) {
                        // the client's share is a floor too: without the unit half of all sums are one too small
                        let unit = u64::from(!mutation::active("torus-floors-without-a-unit"));
                        corrections[output.index] = s.share(sum).wrapping_add(unit);
                    }
                }
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
