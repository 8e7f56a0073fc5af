//! All parties of a product in one thread, every message through bytes.

use privet_he::layout::Layout;
use privet_he::{
    Context, Encrypted, Factor, Hint, Kind, Message, Operand, Parameters, Product, Weights, Zero,
};
use privet_prg::{Prg, Seed};
use std::sync::Arc;

/// A run, and what it made.
pub(crate) struct Run<'a> {
    pub(crate) context: &'a Arc<Context>,
    pub(crate) p: Parameters,
    pub(crate) layout: Arc<dyn Layout>,
    /// Bytes for values of weights.
    pub(crate) room: usize,
    /// Tiles at a time.
    pub(crate) tiles: usize,
}

/// What each party sent, in order, and its share of the product.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Made {
    pub(crate) sent: Vec<Vec<u8>>,
    pub(crate) share: Vec<u64>,
}

pub(crate) fn seeds(first: u8, n: usize) -> Vec<Seed> {
    (0..n as u8).map(|i| Seed::from_bytes([first + i; 16])).collect()
}

impl Run<'_> {
    /// Shares in, shares out; the last party opens. An empty share of `x` or `w` belongs to a party that has none. Products
    /// with the same weights for each operand in turn.
    pub(crate) fn calls(&self, xs: &[Vec<Vec<u64>>], ws: &[Vec<u64>], seeds: &[Seed]) -> Vec<Vec<Made>> {
        let product =
            Product::new(self.context, &self.p, Arc::clone(&self.layout), Seed::from_bytes([77; 16]));
        let (n, b) = (ws.len(), self.layout.blocks());
        let mut prgs: Vec<Prg> = seeds.iter().map(Seed::stream).collect();
        let mut sent: Vec<Vec<Vec<u8>>> = vec![Vec::new(); n];
        let (mut hints, mut weights): (Vec<Option<Message<Hint>>>, Vec<Option<Weights>>) =
            (Vec::new(), Vec::new());
        for (w, prg) in ws.iter().zip(&mut prgs) {
            let made = (!w.is_empty()).then(|| product.weights(w, prg, self.room));
            let (weight, hint) = made.unzip();
            weights.push(weight);
            hints.push(hint);
        }
        self.send(&hints, &mut sent);
        let factors: Vec<Factor> = (0..n)
            .map(|me| {
                let encrypts = !xs[0][me].is_empty();
                let sum = encrypts.then(|| self.sum(&product, &hints)).flatten();
                match weights[me].take() {
                    Some(weights) => weights.factor(sum),
                    None => Factor::of_hints(&product, sum.expect("somebody has weights")),
                }
            })
            .collect();
        let mut calls = Vec::new();
        for x in xs {
            let mut shares: Vec<Vec<u64>> =
                prgs.iter_mut().map(|prg| self.p.plain().uniform(prg, self.layout.output_len())).collect();
            let mut last = vec![0; self.layout.output_len()];
            for first in (0..b.tiles).step_by(self.tiles) {
                let tiles = first..(first + self.tiles).min(b.tiles);
                let (mut keys, zeros): (Vec<_>, Vec<_>) = (0..n)
                    .map(|me| (!x[me].is_empty()).then(|| product.keys(tiles.clone(), &mut prgs[me])).unzip())
                    .unzip();
                self.send(&zeros, &mut sent);
                let zero: Option<Message<Zero>> = self.sum(&product, &zeros);
                for group in 0..b.groups {
                    let operand: Vec<Option<Message<Operand>>> = (0..n)
                        .map(|me| {
                            keys[me]
                                .as_mut()
                                .map(|k: &mut privet_he::Keys| k.encrypt(group, &x[me], &mut prgs[me]))
                        })
                        .collect();
                    self.send(&operand, &mut sent);
                    let operand = self.sum(&product, &operand);
                    let sums = zero.as_ref().zip(operand.as_ref());
                    let encrypted = |me: usize| Encrypted {
                        group,
                        tiles: tiles.clone(),
                        sums: sums.filter(|_| !ws[me].is_empty()),
                        keys: keys[me].as_ref(),
                    };
                    let mut opening = factors[n - 1].opening(&encrypted(n - 1));
                    for me in 0..n - 1 {
                        let partial = factors[me].partial(&encrypted(me), &shares[me], &mut prgs[me]);
                        let bytes = partial.encode(&self.p);
                        assert_eq!(bytes.len(), product.partial_bytes(group, tiles.clone()));
                        let partial = privet_he::Partial::decode(&product, group, tiles.clone(), &bytes);
                        opening.add(&partial.unwrap());
                        sent[me].push(bytes);
                    }
                    opening.open(&mut last);
                }
            }
            shares[n - 1] = last;
            let made = shares.into_iter().zip(&mut sent);
            calls.push(made.map(|(share, sent)| Made { sent: std::mem::take(sent), share }).collect());
        }
        calls
    }

    fn send<K: Kind>(&self, messages: &[Option<Message<K>>], sent: &mut [Vec<Vec<u8>>]) {
        for (message, sent) in messages.iter().zip(sent) {
            sent.extend(message.as_ref().map(Message::encode));
        }
    }

    /// The sum of all parties' messages, through bytes.
    fn sum<K: Kind>(&self, product: &Product, messages: &[Option<Message<K>>]) -> Option<Message<K>> {
        let mut sum: Option<Message<K>> = None;
        for message in messages.iter().flatten() {
            let read = Message::decode(product, message.len(), &message.encode()).unwrap();
            match &mut sum {
                Some(sum) => sum.add(self.context, &read),
                None => sum = Some(read),
            }
        }
        sum
    }
}

/// n shares of values.
pub(crate) fn shares(prg: &mut Prg, ring: privet_ring::Ring, v: &[u64], n: usize) -> Vec<Vec<u64>> {
    let mut out: Vec<Vec<u64>> = (1..n).map(|_| prg.elements(ring, v.len())).collect();
    let last = (0..v.len()).map(|i| ring.wrap(out.iter().fold(v[i], |rest, s| rest.wrapping_sub(s[i]))));
    out.push(last.collect());
    out
}

/// What all parties' shares add up to.
pub(crate) fn opened(p: &Parameters, made: &[Made]) -> Vec<u64> {
    let mut sum = vec![0; made[0].share.len()];
    made.iter().for_each(|m| p.plain().add(&mut sum, &m.share));
    sum
}
