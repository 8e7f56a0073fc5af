//! Whole products over the wire: shares add up to the integers' product modulo 2^k, bytes are as announced, and what is
//! not an encoding is refused.

use privet_he::layout::{ConvLayout, Layout, Matmul, MatmulLayout, cost};
use privet_he::{Answer, Context, HePath, Parameters, PublicKey, Query, SecretKey, Weights, WireError};
use privet_prg::{Prg, Seed};
use privet_ring::{Conv2d, Ring};

mod plain;

fn draw(prg: &mut Prg, ring: Ring, bits: u32, n: usize) -> Vec<u64> {
    prg.elements(Ring::new(bits), n)
        .into_iter()
        .map(|w| ring.wrap(Ring::new(bits).signed(w) as u64))
        .collect()
}

/// The product by both parties, through bytes; its cost must be as declared.
fn product(p: &Parameters, layout: &dyn Layout, x: &[u64], w: &[u64]) -> Vec<u64> {
    let context = Context::new(p.set()).unwrap();
    let (mut holder, mut owner) = (Seed::random().stream(), Seed::random().stream());
    let key = SecretKey::generate(&context, &mut holder);
    let public = key.public(&mut holder).encode();
    assert_eq!(public.len(), PublicKey::bytes(&context));
    let query = key.encrypt(p, layout, x, &mut holder).encode();

    let weights = Weights::new(&context, p, layout, w);
    let public = PublicKey::decode(&context, &public).unwrap();
    let received = Query::decode(&context, layout.queries(), &query).unwrap();
    let (answer, share) = weights.answer(&public, layout, &received, &mut owner);
    let answer = answer.encode(p);

    let declared = cost(p, layout);
    assert_eq!(
        (query.len(), answer.len()),
        (declared.query_bytes, declared.answer_bytes),
        "declared = counted"
    );
    let other = key.decrypt(p, layout, &Answer::decode(p, layout, &answer).unwrap());
    other.iter().zip(share).map(|(a, b)| p.ring().wrap(a.wrapping_add(b))).collect()
}

#[test]
fn matrix_products_are_exact() {
    let mut prg = Seed::from_bytes([3; 16]).stream();
    for (k, b, shape) in [
        (64, 64, Matmul { groups: 1, m: 5, k: 70, o: 33 }),
        (64, 24, Matmul { groups: 2, m: 3, k: 40, o: 9 }),
        (41, 41, Matmul { groups: 1, m: 1, k: 9000, o: 2 }),
        (37, 16, Matmul { groups: 1, m: 64, k: 20, o: 10 }),
        (24, 8, Matmul { groups: 1, m: 2, k: 3, o: 4 }),
        (1, 1, Matmul { groups: 1, m: 9, k: 30, o: 5 }),
    ] {
        let ring = Ring::new(k);
        let (p, layout) = MatmulLayout::plan(shape, ring, b, 1).unwrap();
        let x = prg.elements(ring, layout.input_len());
        let w = draw(&mut prg, ring, b, layout.weight_len());
        let expected: Vec<u64> = plain::matmul(shape, &x, &w).into_iter().map(|y| ring.wrap(y)).collect();
        assert_eq!(product(&p, &layout, &x, &w), expected, "{p:?} {layout:?}");
    }
}

/// The largest of everything: weights and operands at the ends of the ring, every coefficient used.
#[test]
fn extremes_are_exact() {
    let ring = Ring::R64;
    let shape = Matmul { groups: 1, m: 1, k: 8192, o: 3 };
    for (x, w) in [(u64::MAX, 1 << 63), (1 << 63, 1 << 63), (1, u64::MAX), ((1 << 63) - 1, (1 << 63) - 1)] {
        let (p, layout) = MatmulLayout::plan(shape, ring, 64, 1).unwrap();
        let (x, w) = (vec![x; layout.input_len()], vec![w; layout.weight_len()]);
        assert_eq!(product(&p, &layout, &x, &w), plain::matmul(shape, &x, &w));
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
    for (k, b, c) in [
        (64, 24, base),
        (41, 41, Conv2d { stride: [2, 2], ..base }),
        (37, 12, Conv2d { groups: 2, in_channels: 4, out_channels: 4, batch: 1, ..base }),
        (64, 64, Conv2d { input: [100, 101], batch: 1, in_channels: 1, out_channels: 1, ..base }),
    ] {
        let ring = Ring::new(k);
        let (p, layout) = ConvLayout::plan(c, ring, b, 1).unwrap();
        let x = prg.elements(ring, layout.input_len());
        let w = draw(&mut prg, ring, b, layout.weight_len());
        let expected: Vec<u64> = plain::conv(&c, &x, &w).into_iter().map(|y| ring.wrap(y)).collect();
        assert_eq!(product(&p, &layout, &x, &w), expected, "{p:?} {layout:?}");
    }
}

/// From one seed every path makes the same bytes.
#[test]
fn paths_make_the_same_bytes() {
    let shape = Matmul { groups: 1, m: 3, k: 50, o: 7 };
    let (p, layout) = MatmulLayout::plan(shape, Ring::R64, 64, 1).unwrap();
    let mut prg = Seed::from_bytes([5; 16]).stream();
    let (x, w) = (prg.elements(p.ring(), 150), prg.elements(p.ring(), 350));
    let transcripts = HePath::ALL.into_iter().filter(|p| p.available()).map(|path| {
        let context = Context::on(p.set(), path);
        let (mut holder, mut owner) =
            (Seed::from_bytes([6; 16]).stream(), Seed::from_bytes([7; 16]).stream());
        let key = SecretKey::generate(&context, &mut holder);
        let public = key.public(&mut holder);
        let query = key.encrypt(&p, &layout, &x, &mut holder);
        let (answer, share) =
            Weights::new(&context, &p, &layout, &w).answer(&public, &layout, &query, &mut owner);
        let other = key.decrypt(&p, &layout, &answer);
        (public.encode(), query.encode(), answer.encode(&p), share, other)
    });
    let transcripts: Vec<_> = transcripts.collect();
    assert!(transcripts.windows(2).all(|t| t[0] == t[1]));
}

#[test]
#[should_panic(expected = "a weight has more than 8 bits")]
fn a_weight_that_is_too_wide_is_refused() {
    let shape = Matmul { groups: 1, m: 1, k: 1, o: 1 };
    let (p, layout) = MatmulLayout::plan(shape, Ring::R64, 8, 1).unwrap();
    Weights::new(&Context::new(p.set()).unwrap(), &p, &layout, &[128]);
}

#[test]
fn damaged_bytes_are_refused() {
    let shape = Matmul { groups: 1, m: 1, k: 4, o: 2 };
    let (p, layout) = MatmulLayout::plan(shape, Ring::R64, 64, 1).unwrap();
    let context = Context::new(p.set()).unwrap();
    let mut prg = Seed::from_bytes([8; 16]).stream();
    let key = SecretKey::generate(&context, &mut prg);
    let query = key.encrypt(&p, &layout, &[1, 2, 3, 4], &mut prg).encode();
    for wrong in [&query[..query.len() - 1], &[&query[..], &[0]].concat(), &[]] {
        let expected = query.len();
        let found = Query::decode(&context, 1, wrong).map(|_| ()).unwrap_err();
        assert_eq!(found, WireError::Length { expected, found: wrong.len() });
    }
    assert!(Query::decode(&context, usize::MAX, &query).is_err(), "no overflow");
    let mut large = query.clone();
    large[Seed::BYTES..Seed::BYTES + 7].fill(0xff);
    assert_eq!(Query::decode(&context, 1, &large).map(|_| ()).unwrap_err(), WireError::Residue { index: 0 });
    assert!(Answer::decode(&p, &layout, &[0; 100]).is_err());
}
