//! The server: it knows the weights, hints at them once, prepares with every client, and multiplies.

use super::client::small;
use super::digits::{digits, put_digits};
use super::factors::{Cuts, Factors};
use super::filters::{Filters, TooHeavy, within_norm};
use super::keys::Zeros;
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
use std::sync::{Arc, Mutex, PoisonError, Weak};
use zeroize::Zeroizing;

/// The server's weights of a layer, hinted at; wiped on drop.
pub struct Hinted {
    shape: Arc<Shape>,
    filters: Arc<Filters>,
    /// What hides the hint follows from it, and nothing else does. As secret as the weights.
    hidings: Seed,
    cuts: Cuts,
    /// While somebody uses them.
    factors: Mutex<Weak<Factors>>,
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
    /// Hints at weights in the layout's order. The hint, the last of what it gives, may go to any number of clients, and serves any number
    /// of runs. Its hidings follow from a seed that is drawn here, and its errors are drawn here and kept nowhere: no other hint is ever
    /// made with either. `prg` is the server's own. [`Factors`] are what the hint was made with; masks need them too.
    ///
    /// Fails where a packed filter's norm exceeds the bound; nothing has left then. Panics where the number of weights is
    /// another.
    pub fn hint(
        &self,
        filters: &Arc<Filters>,
        prg: &mut Prg,
    ) -> Result<(Hinted, Arc<Factors>, Vec<u8>), TooHeavy> {
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
            cuts: Cuts::of(s),
            factors: Mutex::default(),
            products: s.device.prepare_each(ring, product, count, &weights),
            places: s.layout.output_places(),
        };
        let factors = hinted.factors();
        let message = hinted.message(&factors, prg);
        Ok((hinted, factors, message))
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

    /// The transformed weights: those that are in use, or made again. Whoever takes several preparations in a row holds them meanwhile.
    pub fn factors(&self) -> Arc<Factors> {
        let mut known = self.factors.lock().unwrap_or_else(PoisonError::into_inner);
        known.upgrade().unwrap_or_else(|| {
            let other = mutation::active("torus-hidings-redrawn").then(Seed::random);
            let hidings = other.as_ref().unwrap_or(&self.hidings);
            let again = Arc::new(Factors::new(&self.shape, self.cuts, &self.filters, hidings));
            *known = Arc::downgrade(&again);
            again
        })
    }

    /// `H_j = sum of w_ji A_i + u_j A0 + e1_j` of each answer, without its lowest bits. SECURITY: once for a seed of hidings. A second one
    /// would have other errors, and the difference of both would tell them.
    fn message(&self, factors: &Factors, prg: &mut Prg) -> Vec<u8> {
        let (s, context) = (&*self.shape, &self.shape.context);
        let (p, b) = (&s.parameters, s.layout.blocks());
        let (n, rank, cut) = (p.degree(), p.rank(), self.cuts.operand);
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
            let bytes_of = |answers: Range<usize>, panel: &Panel| {
                let mut streams: Vec<Prg> = seeds[answers].iter().map(Seed::stream).collect();
                let mut hints: Vec<Vec<Wides>> = streams.iter().map(|_| Vec::with_capacity(rank)).collect();
                for public in &publics {
                    let mut sums: Vec<Wides> = streams.iter_mut().map(|prg| errors(prg, n)).collect();
                    factors.weigh(s, [public, panel], |_| 0..n, &mut sums);
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
            factors.each(s, group, bytes_of).iter().for_each(|bytes| message.extend_from_slice(bytes));
        }
        message
    }

    /// Takes a client's preparation of one run, of exactly [`Zeros::prepare_bytes`] bytes, with what came for the run before.
    pub fn prepare(&self, of_run: &mut Zeros, message: &[u8]) -> Result<Masked, WireError> {
        let (s, context) = (&*self.shape, &self.shape.context);
        let (p, b) = (&s.parameters, s.layout.blocks());
        let expected = of_run.prepare_bytes(&self.layer());
        if message.len() != expected {
            return Err(WireError::Length { expected, found: message.len() });
        }
        let (rank, dropped, cut, mut from) = (p.rank(), p.operand_dropped(), self.cuts.operand, message);
        let factors = self.factors();
        let due = b.tiles.saturating_sub(of_run.of(&s.kind).len()) * s.vector_bytes();
        let (new, rest) = from.split_at(due);
        from = rest;
        of_run.add(s.kind, new.chunks_exact(s.vector_bytes()).map(<[u8]>::to_vec));
        // of each tile: digits of each polynomial that encrypts 0
        let cut_up = |mut came: &[u8]| -> Result<Vec<Vec<Points>>, WireError> {
            let mut poly = || {
                let kept = wide::take(p.kept_bits(), p.degree(), &mut came)?;
                let poly: Vec<Wide> = kept.iter().map(|v| v.up(p.dropped_bits())).collect();
                Ok(digits(context, &poly, cut).collect())
            };
            (0..rank).map(|_| poly()).collect()
        };
        let of_tiles = &of_run.of(&s.kind)[..b.tiles];
        let zeros = of_tiles.iter().map(|came| cut_up(came)).collect::<Result<Vec<_>, _>>()?;
        let mut corrections = Zeroizing::new(vec![0; s.layout.output_len()]);
        let mut poly = vec![Wide::default(); p.degree()];
        for group in 0..b.groups {
            for (tile, zero) in zeros.iter().enumerate() {
                let mut operand = Panel::new(context, cut.count, b.inputs + rank);
                for input in 0..b.inputs {
                    let query = (group * b.tiles + tile) * b.inputs + input;
                    let (held, blanks) = (s.held(query), s.blanks(query));
                    poly.fill(Wide::default());
                    for (held, low) in held.iter().zip(wide::take(p.low_bits(), held.len(), &mut from)?) {
                        poly[held.coefficient()] = s.low(&low.up(dropped));
                    }
                    let whole = wide::take(p.blank_bits(), s.blanks(query).count(), &mut from)?;
                    if !mutation::active("torus-blanks-forgotten") {
                        blanks.zip(whole).for_each(|(at, whole)| poly[at] = whole.up(dropped));
                    }
                    put_digits(context, &mut operand, [0, input], &poly, cut);
                }
                for (column, digits) in zero.iter().enumerate() {
                    for (row, digit) in digits.iter().enumerate() {
                        operand.put(row, b.inputs + column, digit);
                    }
                }
                let outputs = |answer: usize| s.outputs([group, tile, answer]);
                let sums = factors.each(s, group, |answers, panel| {
                    let of = |at: usize| outputs(answers.start + at);
                    let zeros = |at| Zeroizing::new(vec![Wide::default(); of(at).len()]);
                    let mut sums: Vec<Wides> = (0..answers.len()).map(zeros).collect();
                    let places = |at| of(at).iter().map(|o| o.coefficient());
                    factors.weigh(s, [&operand, panel], places, &mut sums);
                    sums
                });
                for (answer, sums) in sums.iter().flatten().enumerate() {
                    for (output, sum) in outputs(answer).iter().zip(sums.iter()) {
                        // the client's share is a floor too: without the unit half of all sums are one too small
                        let unit = u64::from(!mutation::active("torus-floors-without-a-unit"));
                        corrections[output.index()] = s.share(sum).wrapping_add(unit);
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
