//! Matrix products and convolutions: the statements about all elements of a result, combined into one inner product.
//!
//! Let a result have rows r and columns c, with random coefficients a_r and b_c of the exceptional set. The prover's factors are
//! `x = sum over r of a_r X_r` and `w = sum over c of b_c W_c`, one item for each place of the inner dimension. The combined statement
//! about prover i is
//!
//! `(x_i + x_(i+1))(w_i + w_(i+1)) - x_(i+1) w_(i+1) + sum over r, c of a_r b_c (bias_i,c + (F_i - F_(i+1) - z_i)_rc) = 0`.
//!
//! The first product's items join those that the folds of words leave. The party after the prover knows the second product. Each
//! verifier knows a part of the sum.
//!
//! All three proofs have the same coefficients, so a party combines what it holds once for all its roles.

use super::batch::{Role, Statements};
use super::column::Column;
use super::convolution::{self, Rows};
use super::extension::{Extension, Joining};
use super::galois::{Gr, inner, product, reduce_to, shift};
use super::outer::Sums;
use crate::price::proofs::{self, Shape, Shapes, depth};
use crate::{PartyId, Share};
use privet_family::Products;
use privet_kernels::fold::Powers;
use privet_kernels::{Device, LinearShape, in_two, wide};
use privet_prg::{Prg, Seed};
use privet_ring::Ring;
use std::borrow::Cow;
use std::ops::Range;

/// Statements about everybody's reshare of one node's products, as one party sees them.
pub(crate) struct ProductClaim {
    pub ring: Ring,
    pub products: Products,
    /// This party's share of the first operand, `products.count` times what the shape says.
    pub x: Share,
    /// Of the second operand.
    pub w: Share,
    /// Its next component of the bias, an element a column, if there is one.
    pub bias: Option<Column>,
    /// `F - z` of the message of the party after this one; the party's own products and the bias are left out.
    pub before: Column,
    /// `-F` of the message of the party before this one.
    pub after: Column,
}

/// [`ProductClaim`] in the proof of one prover.
pub(super) struct Product {
    products: Products,
    /// This party's in that proof.
    role: Role,
    /// What this party, if it is a verifier, adds to the statements.
    rest: Option<Column>,
    /// What it adds for every row beside.
    bias: Option<Column>,
}

impl ProductClaim {
    /// What party `id` knows in the proof of `prover`.
    pub(super) fn about(&self, id: PartyId, prover: PartyId) -> Product {
        let role = Role::of(id, prover);
        let (rest, bias) = match role {
            Role::Prover => (None, None),
            Role::Before => (Some(self.before.clone()), self.bias.clone()),
            Role::After => (Some(self.after.clone()), None),
        };
        Product { products: self.products, role, rest, bias }
    }
}

/// The random coefficients of one product: rows (of a convolution: images and places) and columns (output channels).
struct Coefficients {
    rows: Rows,
    columns: Vec<u64>,
}

impl Coefficients {
    fn draw(products: Products, prg: &mut Prg) -> Coefficients {
        let rows = Rows::of(products.shape, prg);
        Coefficients { rows, columns: some(prg, products.columns()) }
    }
}

impl Coefficients {
    /// The sum of `a_r b_c` times what column c has in every row.
    fn of_rows(&self, device: &dyn Device, columns: &[u64]) -> Gr {
        let mut of_columns = [Gr::ZERO];
        device.fold().rows_combine(columns, [1, 1], &self.columns, &mut of_columns);
        product(&of_columns[0], &self.rows.total(device))
    }
}

/// The sum of elements of the exceptional set.
pub(super) fn total(device: &dyn Device, elements: &[u64]) -> Gr {
    let mut sum = [Gr::ZERO];
    // as one word in every row
    device.fold().rows_combine(&[1], [0, 1], elements, &mut sum);
    sum[0]
}

/// So many coefficients.
pub(super) fn some(prg: &mut Prg, n: usize) -> Vec<u64> {
    prg.elements(Ring::new(proofs::Extension::Ring.random_bits()), n)
}

/// The folds of products' items that all three proofs do at the same points, by their variables. There a party folds each of its
/// two components once, and not again for each of its roles.
pub(super) struct CommonFolds(Vec<u32>);

impl CommonFolds {
    /// Of proofs with these shapes: where nothing else is stated about rings, and all products are of one ring.
    pub fn of(shapes: &[Shapes; 3], claims: &[ProductClaim]) -> CommonFolds {
        let ring = |shapes: &'_ Shapes| -> Vec<u32> {
            let shape = &shapes.ring;
            let folds =
                if shape.of_words() > 0 { 0 } else { shape.folds().saturating_sub(1).min(MOST_COMMON) };
            (0..folds).map(|k| shape.vars(k)).collect()
        };
        let [first, others @ ..] = shapes.each_ref().map(ring);
        let one_ring = claims.windows(2).all(|pair| pair[0].ring == pair[1].ring);
        CommonFolds(if one_ring && others.iter().all(|o| *o == first) { first } else { vec![] })
    }

    fn any(&self) -> bool {
        !self.0.is_empty()
    }
}

/// Words of operands from which on a second thread saves more time than it takes to wake it.
const MANY: usize = 1 << 16;

/// Most folds in common. What is left after them is little, and the last one must be of points that no prover learns.
const MOST_COMMON: usize = 2;

/// One component of both operands of all products, combined: items for every place of the inner dimensions, those of one
/// product after those of another.
struct Operands {
    x: Vec<Gr>,
    w: Vec<Gr>,
}

impl Operands {
    /// Of this component of all shares, by every product's coefficients.
    fn combine(
        device: &dyn Device,
        claims: &[ProductClaim],
        coefficients: &[(Ring, usize, Coefficients)],
        component: fn(&Share) -> &[u64],
    ) -> Operands {
        let depth = coefficients.iter().map(|(_, places, _)| places).sum();
        let mut operands = Operands { x: vec![Gr::ZERO; depth], w: vec![Gr::ZERO; depth] };
        let each = claims.iter().flat_map(|claim| (0..claim.products.count).map(move |i| (claim, i)));
        let mut at = 0;
        for ((claim, i), (ring, places, c)) in each.zip(coefficients) {
            let (shape, places) = (claim.products.shape, at..at + places);
            at = places.end;
            let part = |len: usize| i * len..(i + 1) * len;
            let (x, w) = (component(&claim.x), component(&claim.w));
            let (to_x, to_w) = (&mut operands.x[places.clone()], &mut operands.w[places]);
            first(device, shape, &x[part(shape.input_len())], &c.rows, to_x);
            second(device, shape, &w[part(shape.weight_len())], &c.columns, to_w);
            to_x.iter_mut().chain(to_w).for_each(|item| reduce_to(item, *ring));
        }
        operands
    }

    fn len(&self) -> usize {
        self.x.len()
    }
}

/// The operands of all products, combined for all three proofs.
pub(super) struct Combined {
    /// Ring and inner dimension of every product, and its coefficients.
    products: Vec<(Ring, usize, Coefficients)>,
    /// The folds that all three proofs have in common, and how many of them are done.
    folds: CommonFolds,
    folded: usize,
    own: Operands,
    next: Operands,
}

impl Combined {
    /// With coefficients from a seed that no prover knew before all messages of the batch were in.
    pub fn new(device: &dyn Device, claims: Vec<ProductClaim>, folds: CommonFolds, seed: &Seed) -> Combined {
        let mut prg = seed.stream();
        let each = claims.iter().flat_map(|claim| (0..claim.products.count).map(move |_| claim));
        let products: Vec<_> = each
            .map(|ProductClaim { ring, products, .. }| {
                (*ring, depth(products.shape), Coefficients::draw(*products, &mut prg))
            })
            .collect();
        let words: usize = claims.iter().map(|claim| claim.x.own.len() + claim.w.own.len()).sum();
        let (own, next) = in_two(
            // two of them have the two algebras
            device.threads() > 2 && words >= MANY,
            || Operands::combine(device, &claims, &products, |share| &share.own),
            || Operands::combine(device, &claims, &products, |share| &share.next),
        );
        Combined { products, folds, folded: 0, own, next }
    }

    /// The prover's factors at the places `range`, in the place of what is there.
    fn add_up(&self, range: Range<usize>, [x, w]: &mut [Vec<Gr>; 2]) {
        let sums = |to: &mut Vec<Gr>, own: &[Gr], next: &[Gr]| {
            to.clear();
            let both = own[range.clone()].iter().zip(&next[range.clone()]);
            wide!(to.extend(both.map(|(a, b)| a.add(*b))));
        };
        sums(x, &self.own.x, &self.next.x);
        sums(w, &self.own.w, &self.next.w);
        self.shift(range.start, x);
    }

    /// First factors from the place `start` on, times what their statements are multiplied by.
    fn shift(&self, start: usize, x: &mut [Gr]) {
        if let (true, Some((ring, ..))) = (self.folds.any(), self.products.first()) {
            // All products are of this ring; after a fold nobody knows where one ends.
            x.iter_mut().for_each(|item| shift(item, *ring));
            return;
        }
        let (all, mut at) = (x.len(), 0);
        for (ring, places, _) in &self.products {
            let [first, end] = [at, at + places].map(|place| place.clamp(start, start + all) - start);
            x[first..end].iter_mut().for_each(|item| shift(item, *ring));
            at += places;
        }
    }

    /// Powers that the items have.
    fn powers(&self) -> Powers {
        let by_row = |(_, _, c): &(Ring, usize, Coefficients)| matches!(c.rows, Rows::Each(_));
        match self.folded == 0 && self.products.iter().all(by_row) {
            // words times random coefficients, of as few bits
            true => Powers::Below24,
            false => Powers::All,
        }
    }
}

impl Joining<Gr> for Combined {
    /// What a party has of both factors in a proof in which it has this role: the prover `x_i + x_(i+1)` and `w_i + w_(i+1)`, each
    /// verifier a summand of each. The first factor is multiplied by 2^(64-k), as the statement is.
    fn factors(&self, role: Role) -> [Cow<'_, [Gr]>; 2] {
        let [mut x, w]: [Cow<[Gr]>; 2] = match role {
            Role::Prover => {
                let mut sums: [Vec<Gr>; 2] = Default::default();
                self.add_up(0..self.own.len(), &mut sums);
                return sums.map(Cow::from);
            }
            // The prover's first component is the second one of the party before it.
            Role::Before => [(&self.next.x).into(), (&self.next.w).into()],
            Role::After => [(&self.own.x).into(), (&self.own.w).into()],
        };
        if self.products.iter().any(|(ring, ..)| *ring != Ring::R64) {
            self.shift(0, x.to_mut());
        }
        [x, w]
    }

    /// The prover's values of a fold of so many variables. Factors are made piece by piece, so that no memory holds all.
    fn message(&self, device: &dyn Device, vars: u32) -> Vec<Gr> {
        let (mut sums, mut factors) = (Sums::new(vars, self.powers()), [vec![], vec![]]);
        let all = self.own.len();
        for start in (0..all).step_by(sums.piece()) {
            self.add_up(start..all.min(start + sums.piece()), &mut factors);
            sums.add(device, &factors[0], &factors[1]);
        }
        sums.finish()
    }

    /// What a verifier adds to the combined statement by itself, and takes off its share of the claim. `products` are those that this
    /// was made of, in their order.
    fn sum(&self, device: &dyn Device, statements: &Statements) -> Gr {
        let each = statements.products.iter().flat_map(|p| (0..p.products.count).map(move |i| (p, i)));
        debug_assert_eq!(self.folded, 0);
        let (mut total, mut at) = (Gr::ZERO, 0);
        for ((product, i), (ring, places, coefficients)) in each.zip(&self.products) {
            let Some(rest) = &product.rest else { break };
            let (shape, len) = (product.products.shape, product.products.shape.output_len());
            let mut sum = result(device, shape, &rest[i * len..(i + 1) * len], coefficients);
            if let Some(bias) = &product.bias {
                sum = sum.add(coefficients.of_rows(device, bias));
            }
            if product.role == Role::After {
                // the prover's next component
                let (x, w) = (&self.own.x[at..at + places], &self.own.w[at..at + places]);
                sum = sum.sub(inner(device, x, w, self.powers()));
            }
            shift(&mut sum, *ring);
            total = total.add(sum);
            at += places;
        }
        total
    }

    /// Whether the items of fold `k` of a proof with this shape are these, and no others.
    fn are_items(&self, k: usize, shape: &Shape) -> bool {
        shape.of_words() == 0 && k <= self.folds.0.len()
    }

    /// Whether fold `k` of a proof with this shape is one that all three have in common.
    fn folds_in_common(&self, k: usize, shape: &Shape) -> bool {
        shape.of_words() == 0 && k < self.folds.0.len()
    }

    /// Variables of fold `k`, if it is one that all three proofs have in common.
    fn common_vars(&self, k: usize) -> Option<u32> {
        self.folds.0.get(k).copied()
    }

    /// Go on, for all three proofs, with the items of the next fold that they have in common, at this point.
    fn fold(&mut self, device: &dyn Device, r: &[u64]) {
        debug_assert_eq!(self.common_vars(self.folded), Some(r.len() as u32));
        self.folded += 1;
        for operands in [&mut self.own, &mut self.next] {
            for items in [&mut operands.x, &mut operands.w] {
                *items = Gr::fold(device, items, r);
            }
        }
    }
}

impl Product {
    /// The inner dimensions of all products.
    pub fn depth(&self) -> usize {
        self.products.count * depth(self.products.shape)
    }
}

/// The first operand's rows combined: for every place of the inner dimension, the sum of `a_r X_r`, added to what stands there.
pub(super) fn first(device: &dyn Device, shape: LinearShape, x: &[u64], rows: &Rows, out: &mut [Gr]) {
    match shape {
        LinearShape::MatMulT { k, .. } | LinearShape::MatMul { k, .. } => {
            device.fold().rows_combine(x, [k, 1], rows.each(), out);
        }
        LinearShape::Conv2d(c) => convolution::first(device, &c, x, rows, out),
    }
}

/// The second operand's columns combined, added to what stands there.
pub(super) fn second(device: &dyn Device, shape: LinearShape, w: &[u64], bits: &[u64], out: &mut [Gr]) {
    match shape {
        LinearShape::MatMulT { k, .. } => device.fold().rows_combine(w, [k, 1], bits, out),
        LinearShape::MatMul { n, .. } => device.fold().rows_combine(w, [1, n], bits, out),
        LinearShape::Conv2d(c) => {
            let (depth, channels) = (depth(shape) / c.groups, c.out_channels / c.groups);
            let groups = w.chunks(depth * channels).zip(bits.chunks(channels));
            for ((w, bits), out) in groups.zip(out.chunks_mut(depth)) {
                device.fold().rows_combine(w, [depth, 1], bits, out);
            }
        }
    }
}

/// The result's elements combined.
fn result(device: &dyn Device, shape: LinearShape, s: &[u64], c: &Coefficients) -> Gr {
    let mut columns = vec![Gr::ZERO; c.columns.len()];
    columns_of_result(device, shape, s, &c.rows, &mut columns);
    device.fold().weigh(&mut columns, &c.columns);
    columns.into_iter().fold(Gr::ZERO, Gr::add)
}

/// The result's rows combined: for every column, added to what stands there.
pub(super) fn columns_of_result(
    device: &dyn Device,
    shape: LinearShape,
    s: &[u64],
    rows: &Rows,
    out: &mut [Gr],
) {
    match shape {
        LinearShape::MatMulT { n, .. } | LinearShape::MatMul { n, .. } => {
            device.fold().rows_combine(s, [n, 1], rows.each(), out);
        }
        LinearShape::Conv2d(conv) => convolution::result(device, &conv, s, rows, out),
    }
}
