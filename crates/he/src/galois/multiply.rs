//! The multiplier's answers, and how the encryptor reads them.

use super::kernels::sum_of_products;
use super::keys::{Hop, digits, special};
use super::operand::Ready;
use super::turn;
use super::{DEGREE, Galois, GaloisLayout, HOP, Secret, SwitchKeys, noise};
use crate::context::{Coeff, Points};
use crate::encode::{self, wrap};
use crate::mutation;
use crate::plain::Plain;
use crate::pointwise;
use crate::sample::{self, OFFSET};
use crate::wire::{self, WireError};
use privet_prg::wiped::zeros;
use privet_prg::{Prg, Seed, Wiped};
use std::ops::Range;

/// Answers as they are sent: rounded bodies and masks, pseudo-random to all but the encryptor.
pub struct Answer {
    layout: GaloisLayout,
    polynomials: Vec<[Vec<u128>; 2]>,
}

/// One answer times P modulo q P: body and mask.
type Gathered = [Points; 2];

impl Galois {
    /// Answers to the operand in these bytes: `X W - share` modulo 2^k is what the encryptor reads. W is `[groups, k, o]`, `share`
    /// `[groups, m, o]`, uniform and used for nothing else. `prg` is the multiplier's own.
    ///
    /// # Errors
    /// Bytes that are not an operand of this layout.
    ///
    /// Panics where the number of weights or of shares is another.
    pub fn multiply(
        &self,
        keys: &mut SwitchKeys,
        layout: &GaloisLayout,
        operand: &[u8],
        w: &[u64],
        share: &[u64],
        prg: &mut Prg,
    ) -> Result<Answer, WireError> {
        let shape = layout.shape;
        assert_eq!(w.len(), shape.groups * shape.k * shape.o, "number of weights");
        assert_eq!(share.len(), shape.groups * shape.m * shape.o, "number of shares");
        let ready = self.ready(keys, layout, operand)?;
        let seeds: Vec<Seed> = (0..layout.answers()).map(|_| prg.seed()).collect();
        let signed = Plain::Power(layout.ring).signed(w);
        let keys = &*keys;
        let each = layout.row_blocks() * layout.column_blocks();
        let answers = self.context.each(shape.groups, |group| {
            let gathered = self.gather(keys, layout, &ready, group, &signed);
            let numbered = gathered.into_iter().enumerate().map(|(i, of)| (group * each + i, of));
            let finish =
                |(i, of): (usize, Gathered)| self.finish(keys, layout, i, of, share, &mut seeds[i].stream());
            numbered.map(finish).collect::<Vec<_>>()
        });
        Ok(Answer { layout: *layout, polynomials: answers.into_iter().flatten().collect() })
    }

    /// Sums over all automorphisms of a group, answer by answer: what the first hop turned times weights, then turned by the second one.
    pub(super) fn gather(
        &self,
        keys: &SwitchKeys,
        layout: &GaloisLayout,
        ready: &[Ready],
        group: usize,
        signed: &[u64],
    ) -> Vec<Gathered> {
        let wide = &self.wide;
        let (rows, columns) = (layout.row_blocks(), layout.column_blocks());
        let mut sums: Vec<Gathered> = (0..rows * columns).map(|_| [wide.zero(), wide.zero()]).collect();
        for part in layout.inner_parts() {
            let turned = self.first_hop(keys, layout, ready, group, &part);
            for column in 0..columns {
                let blocks: Vec<_> =
                    part.clone().map(|inner| layout.weights(group, inner, column, signed)).collect();
                for second in turn::keys_of(layout.width, 1) {
                    let weights = self.standing(layout, &blocks, second);
                    for (row, turned) in turned.iter().enumerate() {
                        let [body, mask] = [0, 1].map(|of| self.weighed(turned, of, &weights));
                        let digits = self.digits(&self.divided(mask));
                        let again = self.switched(&keys.hops[1], second, &digits, &body);
                        let sum = sums[row * columns + column].iter_mut();
                        sum.zip(&again).for_each(|(sum, of)| wide.add(&mut sum.words, &of.words, false));
                    }
                }
            }
        }
        sums
    }

    /// Of each row of a group what the first hop makes of a part of it: block by block of what is summed, key by key.
    fn first_hop(
        &self,
        keys: &SwitchKeys,
        layout: &GaloisLayout,
        ready: &[Ready],
        group: usize,
        part: &Range<usize>,
    ) -> Vec<Vec<Gathered>> {
        let (rows, inners) = (layout.row_blocks(), layout.inner_blocks());
        let of_block = |row: usize, inner: usize| {
            let of = &ready[(group * rows + row) * inners + inner];
            let switched = move |t: usize| self.switched(&keys.hops[0], t, &of.digits, &of.body);
            turn::keys_of(layout.width, 0).map(switched)
        };
        (0..rows).map(|row| part.clone().flat_map(|inner| of_block(row, inner)).collect()).collect()
    }

    /// What stands for blocks of weights in the order of [`Galois::first_hop`], for a key of the second hop.
    fn standing(&self, layout: &GaloisLayout, blocks: &[Wiped<u64>], second: usize) -> Vec<Points> {
        let mut room = Wiped::zeros(DEGREE);
        let mut all = Vec::with_capacity(blocks.len() * HOP);
        for block in blocks {
            for first in turn::keys_of(layout.width, 0) {
                let turns = [turn::of_hop(0, first), turn::of_hop(1, second)];
                turn::weights(block, layout.width, turns, &mut room);
                all.push(self.wide.signed_points(&room));
            }
        }
        all
    }

    /// A ciphertext under the next key, and turned by key t of a hop. Its body is given times P, modulo as many primes as it is not 0 for, and
    /// so is what comes of it, modulo q P.
    fn switched(&self, hop: &Hop, t: usize, mask: &[Points], body: &Points) -> Gathered {
        let (wide, keys) = (&self.wide, hop.of(t));
        let mut room = wide.zero();
        [0, 1].map(|part| {
            for prime in wide.primes() {
                let range = wide.range(prime);
                let terms: Vec<_> = mask
                    .iter()
                    .zip(keys)
                    .map(|(digit, key)| (&digit.words[range.clone()], &key[part].words[range.clone()]))
                    .collect();
                let body = body.words.get(range.clone()).filter(|_| part == 0);
                sum_of_products(wide.path(), wide.modulus(prime), body, &terms, &mut room.words[range]);
            }
            let mut out = wide.zero();
            turn::values(hop.turn(t), &room.words, &mut out.words);
            out
        })
    }

    /// One part of turned operands times weights, added up.
    fn weighed(&self, turned: &[[Points; 2]], part: usize, weights: &[Points]) -> Points {
        let wide = &self.wide;
        let mut out = wide.zero();
        for prime in wide.primes() {
            let range = wide.range(prime);
            let terms: Vec<_> = turned
                .iter()
                .zip(weights)
                .map(|(of, w)| (&of[part].words[range.clone()], &w.words[range.clone()]))
                .collect();
            sum_of_products(wide.path(), wide.modulus(prime), None, &terms, &mut out.words[range]);
        }
        out
    }

    /// An answer: re-randomised, its outputs drowned, less their shares, and rounded.
    pub(super) fn finish(
        &self,
        keys: &SwitchKeys,
        layout: &GaloisLayout,
        number: usize,
        gathered: Gathered,
        share: &[u64],
        prg: &mut Prg,
    ) -> [Vec<u128>; 2] {
        let q = &self.context;
        let [body, mask] = self.rerandomised(keys, gathered, prg);
        let (at, own): (Vec<_>, Vec<_>) =
            layout.outputs(number).map(|(at, place)| (at, share[place])).unzip();
        let own = Wiped::new(own);
        let bits =
            noise::flood_bits(layout.ring) - if mutation::active("galois-drowned-narrowly") { 2 } else { 0 };
        let mut outputs = encode::flood(q, Plain::Power(layout.ring), bits, &own, prg);
        q.add(&mut outputs.words, &picked(&body, &at).words, false);
        let (body, mask) = (
            encode::switch(q, &outputs, noise::body_bits(layout.ring)),
            encode::switch(q, &mask, noise::mask_bits(layout.ring)),
        );
        [body, mask]
    }

    /// What was gathered, with a fresh encryption of 0, divided by P: body and mask.
    pub(super) fn rerandomised(
        &self,
        keys: &SwitchKeys,
        [mut body, mut mask]: Gathered,
        prg: &mut Prg,
    ) -> [Coeff; 2] {
        let q = &self.context;
        let mut hiding = sample::ternary(prg, DEGREE);
        mutation::constant("galois-not-rerandomised", &mut hiding, OFFSET);
        let hiding = q.points(q.small(&hiding));
        for (of, zero) in [&mut body, &mut mask].into_iter().zip(&keys.zero) {
            q.add(&mut of.words[..digits() * DEGREE], &q.product(&hiding, zero).words, false);
        }
        let [body, mut mask] = [body, mask].map(|of| self.divided(of));
        let mut errors = sample::errors(prg, DEGREE);
        mutation::constant("galois-rerandomised-without-error", &mut errors, OFFSET);
        q.add(&mut mask.words, &q.small(&errors).words, false);
        [body, mask]
    }

    /// Values modulo q P divided by P and rounded to the nearest: coefficients modulo q.
    pub(super) fn divided(&self, values: Points) -> Coeff {
        let (q, wide) = (&self.context, &self.wide);
        let c = wide.coefficients(values);
        let (last, half) = (wide.modulus(digits()), special() >> 1);
        let mut rest = Wiped::zeros(DEGREE);
        let own = [(&c.words[wide.range(digits())], last.factor(1))];
        pointwise::combine(wide.path(), last, &own, half, &mut rest);
        let mut out = Coeff { words: zeros(digits() * DEGREE) };
        for prime in q.primes() {
            let (m, range) = (q.modulus(prime), q.range(prime));
            let inverse = m.inverse(m.reduce(u128::from(special())));
            let own = (&c.words[range.clone()], m.factor(inverse));
            let less = (&rest[..], m.factor(m.p() - inverse));
            let half = m.times(m.reduce(u128::from(half)), inverse);
            pointwise::combine(q.path(), m, &[own, less], half, &mut out.words[range]);
        }
        out
    }

    /// What the encryptor reads: `X W` less the multiplier's share, `[groups, m, o]`.
    ///
    /// # Errors
    /// Bytes that are not answers of this layout.
    pub fn open(
        &self,
        secret: &Secret,
        layout: &GaloisLayout,
        bytes: &[u8],
    ) -> Result<Wiped<u64>, WireError> {
        let answer = Answer::decode(layout, bytes)?;
        let (q, plain) = (&self.context, Plain::Power(layout.ring));
        let bits = noise::body_bits(layout.ring);
        let phases = q.each(answer.polynomials.len(), |i| {
            let [body, mask] = &answer.polynomials[i];
            let mask = q.points(encode::widen(q, mask, noise::mask_bits(layout.ring)));
            let product = q.coefficients(q.product(&mask, &secret.answer));
            let at: Vec<usize> = layout.outputs(i).map(|(at, _)| at).collect();
            let product = encode::switch(q, &picked(&product, &at), bits);
            let sum = |(c, b): (u128, &u128)| plain.decode(wrap(c.wrapping_add(*b), bits), bits);
            product.into_iter().zip(body).map(sum).collect::<Wiped<u64>>()
        });
        let mut out = Wiped::zeros(layout.shape.groups * layout.shape.m * layout.shape.o);
        for (number, phases) in phases.iter().enumerate() {
            layout.outputs(number).zip(phases.iter()).for_each(|((_, place), phase)| out[place] = *phase);
        }
        Ok(out)
    }
}

/// Coefficients at these places.
fn picked(c: &Coeff, at: &[usize]) -> Coeff {
    let words = c.words.chunks_exact(DEGREE).flat_map(|of_prime| at.iter().map(|at| of_prime[*at]));
    Coeff { words: words.collect() }
}

impl GaloisLayout {
    /// A block of weights, K rows of K, signed; zeros where there are none.
    fn weights(&self, group: usize, inner: usize, column: usize, signed: &[u64]) -> Wiped<u64> {
        let (k, o, width) = (self.shape.k, self.shape.o, self.width);
        let mut out = Wiped::zeros(width * width);
        let columns = column * width..((column + 1) * width).min(o);
        for row in inner * width..((inner + 1) * width).min(k) {
            let from = &signed[(group * k + row) * o..][columns.clone()];
            out[(row - inner * width) * width..][..from.len()].copy_from_slice(from);
        }
        out
    }
}

impl Answer {
    /// Exactly [`GaloisLayout::answer_bytes`] bytes.
    pub fn encode(&self) -> Vec<u8> {
        let ring = self.layout.ring;
        let mut out = Vec::with_capacity(self.layout.answer_bytes());
        for [body, mask] in &self.polynomials {
            wire::put_wide(noise::body_bits(ring), body, &mut out);
            wire::put_wide(noise::mask_bits(ring), mask, &mut out);
        }
        out
    }

    fn decode(layout: &GaloisLayout, bytes: &[u8]) -> Result<Answer, WireError> {
        let (expected, found) = (layout.answer_bytes(), bytes.len());
        if found != expected {
            return Err(WireError::Length { expected, found });
        }
        let mut rest = bytes;
        let mut next = |bits: u32, n: usize| {
            let (head, tail) = rest.split_at(wire::wide_bytes(bits, n));
            rest = tail;
            wire::wide(bits, n, head)
        };
        let [body, mask] = [noise::body_bits(layout.ring), noise::mask_bits(layout.ring)];
        let answer = |i: usize| Ok([next(body, layout.outputs(i).count())?, next(mask, DEGREE)?]);
        let polynomials = (0..layout.answers()).map(answer).collect::<Result<_, WireError>>()?;
        Ok(Answer { layout: *layout, polynomials })
    }
}
