//! One proof in one algebra, at the prover and at a verifier.

use super::batch::{Batch, Role, Statements, Weights};
use super::extension::{Extension, Joining};
use super::roles::Stated;
use super::tensor::evaluate;
use crate::mutation;
use crate::price::proofs::{Shape, room};
use privet_kernels::Device;
use privet_kernels::fold::{diagonal, points};
use privet_prg::Prg;
use std::borrow::Cow;
use subtle::ConstantTimeEq;

/// The streams of one proof that its prover shares with the two verifiers, as far as the holder knows them.
pub(super) struct Masks {
    /// Of the prover and the party before: its shares of the messages, and the masks of its summands.
    pub before: Option<Prg>,
    /// Of the prover and the party after: the masks of its summands.
    pub after: Option<Prg>,
}

/// Where a fold goes on.
pub(super) struct Point<'a, E: Extension> {
    r: &'a [u64],
    /// Columns that are folded there by now, at a point that all three proofs have in common.
    folded: Option<&'a mut E::Folded>,
}

impl<'a, E: Extension> Point<'a, E> {
    /// The point that all three proofs have in common, if they do, with what is folded there; else this one, of one proof alone.
    pub fn of(common: Option<&'a [u64]>, own: &'a [u64], folded: &'a mut E::Folded) -> Point<'a, E> {
        Point { r: common.unwrap_or(own), folded: common.map(|_| folded) }
    }
}

/// The prover's side.
pub(super) struct Prover<E: Extension> {
    statements: Statements,
    shape: Shape,
    weights: Weights,
    /// What folds make of columns at points of this proof alone.
    folded: E::Folded,
    /// The first point, until the words are folded.
    first: Vec<u64>,
    /// What the first fold made of numbers, until the second.
    numbers: [Vec<E>; 2],
    /// Left and right factors.
    items: [Vec<E>; 2],
}

impl<E: Extension> Prover<E> {
    pub fn new(Stated { statements, shape, weights }: Stated) -> Prover<E> {
        Prover {
            statements,
            shape,
            weights,
            folded: E::Folded::default(),
            first: vec![],
            numbers: [vec![], vec![]],
            items: [vec![], vec![]],
        }
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Message `k`: the party after's shares of the product's values. `folded` is of the point that all three proofs had in common
    /// in the fold before, if they had one.
    pub fn message(
        &mut self,
        device: &dyn Device,
        k: usize,
        masks: &mut Masks,
        joining: &E::Joining,
        folded: Option<&mut E::Folded>,
    ) -> Vec<u8> {
        if k >= self.shape.folds() {
            return vec![];
        }
        let (Some(before), Some(after)) = (&mut masks.before, &mut masks.after) else {
            unreachable!("a prover shares a key with each verifier")
        };
        let batches = &self.statements.batches;
        let values = match (k, self.shape.of_words()) {
            (0, 2) => E::first_message(device, batches, &self.weights),
            (1, 2) => {
                let folded = folded.unwrap_or(&mut self.folded);
                let (values, numbers) =
                    E::second_message(device, batches, &self.weights, &self.first, folded);
                self.numbers = numbers;
                values
            }
            _ if joining.are_items(k, &self.shape) && !self.shape.is_last(k) => {
                joining.message(device, self.shape.vars(k))
            }
            _ => {
                let vars = self.shape.vars(k);
                let mut items = self.items(k, joining);
                if self.shape.is_last(k) {
                    let [masks, others] =
                        [&mut *before, after].map(|stream| last_masks::<E>(stream, &self.shape));
                    let masks: Vec<E> = masks.iter().zip(others).map(|(a, b)| a.add(b)).collect();
                    items = masked(items, &masks, vars);
                }
                let [left, right] = items;
                E::message(device, &left, &right, vars)
            }
        };
        let masks = value_masks(before, values.len() - 1);
        let mut out = Vec::with_capacity(self.shape.message_bytes(k));
        values[1..].iter().zip(masks).for_each(|(value, mask)| value.sub(mask).put(&mut out));
        out
    }

    /// The statements about words, of which only the items are left.
    pub fn spent(&mut self) -> Vec<Batch> {
        std::mem::take(&mut self.statements.batches)
    }

    /// Factors of fold `k`, which is not of words. What was combined otherwise is there from the start.
    fn items<'a>(&'a self, k: usize, joining: &'a E::Joining) -> [Cow<'a, [E]>; 2] {
        match joining.are_items(k, &self.shape) {
            true => joining.factors(Role::Prover),
            false => self.items.each_ref().map(Cow::from),
        }
    }

    /// Go on with the statement at the point `r`; nothing after the last message. What is combined otherwise joins the folded words.
    pub fn fold(
        &mut self,
        device: &dyn Device,
        k: usize,
        Point { r, folded }: Point<E>,
        joining: &E::Joining,
    ) {
        if k + 1 >= self.shape.folds() {
            return;
        }
        let r = &r[..self.shape.vars(k) as usize];
        if k + 1 < self.shape.of_words() {
            self.first = r.to_vec();
        } else if k < self.shape.of_words() {
            let batches = &self.statements.batches;
            // those of numbers come last
            let batches = &batches[..batches.partition_point(|batch| !batch.of_numbers())];
            let folded = folded.unwrap_or(&mut self.folded);
            let mut items = folded_words(device, batches, &self.weights, [&self.first, r], folded);
            let numbers = std::mem::take(&mut self.numbers);
            join(&mut items, numbers.map(|numbers| Cow::from(E::fold(device, &numbers, r))));
            self.folded = E::Folded::default();
            join(&mut items, joining.factors(Role::Prover));
            self.items = items;
        } else if !joining.folds_in_common(k, &self.shape) {
            self.items = self.items(k, joining).map(|items| E::fold(device, &items, r));
        }
    }
}

/// Masks of one verifier's summands of both factors, which it draws alike with the prover: for every group of the last fold a left one, and
/// then as many right ones.
fn last_masks<E: Extension>(stream: &mut Prg, shape: &Shape) -> Vec<E> {
    masks("last-values-unmasked", stream, 2 * shape.opened())
}

/// Left and right items of the last fold, of so many variables: in every group the last place is a mask's, those before it are items'.
fn masked<'a, E: Extension>(items: [Cow<[E]>; 2], masks: &[E], vars: u32) -> [Cow<'a, [E]>; 2] {
    let mut masks = masks.chunks(masks.len() / 2);
    items.map(|items| {
        let masks = masks.next().unwrap_or_default();
        let mut groups = items.chunks(room(vars));
        let mut all = Vec::with_capacity(masks.len() << vars);
        for (g, mask) in masks.iter().enumerate() {
            all.extend_from_slice(groups.next().unwrap_or_default());
            all.resize(((g + 1) << vars) - 1, E::ZERO);
            all.push(*mask);
        }
        all.into()
    })
}

/// The shares of a message's values that the prover and the party before it draw alike: what masks them for the party after.
fn value_masks<E: Extension>(stream: &mut Prg, n: usize) -> Vec<E> {
    masks("fold-values-unmasked", stream, n)
}

fn masks<E: Extension>(what: &str, stream: &mut Prg, n: usize) -> Vec<E> {
    let drawn = E::draw(stream, n);
    if mutation::active(what) { vec![E::ZERO; n] } else { drawn }
}

/// Left and right factors after both folds of words.
fn folded_words<E: Extension>(
    device: &dyn Device,
    batches: &[Batch],
    weights: &Weights,
    points: [&[u64]; 2],
    folded: &mut E::Folded,
) -> [Vec<E>; 2] {
    let left = E::words_left(device, batches, weights, points, folded);
    [left, E::words_right(device, batches, points, folded)]
}

/// More factors join those of words.
fn join<E: Extension>(items: &mut [Vec<E>; 2], more: [Cow<[E]>; 2]) {
    items.iter_mut().zip(&more).for_each(|(items, more)| items.extend_from_slice(more));
}

/// A verifier's side: its summands of both factors, and its share of the claim.
pub(super) struct Verifier<E> {
    statements: Statements,
    shape: Shape,
    weights: Weights,
    /// Before the prover, or after it.
    role: Role,
    /// The first point, until the words are folded.
    first: Vec<u64>,
    items: [Vec<E>; 2],
    claim: E,
}

impl<E: Extension> Verifier<E> {
    pub fn new(
        device: &dyn Device,
        role: Role,
        Stated { statements, shape, weights }: Stated,
    ) -> Verifier<E> {
        // sum over t of left_t right_t = -s_B - s_A
        let claim = E::ZERO.sub(E::combine(device, &statements.batches, &weights));
        Verifier { statements, shape, weights, role, first: vec![], items: [vec![], vec![]], claim }
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The statements about words, of which only the items are left.
    pub fn spent(&mut self) -> Vec<Batch> {
        std::mem::take(&mut self.statements.batches)
    }

    /// Take this verifier's share of message `k` (the party before draws it, `bytes` are what the party after
    /// received) and go on with the statement at the point `r`. What is combined otherwise joins the folded words.
    pub fn fold(
        &mut self,
        device: &dyn Device,
        k: usize,
        masks: &mut Masks,
        bytes: &[u8],
        Point { r, folded }: Point<E>,
        joining: &E::Joining,
    ) {
        if k >= self.shape.folds() {
            return;
        }
        let (vars, of_words) = (self.shape.vars(k), self.shape.of_words());
        if k == of_words {
            self.claim = self.claim.sub(joining.sum(device, &self.statements));
        }
        let before = self.role == Role::Before;
        let own_masks = self.shape.is_last(k).then(|| {
            let stream = if before { &mut masks.before } else { &mut masks.after };
            last_masks::<E>(stream.as_mut().expect("a verifier shares a key with the prover"), &self.shape)
        });
        let mut values = vec![E::ZERO];
        if before {
            let stream = masks.before.as_mut().expect("the party before shares a key with the prover");
            values.extend(value_masks::<E>(stream, points(vars) - 1));
        } else {
            values.extend(bytes.chunks_exact(E::BYTES).map(E::get));
        }
        let r = &r[..vars as usize];
        if k >= of_words {
            let mut items = match joining.are_items(k, &self.shape) {
                true => joining.factors(self.role),
                false => self.items.each_ref().map(Cow::from),
            };
            let mut counted = 1 << vars;
            if let Some(masks) = own_masks {
                counted = room(vars);
                items = masked(items, &masks, vars);
            }
            values[0] = self.first_value(device, &values, counted, &[]);
            let folded = match joining.folds_in_common(k, &self.shape) {
                true => [vec![], vec![]],
                false => items.map(|items| E::fold(device, &items, r)),
            };
            self.claim = evaluate(device, &values, r);
            self.items = folded;
            return;
        }
        let coefficients = if k == 0 { &self.weights.rho } else { &self.weights.sigma };
        values[0] = self.first_value(device, &values, 1 << vars, coefficients);
        self.claim = evaluate(device, &values, r);
        if k + 1 < of_words {
            self.first = r.to_vec();
            return;
        }
        let (points, mut alone) = ([&self.first[..], r], E::Folded::default());
        let folded = folded.unwrap_or(&mut alone);
        self.items = folded_words(device, &self.statements.batches, &self.weights, points, folded);
        join(&mut self.items, joining.factors(self.role));
    }

    /// The claim is a combination of the values on the diagonal: the first, with coefficient 1, and the others, with these or 1.
    /// The masks' products, in the last fold, do not count.
    fn first_value(&self, device: &dyn Device, values: &[E], counted: usize, coefficients: &[u64]) -> E {
        let others = (1..counted).map(|l| {
            let mut value = [values[diagonal(l)]];
            if let Some(c) = coefficients.get(l) {
                E::times(device, &mut value, *c);
            }
            value[0]
        });
        others.fold(self.claim, E::sub)
    }

    /// What the other verifier needs: the masked summands of every group's left factor, those of the right ones, and this share of
    /// the last claim.
    pub fn finish(&self) -> Vec<u8> {
        let mut out = vec![];
        if self.shape.folds() > 0 {
            self.items.iter().flatten().for_each(|item| item.put(&mut out));
            self.claim.put(&mut out);
        }
        out
    }

    /// Whether the proof holds, by what the other verifier sent.
    pub fn check(&self, device: &dyn Device, bytes: &[u8]) -> bool {
        if self.shape.folds() == 0 {
            return true;
        }
        let mut others = bytes.chunks_exact(E::BYTES).map(E::get);
        let [left, right] = self.items.each_ref().map(|items| -> Vec<E> {
            items.iter().zip(others.by_ref()).map(|(item, other)| item.add(other)).collect()
        });
        let claim = self.claim.add(others.next().expect("a share of the claim comes last"));
        let (mut product, mut sum) = (vec![], vec![]);
        E::inner(device, &left, &right).put(&mut product);
        claim.put(&mut sum);
        product.ct_eq(&sum).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every group of the last fold has a mask of its own in either factor, and items keep their order. With a mask twice the difference of two
    /// opened factors would be one of secrets.
    #[test]
    fn every_opened_factor_has_a_mask_of_its_own() {
        let (left, right) = ([1u64, 2, 3, 4], [5, 6, 7, 8]);
        let found = masked([left[..].into(), right[..].into()], &[91, 92, 93, 94], 2);
        assert_eq!(found[0][..], [1, 2, 3, 91, 4, 0, 0, 92]);
        assert_eq!(found[1][..], [5, 6, 7, 93, 8, 0, 0, 94]);
    }
}
