//! One proof in one algebra, at the prover and at a verifier.

use super::batch::{Statements, Weights};
use super::extension::Extension;
use super::products::{Combined, Joined};
use super::tensor::evaluate;
use privet_kernels::Device;
use privet_kernels::fold::{diagonal, points};
use privet_plan::cost::proofs::Shape;
use privet_prg::Prg;
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
    pub fn message(&mut self, device: &dyn Device, k: usize, masks: &mut Masks, out: &mut Vec<u8>) {
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
            (0, _) => vec![E::ZERO],
            _ => {
                if self.shape.is_last(k) {
                    self.u.push(E::draw(before));
                    self.v.push(E::draw(after));
                }
                E::message(device, &self.u, &self.v, self.shape.vars(k))
            }
        };
        for value in &values[1..] {
            value.sub(E::draw(before)).put(out);
        }
    }

    /// Go on with the statement at the point `r`; not after the last message. The products join the folded words.
    pub fn fold(&mut self, device: &dyn Device, k: usize, r: &[u64], products: &Combined) {
        if k >= self.shape.folds() {
            return;
        }
        let r = &r[..self.shape.vars(k) as usize];
        if k + 1 < self.shape.of_words() {
            self.first = r.to_vec();
        } else if k < self.shape.of_words() {
            let batches = &self.statements.batches;
            // lanes are items like others
            let [u, v] = match self.kept.take() {
                Some(kept) => kept.map(|lanes| E::fold(device, lanes, r)),
                None => [
                    E::words_u(device, batches, &self.weights, [&self.first, r]),
                    E::words_v(device, batches, [&self.first, r]),
                ],
            };
            let mut joined = Joined { u, v, claim: E::ZERO };
            E::join(device, &self.statements, products, &mut joined);
            (self.u, self.v) = (joined.u, joined.v);
            self.statements = Statements::default();
        } else {
            self.u = E::fold(device, std::mem::take(&mut self.u), r);
            self.v = E::fold(device, std::mem::take(&mut self.v), r);
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
        let (vars, last) = (self.shape.vars(k), k > 0 && self.shape.is_last(k));
        if last {
            let stream = if self.before { &mut masks.before } else { &mut masks.after };
            self.items.push(E::draw(stream.as_mut().expect("a verifier shares a key with the prover")));
        }
        let mut values = vec![E::ZERO];
        if self.before {
            let stream = masks.before.as_mut().expect("the party before shares a key with the prover");
            values.extend((1..points(vars)).map(|_| E::draw(stream)));
        } else {
            values.extend(bytes.chunks_exact(E::BYTES).map(E::get));
        }
        values[0] = self.first_value(device, k, &values);
        let r = &r[..vars as usize];
        self.claim = evaluate(device, &values, r);
        if k >= self.shape.of_words() {
            self.items = E::fold(device, std::mem::take(&mut self.items), r);
            return;
        }
        if k + 1 < self.shape.of_words() {
            self.first = r.to_vec();
            return;
        }
        let statements = std::mem::take(&mut self.statements);
        let (mut u, mut v) = (vec![], vec![]);
        if self.before {
            u = E::words_u(device, &statements.batches, &self.weights, [&self.first, r]);
        } else {
            v = E::words_v(device, &statements.batches, [&self.first, r]);
        }
        let mut joined = Joined { u, v, claim: self.claim };
        E::join(device, &statements, products, &mut joined);
        self.items = if self.before { joined.u } else { joined.v };
        self.claim = joined.claim;
    }

    /// The claim is a combination of the values on the diagonal: the first, with coefficient 1, and the others. The
    /// mask's product, in the last fold, does not count.
    fn first_value(&self, device: &dyn Device, k: usize, values: &[E]) -> E {
        let coefficients = match k {
            _ if k >= self.shape.of_words() => &[],
            0 => &self.weights.rho[..],
            _ => &self.weights.sigma[..],
        };
        let counts = match k {
            _ if k > 0 && self.shape.is_last(k) => self.items.len() - 1,
            _ => 1 << self.shape.vars(k),
        };
        let others = (1..counts).map(|l| {
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
