//! Whole products over bytes: shares add up to the integers' product modulo 2^k for several numbers of parties, bytes and
//! work are as declared, and what is not an encoding is refused.

use privet_he::layout::{ConvLayout, Layout, Matmul, MatmulLayout, Roles, cost};
use privet_he::{
    Context, DISTANCE_BITS, HePath, Message, Parameters, Partial, Product, SETS, WireError, Zero,
};
use privet_prg::{Prg, Seed};
use privet_ring::{Conv2d, Ring};
use std::sync::Arc;

mod parties;
mod plain;
use parties::{Run, opened, seeds, shares};

const ROOM: usize = 1 << 29;

fn ring(p: &Parameters) -> Ring {
    Ring::new(p.plain().bits())
}

/// The product among n parties, from uniform shares, whether values of weights are kept or not; its cost must be as declared.
fn product(p: &Parameters, layout: Arc<dyn Layout>, n: usize, x: &[u64], w: &[u64]) -> Vec<u64> {
    let [kept, anew] = [true, false].map(|keeps| product_in(p, Arc::clone(&layout), n, [x, w], keeps));
    assert_eq!(kept, anew, "values of weights kept, and made anew");
    kept
}

fn product_in(
    p: &Parameters,
    layout: Arc<dyn Layout>,
    n: usize,
    [x, w]: [&[u64]; 2],
    keeps: bool,
) -> Vec<u64> {
    let context = Context::new(p.set(), 1).unwrap();
    let mut prg = Seed::random().stream();
    let (x, w) = (shares(&mut prg, ring(p), x, n), shares(&mut prg, ring(p), w, n));
    let own: Vec<Seed> = (0..n).map(|_| Seed::random()).collect();
    let run = Run {
        context: &context,
        p: *p,
        layout: Arc::clone(&layout),
        room: if keeps { ROOM } else { 0 },
        tiles: 3,
    };
    let made = run.calls(&[x], &w, &own).remove(0);

    let declared = cost(p, &*layout, Roles::BOTH, keeps);
    let bytes = |m: &parties::Made| m.sent.iter().map(Vec::len).sum::<usize>();
    // who opens sends no partials
    assert_eq!(bytes(&made[n - 1]), declared.hint_bytes + declared.operand_bytes);
    assert_eq!(bytes(&made[0]) - bytes(&made[n - 1]), declared.partial_bytes);
    let transforms = n * (declared.hint_transforms + declared.transforms);
    let products = n * (declared.hint_products + declared.products);
    if p.kept_bits().is_none() {
        assert_eq!(context.work(), (transforms, products), "declared = counted");
    }
    opened(p, &made)
}

#[test]
fn matrix_products_are_exact() {
    let mut prg = Seed::from_bytes([3; 16]).stream();
    for (n, k, shape) in [
        (2, 64, Matmul { groups: 1, m: 5, k: 70, o: 33 }),
        (3, 64, Matmul { groups: 2, m: 3, k: 40, o: 9 }),
        (5, 64, Matmul { groups: 1, m: 4, k: 60, o: 11 }),
        (2, 41, Matmul { groups: 1, m: 1, k: 9000, o: 2 }),
        (4, 37, Matmul { groups: 1, m: 64, k: 20, o: 10 }),
        (2, 24, Matmul { groups: 3, m: 2, k: 3, o: 4 }),
        (3, 1, Matmul { groups: 1, m: 9, k: 30, o: 5 }),
    ] {
        let ring = Ring::new(k);
        let (p, layout) = MatmulLayout::plan(shape, ring, k, n, 1).unwrap();
        let (x, w) = (prg.elements(ring, layout.input_len()), prg.elements(ring, layout.weight_len()));
        let expected: Vec<u64> = plain::matmul(shape, &x, &w).into_iter().map(|y| ring.wrap(y)).collect();
        assert_eq!(product(&p, Arc::new(layout), n, &x, &w), expected, "{n} parties, {p:?} {layout:?}");
        let coarse = p.coarse(layout.coefficients(), layout.output_len());
        if coarse != p {
            assert_eq!(product(&coarse, Arc::new(layout), n, &x, &w), expected, "{n} parties, {coarse:?}");
        }
    }
}

#[test]
fn convolutions_are_exact() {
    let mut prg = Seed::from_bytes([4; 16]).stream();
    let base = Conv2d {
        batch: 2,
        in_channels: 3,
        input: [17, 17],
        out_channels: 5,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1; 4],
        dilation: [1, 1],
        groups: 1,
    };
    for (n, k, c) in [
        (2, 64, base),
        (3, 41, Conv2d { stride: [2, 2], ..base }),
        (5, 37, Conv2d { groups: 2, in_channels: 4, out_channels: 4, batch: 1, ..base }),
        (2, 64, Conv2d { input: [100, 101], batch: 1, in_channels: 1, out_channels: 1, ..base }),
    ] {
        let ring = Ring::new(k);
        let (p, layout) = ConvLayout::plan(c, ring, k, n, 1).unwrap();
        let (x, w) = (prg.elements(ring, layout.input_len()), prg.elements(ring, layout.weight_len()));
        let expected: Vec<u64> = plain::conv(&c, &x, &w).into_iter().map(|y| ring.wrap(y)).collect();
        assert_eq!(product(&p, Arc::new(layout), n, &x, &w), expected, "{n} parties, {c:?}");
    }
}

/// Shares at the ends of the ring, all parties the same, every coefficient used: the largest of everything.
#[test]
fn extremes_are_exact() {
    let (ring, n) = (Ring::R64, 3u64);
    let shape = Matmul { groups: 1, m: 1, k: 8192, o: 3 };
    for (x, w) in [(u64::MAX, 1 << 63), (1 << 63, 1 << 63), (1, u64::MAX), ((1 << 63) - 1, (1 << 63) - 1)] {
        let (p, layout) = MatmulLayout::plan(shape, ring, 64, 3, 1).unwrap();
        let context = Context::new(p.set(), 2).unwrap();
        let run = Run { context: &context, p, layout: Arc::new(layout), room: ROOM, tiles: 1 };
        let (xs, ws) = (vec![x; layout.input_len()], vec![w; layout.weight_len()]);
        let own: Vec<Seed> = (0..3).map(|_| Seed::random()).collect();
        let made = run.calls(&[vec![xs.clone(); 3]], &vec![ws.clone(); 3], &own).remove(0);
        let sum = |v: Vec<u64>| -> Vec<u64> { v.into_iter().map(|v| v.wrapping_mul(n)).collect() };
        assert_eq!(opened(&p, &made), plain::matmul(shape, &sum(xs), &sum(ws)));
    }
}

/// One party knows narrow weights, the others share the operand, for two operands in turn.
#[test]
fn weights_of_one_party_serve_many_calls() {
    let (ring, shape) = (Ring::R64, Matmul { groups: 2, m: 7, k: 50, o: 6 });
    let mut prg = Seed::from_bytes([5; 16]).stream();
    for n in [2, 3] {
        let (p, layout) = MatmulLayout::plan(shape, ring, 16, n, 2).unwrap();
        let narrow = Ring::new(16);
        let w: Vec<u64> = prg.elements(narrow, layout.weight_len());
        let w: Vec<u64> = w.into_iter().map(|w| narrow.signed(w) as u64).collect();
        let xs: Vec<Vec<u64>> = (0..2).map(|_| prg.elements(ring, layout.input_len())).collect();
        for owner in [0, n - 1] {
            let context = Context::new(p.set(), 1).unwrap();
            let run = Run { context: &context, p, layout: Arc::new(layout), room: ROOM, tiles: 2 };
            let ws: Vec<_> = (0..n).map(|i| if i == owner { w.clone() } else { Vec::new() }).collect();
            let split = |prg: &mut Prg, x: &[u64]| {
                let mut all = shares(prg, ring, x, n - 1);
                all.insert(owner, Vec::new());
                all
            };
            let calls: Vec<_> = xs.iter().map(|x| split(&mut prg, x)).collect();
            let made = run.calls(&calls, &ws, &seeds(20, n));
            for (made, x) in made.iter().zip(&xs) {
                assert_eq!(opened(&p, made), plain::matmul(shape, x, &w), "{n} parties, owner {owner}");
            }
        }
    }
}

/// From the same seeds every path, any number of threads, and weights kept or not, make the same bytes.
#[test]
fn paths_make_the_same_bytes() {
    let shape = Matmul { groups: 1, m: 3, k: 50, o: 7 };
    let layout = MatmulLayout::with_blocks(shape, 8192, [1, 20, 3]);
    let p = Parameters::choose(Ring::R64, 64, layout.coefficients(), layout.output_len(), 2).unwrap();
    let mut prg = Seed::from_bytes([5; 16]).stream();
    let (x, w) = (prg.elements(Ring::R64, 150), prg.elements(Ring::R64, 350));
    let (x, w) = (shares(&mut prg, Ring::R64, &x, 2), shares(&mut prg, Ring::R64, &w, 2));
    let all = HePath::ALL.into_iter().filter(|p| p.available());
    let made = all.flat_map(|path| [(path, 1, ROOM), (path, 3, 0)]).map(|(path, threads, room)| {
        let context = Context::on(p.set(), path, threads);
        let run = Run { context: &context, p, layout: Arc::new(layout), room, tiles: 2 };
        run.calls(std::slice::from_ref(&x), &w, &seeds(30, 2))
    });
    let made: Vec<_> = made.collect();
    assert!(made.windows(2).all(|t| t[0] == t[1]));
}

/// Blocks for hints that are sent without some bits take no more than those for whole ones would, and less for a head of a transformer.
#[test]
fn blocks_are_chosen_by_what_hints_are_sent_with() {
    let (k, together) = (37, 1 << 12);
    for (shape, less) in [
        (Matmul { groups: 4, m: 128, k: 64, o: 128 }, true),
        (Matmul { groups: 1, m: 1, k: 70, o: 9 }, false),
        (Matmul { groups: 2, m: 300, k: 20, o: 30 }, false),
    ] {
        let ring = Ring::new(k);
        let (p, layout) = MatmulLayout::plan_coarse(shape, ring, k, 2, together).unwrap();
        let outputs = together * layout.output_len();
        assert!(p.kept_bits().is_some() && p.distance_bits(layout.coefficients(), outputs) >= DISTANCE_BITS);
        let (_, other) = MatmulLayout::plan(shape, ring, k, 2, 1).unwrap();
        let q = Parameters::on(p.set(), ring, k, other.coefficients(), together * other.output_len(), 2);
        let q = q.unwrap().coarse(other.coefficients(), together * other.output_len());
        let sent = |p: &Parameters, layout: &MatmulLayout| {
            let cost = cost(p, layout, Roles::BOTH, true);
            cost.hint_bytes + cost.operand_bytes
        };
        let (found, before) = (sent(&p, &layout), sent(&q, &other));
        assert!(
            if less { 20 * found < 19 * before } else { found <= before },
            "{shape:?}: {found}, not {before}"
        );
    }
}

#[test]
#[should_panic(expected = "a weight has more than 8 bits")]
fn a_weight_that_is_too_wide_is_refused() {
    let shape = Matmul { groups: 1, m: 1, k: 1, o: 1 };
    let (p, layout) = MatmulLayout::plan(shape, Ring::R64, 8, 2, 1).unwrap();
    let context = Context::new(p.set(), 1).unwrap();
    let product = Product::new(&context, &p, Arc::new(layout), Seed::from_bytes([1; 16]));
    product.weights(&[128], &mut Seed::random().stream(), ROOM);
}

#[test]
#[should_panic(expected = "each group once")]
fn a_key_encrypts_a_tile_once() {
    let shape = Matmul { groups: 1, m: 1, k: 1, o: 1 };
    let (p, layout) = MatmulLayout::plan(shape, Ring::R64, 8, 2, 1).unwrap();
    let context = Context::new(p.set(), 1).unwrap();
    let product = Product::new(&context, &p, Arc::new(layout), Seed::from_bytes([1; 16]));
    let mut prg = Seed::random().stream();
    let (mut keys, _) = product.keys(0..1, &mut prg);
    keys.encrypt(0, &[1], &mut prg);
    keys.encrypt(0, &[2], &mut prg);
}

#[test]
fn damaged_bytes_are_refused() {
    let context = Context::new(&SETS[2], 1).unwrap();
    let (p, layout) =
        MatmulLayout::plan(Matmul { groups: 1, m: 1, k: 4, o: 2 }, Ring::R64, 64, 2, 1).unwrap();
    let product = Product::new(&context, &p, Arc::new(layout), Seed::from_bytes([1; 16]));
    let (_, zero) = product.keys(0..1, &mut Seed::random().stream());
    let bytes = zero.encode();
    assert_eq!(bytes.len(), product.bytes::<Zero>(1));
    let read = |n: usize, bytes: &[u8]| Message::<Zero>::decode(&product, n, bytes).map(|_| ());
    for wrong in [&bytes[..bytes.len() - 1], &[&bytes[..], &[0]].concat(), &[]] {
        let (expected, found) = (bytes.len(), wrong.len());
        assert_eq!(read(1, wrong), Err(WireError::Length { expected, found }));
    }
    assert!(read(usize::MAX, &bytes).is_err(), "no overflow");
    let mut large = bytes.clone();
    large[..7].fill(0xff);
    assert_eq!(read(1, &large), Err(WireError::Residue { index: 0 }));
    assert!(Partial::decode(&product, 0, 0..1, &[0; 100]).is_err());
}
