//! Comparisons of digits joined in a tree: `less = less_high ^ equal_high less_low`, `equal = equal_high equal_low`
//! (Garay, Schoenmakers, Villegas, PKC 2007).
//!
//! Both products of a node have the factor `equal_high`, and take one correlated triple `(a; b, b'; a b, a b')`. It comes from two
//! random transfers, one in each direction, without a correction: a party's choice bit is its share of a, the XOR of the two
//! strings that it has are its shares of b and b'.

use crate::context::{Cx, Plane, RunError, Side, put_plane};
use crate::leaf::Leaf;
use crate::mutation;
use crate::planes::{xor, xor_and};
use crate::uses::{Uses, plane_bytes};

/// A node's factor, and what it multiplies.
struct Products<'a> {
    factor: &'a Plane,
    of: Vec<&'a Plane>,
}

/// What a tree over so many digits uses for n numbers, where the lowest digit has both bits or one.
pub(crate) fn uses(digits: usize, n: usize, lowest: usize, others: usize) -> Uses {
    let mut planes: Vec<usize> = (0..digits).map(|d| if d == 0 { lowest } else { others }).collect();
    let mut total = Uses::default();
    while planes.len() > 1 {
        let opened: usize = planes.chunks_exact(2).map(|pair| 1 + pair[0]).sum();
        let nodes = planes.len() / 2;
        let bytes = opened as u64 * plane_bytes(n);
        total = total.then(Uses { transfers: [nodes * n; 2], bytes: [bytes; 2], steps: 1 });
        planes = planes.chunks(2).map(|pair| pair[0]).collect();
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
    struct Triple {
        a: Plane,
        b: Vec<Plane>,
        ab: Vec<Plane>,
    }
    let (mut triples, mut message) = (Vec::with_capacity(nodes.len()), Vec::new());
    for node in nodes {
        let [mut zero, mut one] = cx.sender(n)?.into_pads().strings;
        let mut received = cx.receiver(n)?.into_pads();
        let mut triple = Triple { a: received.choices.to_vec(), b: Vec::new(), ab: Vec::new() };
        for _ in &node.of {
            let (r0, r1) = (zero.bits(), one.bits());
            let b: Plane = r0.iter().zip(r1.iter()).map(|(r0, r1)| r0 ^ r1).collect();
            let mut ab = r0.to_vec();
            xor(&mut ab, &received.strings.bits());
            xor_and(&mut ab, &triple.a, &b);
            triple.b.push(b);
            triple.ab.push(ab);
        }
        if mutation::active("openings-unmasked") {
            triple.a.fill(0);
        }
        let masks = std::iter::once(&triple.a).chain(&triple.b);
        for (secret, mask) in std::iter::once(node.factor).chain(node.of.iter().copied()).zip(masks) {
            let mut masked = secret.clone();
            xor(&mut masked, mask);
            put_plane(n, &masked, &mut message);
        }
        triples.push(triple);
    }
    let mine = message.clone();
    let theirs = cx.exchange("comparison", message, mine.len())?;
    let each = plane_bytes(n) as usize;
    let mut opened = Vec::with_capacity(mine.len() / each.max(1));
    for (mine, theirs) in mine.chunks_exact(each).zip(theirs.chunks_exact(each)) {
        let mut both = cx.plane(n, mine)?;
        xor(&mut both, &cx.plane(n, theirs)?);
        opened.push(both);
    }
    let mut opened = opened.into_iter();
    let mut next = || opened.next().expect("as many as were sent");
    let mut all = Vec::with_capacity(nodes.len());
    for triple in triples {
        let d = next();
        let product = |(b, mut ab): (&Plane, Plane)| {
            let e = next();
            xor_and(&mut ab, &d, b);
            xor_and(&mut ab, &e, &triple.a);
            if cx.side == Side::Server {
                xor_and(&mut ab, &d, &e);
            }
            ab
        };
        all.push(triple.b.iter().zip(triple.ab).map(product).collect());
    }
    Ok(all)
}
