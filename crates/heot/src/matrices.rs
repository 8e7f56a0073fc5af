//! Shared matrices multiplied: random ones are multiplied before a run, by encryption, and their products turned to those of the
//! operands in it (Beaver, CRYPTO 1991).
//!
//! *Before a run* each side draws shares of A and B, and [`crate::encryption`] or [`crate::gathered`] gives it a share of `C = A B`. *In the run* each side
//! opens its operands less its shares of A and B, all of a node at once. With `E = X - A` and `F = Y - B` the product is
//! `C + A F + E B + E F`, of which the server adds the last term.

use crate::context::{Cx, RunError, Side};
use crate::encryption;
use crate::gathered;
use crate::material::{Correlation, Frame, Made, Maker, Material, Shape};
use crate::mutation;
use crate::uses::{Uses, word_bytes};
use privet_family::Products;
use privet_he::NoSet;
use privet_he::layout::Matmul;
use privet_kernels::{LinearShape, cpu};
use privet_prg::Wiped;
use privet_ring::{Ring, pack, unpack};

/// Random matrices of `m x k` and `k x o`, and their product: of each a share, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Matrices {
    pub ring: Ring,
    pub m: usize,
    pub k: usize,
    pub o: usize,
    pub way: Way,
}

/// How products of random matrices are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Operands with gaps and a hint for each product: [`encryption`]. In every ring.
    Blocks,
    /// With few bytes, and keys that all products of a preparation share: [`gathered`]. In rings of up to some 40 bits.
    Gathered,
}

/// Ring elements of products that are made together. AGREEMENT. They share keys; their ciphertexts take some 40 MB.
const TOGETHER: usize = 1 << 17;

impl Matrices {
    /// Elements of A, of B and of C.
    fn sizes(&self) -> [usize; 3] {
        [self.m * self.k, self.k * self.o, self.m * self.o]
    }

    /// Elements of both operands.
    pub fn opened(&self) -> usize {
        let [a, b, _] = self.sizes();
        a + b
    }

    /// So many side by side.
    fn shape_of(&self, groups: usize) -> Matmul {
        Matmul { groups, m: self.m, k: self.k, o: self.o }
    }

    /// Whether encryption has parameters for it.
    pub fn fits(&self) -> Result<(), NoSet> {
        encryption::plan(self.ring, self.shape_of(self.chunk())).map(drop)
    }

    /// The same made the other way, where that has a packing.
    pub fn gathered(self) -> Option<Matrices> {
        gathered::plan(self.ring, self.shape_of(self.chunk()))?;
        gathered::plan(self.ring, self.shape_of(1))?;
        Some(Matrices { way: Way::Gathered, ..self })
    }
}

impl Correlation for Matrices {
    fn transfers(&self) -> [usize; 2] {
        [0; 2]
    }

    fn shape(&self, _: Side) -> Shape {
        Shape::of_many(self.sizes().map(|size| (self.ring, size)).to_vec())
    }

    fn chunk(&self) -> usize {
        (TOGETHER / self.sizes().iter().sum::<usize>().max(1)).max(1)
    }

    fn made(&self, n: usize) -> Made {
        match self.way {
            Way::Blocks => encryption::made(self.ring, self.shape_of(n)),
            Way::Gathered => gathered::made(self.ring, self.shape_of(n)),
        }
    }

    fn make(&self, maker: &mut Maker<'_>, frame: &mut Frame) -> Result<(), RunError> {
        let [a, b] = [0, 1].map(|i| Wiped::new(maker.prg.elements(self.ring, frame.n * self.sizes()[i])));
        let shape = self.shape_of(frame.n);
        let c = match self.way {
            Way::Blocks => encryption::product(maker, self.ring, shape, &a, &b)?,
            Way::Gathered => gathered::product(maker, self.ring, shape, &a, &b)?,
        };
        [a, b, c].iter().enumerate().for_each(|(i, of)| frame.set_elements(i, of));
        Ok(())
    }
}

/// Shares of `X Y` for each of `count` pairs side by side, modulo 2^k; Y has rows of o elements.
pub(crate) fn multiply(
    cx: &mut Cx,
    of: Matrices,
    count: usize,
    x: &[u64],
    y: &[u64],
) -> Result<Vec<u64>, RunError> {
    let [left, right, _] = of.sizes();
    let material = cx.take(of, count)?;
    let mut message = Vec::with_capacity(of.ring.packed_bytes(x.len()) + of.ring.packed_bytes(y.len()));
    let operands = [(x, left), (y, right)];
    let own = [0, 1].map(|i| masked(&material, i, operands[i].1, operands[i].0));
    own.iter().for_each(|own| pack(of.ring, own, &mut message));
    let due = message.len();
    let theirs = cx.exchange("masked matrices", message, due)?;
    let (of_x, of_y) = theirs.split_at(of.ring.packed_bytes(x.len()));
    let opened = |own: &[u64], bytes: &[u8]| -> Result<Vec<u64>, RunError> {
        let theirs = unpack(of.ring, bytes, own.len()).map_err(|e| cx.wrong(e))?;
        Ok(own.iter().zip(theirs).map(|(own, theirs)| of.ring.wrap(own.wrapping_add(theirs))).collect())
    };
    let (e, f) = (opened(&own[0], of_x)?, opened(&own[1], of_y)?);
    let adds = cx.side == Side::Server || mutation::active("matrices-at-the-client-too");
    let device = cpu(cx.threads);
    let mut out = Vec::with_capacity(count * of.m * of.o);
    for frame in material {
        let [a, mut b, c] = [0, 1, 2].map(|i| frame.elements(i));
        let shape = LinearShape::MatMul { m: of.m, k: of.k, n: of.o };
        let products = Products { shape, count: frame.n };
        let (e, f) = (&e[frame.first * left..][..a.len()], &f[frame.first * right..][..b.len()]);
        let mut sum = c.to_vec();
        products.accumulate(&*device, of.ring, &a, &products.prepare(&*device, of.ring, f), &mut sum);
        if adds {
            b.iter_mut().zip(f).for_each(|(b, f)| *b = of.ring.wrap(b.wrapping_add(*f)));
        }
        products.accumulate(&*device, of.ring, e, &products.prepare(&*device, of.ring, &b), &mut sum);
        out.extend(sum.iter().map(|y| of.ring.wrap(*y)));
    }
    Ok(out)
}

/// An operand less this side's share of what masks it.
fn masked(material: &Material<Matrices>, which: usize, each: usize, x: &[u64]) -> Wiped<u64> {
    let open = if mutation::active("matrices-in-clear") { 0 } else { u64::MAX };
    let mut out = Wiped::with_room(x.len());
    for frame in material.frames() {
        let mask = frame.elements(which);
        let x = &x[frame.first * each..];
        out.extend(x.iter().zip(mask.iter()).map(|(x, mask)| x.wrapping_sub(mask & open)));
    }
    out
}

/// What [`multiply`] uses.
pub(crate) fn uses(of: Matrices, count: usize) -> Uses {
    let [x, y, _] = of.sizes().map(|size| word_bytes(of.ring.bits(), count * size));
    Uses::of(of, count, [x + y; 2], 1)
}
