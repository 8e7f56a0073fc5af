//! Comparisons of digits joined in a tree: `less = less_high ^ equal_high less_low`, `equal = equal_high equal_low`
//! (Garay, Schoenmakers, Villegas, PKC 2007).
//!
//! Both products of a node have the factor `equal_high`, and take one correlated triple `(a; b, b'; a b, a b')` ([`Triples`]). It comes
//! from two random transfers, one in each direction, without a correction: a party's choice bit is its share of a, the XOR of the
//! two strings that it has are its shares of b and b'.

use crate::context::{Cx, RunError, Side};
use crate::leaf::Leaf;
use crate::material::{Correlation, Frame, Maker, Shape};
use crate::mutation;
use crate::planes::{self, Plane, xor};
use crate::uses::{Uses, plane_bytes};
use crate::wire::Outgoing;

/// A triple of bits for every node of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Triples {
    /// Nodes.
    nodes: usize,
    /// Products of the lowest node.
    lowest: usize,
    /// Products of each other node, if there is one.
    others: usize,
}

impl Triples {
    /// Products of each node.
    fn products(self) -> impl Iterator<Item = usize> {
        (0..self.nodes).map(move |node| if node == 0 { self.lowest } else { self.others })
    }

    /// Planes that each side opens: every factor, and what it multiplies.
    fn opened(self) -> usize {
        self.products().map(|products| 1 + products).sum()
    }
}

impl Correlation for Triples {
    fn transfers(&self) -> [usize; 2] {
        [self.nodes; 2]
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

impl Products<'_> {
    /// In the order in which they are opened.
    fn opened(&self) -> impl Iterator<Item = &Plane> {
        std::iter::once(self.factor).chain(self.of.iter().copied())
    }
}

/// What a tree over so many digits uses for n numbers, where the lowest digit has both bits or one.
pub(crate) fn uses(digits: usize, n: usize, lowest: usize, others: usize) -> Uses {
    let (mut level, mut total) = (digits, Uses::default());
    while level > 1 {
        let others = if level / 2 > 1 { others } else { 0 };
        let of = Triples { nodes: level / 2, lowest, others };
        total = total.then(Uses::of(of, n, [of.opened() as u64 * plane_bytes(n); 2], 1));
        level = level.div_ceil(2);
    }
    total
}

/// The comparison of the whole number from those of its digits, the lowest first.
pub(crate) fn join(cx: &mut Cx, mut level: Vec<Leaf>, n: usize) -> Result<Leaf, RunError> {
    while level.len() > 1 {
        let pairs = level.chunks_exact(2);
        let products: Vec<Products> = pairs
            .clone()
            .map(|pair| {
                let factor = pair[1].equal.as_ref().expect("all but the lowest digit have it");
                Products { factor, of: pair[0].less.iter().chain(&pair[0].equal).collect() }
            })
            .collect();
        let mut made = multiply(cx, &products, n)?.into_iter();
        let odd = pairs.remainder().to_vec();
        let mut next: Vec<Leaf> = pairs
            .map(|pair| {
                let mut made = made.next().expect("one for each pair").into_iter();
                let less = pair[0].less.as_ref().map(|_| {
                    let mut less = made.next().expect("a product");
                    pair[1].less.iter().for_each(|high| xor(&mut less, high));
                    less
                });
                Leaf { less, equal: made.next() }
            })
            .collect();
        next.extend(odd);
        level = next;
    }
    Ok(level.pop().unwrap_or_default())
}

/// Shares of `factor y` for each y of each node, in one step.
fn multiply(cx: &mut Cx, nodes: &[Products], n: usize) -> Result<Vec<Vec<Plane>>, RunError> {
    let of = |node: Option<&Products>| node.map_or(0, |node| node.of.len());
    let of = Triples { nodes: nodes.len(), lowest: of(nodes.first()), others: of(nodes.get(1)) };
    let triples = cx.take(of, n)?;
    let mut message = Outgoing::new(of.opened(), n);
    for frame in triples.frames() {
        let (first, each) = (frame.first / 64, planes::words(frame.n));
        let (mut at, mut place) = (0, 0);
        for node in nodes {
            for (i, secret) in node.opened().enumerate() {
                let mut masked = secret[first..][..each].to_vec();
                xor(&mut masked, frame.plane(at + i));
                message.put(place, frame.first, &masked);
                place += 1;
            }
            at += 1 + 2 * node.of.len();
        }
    }
    let mine = message.bytes();
    let theirs = cx.exchange("comparison", mine.clone(), mine.len())?;
    let (mine, theirs) = (cx.incoming(n, mine)?, cx.incoming(n, theirs)?);
    // whose share has the product of what is opened
    let leads = if cx.side == Side::Server { u64::MAX } else { 0 };
    let mut all: Vec<Vec<Plane>> =
        nodes.iter().map(|node| vec![vec![0; planes::words(n)]; node.of.len()]).collect();
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
