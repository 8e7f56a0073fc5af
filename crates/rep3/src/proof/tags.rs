//! Layers whose weights are of the session: a tag that the parties make once says what their products have to be (docs/rep3.md,
//! section 6, *Tags of weights*).
//!
//! Let column c of the weights be W_c. The parties share a random coefficient b_c of the small set for each, which nobody knows: the
//! layer's *key*. Once a session they compute shares of its *tag* `T = sum over c of b_c W_c`, an item for each place of the inner dimension, and
//! prove that. Of a run with inputs X and results Z let `x = sum over rows r of a_r X_r` and `z_c = sum over r of a_r Z_rc`, for
//! random a_r that nobody knew before all messages were in. Then
//!
//! `sum over places of x T - sum over c of b_c z_c = 0`
//!
//! where every result is right. All four are shared, so each party has a summand of the difference. An error in Z changes it by a
//! combination of that error with the key, which no party knows.

use super::convolution::{Rows, combined as items_combined};
use super::extension::Extension;
use super::galois::{DEGREE, Gr, inner, reduce_to, shift};
use super::products::{self, ProductClaim, columns_of_result, first, second};
use super::verification::Verification;
use crate::context::Awaited;
use crate::price::proofs::{self, depth, making_tags};
use crate::{Messages, Party, RunError, Share, mutation};
use privet_family::{Prepared, Products, Secret};
use privet_kernels::fold::Powers;
use privet_kernels::{Aside, Device, LinearShape};
use privet_prg::{Domain, Prg, Seed};
use privet_ring::Ring;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// Words of an element of the small set, and of its products with words: others are 0.
const SMALL: usize = proofs::Extension::Ring.random_bits() as usize;

/// A party's share of a layer's key and tag.
pub(crate) struct Tags {
    /// Components i and i + 1 of the coefficients of all columns, those of one product after those of another; the bits of elements of the small set.
    key: [Secret; 2],
    tag: Tag,
}

/// Of the tag component i, and the sum of both.
#[cfg_attr(test, derive(Clone))]
enum Tag {
    /// Where there are few rows: second operands of matrix products whose results have the words of an element for every row.
    Operands([Prepared; 2]),
    /// Where rows are combined first: an element for every place, those of one product after those of another.
    Items([Secret; 2]),
}

impl Tags {
    /// Of this second operand. One round; what was sent is left to be proved.
    pub fn make(cx: &mut Party, ring: Ring, all: Products, w: &Share) -> Result<Tags, RunError> {
        let mut streams = cx.draw();
        let key = |stream: &mut Prg| products::some(stream, all.count * all.columns());
        let mut key = [key(&mut streams.own), key(&mut streams.next)];
        mutation::mask("tag-keys-forgotten", key.each_mut().map(|key| &mut key[..]));
        let key = key.map(Secret::new);
        let summand =
            combined(cx.device, ring, all, [(&w.own, &key[0]), (&w.next, &key[0]), (&w.own, &key[1])]);
        let layout = Layout::of(all);
        let (tag, masks) = cx.reshare("tags", ring, layout.rows(&summand))?;
        if let (Some(transcript), Some(masks)) = (&mut cx.transcript, masks)
            && !mutation::active("tags-not-proved")
        {
            let key = layout.key(all, &key);
            let (x, w) = if layout.transposed { (w.clone(), key) } else { (key, w.clone()) };
            let (before, after) = (masks.before.into(), masks.after.into());
            transcript.push_products(ProductClaim {
                ring,
                products: layout.products,
                x,
                w,
                bias: None,
                before,
                after,
            });
        }
        let both: Secret =
            tag.own.iter().zip(tag.next.iter()).map(|(a, b)| ring.wrap(a.wrapping_add(*b))).collect();
        let tag = match of_few_rows(all) {
            Some(products) => {
                Tag::Operands([&tag.own, &both].map(|tag| products.prepare(cx.device, ring, tag)))
            }
            None => Tag::Items([&tag.own, &both].map(|tag| layout.items(tag))),
        };
        Ok(Tags { key, tag })
    }

    /// Whether rows are multiplied with them one by one.
    pub fn are_of_rows(&self) -> bool {
        matches!(self.tag, Tag::Operands(_))
    }

    /// The same without a component of the key.
    #[cfg(test)]
    pub(super) fn less_key(&self, component: usize) -> Tags {
        let mut key = self.key.clone();
        key[component].fill(0);
        Tags { key, tag: self.tag.clone() }
    }
}

/// Products of the same first operand with tags in the place of the second, where they are of few rows.
fn of_few_rows(products: Products) -> Option<Products> {
    let shape = match products.shape {
        LinearShape::MatMulT { m, k, .. } => LinearShape::MatMulT { m, k, n: SMALL },
        LinearShape::MatMul { m, k, .. } => LinearShape::MatMul { m, k, n: SMALL },
        LinearShape::Conv2d(_) => return None,
    };
    proofs::few_rows(products.shape).then_some(Products { shape, ..products })
}

/// The sum of these words' columns, each times its coefficients, all places of one product after those of another.
fn combined(device: &dyn Device, ring: Ring, all: Products, terms: [(&[u64], &[u64]); 3]) -> Vec<Gr> {
    let (columns, len, places) = (all.columns(), all.shape.weight_len(), depth(all.shape));
    let mut out = vec![Gr::ZERO; all.count * places];
    for (i, out) in out.chunks_mut(places.max(1)).enumerate() {
        for (words, bits) in terms {
            second(
                device,
                all.shape,
                &words[i * len..(i + 1) * len],
                &bits[i * columns..(i + 1) * columns],
                out,
            );
        }
    }
    out.iter_mut().for_each(|item| reduce_to(item, ring));
    out
}

/// Making a tag as a matrix product, of the key's bits with weights as they lie: the one that its proof is about.
struct Layout {
    products: Products,
    /// Whether weights are the first operand, and results stand place by place.
    transposed: bool,
    places: usize,
}

impl Layout {
    fn of(all: Products) -> Layout {
        let products = making_tags(&all);
        let transposed = matches!(all.shape, LinearShape::MatMul { .. });
        let places = match products.shape {
            LinearShape::MatMul { n, .. } => n,
            LinearShape::MatMulT { .. } | LinearShape::Conv2d(_) => 1,
        };
        Layout { products, transposed, places }
    }

    /// The key as an operand: of every product all columns' bits of one power after those of another.
    fn key(&self, all: Products, key: &[Secret; 2]) -> Share {
        let columns = all.count * all.columns() / self.products.count.max(1);
        let bits = |key: &[u64]| -> Vec<u64> {
            let of_power =
                |columns: &[u64], t: usize| columns.iter().map(move |b| b >> t & 1).collect::<Vec<u64>>();
            key.chunks(columns.max(1))
                .flat_map(|columns| (0..SMALL).flat_map(move |t| of_power(columns, t)))
                .collect()
        };
        Share::new(bits(&key[0]), bits(&key[1]))
    }

    /// Elements as they stand in the product's result.
    fn rows(&self, items: &[Gr]) -> Vec<u64> {
        let places = items.chunks(self.places);
        places.flat_map(|items| (0..SMALL).flat_map(move |t| items.iter().map(move |item| item[t]))).collect()
    }

    /// The other way round.
    fn items(&self, rows: &[u64]) -> Secret {
        let mut items = Secret::new(vec![0; rows.len() / SMALL * DEGREE]);
        for (items, rows) in items.chunks_mut(self.places * DEGREE).zip(rows.chunks(self.places * SMALL)) {
            for (p, item) in items.as_chunks_mut::<DEGREE>().0.iter_mut().enumerate() {
                item.iter_mut().zip(rows[p..].iter().step_by(self.places)).for_each(|(to, word)| *to = *word);
            }
        }
        items
    }
}

/// Results of a layer with tags in a run, or of some of its products or rows.
#[derive(Clone)]
pub(crate) struct TaggedClaim {
    pub ring: Ring,
    pub products: Products,
    /// This party's share of the first operand.
    pub x: Share,
    /// Of the bias, an element a column, if there is one.
    pub bias: Option<Share>,
    /// Of the results.
    pub z: Share,
    pub tags: Arc<Tags>,
    /// Which of the layer's products is the first of these.
    pub first: usize,
}

impl TaggedClaim {
    /// This party's summand of the difference, with coefficients of rows from `prg`.
    fn difference(&self, device: &dyn Device, prg: &mut Prg) -> Gr {
        let mut sum = match (&self.tags.tag, of_few_rows(self.products)) {
            (Tag::Operands(tag), Some(products)) => self.of_few_rows(device, products, tag, prg),
            (Tag::Operands(_), None) => unreachable!("no part has more rows than the layer"),
            (Tag::Items(tag), _) => {
                let rows = self.rows(prg);
                (0..self.summands()).fold(Gr::ZERO, |sum, i| sum.add(self.summand(device, i, tag, &rows)))
            }
        };
        shift(&mut sum, self.ring);
        sum
    }

    /// [`TaggedClaim::difference`] beside the protocol: its summands, of which rows are combined.
    fn begin(&self, device: &dyn Device, prg: &mut Prg) -> Option<Aside<Gr>> {
        let Tag::Items(_) = &self.tags.tag else { return None };
        let (claim, device, rows) = (self.clone(), device.shared(), self.rows(prg));
        Some(Aside::begin(self.summands(), move |i| match &claim.tags.tag {
            Tag::Items(tag) => claim.summand(&*device, i, tag, &rows),
            Tag::Operands(_) => unreachable!("a tag stays what it is"),
        }))
    }

    /// Coefficients of all products' rows.
    fn rows(&self, prg: &mut Prg) -> Vec<Rows> {
        (0..self.products.count).map(|_| Rows::of(self.products.shape, prg)).collect()
    }

    /// The key of the layer of product `i`.
    fn key(&self, i: usize) -> [&[u64]; 2] {
        let columns = self.products.columns();
        let key = (self.first + i) * columns..(self.first + i + 1) * columns;
        self.tags.key.each_ref().map(|of| &of[key.clone()])
    }

    /// Each row is multiplied with the tag, and its results with the key. What that makes of rows is combined at last.
    fn of_few_rows(&self, device: &dyn Device, products: Products, tag: &[Prepared; 2], prg: &mut Prg) -> Gr {
        let [own, both] = tag.each_ref().map(|tag| tag.part(self.first..self.first + products.count));
        let mut of_rows = Secret::new(vec![0; products.output_len()]);
        products.accumulate(device, self.ring, &self.x.own, &both, &mut of_rows);
        products.accumulate(device, self.ring, &self.x.next, &own, &mut of_rows);
        let rows = products.output_len() / SMALL / products.count;
        let mut items: Vec<Gr> = of_rows.chunks(SMALL).map(in_full).collect();
        let columns = self.products.columns();
        let less_bias = |z: &[u64], bias: Option<&[u64]>| -> Secret {
            let none = if bias.is_none() { vec![0; columns] } else { vec![] };
            let bias = bias.unwrap_or(&none);
            z.chunks(columns)
                .flat_map(|z| bias.iter().zip(z).map(|(bias, z)| bias.wrapping_sub(*z)))
                .collect()
        };
        let bias = self.bias.as_ref();
        let own = less_bias(&self.z.own, bias.map(|bias| &bias.own[..]));
        let next = less_bias(&self.z.next, bias.map(|bias| &bias.next[..]));
        let both: Secret = own.iter().zip(next.iter()).map(|(a, b)| a.wrapping_add(*b)).collect();
        let each = items
            .chunks_mut(rows)
            .zip(both.chunks(rows * columns).zip(own.chunks(rows * columns)))
            .enumerate();
        each.fold(Gr::ZERO, |sum, (i, (items, (both, own)))| {
            let key = self.key(i);
            device.fold().rows_combine(both, [1, columns], key[0], items);
            device.fold().rows_combine(own, [1, columns], key[1], items);
            sum.add(items_combined(device, items, 1, &products::some(prg, rows)))
        })
    }

    /// Summands of the difference, where rows are combined first: of every product three.
    fn summands(&self) -> usize {
        3 * self.products.count
    }

    /// One of them: of a product what the components of the first operand make with the tag, one each, and what the results make with the key.
    fn summand(&self, device: &dyn Device, i: usize, [own, both]: &[Secret; 2], rows: &[Rows]) -> Gr {
        let (product, part) = (i / 3, i % 3);
        let rows = &rows[product];
        match part {
            0 => self.of_operand(device, product, &self.x.own, both, rows),
            1 => self.of_operand(device, product, &self.x.next, own, rows),
            _ => Gr::ZERO.sub(self.of_results(device, product, rows)),
        }
    }

    /// A component of the first operand of product `i`, with its tag.
    fn of_operand(&self, device: &dyn Device, i: usize, x: &[u64], tag: &Secret, rows: &Rows) -> Gr {
        let shape = self.products.shape;
        let (len, places) = (shape.input_len(), depth(shape));
        let powers = if matches!(rows, Rows::Each(_)) { Powers::Below24 } else { Powers::All };
        let mut items = vec![Gr::ZERO; places];
        first(device, shape, &x[i * len..(i + 1) * len], rows, &mut items);
        let at = (self.first + i) * places;
        inner(device, &tag.as_chunks().0[at..at + places], &items, powers)
    }

    /// The results of product `i` less the bias, with their key.
    fn of_results(&self, device: &dyn Device, i: usize, rows: &Rows) -> Gr {
        let (shape, outputs) = (self.products.shape, self.products.shape.output_len());
        let [mut z, next] = [&self.z.own, &self.z.next].map(|z| {
            let mut items = vec![Gr::ZERO; self.products.columns()];
            columns_of_result(device, shape, &z[i * outputs..(i + 1) * outputs], rows, &mut items);
            items
        });
        let mut both: Vec<Gr> = z.iter().zip(&next).map(|(a, b)| a.add(*b)).collect();
        if let Some(bias) = &self.bias {
            let total = rows.total(device);
            for (both, (z, (own, next))) in
                both.iter_mut().zip(z.iter_mut().zip(bias.own.iter().zip(bias.next.iter())))
            {
                *z = z.sub(total.map(|a| a.wrapping_mul(*own)));
                *both = both.sub(total.map(|a| a.wrapping_mul(own.wrapping_add(*next))));
            }
        }
        let key = self.key(i);
        items_combined(device, &both, 1, key[0]).add(items_combined(device, &z, 1, key[1]))
    }
}

/// The element whose first words are these, the others 0.
fn in_full(words: &[u64]) -> Gr {
    let mut element = Gr::ZERO;
    element[..SMALL].copy_from_slice(words);
    element
}

/// Results of a layer with tags, and how far their difference is.
pub(crate) struct Tagged {
    claim: TaggedClaim,
    made: Made,
}

enum Made {
    /// When all is verified.
    Last,
    /// As soon as the parties have coefficients of its rows.
    Waits,
    /// Its summands, beside the protocol.
    Aside(Aside<Gr>),
}

impl Tagged {
    pub fn new(claim: TaggedClaim, ahead: bool) -> Tagged {
        Tagged { claim, made: if ahead { Made::Waits } else { Made::Last } }
    }

    /// Whether it wants coefficients before the verification.
    pub fn waits(&self) -> bool {
        matches!(self.made, Made::Waits)
    }

    /// Begin, with coefficients of rows from `prg`.
    pub fn begin(&mut self, device: &dyn Device, prg: &mut Prg) {
        self.made = self.claim.begin(device, prg).map_or(Made::Last, Made::Aside);
    }

    /// This party's summand of the difference, where there is none by now with coefficients of rows from `prg`; and the claim, which nobody reads any more.
    fn difference(self, device: &dyn Device, prg: &mut Prg) -> (Gr, TaggedClaim) {
        let sum = match self.made {
            Made::Last | Made::Waits => self.claim.difference(device, prg),
            Made::Aside(summands) => {
                let mut sum = summands.finish().into_iter().fold(Gr::ZERO, Gr::add);
                shift(&mut sum, self.claim.ring);
                sum
            }
        };
        (sum, self.claim)
    }

    #[cfg(test)]
    pub fn into_claim(self) -> TaggedClaim {
        self.claim
    }
}

/// Whether the differences of all claims add up to 0: they are reshared, and then compared two components at a time.
pub(super) struct Difference {
    /// Components i and i + 1.
    own: Gr,
    next: Gr,
}

impl Difference {
    /// Bytes of each of its messages.
    pub const BYTES: usize = Gr::BYTES;

    /// This party's component, by coefficients from a seed that no party knew before all messages of the batch were in. Gives what it was made of, too.
    pub fn of(
        device: &dyn Device,
        results: Vec<Tagged>,
        coefficients: &Seed,
        [mut own, mut next]: [Prg; 2],
    ) -> (Difference, Vec<TaggedClaim>) {
        let mut prg = coefficients.derive(Domain::Common, 1).stream();
        let mut masks = [Gr::draw(&mut own, 1), Gr::draw(&mut next, 1)];
        mutation::mask("difference-unmasked", masks.each_mut().map(|mask| mask.as_flattened_mut()));
        let mut own = masks[0][0].sub(masks[1][0]);
        let mut spent = Vec::with_capacity(results.len());
        for results in results {
            let (summand, claim) = results.difference(device, &mut prg);
            own = own.add(summand);
            spent.push(claim);
        }
        (Difference { own, next: Gr::ZERO }, spent)
    }

    /// What the party before is sent.
    pub fn tells(&self) -> Vec<u8> {
        bytes(&self.own)
    }

    /// What the party after sent.
    pub fn hears(&mut self, message: &[u8]) {
        self.next = Gr::get(message);
    }

    /// What the party before is sent then: the third component of a sum that is 0, which that party has.
    pub fn opens(&self) -> Vec<u8> {
        bytes(&Gr::ZERO.sub(self.own.add(self.next)))
    }

    /// Whether the sum is 0, by what the party after opened.
    pub fn is_zero(&self, opened: &[u8]) -> bool {
        bool::from(opened.ct_eq(&bytes(&self.own))) || mutation::active("tags-not-checked")
    }
}

impl Party<'_> {
    /// [`Party::tell`] what comes after the values of fold `k`. After those of the first one each party opens to the party before what it has of the
    /// difference of tags: by then it was reshared, so that nobody can choose its component by the others'. And by then the halves of all seeds were
    /// compared: with other coefficients at one party the sum would be a function of secrets.
    pub(super) fn tell_and_open(
        &mut self,
        all: &Verification,
        k: usize,
        what: &str,
        mut out: Messages,
        (prev, next): (usize, usize),
    ) -> Result<Awaited, RunError> {
        if let (0, Some(difference)) = (k, &all.difference) {
            self.opened_tags += 1;
            out.prev = [difference.opens(), out.prev].concat();
        }
        self.tell(what, out, (prev, next + all.difference_bytes(k)))
    }
}

/// What came after the values of fold `k`, less what the party after opened of the difference of tags.
pub(super) fn opened(all: &mut Verification, k: usize, mut got: Messages) -> Messages {
    let rest = got.next.split_off(all.difference_bytes(k));
    if let (0, Some(difference)) = (k, &all.difference) {
        all.is_zero = difference.is_zero(&got.next);
    }
    got.next = rest;
    got
}

fn bytes(element: &Gr) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(Difference::BYTES);
    element.put(&mut bytes);
    bytes
}
