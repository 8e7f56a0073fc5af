//! The client: it knows a hint, draws masks before its input is known, and uses each once.

use super::digits::{Cut, gather, put_digits};
use super::keys::Keys;
use super::layer::{Shape, TorusLayer};
use super::wide::{self, Wide, Wides};
use crate::context::Points;
use crate::mutation;
use crate::panel::Panel;
use crate::sample::{self, OFFSET};
use crate::wire::WireError;
use privet_prg::Prg;
use privet_ring::{pack, unpack};
use std::ops::Range;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A server's hint for a layer: pseudo-random, the same for all clients and runs.
pub struct ClientHint {
    shape: Arc<Shape>,
    cut: Cut,
    /// For each group and each answer of a tile, the hint's digits: rows are digits, columns the key's polynomials.
    answers: Vec<Panel>,
    /// The same of the public matrix that encryptions of 0 are hidden under, row by row.
    zeros: Vec<Panel>,
}

/// A prepared run of a layer: its mask and this side's share of the product, before the input is known. It is used up by
/// [`Mask::run`], has no `Clone`, and is wiped on drop: a mask that is used twice tells the difference of two inputs. Who keeps
/// one for later ([`Mask::keep`]) must see to it that it is read once. Using one again does not compile:
///
/// ```compile_fail,E0382
/// # use privet_he::torus::Mask;
/// fn twice(mask: Mask, x: &[u64]) {
///     let first = mask.run(x);
///     let second = mask.run(x);
/// }
/// ```
///
/// Nor does copying it:
///
/// ```compile_fail,E0599
/// # use privet_he::torus::Mask;
/// fn copied(mask: &Mask) -> Mask {
///     mask.clone()
/// }
/// ```
///
/// ```
/// # use privet_he::torus::Mask;
/// fn once(mask: Mask, x: &[u64]) {
///     let first = mask.run(x);
/// }
/// ```
#[must_use = "the server has prepared for it"]
pub struct Mask {
    shape: Arc<Shape>,
    /// Of the coefficients where operands stand, operand polynomial by operand polynomial.
    masks: Vec<Zeroizing<Vec<u64>>>,
    share: Zeroizing<Vec<u64>>,
}

impl TorusLayer {
    /// Reads a hint of exactly [`TorusLayer::hint_bytes`] bytes.
    pub fn read_hint(&self, bytes: &[u8]) -> Result<ClientHint, WireError> {
        let (s, expected) = (&self.shape, self.hint_bytes());
        if bytes.len() != expected {
            return Err(WireError::Length { expected, found: bytes.len() });
        }
        let (p, cut, mut from) = (&s.parameters, s.ternary_cut(), bytes);
        let b = s.layout.blocks();
        let vector = |polys: &[Vec<Wide>]| {
            let mut panel = Panel::new(&s.context, cut.count, p.rank());
            for (column, poly) in polys.iter().enumerate() {
                put_digits(&s.context, &mut panel, [0, column], poly, cut);
            }
            panel
        };
        let mut answers = Vec::with_capacity(b.groups * b.outputs);
        for _ in 0..b.groups * b.outputs {
            let mut polys = Vec::with_capacity(p.rank());
            for _ in 0..p.rank() {
                let kept = wide::take(p.kept_bits(), p.degree(), &mut from)?;
                polys.push(kept.iter().map(|v| v.up(p.dropped_bits())).collect::<Vec<_>>());
            }
            answers.push(vector(&polys));
        }
        let zeros = (0..p.rank()).map(|row| vector(&s.public_of_zero(row))).collect();
        Ok(ClientHint { shape: Arc::clone(s), cut, answers, zeros })
    }
}

impl ClientHint {
    /// Draws a mask for a run under the run's keys, one a tile; the message is for the server.
    ///
    /// What is kept are the masks and the client's share of the product. Panics where the keys met this layer before.
    pub fn prepare(&self, of_run: &mut Keys) -> (Mask, Vec<u8>) {
        let s = &*self.shape;
        let (p, b) = (&s.parameters, s.layout.blocks());
        of_run.meet(s.number);
        let there = of_run.send(s.kind, b.tiles);
        let keys: Vec<Vec<Points>> = (0..b.tiles).map(|tile| of_run.key(&s.kind, tile, &s.context)).collect();
        let (keys, prg, dropped) = (s.rows(&keys), &mut of_run.prg, p.operand_dropped());
        let mut message = Vec::new();
        for b0 in self.encryptions_of_zero(&keys, there.min(b.tiles)..b.tiles, prg) {
            wide::put(p.kept_bits(), &b0, &mut message);
        }
        let mut masks = vec![Zeroizing::default(); s.layout.queries()];
        let mut prepared: Vec<Vec<u8>> = vec![Vec::new(); s.layout.queries()];
        for group in 0..b.groups {
            for input in 0..b.inputs {
                let operands = self.hidden(&s.public(group, input), &keys, prg);
                for (tile, operand) in operands.into_iter().enumerate() {
                    let operand: Wides =
                        Zeroizing::new(operand.iter().map(|v| v.rounded_to_even(dropped)).collect());
                    let query = (group * b.tiles + tile) * b.inputs + input;
                    let held = s.held(query).iter().map(|held| &operand[held.coefficient()]);
                    masks[query] = Zeroizing::new(held.clone().map(|v| s.share(v)).collect::<Vec<u64>>());
                    let low: Wides = Zeroizing::new(held.map(|v| v.part(dropped, p.step_bits())).collect());
                    wide::put(p.low_bits(), &low, &mut prepared[query]);
                    // no operand is added there: what the run would send is known now
                    let blanks = s.blanks(query).map(|at| operand[at].part(dropped, p.modulus_bits()));
                    wide::put(p.blank_bits(), &blanks.collect::<Vec<_>>(), &mut prepared[query]);
                }
            }
        }
        prepared.iter().for_each(|of_query| message.extend_from_slice(of_query));
        let share = self.share(&keys);
        (Mask { shape: Arc::clone(&self.shape), masks, share }, message)
    }

    /// `a s + e` for each key, a row of a public matrix.
    fn hidden(&self, row: &[Vec<Wide>], keys: &Panel, prg: &mut Prg) -> Vec<Wides> {
        let (context, cut) = (&self.shape.context, self.cut);
        let mut panel = Panel::new(context, cut.count, row.len());
        for (column, poly) in row.iter().enumerate() {
            put_digits(context, &mut panel, [0, column], poly, cut);
        }
        self.times(&panel, keys, 0..keys.rows(), prg)
    }

    /// The same of a row that is there as digits, for some of the keys.
    fn times(&self, digits: &Panel, keys: &Panel, some: Range<usize>, prg: &mut Prg) -> Vec<Wides> {
        let (context, n, count) = (&self.shape.context, self.shape.parameters.degree(), some.len());
        let mut out: Vec<Wides> = (0..count).map(|_| self.errors(prg)).collect();
        let sums = digits.times(context, keys, some);
        for (i, sum) in sums.into_iter().enumerate() {
            let (digit, tile) = divide(i, count);
            gather(context, sum, self.cut.below(digit), 0..n, &mut out[tile]);
        }
        out
    }

    fn errors(&self, prg: &mut Prg) -> Wides {
        let mut errors = sample::errors(prg, self.shape.parameters.degree());
        mutation::constant("torus-mask-without-error", &mut errors, OFFSET);
        Zeroizing::new(errors.iter().map(|e| small(*e)).collect())
    }

    /// `A0 s + e0` for some of the keys, rounded: r polynomials a key, key by key.
    fn encryptions_of_zero(&self, keys: &Panel, some: Range<usize>, prg: &mut Prg) -> Vec<Vec<Wide>> {
        if some.is_empty() {
            return Vec::new();
        }
        let (p, count) = (&self.shape.parameters, some.len());
        let rows: Vec<Vec<Wides>> =
            self.zeros.iter().map(|row| self.times(row, keys, some.clone(), prg)).collect();
        let round = |b0: &Wides| b0.iter().map(|v| v.rounded(p.dropped_bits(), p.modulus_bits())).collect();
        (0..count).flat_map(|key| rows.iter().map(move |row| round(&row[key]))).collect()
    }

    /// `floor(-(H s) / delta)` at all outputs.
    fn share(&self, keys: &Panel) -> Zeroizing<Vec<u64>> {
        let (s, context) = (&*self.shape, &self.shape.context);
        let b = s.layout.blocks();
        let mut share = Zeroizing::new(vec![0; s.layout.output_len()]);
        for (i, hint) in self.answers.iter().enumerate() {
            let (group, answer) = divide(i, b.outputs);
            let places = |tile| s.outputs([group, tile, answer]);
            let mut sums: Vec<Wides> =
                (0..b.tiles).map(|tile| Zeroizing::new(vec![Wide::default(); places(tile).len()])).collect();
            for (j, sum) in hint.times(context, keys, 0..b.tiles).into_iter().enumerate() {
                let (digit, tile) = divide(j, b.tiles);
                let coefficients = places(tile).iter().map(|o| o.coefficient());
                gather(context, sum, self.cut.below(digit), coefficients, &mut sums[tile]);
            }
            for (tile, sums) in sums.iter().enumerate() {
                for (output, sum) in places(tile).iter().zip(sums.iter()) {
                    share[output.index()] = s.share(&sum.negated());
                }
            }
        }
        share
    }
}

impl TorusLayer {
    /// A mask from what [`Mask::keep`] gave, of exactly [`TorusLayer::mask_bytes`] bytes. Whoever calls this reads every mask once:
    /// its store marks it used before.
    pub fn kept(&self, bytes: &[u8]) -> Result<Mask, WireError> {
        let (s, expected) = (&*self.shape, self.mask_bytes());
        if bytes.len() != expected {
            return Err(WireError::Length { expected, found: bytes.len() });
        }
        let (ring, mut rest) = (s.parameters.ring(), bytes);
        let mut next = |n: usize| {
            let (here, after) = rest.split_at(ring.packed_bytes(n));
            rest = after;
            Ok::<_, WireError>(Zeroizing::new(unpack(ring, here, n)?))
        };
        let masks = (0..s.layout.queries()).map(|query| next(s.held(query).len()));
        let masks = masks.collect::<Result<Vec<_>, _>>()?;
        let share = next(s.layout.output_len())?;
        Ok(Mask { shape: Arc::clone(&self.shape), masks, share })
    }
}

impl Mask {
    /// What [`TorusLayer::kept`] makes the mask of again. A secret.
    pub fn keep(self) -> Zeroizing<Vec<u8>> {
        let bytes = TorusLayer { shape: Arc::clone(&self.shape) }.mask_bytes();
        let (ring, mut out) = (self.shape.parameters.ring(), Zeroizing::new(Vec::with_capacity(bytes)));
        self.masks.iter().for_each(|mask| pack(ring, mask, &mut out));
        pack(ring, &self.share, &mut out);
        out
    }

    /// This side's share of the operand, masked, which goes to the server, and its share of the product.
    ///
    /// Panics where the number of values is another.
    pub fn run(mut self, x: &[u64]) -> (Vec<u8>, Zeroizing<Vec<u64>>) {
        let (s, ring) = (&*self.shape, self.shape.parameters.ring());
        assert_eq!(x.len(), s.layout.input_len(), "number of values");
        let mut body = Vec::new();
        for (query, mask) in self.masks.iter_mut().enumerate() {
            if mutation::active("torus-operand-unmasked") {
                mask.fill(0);
            }
            for (mask, held) in mask.iter_mut().zip(s.held(query)) {
                *mask = ring.wrap(mask.wrapping_add(x[held.index()]));
            }
            pack(ring, mask, &mut body);
        }
        (body, self.share)
    }
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mask(..)")
    }
}

/// A small value that has [`OFFSET`] added.
pub(crate) fn small(word: u64) -> Wide {
    let mut out = Wide::default();
    out.add_shifted(word.wrapping_sub(OFFSET) as i64, 0);
    out
}

/// Quotient and remainder of public numbers.
#[expect(clippy::integer_division_remainder_used, reason = "numbers of polynomials are public")]
pub(crate) fn divide(i: usize, by: usize) -> (usize, usize) {
    (i / by, i % by)
}
