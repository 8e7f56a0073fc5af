//! A mask H whose bits are shared, linked to the mask lambda of a wire by the offset `delta = H - lambda`, which is opened while a
//! record is prepared. So `u = xh + delta = x + H` is public in the run without a message. And comparisons of u's bits
//! with H's, in planes, by chunks (`docs/semi2k.md`, "Comparison").
//!
//! All is prepared in pieces of some elements, so that memory stays flat; what is opened in a run is opened for all at once.

use crate::eval::{Eval, EvalError};
use crate::planes;
use crate::preprocess::{BitUse, BitsAt, BitwiseMask, Kept, MaskOf, PrepareError, Preprocess};
use crate::seeds::PartySeed;
use crate::shares::{Bits, Words};
use crate::{mutation, tables};
use privet_family::{Secret, Wire};
use privet_kernels::Chunks;
use privet_kernels::chunks::{Level, words};
use privet_plan::Form;
use privet_ring::{BitVec, Ring};
use std::ops::Range;

/// Most elements that are prepared at once: whole blocks of planes.
pub(crate) const PIECE: usize = 1 << 16;

/// What is asked of a public x and a shared alpha.
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

    /// How it is cut. A tree needs a dealer of its keys, so it is cut as where nothing is stated of chunks.
    pub fn chunks(self, form: Option<Form>) -> Chunks {
        let equal = self.predicate == Predicate::Equal;
        match form {
            Some(Form::Chunks { width, fan }) => Chunks::new(self.bits, width.into(), fan.into(), equal),
            Some(Form::Tree | Form::WithTruncation | Form::AfterTruncation) | None => {
                Chunks::new(self.bits, 2, 2, equal)
            }
        }
    }
}

/// What the opening before level `level` of the chunks of a comparison is called.
pub(crate) fn level_name(name: &str, level: usize) -> String {
    format!("{name}, level {}", level + 1)
}

/// How values of a wire are linked to a mask of bits, and what the record has for each: the offset, what is compared, a plane,
/// words. Both sides read it.
#[derive(Clone, Debug)]
pub(crate) struct Linked {
    /// Whose seeds the bits are from.
    pub wire: Wire,
    /// Of the values and the offset.
    pub ring: Ring,
    /// Bits of H that are shared one by one, from the lowest.
    pub bits: u32,
    /// What the low bits of u are compared with, if they are.
    pub what: Option<Comparison>,
    /// The record has a plane of what masks the comparison's bit; otherwise [`BitUse::Result`] bits do.
    pub plane: bool,
    /// The words of the record.
    pub words: Vec<Ring>,
    /// Elements of a piece.
    pub piece: usize,
}

/// A piece of a wire's elements while it is prepared.
pub(crate) struct Piece<'a> {
    wire: Wire,
    pub number: usize,
    pub range: Range<usize>,
    /// Shares of the wire's mask.
    pub lambda: &'a Words,
}

impl Piece<'_> {
    /// Elements.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Private bits of the piece, one an element.
    pub fn result_bits(&self, cx: &dyn Preprocess) -> Bits {
        cx.private_bits(self.at(BitUse::Result), self.len().div_ceil(64))
    }

    fn at(&self, usage: BitUse) -> BitsAt {
        BitsAt { wire: self.wire, usage, chunk: self.number }
    }
}

/// The pieces of `n` elements.
pub(crate) fn pieces(n: usize, piece: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    (0..n).step_by(piece).map(move |start| start..n.min(start + piece)).enumerate()
}

impl Linked {
    /// All k bits of H are shared, and its lowest are compared.
    pub fn compared(wire: Wire, ring: Ring, what: Comparison, plane: bool, words: Vec<Ring>) -> Linked {
        Linked { wire, ring, bits: ring.bits(), what: Some(what), plane, words, piece: PIECE }
    }

    /// Prepare for values with the mask `lambda`. H has the bits that are shared and above them `high`, if there are any above.
    /// `parts` are the bits of words of H that `rest` wants, in the ring `wide`; it keeps what comes after the comparison.
    pub fn prepare(
        &self,
        cx: &mut dyn Preprocess,
        form: Option<Form>,
        lambda: &Words,
        high: Option<&Words>,
        (wide, parts): (Ring, &[Range<u32>]),
        mut rest: impl FnMut(&mut dyn Preprocess, &Piece, BitwiseMask) -> Result<(), PrepareError>,
    ) -> Result<(), PrepareError> {
        let chunks = self.what.map(|what| what.chunks(form));
        let wide = Ring::new(wide.bits().max(self.ring.bits()));
        for (number, range) in pieces(lambda.len(), self.piece) {
            let lambda = lambda.slice(range.clone());
            let piece = Piece { wire: self.wire, number, range: range.clone(), lambda: &lambda };
            let mut mask = cx.bitwise_mask(&MaskOf {
                at: piece.at(BitUse::Mask),
                count: piece.len(),
                bits: self.bits,
                ring: wide,
                words: std::iter::once(0..self.bits).chain(parts.iter().cloned()).collect(),
                pairs: chunks.as_ref().is_some_and(tables::use_pairs),
            })?;
            let low = mask.words.remove(0).reduced(self.ring);
            let whole = match high {
                Some(high) => low.add(&high.slice(range).up(self.bits, self.ring)),
                None => low,
            };
            let delta = cx.open("offset", &mutation::offset(whole.sub(&lambda), &lambda))?;
            cx.keep(Kept::Public(self.ring, &delta))?;
            if let Some(chunks) = &chunks {
                let of_level = |(l, level): (usize, &Level)| {
                    let count = words(level.opened(), piece.len());
                    planes::split(&cx.private_bits(piece.at(BitUse::Level(l)), count), level.opened())
                };
                let masks: Vec<Vec<Bits>> = chunks.levels.iter().enumerate().map(of_level).collect();
                let (codes, products) = tables::dealt(cx, chunks, &mask, &masks)?;
                for planes in std::iter::once(codes).chain(products) {
                    cx.keep(Kept::Bits(&planes::join(&planes.iter().collect::<Vec<_>>())))?;
                }
            }
            rest(cx, &piece, mask)?;
        }
        Ok(())
    }

    /// A party's side: read the record at the public points `xh(i)`, and compare if something is compared. One round for each
    /// level.
    pub fn read(
        &self,
        cx: &mut Eval,
        name: &str,
        n: usize,
        xh: impl Fn(usize) -> u64,
    ) -> Result<Read, EvalError> {
        let chunks = self.what.map(|what| what.chunks(cx.form));
        let mut u = Vec::with_capacity(n);
        let mut all: Vec<Secret> = self.words.iter().map(|_| Secret::new(Vec::with_capacity(n))).collect();
        let (mut shares, mut plane) = (Secret::new(Vec::new()), Secret::new(Vec::new()));
        let mut products: Vec<Secret> = Vec::new();
        for (number, range) in pieces(n, self.piece) {
            let delta = cx.take(self.ring, range.len())?;
            u.extend(range.clone().zip(&delta).map(|(i, d)| self.ring.wrap(xh(i).wrapping_add(*d))));
            let side = range.len().div_ceil(64);
            if let Some(chunks) = &chunks {
                let low = Ring::new(chunks.bits());
                let points: Vec<u64> = u[range.clone()].iter().map(|u| low.wrap(*u)).collect();
                let dealt = cx.take_bits(chunks.tables() * side)?;
                let from = shares.len();
                shares.resize(from + chunks.leaves() * side, 0);
                cx.device.chunk_leaves(chunks, cx.leads(), &points, &dealt, &mut shares[from..]);
                products.resize_with(chunks.levels.len(), Secret::default);
                for (level, products) in chunks.levels.iter().zip(&mut products) {
                    products.extend_from_slice(&cx.take_bits(level.products() * side)?);
                }
                let bits = match self.plane {
                    true => cx.take_bits(side)?,
                    false => cx.private_bits(self.at(BitUse::Result, number), side),
                };
                plane.extend_from_slice(&bits);
            }
            for (words, ring) in all.iter_mut().zip(&self.words) {
                words.extend_from_slice(&Secret::new(cx.take(*ring, range.len())?));
            }
        }
        let bits = match chunks {
            Some(chunks) => self.levels(cx, name, &chunks, n, shares, &products, &plane)?,
            None => BitVec::zeros(0),
        };
        Ok(Read { u, bits: Secret::new(bits), words: all })
    }

    /// A party's side where nothing is compared and what follows is large: `use_piece(cx, range, u)` reads the rest of a piece.
    pub fn read_pieces(
        &self,
        cx: &mut Eval,
        n: usize,
        xh: impl Fn(usize) -> u64,
        mut use_piece: impl FnMut(&mut Eval, Range<usize>, &[u64]) -> Result<(), EvalError>,
    ) -> Result<(), EvalError> {
        for (_, range) in pieces(n, self.piece) {
            let delta = cx.take(self.ring, range.len())?;
            let u: Vec<u64> =
                range.clone().zip(&delta).map(|(i, d)| self.ring.wrap(xh(i).wrapping_add(*d))).collect();
            use_piece(cx, range, &u)?;
        }
        Ok(())
    }

    fn at(&self, usage: BitUse, chunk: usize) -> BitsAt {
        BitsAt { wire: self.wire, usage, chunk }
    }

    /// This party's shares of the results, masked by `plane`, from its shares of the leaves.
    #[expect(clippy::too_many_arguments, reason = "all that a comparison has read")]
    fn levels(
        &self,
        cx: &mut Eval,
        name: &str,
        chunks: &Chunks,
        n: usize,
        mut shares: Secret,
        products: &[Secret],
        plane: &[u64],
    ) -> Result<BitVec, EvalError> {
        for (l, (level, products)) in chunks.levels.iter().zip(products).enumerate() {
            let mut masks = Secret::new(Vec::with_capacity(shares.len()));
            for (number, range) in pieces(n, self.piece) {
                let count = words(level.opened(), range.len());
                masks.extend_from_slice(&cx.private_bits(self.at(BitUse::Level(l), number), count));
            }
            shares.iter_mut().zip(masks.iter()).for_each(|(a, b)| *a ^= b);
            let opened = cx.open_masked_planes(&level_name(name, l), shares.expose())?;
            shares = Secret::new(vec![0; words(level.results(), n)]);
            let given = [&opened[..], products, &masks];
            cx.device.chunk_combine(level, cx.leads(), given, &mut shares);
        }
        cx.stats.comparisons += n as u64;
        shares.iter_mut().zip(plane).for_each(|(a, b)| *a ^= b);
        // one plane is left, whose blocks lie word after word
        Ok(BitVec::from_words(n, shares.expose()))
    }

    /// The number that the shared bits of H are, for the interpreter, from all parties' seeds.
    pub fn known_bits(&self, seeds: &[PartySeed], n: usize) -> Vec<u64> {
        let mut all = Vec::with_capacity(n);
        for (number, range) in pieces(n, self.piece) {
            let side = range.len().div_ceil(64);
            let mut bits = vec![0; self.bits as usize * side];
            for seed in seeds {
                let share = seed.private_bits(self.at(BitUse::Mask, number), bits.len());
                bits.iter_mut().zip(share.iter()).for_each(|(a, b)| *a ^= b);
            }
            all.extend((0..range.len()).map(|i| {
                (0..self.bits as usize).fold(0, |h, l| h | (bits[l * side + i / 64] >> (i % 64) & 1) << l)
            }));
        }
        all
    }
}

/// What a party has read and compared.
pub(crate) struct Read {
    /// `x + H`, public.
    pub u: Vec<u64>,
    /// This party's XOR shares of the comparison's results under their mask.
    pub bits: Secret<BitVec>,
    /// Its shares of the words.
    pub words: Vec<Secret>,
}

impl Read {
    /// Open the masked results.
    pub fn open(&mut self, cx: &mut Eval, name: &str) -> Result<BitVec, EvalError> {
        cx.open_masked_bits(name, std::mem::take(&mut *self.bits))
    }
}
