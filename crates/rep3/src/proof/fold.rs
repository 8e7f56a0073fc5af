//! One proof in one algebra, at the prover and at a verifier.

use super::batch::{Statements, Weights};
use super::extension::Extension;
use super::products::{Combined, Component};
use super::tensor::evaluate;
use privet_kernels::Device;
use privet_kernels::fold::{diagonal, points};
use privet_plan::cost::proofs::Shape;
use privet_prg::Prg;
use std::borrow::Cow;
use subtle::ConstantTimeEq;

/// The streams of one proof that its prover shares with the two verifiers, as far as the holder knows them.
pub(super) struct Masks {
    /// Of the prover and the party before: its shares of the messages, and the mask of u.
    pub before: Option<Prg>,
    /// Of the prover and the party after: the mask of v.
    pub after: Option<Prg>,
}

/// The prover's side.
pub(super) struct Prover<E> {
    statements: Statements,
    shape: Shape,
    weights: Weights,
    /// The first point, until the words are folded.
    first: Vec<u64>,
    /// What the first fold made of the words, if it was kept.
    kept: Option<[Vec<E>; 2]>,
    u: Vec<E>,
    v: Vec<E>,
}

impl<E: Extension> Prover<E> {
    pub fn new(statements: Statements, shape: Shape, weights: Weights) -> Prover<E> {
        Prover { statements, shape, weights, first: vec![], kept: None, u: vec![], v: vec![] }
    }

    /// Append message `k`: the party after's shares of the product's values.
    pub fn message(
        &mut self,
        device: &dyn Device,
        k: usize,
        masks: &mut Masks,
        products: &Combined,
        out: &mut Vec<u8>,
    ) {
        if k >= self.shape.folds() {
            return;
        }
        let (Some(before), Some(after)) = (&mut masks.before, &mut masks.after) else {
            unreachable!("a prover shares a key with each verifier")
        };
        let batches = &self.statements.batches;
        let values = match (k, self.shape.of_words()) {
            (0, 2) => E::first_message(device, batches, &self.weights),
            (1, 2) => {
                let (values, kept) = E::second_message(device, batches, &self.weights, &self.first);
                self.kept = kept;
                values
            }
            _ => {
                let [mut u, mut v] = self.items(k, products);
                if self.shape.is_last(k) {
                    u.to_mut().push(E::draw(before));
                    v.to_mut().push(E::draw(after));
                }
                E::message(device, &u, &v, self.shape.vars(k))
            }
        };
        for value in &values[1..] {
            value.sub(E::draw(before)).put(out);
        }
    }

    /// u and v of fold `k`, which is not of words. What was combined otherwise is there from the start.
    fn items<'a>(&'a self, k: usize, products: &'a Combined) -> [Cow<'a, [E]>; 2] {
        if products.are_items(k, &self.shape) {
            return [
                E::products_u(products, Component::Own),
                E::products_v(products, Component::Next).into(),
            ];
        }
        [(&self.u).into(), (&self.v).into()]
    }

    /// Go on with the statement at the point `r`; nothing after the last message. The products join the folded words.
    pub fn fold(&mut self, device: &dyn Device, k: usize, r: &[u64], products: &Combined) {
        if k + 1 >= self.shape.folds() {
            return;
        }
        let r = &r[..self.shape.vars(k) as usize];
        if k + 1 < self.shape.of_words() {
            self.first = r.to_vec();
        } else if k < self.shape.of_words() {
            let batches = &self.statements.batches;
            // lanes are items like others
            [self.u, self.v] = match self.kept.take() {
                Some(kept) => kept.map(|lanes| E::fold(device, &lanes, r)),
                None => [
                    E::words_u(device, batches, &self.weights, [&self.first, r]),
                    E::words_v(device, batches, [&self.first, r]),
                ],
            };
            self.u.extend_from_slice(&E::products_u(products, Component::Own));
            self.v.extend_from_slice(E::products_v(products, Component::Next));
            self.statements = Statements::default();
        } else if !products.shares(k, &self.shape) {
            [self.u, self.v] = self.items(k, products).map(|items| E::fold(device, &items, r));
        }
    }
}

/// A verifier's side: what it knows of the operands (u before the prover, v after it), and its share of the claim.
pub(super) struct Verifier<E> {
    statements: Statements,
    shape: Shape,
    weights: Weights,
    before: bool,
    /// The first point, until the words are folded.
    first: Vec<u64>,
    items: Vec<E>,
    claim: E,
}

impl<E: Extension> Verifier<E> {
    pub fn new(
        device: &dyn Device,
        before: bool,
        statements: Statements,
        shape: Shape,
        weights: Weights,
    ) -> Verifier<E> {
        // sum over t of u_t v_t = -s_B - s_A
        let claim = E::ZERO.sub(E::combine(device, &statements.batches, &weights));
        Verifier { statements, shape, weights, before, first: vec![], items: vec![], claim }
    }

    /// Take this verifier's share of message `k` (the party before draws it, `bytes` are what the party after
    /// received) and go on with the statement at the point `r`. The products join the folded words.
    pub fn fold(
        &mut self,
        device: &dyn Device,
        k: usize,
        masks: &mut Masks,
        bytes: &[u8],
        r: &[u64],
        products: &Combined,
    ) {
        if k >= self.shape.folds() {
            return;
        }
        let (vars, of_words) = (self.shape.vars(k), self.shape.of_words());
        if k == of_words {
            self.claim = self.claim.sub(E::products_sum(device, &self.statements, products));
        }
        let mask = self.shape.is_last(k).then(|| {
            let stream = if self.before { &mut masks.before } else { &mut masks.after };
            E::draw(stream.as_mut().expect("a verifier shares a key with the prover"))
        });
        let mut values = vec![E::ZERO];
        if self.before {
            let stream = masks.before.as_mut().expect("the party before shares a key with the prover");
            values.extend((1..points(vars)).map(|_| E::draw(stream)));
        } else {
            values.extend(bytes.chunks_exact(E::BYTES).map(E::get));
        }
        let r = &r[..vars as usize];
        if k >= of_words {
            let mut items = match products.are_items(k, &self.shape) {
                true if self.before => E::products_u(products, Component::Next),
                true => E::products_v(products, Component::Own).into(),
                false => Cow::from(&self.items),
            };
            let mut counted = 1 << vars;
            if let Some(mask) = mask {
                counted = items.len();
                items.to_mut().push(mask);
            }
            values[0] = self.first_value(device, &values, counted, &[]);
            let folded = (!products.shares(k, &self.shape)).then(|| E::fold(device, &items, r));
            self.claim = evaluate(device, &values, r);
            self.items = folded.unwrap_or_default();
            return;
        }
        let coefficients = if k == 0 { &self.weights.rho } else { &self.weights.sigma };
        values[0] = self.first_value(device, &values, 1 << vars, coefficients);
        self.claim = evaluate(device, &values, r);
        if k + 1 < of_words {
            self.first = r.to_vec();
            return;
        }
        let batches = &self.statements.batches;
        if self.before {
            self.items = E::words_u(device, batches, &self.weights, [&self.first, r]);
            self.items.extend_from_slice(&E::products_u(products, Component::Next));
        } else {
            self.items = E::words_v(device, batches, [&self.first, r]);
            self.items.extend_from_slice(E::products_v(products, Component::Own));
        }
        self.statements.batches = vec![];
    }

    /// The claim is a combination of the values on the diagonal: the first, with coefficient 1, and the others, with these or 1.
    /// The mask's product, in the last fold, does not count.
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

    /// Append what the other verifier needs: the masked operand and this share of the last claim.
    pub fn finish(&self, out: &mut Vec<u8>) {
        if self.shape.folds() > 0 {
            self.items[0].put(out);
            self.claim.put(out);
        }
    }

    /// Whether the proof holds, by what the other verifier sent.
    pub fn check(&self, bytes: &[u8]) -> bool {
        if self.shape.folds() == 0 {
            return true;
        }
        let (operand, claim) = bytes.split_at(E::BYTES);
        let (mut product, mut sum) = (vec![], vec![]);
        self.items[0].mul(E::get(operand)).put(&mut product);
        self.claim.add(E::get(claim)).put(&mut sum);
        product.ct_eq(&sum).into()
    }
}
