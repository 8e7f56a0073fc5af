//! The server: it knows the weights, hints at them once, prepares with every client, and multiplies.

use super::client::small;
use super::cuts::Cuts;
use super::digits::{digits, signed_digits};
use super::factors::{Factors, parts};
use super::filters::{Filters, TooHeavy, within_norm};
use super::layer::{Shape, TorusLayer};
use super::wide::{self, Wide, Wides};
use crate::mutation;
use crate::panel::Panel;
use crate::sample::{self, OFFSET};
use crate::wire::WireError;
use privet_kernels::Weights;
use privet_prg::{Prg, Seed, Wiped};
use privet_ring::{pack, unpack};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The server's weights of a layer, hinted at; wiped on drop.
pub struct Hinted {
    pub(super) shape: Arc<Shape>,
    pub(super) filters: Arc<Filters>,
    /// What hides the hint follows from it, and nothing else does. As secret as the weights.
    pub(super) hidings: Seed,
    /// The weights once more, for the products of runs.
    products: Vec<Arc<dyn Weights>>,
    /// Where the layer's outputs are among those of the products, if elsewhere.
    places: Option<Vec<u32>>,
}

/// A prepared run at the server. It is used up by [`Masked::run`].
#[must_use = "the client has prepared for it"]
pub struct Masked {
    shape: Arc<Shape>,
    /// `floor((sum of w low + u b0) / delta) + 1` of each output.
    corrections: Zeroizing<Vec<u64>>,
}

impl TorusLayer {
    /// Hints at weights in the layout's order. The message may go to any number of clients, and serves any number of runs. Its hidings
    /// follow from a seed that is drawn here, and its errors are drawn here and kept nowhere: no other hint is ever made with
    /// either. `prg` is the server's own.
    ///
    /// Fails where a packed filter's norm exceeds the bound; nothing has left then. Panics where the number of weights is
    /// another.
    pub fn hint(&self, filters: &Arc<Filters>, prg: &mut Prg) -> Result<(Hinted, Vec<u8>), TooHeavy> {
        let s = &*self.shape;
        assert_eq!(filters.len(), s.layout.weight_len(), "number of weights");
        within_norm(s, &filters.signed())?;
        let (product, count) = s.layout.products();
        let ring = s.parameters.ring();
        let weights = s.layout.product_weights(&filters.elements(ring));
        let hinted = Hinted {
            shape: Arc::clone(&self.shape),
            filters: Arc::clone(filters),
            hidings: prg.seed(),
            products: s.device.prepare_each(ring, product, count, &weights),
            places: s.layout.output_places(),
        };
        let message = hinted.message(prg);
        Ok((hinted, message))
    }
}

fn errors(prg: &mut Prg, n: usize) -> Wides {
    let mut errors = sample::errors(prg, n);
    mutation::constant("torus-hint-without-error", &mut errors, OFFSET);
    Zeroizing::new(errors.iter().map(|e| small(*e)).collect())
}

impl Hinted {
    /// The layer.
    pub fn layer(&self) -> TorusLayer {
        TorusLayer { shape: Arc::clone(&self.shape) }
    }

    /// `H_j = sum of w_ji A_i + u_j A0 + e1_j` of each answer, without its lowest bits. SECURITY: once for a seed of hidings. A second one
    /// would have other errors, and the difference of both would tell them.
    fn message(&self, prg: &mut Prg) -> Vec<u8> {
        let (s, context) = (&*self.shape, &self.shape.context);
        let (p, b, cuts) = (&s.parameters, s.layout.blocks(), Cuts::of_values(s));
        let (n, rank, cut) = (p.degree(), p.rank(), cuts.operand);
        let words = signed_digits(self.filters.signed(), cuts.weights);
        let mut message = Vec::with_capacity(self.layer().hint_bytes());
        for group in 0..b.groups {
            let row = |input: usize| match input.checked_sub(b.inputs) {
                Some(zero) => s.public_of_zero(zero),
                None => s.public(group, input),
            };
            let transformed = context.each(b.inputs + rank, |input| {
                row(input).iter().map(|poly| digits(context, poly, cut).collect()).collect::<Vec<Vec<_>>>()
            });
            let new = |_| Panel::new(context, cut.count, b.inputs + rank);
            let mut publics: Vec<Panel> = (0..rank).map(new).collect();
            for (input, polys) in transformed.into_iter().enumerate() {
                for (panel, digits) in publics.iter_mut().zip(polys) {
                    digits.iter().enumerate().for_each(|(row, digit)| panel.put(row, input, digit));
                }
            }
            let seeds: Vec<Seed> = (0..b.outputs).map(|_| prg.seed()).collect();
            let parts = parts(b.outputs);
            let bytes_of = |i: usize| {
                let answers = parts[i].clone();
                let factors = Factors::new(s, cuts.weights, &words, &self.hidings, group, answers.clone());
                let mut streams: Vec<Prg> = seeds[answers].iter().map(Seed::stream).collect();
                let mut hints: Vec<Vec<Wides>> = streams.iter().map(|_| Vec::with_capacity(rank)).collect();
                for public in &publics {
                    let mut sums: Vec<Wides> = streams.iter_mut().map(|prg| errors(prg, n)).collect();
                    factors.weigh(s, public, cut, &mut sums);
                    hints.iter_mut().zip(sums).for_each(|(hint, sum)| hint.push(sum));
                }
                let mut bytes = Vec::with_capacity(hints.len() * s.vector_bytes());
                for poly in hints.iter().flatten() {
                    let kept: Vec<Wide> =
                        poly.iter().map(|v| v.rounded(p.dropped_bits(), p.modulus_bits())).collect();
                    wide::put(p.kept_bits(), &kept, &mut bytes);
                }
                bytes
            };
            context.each(parts.len(), bytes_of).iter().for_each(|bytes| message.extend_from_slice(bytes));
        }
        message
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
    pub(super) fn new(shape: Arc<Shape>, corrections: Zeroizing<Vec<u64>>) -> Masked {
        Masked { shape, corrections }
    }

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
                let index = held.index();
                let at = window.map_or(index, |first| first + held.coefficient());
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
