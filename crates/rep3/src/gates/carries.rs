//! How often the low m bits of the three components carry: what is between a value and its components once they are
//! shifted or lengthened. One carry, e, the dealer of a part sees: that of `x_j` and `x_(j+1)`. The other, c, is that of their sum a and of b.

use crate::adder::{Adder, Summands, Top};
use crate::context::Party;
use crate::moves::{Chosen, Deal, Dealt, Known, Pieces, Select};
use crate::parts::Parts;
use crate::planes::{Bit, Bits};
use crate::proof::Algebra;
use crate::{Planes, RunError, Share, tree};
use privet_ring::Ring;

/// `e + c` in `to`, for m from 1 to 63. Rounds: those of the carry of m bits, and 3 more.
pub(super) fn count(cx: &mut Party, m: u32, to: Ring, x: &Share) -> Result<Share, RunError> {
    // the dealer's own carry is known to it; it is shared as a bit only to be proved
    let top = if cx.transcript.is_some() { Top::Carry } else { Top::None };
    let bits = Summands::deal(cx, "low bits", (x, m as usize, top), |b| b)?;
    let carry = tree::carry(cx, &bits)?;
    let parts = bits.parts;
    let (l, v) = carry.summands(cx, &parts);
    let e = Bit { values: own_bit(cx, &parts, x, m, m), shared: proof(cx, &bits, m) };
    Ok(Carries { parts, to, l, v, either: false, e, wraps: None }.number(cx, None)?.join(cx.id, &parts))
}

/// [`count`] of values that are known to be below 2^(m-1), as a ReLU's result is. Two rounds.
///
/// Then a and b carry exactly where the top bit of one of them is set: what they add up to is 2^m and less than
/// 2^(m-1) more, or just less than 2^(m-1).
pub(super) fn count_below_half(cx: &mut Party, m: u32, to: Ring, x: &Share) -> Result<Share, RunError> {
    let parts = Parts::of(x.len());
    let (l, v, e) = tops(cx, &parts, m, x);
    let carries = Carries { parts, to, l, v, either: true, e, wraps: None };
    Ok(carries.number(cx, Some(above_all(x, m)))?.join(cx.id, &parts))
}

/// `-2^m (e + c)` in `to`, for u of k bits that is below 2^(k-1), with m = k - shift bits above which the wraps of k bits are
/// once u is shifted. Two rounds.
pub(super) fn wraps(
    cx: &mut Party,
    (from, shift): (Ring, u32),
    to: Ring,
    u: &Share,
) -> Result<Share, RunError> {
    let m = from.bits() - shift;
    let count = count_below_half(cx, from.bits(), Ring::new(to.bits() - m), u)?;
    let lifted = |count: &[u64]| count.iter().map(|c| to.wrap((c << m).wrapping_neg())).collect();
    Ok(Share::new(lifted(&count.own), lifted(&count.next)))
}

/// [`count`] of the low `shift` bits of `rounded`, and [`wraps`] of u: `e + c - 2^m (e' + c')` in `to`. Rounds: those of [`count`].
pub(super) fn count_less_wraps(
    cx: &mut Party,
    (from, shift): (Ring, u32),
    to: Ring,
    [rounded, u]: [&Share; 2],
) -> Result<Pieces, RunError> {
    let k = from.bits();
    let top = if cx.transcript.is_some() { Top::Carry } else { Top::None };
    let bits = Summands::deal(cx, "low bits", (rounded, shift as usize, top), |b| b)?;
    let carry = tree::carry(cx, &bits)?;
    let parts = bits.parts;
    let (l, v) = carry.summands(cx, &parts);
    let e = Bit { values: own_bit(cx, &parts, rounded, shift, shift), shared: proof(cx, &bits, shift) };
    let (h, w, e2) = tops(cx, &parts, k, u);
    let wraps = Some(Wraps { m: k - shift, h, w, e: e2 });
    Carries { parts, to, l, v, either: false, e, wraps }.number(cx, Some(above_all(u, k)))
}

/// What [`count_less_wraps`] gives, of the bits of k that a sign is made of as well: k - 1 of them are added, `carry` is that out of the
/// lowest `shift`, and there is what [`top_of_bits`] says. So nothing more is dealt to be proved. x may be any number: if it is negative, what its wraps are
/// taken for is a function of x and of its components. A ring `to` of the m bits that are left has no wraps.
pub(super) fn of_bits(
    cx: &Party,
    bits: &Summands,
    (from, shift): (Ring, u32),
    to: Ring,
    (x, carry): (&Share, &Planes),
) -> Carries {
    let (k, m, parts) = (from.bits(), from.bits() - shift, bits.parts);
    let (l, v) = carry.summands(cx, &parts);
    let carried = || bits.carried_into(&Dealt::summand(cx.id, &parts, x), shift);
    let shared = cx.transcript.is_some().then(|| bits_of(cx, &parts, carried()));
    let e = Bit { values: own_bit(cx, &parts, x, shift, shift), shared };
    let wraps = (to.bits() > m).then(|| {
        let (mut h, w, mut e) = tops(cx, &parts, k, x);
        (h.shared, e.shared) = (proof(cx, bits, k - 1), proof(cx, bits, k));
        Wraps { m, h, w, e }
    });
    Carries { parts, to, l, v, either: false, e, wraps }
}

/// What has to be shared above the bits of [`of_bits`]: a carry, where there are wraps to be proved.
pub(super) fn top_of_bits(cx: &Party, m: u32, to: Ring) -> Top {
    if cx.transcript.is_some() && to.bits() > m { Top::BitAndCarry } else { Top::Bit }
}

/// How often an addition carries, to be made a number: e, which the dealer sees, and what is made of a bit l of the dealer's and a bit v that the
/// two others know.
pub(super) struct Carries {
    parts: Parts,
    to: Ring,
    l: Bit,
    v: Known<Bits>,
    /// Whether that is `l OR v`, else `l ^ v`.
    either: bool,
    e: Bit,
    /// To be taken off.
    wraps: Option<Wraps>,
}

/// What numbers of k bits wrap, above the m that are left of them: once for the dealer's e, and once for h OR w.
struct Wraps {
    m: u32,
    h: Bit,
    w: Known<Bits>,
    e: Bit,
}

impl Carries {
    /// `e + c - 2^m (e' + c')` in `to`. With c = l ^ v and c' = h OR w that is
    /// `(l + e - 2^m (h + e')) + (v - 2^m w) - 2 l v + 2^m h w`: l, h and the first bracket are dealt, the products are one split. Two rounds.
    /// `adder` deals the bits from which the uppermost two of the dealer's are proved, where nothing has yet.
    fn number(mut self, cx: &mut Party, adder: Option<Adder>) -> Result<Pieces, RunError> {
        let adder = adder.filter(|_| cx.transcript.is_some());
        let mut columns = self.deals(cx);
        columns.extend(adder.as_ref().map(|adder| adder.deal(cx, &self.parts)));
        let mut dealt = cx.deal_all("carries", columns)?;
        if let Some(adder) = adder
            && let Some(a) = dealt.pop()
        {
            let (bits, m) = (adder.dealt(cx, self.parts, a, |b| b), adder.m as u32);
            let (top, carry) = match &mut self.wraps {
                Some(wraps) => (&mut wraps.h, &mut wraps.e),
                None => (&mut self.l, &mut self.e),
            };
            (top.shared, carry.shared) = (proof(cx, &bits, m - 1), proof(cx, &bits, m));
        }
        self.of_dealt(cx, dealt)
    }

    /// l, h where there are wraps, and the bracket: once.
    pub fn deals(&mut self, cx: &Party) -> Vec<Deal> {
        let words = self.parts.elements(cx.id).map(|part| part.len());
        let deal = |ring, values| Deal { algebra: Algebra::Ring(ring), values, words, masks: None };
        let mut sum: Vec<u64> = self.l.values.iter().zip(&self.e.values).map(|(l, e)| l + e).collect();
        let mut columns = vec![deal(self.to, std::mem::take(&mut self.l.values))];
        if let Some(Wraps { m, h, e, .. }) = &mut self.wraps {
            let above = h.values.iter().zip(&e.values).map(|(h, e)| (h + e) << *m);
            sum.iter_mut().zip(above).for_each(|(sum, above)| *sum = sum.wrapping_sub(above));
            columns.push(deal(growth(self.to, *m), std::mem::take(&mut h.values)));
        }
        sum.iter_mut().for_each(|sum| *sum = self.to.wrap(*sum));
        columns.push(deal(self.to, sum));
        columns
    }

    /// The number, once these are dealt. One round.
    pub fn of_dealt(self, cx: &mut Party, dealt: Vec<Dealt>) -> Result<Pieces, RunError> {
        let Carries { parts, to, l, v, either, e, wraps } = self;
        let mut dealt = dealt.into_iter();
        let mut next = || dealt.next().unwrap_or_else(|| unreachable!("one for each column"));
        let number = next();
        l.claim(cx, to, &number);
        let above = wraps.map(|wraps| (next(), wraps));
        let sum = next();
        let weight = if either { 1 } else { 2u64 };
        let mut chosen =
            vec![Chosen { number: number.clone(), weight: weight.wrapping_neg(), bit: v.clone() }];
        let proves = cx.transcript.is_some();
        let rest = proves.then(|| sum.zip(&number, |sum, l| difference(to, sum, l)));
        if let Some((number, Wraps { m, h, w, e: wrap })) = &above {
            h.claim(cx, growth(to, *m), number);
            let add = |r: &u64, h: &u64| to.wrap(r.wrapping_add(h << m));
            let rest = rest
                .map(|rest| rest.zip(number, |rest, h| rest.iter().zip(h).map(|(r, h)| add(r, h)).collect()));
            if let (Some(rest), Some(e), Some(wrap)) = (rest, &e.shared, &wrap.shared) {
                cx.claim_bits(to, [(1, e), ((1u64 << m).wrapping_neg(), wrap)], &rest);
            }
            // what wraps around the smaller ring wraps around the larger one
            chosen.push(Chosen { number: number.clone(), weight: 1 << m, bit: w.clone() });
        } else if let Some(rest) = rest {
            e.claim(cx, to, &rest);
        }
        let words = parts.elements(cx.id).map(|part| part.len());
        let [mut out] = cx.select("carries", [Select { ring: to, chosen, turned: None, words }])?;
        out.add_dealt(&sum);
        out.add_known_times(&v, 1);
        if let Some((_, Wraps { m, w, .. })) = &above {
            out.add_known_times(w, (1u64 << m).wrapping_neg());
        }
        Ok(out)
    }
}

/// What is needed of a wrap in `to`, above m bits.
fn growth(to: Ring, m: u32) -> Ring {
    Ring::new(to.bits() - m)
}

/// The top bits of a and of b, of k bits each, and the carry that the dealer sees.
fn tops(cx: &Party, parts: &Parts, k: u32, x: &Share) -> (Bit, Known<Bits>, Bit) {
    let [top, carry] = [k - 1, k].map(|l| Bit { values: own_bit(cx, parts, x, k, l), shared: None });
    (top, Known::summand(cx.id, parts, x).bit(k - 1), carry)
}

/// What is dealt only to prove the top bit and the carry of k bits.
fn above_all(x: &Share, k: u32) -> Adder<'_> {
    Adder { x, m: k as usize, top: Top::Carry, tree: false }
}

fn difference(ring: Ring, x: &[u64], y: &[u64]) -> Vec<u64> {
    x.iter().zip(y).map(|(x, y)| ring.wrap(x.wrapping_sub(*y))).collect()
}

/// Bit `l` of the sum of `x_j` and `x_(j+1)` modulo 2^m, in this party's part; for l = m what they carry.
fn own_bit(cx: &Party, parts: &Parts, x: &Share, m: u32, l: u32) -> Vec<u64> {
    let (a, low) = (Dealt::summand(cx.id, parts, x), Ring::new(m).mask());
    let sums = a.own.iter().zip(a.next.iter()).map(|(x, y)| (x & low).overflowing_add(y & low));
    sums.map(|(sum, carry)| if l == 64 { u64::from(carry) } else { sum >> l & 1 }).collect()
}

/// The sharing of that bit modulo 2, where it is to be proved.
fn proof(cx: &Party, bits: &Summands, l: u32) -> Option<Dealt<Bits>> {
    cx.transcript.as_ref()?;
    Some(bits_of(cx, &bits.parts, bits.bit(l as usize)))
}

/// One plane, without what stands behind each part's last element.
fn bits_of(cx: &Party, parts: &Parts, plane: Dealt) -> Dealt<Bits> {
    let len = parts.elements(cx.id).map(|part| part.len());
    Dealt {
        own: Bits::of(plane.own, len.mine),
        next: Bits::of(plane.next, len.mine),
        before: Bits::of(plane.before, len.before),
        after: Bits::of(plane.after, len.after),
    }
}
