//! What the owner of the weights does with an encrypted operand.
//!
//! A product still carries everything: [`Packed`]. Fresh encryptions of 0 hide what the weights left in the part that
//! the key multiplies, and only the outputs' coefficients stay: [`Cleared`]. Drowned, masked by a share and rounded it
//! tells the share alone: [`Flooded`]. Only that has bytes.

use crate::context::{Coeff, Context, Points};
use crate::encode;
use crate::key::{PublicKey, Query, SecretKey};
use crate::layout::{Layout, Output};
use crate::mutation;
use crate::params::Parameters;
use crate::sample;
use crate::wire::{self, WireError};
use privet_prg::Prg;
use std::sync::Arc;

/// Weights as values of polynomials, prepared once for a session; wiped on drop.
pub struct Weights {
    context: Arc<Context>,
    parameters: Parameters,
    polynomials: Vec<Points>,
}

/// Sums of products of ciphertexts with weights.
pub(crate) struct Packed {
    pub(crate) body: Points,
    pub(crate) mask: Points,
}

/// Re-randomised; of the body only the outputs' coefficients are left.
pub(crate) struct Cleared {
    pub(crate) body: Coeff,
    pub(crate) mask: Coeff,
}

/// Drowned, masked and rounded: one polynomial of an [`Answer`].
pub(crate) struct Flooded {
    mask: Vec<u128>,
    outputs: Vec<u128>,
}

/// Answers to a [`Query`], for the holder of the key.
pub struct Answer(Vec<Flooded>);

impl Weights {
    /// Weights modulo 2^k, signed of at most `parameters.weight_bits()`, packed as `layout` says.
    ///
    /// Panics where the parameters are of another set than the context, where the number of weights is another, or where
    /// a weight is too wide (which would break the bounds that secrecy rests on).
    pub fn new(context: &Arc<Context>, parameters: &Parameters, layout: &dyn Layout, w: &[u64]) -> Weights {
        assert_eq!(parameters.set(), context.set(), "parameters of the context's set");
        assert_eq!(w.len(), layout.weight_len(), "number of weights");
        let (ring, narrow) = (parameters.ring(), privet_ring::Ring::new(parameters.weight_bits()));
        let signed: sample::Small = sample::Small::new(w.iter().map(|w| ring.signed(*w) as u64).collect());
        // no early end: how long this takes tells nothing but that all is well
        let wide = signed.iter().fold(0, |any, w| any | (narrow.signed(*w) as u64 ^ *w));
        assert!(wide == 0, "a weight has more than {} bits", parameters.weight_bits());
        let polynomials = (0..layout.weights()).map(|number| {
            let mut packed = sample::Small::new(vec![0; context.degree()]);
            layout.pack_weights(number, &signed, &mut packed);
            context.points(context.signed(&packed))
        });
        let polynomials = polynomials.collect();
        Weights { context: Arc::clone(context), parameters: *parameters, polynomials }
    }

    /// Answer a query with its product, less a fresh uniform share: the answer, and the share, modulo 2^k in the order
    /// of the outputs. What the key's holder decrypts and this share add up to the product, always.
    ///
    /// Panics where the query has another number of polynomials than the layout. `prg` is the owner's own.
    pub fn answer(
        &self,
        public: &PublicKey,
        layout: &dyn Layout,
        query: &Query,
        prg: &mut Prg,
    ) -> (Answer, Vec<u64>) {
        let mut share = vec![0; layout.output_len()];
        let answers = self.cleared(public, layout, query, prg, |cleared, outputs, prg| {
            let own = prg.elements(self.parameters.ring(), outputs.len());
            let (flooded, own) = cleared.flood(&self.context, &self.parameters, own, prg);
            outputs.iter().zip(own).for_each(|(o, r)| share[o.index] = r);
            flooded
        });
        (Answer(answers), share)
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Every answer's product, re-randomised, and what `each` makes of it.
    pub(crate) fn cleared<T>(
        &self,
        public: &PublicKey,
        layout: &dyn Layout,
        query: &Query,
        prg: &mut Prg,
        mut each: impl FnMut(Cleared, &[Output], &mut Prg) -> T,
    ) -> Vec<T> {
        assert_eq!(query.polynomials(), layout.queries(), "polynomials of the query");
        assert_eq!(self.polynomials.len(), layout.weights(), "polynomials of the weights");
        let mut made = Vec::with_capacity(layout.answers());
        for tile in 0..layout.tiles() {
            let ciphertexts: Vec<_> =
                layout.queries_of(tile).map(|number| query.ciphertext(&self.context, number)).collect();
            for number in layout.answers_of(tile) {
                let outputs = layout.outputs(number);
                let packed = self.product(layout, number, &ciphertexts);
                let kept = outputs.iter().map(|o| o.coefficient);
                let cleared = packed.clear(&self.context, public, kept, prg);
                made.push(each(cleared, &outputs, prg));
            }
        }
        made
    }

    pub(crate) fn product(
        &self,
        layout: &dyn Layout,
        answer: usize,
        ciphertexts: &[(&Points, Points)],
    ) -> Packed {
        let weights = || layout.weights_of(answer).map(|number| &self.polynomials[number]);
        let bodies: Vec<_> = ciphertexts.iter().map(|(c, _)| *c).zip(weights()).collect();
        let masks: Vec<_> = ciphertexts.iter().map(|(_, a)| a).zip(weights()).collect();
        Packed { body: self.context.inner_product(&bodies), mask: self.context.inner_product(&masks) }
    }
}

impl Packed {
    /// Add a fresh encryption of 0 and drop every coefficient of the body that is no output.
    ///
    /// The mask was `sum of w a`, from which whoever drew a would read w. Now it is `... + u a' + e`, pseudo-random to
    /// everybody, the key's holder included, as long as nothing else tells of u: the body does not, once it is drowned.
    pub(crate) fn clear(
        mut self,
        context: &Context,
        public: &PublicKey,
        outputs: impl Iterator<Item = usize>,
        prg: &mut Prg,
    ) -> Cleared {
        let u = context.points(context.small(&sample::ternary(prg, context.degree())));
        if !mutation::active("not-rerandomised") {
            context.add(&mut self.body.words, &context.product(&public.b, &u).words, false);
            context.add(&mut self.mask.words, &context.product(&public.a, &u).words, false);
        }
        let whole = context.coefficients(self.body);
        let mut mask = context.coefficients(self.mask);
        let mut error = sample::errors(prg, context.degree());
        mutation::constant("rerandomised-without-error", &mut error, sample::OFFSET);
        context.add(&mut mask.words, &context.small(&error).words, false);
        let kept: Vec<usize> = outputs.collect();
        let words = context.primes().flat_map(|prime| {
            let words = &whole.words[context.range(prime)];
            kept.iter().map(|c| words[*c])
        });
        Cleared { body: Coeff { words: words.collect() }, mask }
    }
}

impl Cleared {
    /// Drown what the noise tells of weights and of the encryption of 0, take off `share`, and round.
    pub(crate) fn flood(
        self,
        context: &Context,
        parameters: &Parameters,
        mut share: Vec<u64>,
        prg: &mut Prg,
    ) -> (Flooded, Vec<u64>) {
        mutation::constant("shares-constant", &mut share, 5);
        let faults = ["not-drowned", "drowned-narrowly"];
        let outputs = drowned(context, parameters, self.body, &share, faults, prg);
        let mask = encode::switch(context, &self.mask, parameters.mask_bits());
        (Flooded { mask, outputs }, share)
    }
}

/// Coefficients modulo q, drowned and less their shares, rounded to an output's bits. What rounding makes of them is a
/// function of numbers that the share and the noise hide already.
pub(crate) fn drowned(
    context: &Context,
    parameters: &Parameters,
    mut body: Coeff,
    share: &[u64],
    [undrowned, narrow]: [&str; 2],
    prg: &mut Prg,
) -> Vec<u128> {
    let bits = parameters.flood_bits() - if mutation::active(narrow) { 2 } else { 0 };
    let noise = encode::flood(context, parameters.ring(), bits, share, undrowned, prg);
    context.add(&mut body.words, &noise.words, false);
    encode::switch(context, &body, parameters.output_bits())
}

impl SecretKey {
    /// The key holder's share of the product, modulo 2^k in the order of the outputs. Panics where the answer is of
    /// another layout.
    pub fn decrypt(&self, parameters: &Parameters, layout: &dyn Layout, answer: &Answer) -> Vec<u64> {
        assert_eq!(answer.0.len(), layout.answers(), "polynomials of the answer");
        let mut out = vec![0; layout.output_len()];
        for (number, flooded) in answer.0.iter().enumerate() {
            let phases = self.phases(parameters, &layout.outputs(number), flooded);
            for (o, phase) in layout.outputs(number).iter().zip(phases) {
                out[o.index] = encode::decode(parameters.ring(), phase, parameters.mask_bits());
            }
        }
        out
    }

    /// Message and noise of the outputs, modulo 2^mask_bits.
    pub(crate) fn phases(&self, p: &Parameters, outputs: &[Output], answer: &Flooded) -> Vec<u128> {
        let (bits, product) = (p.mask_bits(), self.times_key(&answer.mask, p.mask_bits()));
        let phase = |(o, c): (&Output, &u128)| {
            encode::wrap((c << (bits - p.output_bits())).wrapping_add(product[o.coefficient]), bits)
        };
        outputs.iter().zip(&answer.outputs).map(phase).collect()
    }
}

impl Answer {
    /// Bytes of the answers of this layout.
    pub fn bytes(parameters: &Parameters, layout: &dyn Layout) -> usize {
        layout.answers() * wire::wide_bytes(parameters.mask_bits(), parameters.set().degree)
            + (0..layout.answers())
                .map(|a| wire::wide_bytes(parameters.output_bits(), layout.outputs(a).len()))
                .sum::<usize>()
    }

    /// All answers, mask and outputs of each.
    pub fn encode(&self, parameters: &Parameters) -> Vec<u8> {
        let mut out = Vec::new();
        for flooded in &self.0 {
            wire::put_wide(parameters.mask_bits(), &flooded.mask, &mut out);
            wire::put_wide(parameters.output_bits(), &flooded.outputs, &mut out);
        }
        out
    }

    /// Exactly [`Answer::bytes`] bytes. Every integer of the announced bits is an answer.
    pub fn decode(parameters: &Parameters, layout: &dyn Layout, bytes: &[u8]) -> Result<Answer, WireError> {
        let expected = Answer::bytes(parameters, layout);
        if bytes.len() != expected {
            return Err(WireError::Length { expected, found: bytes.len() });
        }
        let (mut rest, degree) = (bytes, parameters.set().degree);
        let answers = (0..layout.answers()).map(|number| {
            let mut take = |bits: u32, n: usize| {
                let (head, tail) = rest.split_at(wire::wide_bytes(bits, n));
                rest = tail;
                wire::wide(bits, n, head)
            };
            let mask = take(parameters.mask_bits(), degree)?;
            let outputs = take(parameters.output_bits(), layout.outputs(number).len())?;
            Ok(Flooded { mask, outputs })
        });
        Ok(Answer(answers.collect::<Result<_, WireError>>()?))
    }

    #[cfg(test)]
    pub(crate) fn polynomials(&self) -> &[Flooded] {
        &self.0
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
