//! From an encrypted operand to shares: each party takes its key and its share off, one party adds up.

use crate::context::{Coeff, Context};
use crate::encode;
use crate::factor::{Factor, each_block};
use crate::key::Keys;
use crate::layout::Output;
use crate::mutation;
use crate::panel::Panel;
use crate::params::Parameters;
use crate::product::{Message, Operand, Product, Tiles, Zero};
use crate::wire::{self, WireError};
use privet_prg::{Prg, Seed, Wiped};

/// What one party adds to the products of a group's tiles: drowned, less its share, and rounded.
pub struct Partial(pub(crate) Vec<Vec<u128>>);

/// What the opener adds to them, and all others' are added to. Not drowned: it has no bytes.
pub struct Opening {
    product: Product,
    group: usize,
    tiles: Tiles,
    pub(crate) sums: Vec<Vec<u128>>,
}

/// What a party holds of an encrypted operand of a group's tiles: the sums of all parties' messages, as far as it has weights,
/// and its own keys, as far as it encrypts.
pub struct Encrypted<'a> {
    /// The group.
    pub group: usize,
    /// The tiles.
    pub tiles: Tiles,
    /// All parties' encryptions of 0 and operands, added up.
    pub sums: Option<(&'a Message<Zero>, &'a Message<Operand>)>,
    /// This party's keys.
    pub keys: Option<&'a Keys>,
}

impl Factor {
    /// This party's summand, less its `share` of each of the layer's outputs, modulo t, which must be fresh and uniform.
    /// `prg` is the party's own.
    ///
    /// Panics where sums or keys are missing, or are of other tiles.
    pub fn partial(&self, x: &Encrypted, share: &[u64], prg: &mut Prg) -> Partial {
        let (context, p) = (&self.product.context, &self.product.parameters);
        let (tiles, outputs) = (x.tiles.len(), self.product.layout.blocks().outputs);
        let seeds: Vec<Seed> = (0..tiles * outputs).map(|_| prg.seed()).collect();
        Partial(self.summands(x, |number, outputs, summand| {
            let share: Vec<u64> = outputs.iter().map(|o| share[o.index]).collect();
            drowned(context, p, summand, &share, &mut seeds[number].stream())
        }))
    }

    /// This party's summand, for all others' to be added to.
    pub fn opening(&self, x: &Encrypted) -> Opening {
        let (context, p) = (&self.product.context, &self.product.parameters);
        let sums = self.summands(x, |_, _, summand| encode::switch(context, &summand, p.output_bits()));
        Opening { product: self.product.clone(), group: x.group, tiles: x.tiles.clone(), sums }
    }

    /// Of each answer's `sum of w c + u b + A s` the outputs' coefficients, and what `each` makes of them.
    pub(crate) fn summands<T: Send>(
        &self,
        x: &Encrypted,
        each: impl Fn(usize, &[Output], Coeff) -> T + Sync,
    ) -> Vec<T> {
        let (product, context) = (&self.product, &self.product.context);
        let outputs = product.layout.blocks().outputs;
        let operand = self.operand(x);
        let mut made: Vec<Option<T>> = (0..x.tiles.len() * outputs).map(|_| None).collect();
        let blocks = each_block(context, self.together(), outputs, |rows, sums| {
            let answers = (0..x.tiles.len()).flat_map(|tile| rows.clone().map(move |output| (tile, output)));
            let answers = answers.map(|(tile, output)| {
                let answer = product.answer(x.group, x.tiles.start + tile, output);
                let kept = product.layout.outputs(answer);
                let words = Wiped::with_room(kept.len() * context.primes().len());
                (tile * outputs + output, kept, words)
            });
            let mut answers: Vec<(usize, Vec<Output>, Wiped<u64>)> = answers.collect();
            self.block(x.group, rows.clone()).times(context, &operand, sums, |prime, i, sum| {
                context.inverse(prime, sum);
                let (_, kept, words) = &mut answers[i];
                words.extend(kept.iter().map(|o| sum[o.coefficient]));
            });
            let each = |(number, kept, words): (usize, Vec<Output>, Wiped<u64>)| {
                (number, each(number, &kept, Coeff { words: words.expose() }))
            };
            answers.into_iter().map(each).collect::<Vec<_>>()
        });
        blocks.into_iter().flatten().for_each(|(number, t)| made[number] = Some(t));
        made.into_iter().map(|t| t.expect("every answer")).collect()
    }

    /// A row for each tile, in the columns of [`Factor::block`].
    fn operand(&self, x: &Encrypted) -> Panel {
        let (inputs, (owns, encrypts)) = (self.product.layout.blocks().inputs, self.roles());
        let mut panel = Panel::new(&self.product.context, x.tiles.len(), if owns { inputs + 2 } else { 1 });
        if owns {
            let (zeros, operand) = x.sums.expect("all parties' messages");
            assert_eq!(
                (zeros.len(), operand.len()),
                (x.tiles.len(), x.tiles.len() * inputs),
                "of these tiles"
            );
            for (tile, zero) in zeros.polynomials.iter().enumerate() {
                for input in 0..inputs {
                    panel.put(tile, input, &operand.polynomials[tile * inputs + input]);
                }
                panel.put(tile, inputs, zero);
            }
        }
        if encrypts {
            let keys = x.keys.expect("this party's keys");
            assert_eq!(keys.tiles(), x.tiles, "keys of these tiles");
            let column = if owns { inputs + 1 } else { 0 };
            keys.s.iter().enumerate().for_each(|(tile, s)| panel.put(tile, column, s));
        }
        panel
    }
}

/// Quotient and remainder of public numbers.
#[expect(clippy::integer_division_remainder_used, reason = "numbers of polynomials are public")]
fn split(i: usize, by: usize) -> (usize, usize) {
    (i / by, i % by)
}

/// Coefficients modulo q, drowned and less their shares, rounded to an output's bits. What rounding makes of them is a
/// function of numbers that the share and the noise hide already.
fn drowned(context: &Context, p: &Parameters, mut body: Coeff, share: &[u64], prg: &mut Prg) -> Vec<u128> {
    let bits = p.flood_bits() - if mutation::active("drowned-narrowly") { 2 } else { 0 };
    let noise = encode::flood(context, p.plain(), bits, share, prg);
    context.add(&mut body.words, &noise.words, false);
    encode::switch(context, &body, p.output_bits())
}

impl Product {
    pub(crate) fn group_and_output(&self, hint: usize) -> (usize, usize) {
        split(hint, self.layout.blocks().outputs)
    }

    /// Bytes of a [`Partial`] of these tiles.
    pub fn partial_bytes(&self, group: usize, tiles: Tiles) -> usize {
        self.outputs(group, tiles).map(|o| wire::wide_bytes(self.parameters.output_bits(), o.len())).sum()
    }

    /// Outputs of each answer of these tiles.
    fn outputs(&self, group: usize, tiles: Tiles) -> impl Iterator<Item = Vec<Output>> {
        let outputs = self.layout.blocks().outputs;
        let answers = tiles.flat_map(move |tile| (0..outputs).map(move |output| (tile, output)));
        answers.map(move |(tile, output)| self.layout.outputs(self.answer(group, tile, output)))
    }
}

impl Partial {
    /// The outputs of all answers.
    pub fn encode(&self, p: &Parameters) -> Vec<u8> {
        let mut out = Vec::new();
        self.0.iter().for_each(|outputs| wire::put_wide(p.output_bits(), outputs, &mut out));
        out
    }

    /// Exactly [`Product::partial_bytes`] bytes. Every integer of the announced bits is one.
    pub fn decode(product: &Product, group: usize, tiles: Tiles, bytes: &[u8]) -> Result<Partial, WireError> {
        let (expected, bits) =
            (product.partial_bytes(group, tiles.clone()), product.parameters.output_bits());
        if bytes.len() != expected {
            return Err(WireError::Length { expected, found: bytes.len() });
        }
        let mut rest = bytes;
        let answer = |outputs: Vec<Output>| {
            let (head, tail) = rest.split_at(wire::wide_bytes(bits, outputs.len()));
            rest = tail;
            wire::wide(bits, outputs.len(), head)
        };
        Ok(Partial(product.outputs(group, tiles).map(answer).collect::<Result<_, _>>()?))
    }
}

impl Opening {
    /// Add another party's. Panics where it is of other tiles.
    pub fn add(&mut self, partial: &Partial) {
        assert_eq!(self.sums.len(), partial.0.len(), "partials of these tiles");
        for (sums, partial) in self.sums.iter_mut().zip(&partial.0) {
            sums.iter_mut().zip(partial).for_each(|(sum, d)| *sum = sum.wrapping_add(*d));
        }
    }

    /// The product less all other parties' shares, modulo t, into the places of these tiles' outputs.
    pub fn open(self, out: &mut [u64]) {
        let (p, outputs) = (self.product.parameters, self.product.outputs(self.group, self.tiles.clone()));
        let bits = p.output_bits();
        for (outputs, sums) in outputs.zip(&self.sums) {
            for (o, c) in outputs.iter().zip(sums) {
                out[o.index] = p.plain().decode(encode::wrap(*c, bits), bits);
            }
        }
    }
}
