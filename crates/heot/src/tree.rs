//! Comparisons of digits joined in a tree: `less = less_high ^ equal_high less_low`, `equal = equal_high equal_low`
//! (Garay, Schoenmakers, Villegas, PKC 2007).
//!
//! Digits but the lowest have `less ^ tie equal` in place of `less`, for a bit `tie` that the server knows. So has a node, with the tie of
//! its low side: `less = (less_high ^ tie_high equal_high) ^ equal_high (less_low ^ tie_high)`, and what `less_low` has too much,
//! `tie_low equal_low`, becomes `tie_low equal`. The server takes `tie_high` off its share, and nothing is sent for it.
//!
//! Both products of a node have the factor `equal_high`, and take one correlated triple `(a; b, b'; a b, a b')` ([`Triples`]). It comes
//! from two random transfers, one in each direction, without a correction: a party's choice bit is its share of a, the XOR of the
//! two strings that it has are its shares of b and b'.

use crate::context::{Cx, RunError, Side};
use crate::leaf::Leaf;
use crate::material::{Correlation, Frame, Maker, Material, Shape};
use crate::mutation;
use crate::planes::{self, Plane, xor};
use crate::uses::{Uses, plane_bytes};
use crate::wire::Outgoing;

/// Parts of numbers that trees join side by side, at most.
const PARTS: usize = 3;

/// A triple of bits for every node of a level, part by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Triples([Nodes; PARTS]);

/// Nodes of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Nodes {
    count: usize,
    /// Products of the lowest one.
    lowest: usize,
    /// Products of each other one, if there is one.
    others: usize,
}

impl Triples {
    /// Products of each node.
    fn products(self) -> impl Iterator<Item = usize> {
        let of = |part: Nodes| (0..part.count).map(move |at| if at == 0 { part.lowest } else { part.others });
        self.0.into_iter().flat_map(of)
    }

    /// Planes that each side opens: every factor, and what it multiplies.
    fn opened(self) -> usize {
        self.products().map(|products| 1 + products).sum()
    }
}

impl Correlation for Triples {
    fn transfers(&self) -> [usize; 2] {
        [self.products().count(); 2]
    }

    /// Node by node a share of a, those of each b, and of each product.
    fn shape(&self, _: Side) -> Shape {
        Shape::of(self.products().map(|products| 1 + 2 * products).sum(), Vec::new())
    }

    fn make(&self, maker: &mut Maker<'_>, frame: &mut Frame) -> Result<(), RunError> {
        let pair = &mut *maker.pair;
        let mut at = 0;
        for products in self.products() {
            let [mut zero, mut one] = pair.sender.take(frame.n)?.into_pads().strings;
            let mut received = pair.receiver.take(frame.n)?.into_pads();
            for i in 0..products {
                let (zero, one, got) = (zero.bits(), one.bits(), received.strings.bits());
                let a = received.choices.iter();
                let all = zero.iter().zip(one.iter()).zip(got.iter().zip(a)).enumerate();
                for (word, ((zero, one), (got, a))) in all {
                    let b = zero ^ one;
                    frame.plane_mut(at + 1 + i)[word] = b;
                    frame.plane_mut(at + 1 + products + i)[word] = zero ^ got ^ a & b;
                }
            }
            if !mutation::active("openings-unmasked") {
                frame.plane_mut(at).copy_from_slice(&received.choices);
            }
            at += 1 + 2 * products;
        }
        Ok(())
    }
}

/// A node's factor, and what it multiplies.
struct Products<'a> {
    factor: &'a Plane,
    of: Vec<&'a Plane>,
}

impl<'a> Products<'a> {
    /// Of two neighbours.
    fn of(low: &'a Leaf, high: &'a Leaf) -> Products<'a> {
        let factor = high.equal.as_ref().expect("all but the lowest digit have it");
        Products { factor, of: low.less.iter().chain(&low.equal).collect() }
    }

    /// Of all neighbours of a part.
    fn of_level(part: &[Leaf]) -> Vec<Products<'_>> {
        part.chunks_exact(2).map(|pair| Products::of(&pair[0], &pair[1])).collect()
    }

    /// In the order in which they are opened.
    fn opened(&self) -> impl Iterator<Item = &Plane> {
        std::iter::once(self.factor).chain(self.of.iter().copied())
    }
}

impl Leaf {
    /// Take off the higher neighbour's tie, before products.
    fn take_tie(&mut self, high: &mut Leaf) {
        if let (Some(less), Some(tie)) = (&mut self.less, high.tie.take()) {
            xor(less, &tie);
        }
    }

    /// Both neighbours' comparison from the products of their node.
    fn of(low: &Leaf, high: &Leaf, products: Vec<Plane>) -> Leaf {
        let mut made = products.into_iter();
        let less = low.less.as_ref().map(|_| {
            let mut less = made.next().expect("a product");
            high.less.iter().for_each(|high| xor(&mut less, high));
            less
        });
        Leaf { less, equal: made.next(), tie: low.tie.clone() }
    }
}

/// A part of a number, by what a tree over it takes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Part {
    /// Digits.
    pub digits: usize,
    /// Products of a node that has the lowest one.
    pub lowest: usize,
    /// Products of each other node.
    pub others: usize,
}

impl Part {
    /// Of which `v < u` is wanted alone, with or without digits below it.
    pub fn less(digits: usize, is_lowest: bool) -> Part {
        Part { digits, lowest: if is_lowest { 1 } else { 2 }, others: 2 }
    }

    /// Of which `v = u` is wanted alone.
    pub fn equal(digits: usize) -> Part {
        Part { digits, lowest: 1, others: 1 }
    }

    fn nodes(self) -> Nodes {
        let count = self.digits / 2;
        let of = |least: usize, products: usize| if count > least { products } else { 0 };
        Nodes { count, lowest: of(0, self.lowest), others: of(1, self.others) }
    }
}

/// What trees use for n numbers, over the digits of each part.
pub(crate) fn uses(mut parts: [Part; PARTS], n: usize) -> Uses {
    let mut total = Uses::default();
    while parts.iter().any(|part| part.digits > 1) {
        let of = Triples(parts.map(Part::nodes));
        total = total.then(Uses::of(of, n, [of.opened() as u64 * plane_bytes(n); 2], 1));
        parts.iter_mut().for_each(|part| part.digits = part.digits.div_ceil(2));
    }
    total
}

/// The comparison of the whole number from those of its digits, the lowest first.
pub(crate) fn join(cx: &mut Cx, leaves: Vec<Leaf>, n: usize) -> Result<Leaf, RunError> {
    let [whole, ..] = join_parts(cx, [leaves, Vec::new(), Vec::new()], n)?;
    Ok(whole)
}

/// How many of a part's digits the last node has on its low side.
pub(crate) fn low_side(digits: usize) -> usize {
    (digits.next_power_of_two() / 2).max(1)
}

/// Comparisons of parts of a number from those of their digits, the lowest part first. Levels of all take the same steps.
pub(crate) fn join_parts(
    cx: &mut Cx,
    mut parts: [Vec<Leaf>; PARTS],
    n: usize,
) -> Result<[Leaf; PARTS], RunError> {
    while parts.iter().any(|part| part.len() > 1) {
        for part in &mut parts {
            for pair in part.chunks_exact_mut(2) {
                let [low, high] = pair else { unreachable!("pairs") };
                low.take_tie(high);
            }
        }
        let opening = Opening::begin(cx, parts.each_ref().map(|part| Products::of_level(part)), n)?;
        let (message, due) = (opening.message(), opening.due());
        let theirs = cx.exchange("comparison", message, due)?;
        let mut made = opening.finish(cx, theirs)?.into_iter();
        parts = parts.map(|part| {
            let pairs = part.chunks_exact(2);
            let odd = pairs.remainder().to_vec();
            let joined = pairs.map(|pair| Leaf::of(&pair[0], &pair[1], made.next().expect("one for each")));
            joined.chain(odd).collect()
        });
    }
    Ok(parts.map(|mut part| part.pop().unwrap_or_default()))
}

/// Both parts' comparison joined: the last node of a tree, whose message may pass with another one. Where there is no higher part there is no
/// node, and nothing is sent.
pub(crate) struct Last {
    parts: [Leaf; 2],
    opening: Option<Opening>,
}

impl Last {
    /// What it opens.
    pub fn begin(cx: &mut Cx, mut parts: [Leaf; 2], n: usize) -> Result<Last, RunError> {
        let [low, high] = &mut parts;
        if high.less.is_none() {
            return Ok(Last { parts, opening: None });
        }
        low.take_tie(high);
        let node = vec![Products::of(low, high)];
        let opening = Some(Opening::begin(cx, [node, Vec::new(), Vec::new()], n)?);
        Ok(Last { parts, opening })
    }

    /// This side's message.
    pub fn message(&self) -> Vec<u8> {
        self.opening.as_ref().map_or_else(Vec::new, Opening::message)
    }

    /// The whole number's comparison, with the other side's message.
    pub fn finish(self, cx: &mut Cx, theirs: Vec<u8>) -> Result<Leaf, RunError> {
        let [low, high] = self.parts;
        let Some(opening) = self.opening else { return Ok(low) };
        let products = opening.finish(cx, theirs)?.swap_remove(0);
        Ok(Leaf::of(&low, &high, products))
    }

    /// What it uses, where the lower part's comparison has one bit.
    pub fn uses(n: usize) -> Uses {
        let of = Triples([Part::less(2, true).nodes(), Nodes::default(), Nodes::default()]);
        Uses::of(of, n, [of.opened() as u64 * plane_bytes(n); 2], 1)
    }
}

/// Products of a level's nodes on their way: `factor y` for each y of each node, in one step.
struct Opening {
    of: Triples,
    n: usize,
    triples: Material<Triples>,
    mine: Vec<u8>,
}

impl Opening {
    fn begin(cx: &mut Cx, parts: [Vec<Products<'_>>; PARTS], n: usize) -> Result<Opening, RunError> {
        let of = |node: Option<&Products>| node.map_or(0, |node| node.of.len());
        let nodes = |part: &Vec<Products>| Nodes {
            count: part.len(),
            lowest: of(part.first()),
            others: of(part.get(1)),
        };
        let of = Triples(parts.each_ref().map(nodes));
        let nodes: Vec<&Products> = parts.iter().flatten().collect();
        let triples = cx.take(of, n)?;
        let mut message = Outgoing::new(of.opened(), n);
        for frame in triples.frames() {
            let (first, each) = (frame.first / 64, planes::words(frame.n));
            let (mut at, mut place) = (0, 0);
            for node in &nodes {
                for (i, secret) in node.opened().enumerate() {
                    let mut masked = secret[first..][..each].to_vec();
                    xor(&mut masked, frame.plane(at + i));
                    message.put(place, frame.first, &masked);
                    place += 1;
                }
                at += 1 + 2 * node.of.len();
            }
        }
        Ok(Opening { of, n, triples, mine: message.bytes() })
    }

    fn message(&self) -> Vec<u8> {
        self.mine.clone()
    }

    /// Bytes of the other side's message.
    fn due(&self) -> usize {
        self.mine.len()
    }

    /// Shares of the products.
    fn finish(self, cx: &mut Cx, theirs: Vec<u8>) -> Result<Vec<Vec<Plane>>, RunError> {
        let Opening { of, n, triples, mine } = self;
        let (mine, theirs) = (cx.incoming(n, mine)?, cx.incoming(n, theirs)?);
        // whose share has the product of what is opened
        let leads = if cx.side == Side::Server { u64::MAX } else { 0 };
        let mut all: Vec<Vec<Plane>> =
            of.products().map(|products| vec![vec![0; planes::words(n)]; products]).collect();
        for frame in triples {
            let (first, each) = (frame.first / 64, planes::words(frame.n));
            let mut opened = mine.chunk(0..of.opened(), frame.first, frame.n);
            xor(&mut opened, &theirs.chunk(0..of.opened(), frame.first, frame.n));
            let mut opened = opened.chunks_exact(each);
            let mut next = || opened.next().expect("as many as were sent");
            let mut at = 0;
            for shares in &mut all {
                let (products, a, d) = (shares.len(), frame.plane(at), next());
                for (i, share) in shares.iter_mut().enumerate() {
                    let (e, b, ab) = (next(), frame.plane(at + 1 + i), frame.plane(at + 1 + products + i));
                    for (word, share) in share[first..][..each].iter_mut().enumerate() {
                        let (d, e) = (d[word], e[word]);
                        *share = ab[word] ^ d & b[word] ^ e & a[word] ^ d & e & leads;
                    }
                }
                at += 1 + 2 * products;
            }
        }
        Ok(all)
    }
}
