//! Public tables at a secret place: with `u = x + H`, `T[x]` is the sum over all v of `1{H = v} T[u - v]`, and the record has a
//! word of each `1{H = v}`, made of H's bits by ANDs.
//!
//! A piecewise quadratic: with v the upper bits of H and d the lower ones, `x + d` has the index `u_high - v` and below it u_low,
//! so `t = u_low - d`. With words `o_v = 1{H_high = v}`, `o_v d` and `o_v d^2` the result `c0 + c1 t + c2 t^2` is linear in them,
//! with public factors. So one opening is all there is.

use crate::Opened;
use crate::compare::{Linked, Piece};
use crate::eval::{Eval, EvalError};
use crate::evaluator::Held;
use crate::gate::{At, Gate};
use crate::mutation;
use crate::prepare::Given;
use crate::preprocess::{Kept, PrepareError, Preprocess};
use crate::price;
use crate::seeds::PartySeed;
use crate::shares::{Bits, Words};
use crate::tables;
use privet_family::{OpeningList, Secret, Wire};
use privet_plan::cost::{Cost, Operation};
use privet_plan::tables::Pieces;
use privet_ring::Ring;

/// Most places of a table: a word of the record for each.
const MOST_PLACES: usize = 1 << 9;

/// Why there is no table of so many places, if there is none.
pub(crate) fn too_large(places: usize) -> Option<String> {
    (places > MOST_PLACES).then(|| {
        format!("a table of {places} places takes as many words of a record an element; protocol semi2k takes at most {MOST_PLACES}")
    })
}

/// Elements whose words of a table are prepared at once.
fn piece(places: usize, words: usize) -> usize {
    ((1 << 21) / (places * words)).next_multiple_of(512)
}

/// The words `1{H = v}` for all v but the last, which is what is left of one.
fn hot_words(
    cx: &mut dyn Preprocess,
    hot: &[Bits],
    n: usize,
    ring: Ring,
) -> Result<Vec<Words>, PrepareError> {
    cx.to_words(&hot.iter().collect::<Vec<_>>(), n, ring)
}

/// Read the words of all places of a piece: `use_words(v, words)`, the last one's being `whole` without the others.
fn each_place(
    cx: &mut Eval,
    places: usize,
    ring: Ring,
    mut whole: Secret,
    mut use_words: impl FnMut(usize, &[u64]),
) -> Result<(), EvalError> {
    for v in 0..places - 1 {
        let words = Secret::new(cx.take(ring, whole.len())?);
        whole.iter_mut().zip(words.iter()).for_each(|(rest, w)| *rest = rest.wrapping_sub(*w));
        use_words(v, &words);
    }
    use_words(places - 1, &whole);
    Ok(())
}

/// [`privet_plan::ir::Op::Lookup`].
pub(crate) struct Tables<'a>(pub &'a [Vec<i64>]);

impl Tables<'_> {
    fn link(wire: Wire, from: Ring) -> Linked {
        let piece = piece(1 << from.bits(), 1);
        Linked { wire, ring: from, bits: from.bits(), what: None, plane: false, words: Vec::new(), piece }
    }
}

impl Gate for Tables<'_> {
    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let (from, to, lambda) = (x.at.from(), x.at.to(), x.mask(cx, 0));
        Tables::link(x.at.wire(), from).prepare(cx, None, &lambda, None, (from, &[]), |cx, piece, mask| {
            let hot = tables::one_hot(cx, &mask.bits)?;
            let words = hot_words(cx, &hot, piece.len(), to)?;
            words.iter().try_for_each(|words| cx.keep(Kept::Words(words)))
        })
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (from, to, xh) = (x.at.from(), x.at.to(), x.value(0));
        let (tables, n) = (self.0, xh.len());
        let mut y = cx.result_mask(x.at.wire(), to, tables.len() * n);
        let link = Tables::link(x.at.wire(), from);
        let places = 1usize << from.bits();
        link.read_pieces(
            cx,
            n,
            |i| xh[i],
            |cx, range, u| {
                let one = Secret::new(vec![u64::from(cx.leads()); u.len()]);
                each_place(cx, places, to, one, |v, hot| {
                    let turned = if mutation::active("lookup-not-rotated") { 0 } else { v as u64 };
                    for (t, table) in tables.iter().enumerate() {
                        let y = &mut y[t * n + range.start..t * n + range.end];
                        for ((y, hot), u) in y.iter_mut().zip(hot).zip(u) {
                            let entry = table[from.wrap(u.wrapping_sub(turned)) as usize] as u64;
                            *y = y.wrapping_add(hot.wrapping_mul(entry));
                        }
                    }
                })
            },
        )?;
        y.iter_mut().for_each(|y| *y = to.wrap(*y));
        cx.open_masked("looked up", to, y.expose())
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens_offsets(list, at.operand(0).len());
        at.opens(list, "looked up");
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let n = of.elements() / self.0.len() as u64;
        let link = Tables::link(Wire::node(0), Ring::new(of.operand_bits()));
        price::table(of, &link, n, of.operand_bits(), 1)
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

    fn link(&self, wire: Wire, from: Ring) -> Linked {
        let piece = piece(self.pieces.len(), self.words());
        Linked { wire, ring: from, bits: from.bits(), what: None, plane: false, words: Vec::new(), piece }
    }

    /// Words a place: without bits below the index nothing is left of x.
    fn words(&self) -> usize {
        if self.shift == 0 { 1 } else { 3 }
    }

    /// Those of a piece.
    fn keep(
        &self,
        cx: &mut dyn Preprocess,
        to: Ring,
        piece: &Piece,
        bits: &[Bits],
        low: Option<&Words>,
    ) -> Result<(), PrepareError> {
        let hot = if bits.is_empty() { Vec::new() } else { tables::one_hot(cx, bits)? };
        let words = hot_words(cx, &hot, piece.len(), to)?;
        words.iter().try_for_each(|words| cx.keep(Kept::Words(words)))?;
        let Some(low) = low else { return Ok(()) };
        let square = cx.square(low)?;
        let factors: Vec<(&Bits, Vec<&Words>)> = hot.iter().map(|hot| (hot, vec![low, &square])).collect();
        let products = if hot.is_empty() { Vec::new() } else { cx.times(&factors)? };
        for (which, whole) in [low, &square].into_iter().enumerate() {
            cx.keep(Kept::Words(whole))?;
            products.iter().try_for_each(|products| cx.keep(Kept::Words(&products[which])))?;
        }
        Ok(())
    }
}

impl Gate for Quadratics<'_> {
    fn prepare(&self, cx: &mut dyn Preprocess, x: &Given) -> Result<(), PrepareError> {
        let (from, to, lambda, shift) = (x.at.from(), x.at.to(), x.mask(cx, 0), self.shift);
        let low = 0..shift;
        let parts = if shift == 0 { &[][..] } else { std::slice::from_ref(&low) };
        self.link(x.at.wire(), from).prepare(cx, None, &lambda, None, (to, parts), |cx, piece, mask| {
            let low = mask.words.first().map(|low| low.reduced(to));
            self.keep(cx, to, piece, &mask.bits[shift as usize..], low.as_ref())
        })
    }

    fn eval(&self, cx: &mut Eval, x: &Held) -> Result<Opened, EvalError> {
        let (from, to, xh) = (x.at.from(), x.at.to(), x.value(0));
        let (pieces, places, n) = (self.pieces(), self.pieces.len(), xh.len());
        let mut y = cx.result_mask(x.at.wire(), to, n);
        self.link(x.at.wire(), from).read_pieces(
            cx,
            n,
            |i| xh[i],
            |cx, range, u| {
                for power in 0..self.words() {
                    let whole = match power {
                        0 => Secret::new(vec![u64::from(cx.leads()); u.len()]),
                        _ => Secret::new(cx.take(to, u.len())?),
                    };
                    let y = &mut y[range.clone()];
                    each_place(cx, places, to, whole, |v, words| {
                        for ((y, w), u) in y.iter_mut().zip(words).zip(u) {
                            let (index, low) = pieces.split(*u);
                            let piece = &pieces.pieces[index.wrapping_sub(v) & (places - 1)];
                            let [c0, c1, c2] = piece.map(|c| c as u64);
                            let factor = match power {
                                0 => c2.wrapping_mul(low).wrapping_add(c1).wrapping_mul(low).wrapping_add(c0),
                                1 => c1.wrapping_add(c2.wrapping_mul(low).wrapping_mul(2)).wrapping_neg(),
                                _ => c2,
                            };
                            *y = y.wrapping_add(w.wrapping_mul(factor));
                        }
                    })?;
                }
                Ok(())
            },
        )?;
        y.iter_mut().for_each(|y| *y = to.wrap(*y));
        cx.open_masked("looked up", to, y.expose())
    }

    fn openings(&self, at: &At, list: &mut OpeningList) {
        at.opens_offsets(list, at.operand(0).len());
        at.opens(list, "looked up");
    }

    /// What is below the index in H.
    fn coins(&self, at: &At, seeds: &[PartySeed], _: &dyn Fn() -> Words) -> Option<Vec<u64>> {
        let bits = self.link(at.wire(), at.from()).known_bits(seeds, at.len());
        Some(bits.into_iter().map(|h| self.pieces().split(h).1).collect())
    }

    fn price(&self, of: &Operation<'_>) -> Cost {
        let link = self.link(Wire::node(0), Ring::new(of.operand_bits()));
        price::table(of, &link, of.elements(), self.pieces().index_bits(), self.words() as u64)
    }
}
