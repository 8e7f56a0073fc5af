//! Matrix products and convolutions.

use crate::linear::{Operand, products};
use crate::proof::ProductClaim;
use crate::proof::convolution::Rows;
use crate::testing::{edges, open, share, three};
use crate::{Party, PartyId, RunError, Security, Share};
use privet_family::Products;
use privet_kernels::LinearShape;
use privet_kernels::linear::reference;
use privet_prg::Seed;
use privet_ring::{Conv2d, Ring};
use std::sync::Arc;

fn conv(groups: usize, stride: [usize; 2], padding: [usize; 4], dilation: [usize; 2]) -> LinearShape {
    LinearShape::Conv2d(Conv2d {
        batch: 2,
        in_channels: 2 * groups,
        input: [5, 6],
        out_channels: 3 * groups,
        kernel: [3, 2],
        stride,
        padding,
        dilation,
        groups,
    })
}

pub(super) fn shapes() -> Vec<Products> {
    let one = |shape| Products { shape, count: 1 };
    vec![
        one(LinearShape::MatMulT { m: 3, k: 5, n: 4 }),
        one(LinearShape::MatMulT { m: 9, k: 1, n: 1 }),
        one(LinearShape::MatMulT { m: 2, k: 300, n: 70 }),
        one(LinearShape::MatMul { m: 4, k: 7, n: 3 }),
        Products { shape: LinearShape::MatMul { m: 2, k: 3, n: 5 }, count: 4 },
        one(conv(1, [1, 1], [1, 1, 0, 2], [1, 1])),
        one(conv(2, [2, 1], [2, 0, 1, 1], [1, 2])),
        one(many_images()),
    ]
}

/// A convolution whose rows have two coefficients each.
fn many_images() -> LinearShape {
    let shape = conv(1, [1, 2], [1, 0, 0, 2], [1, 1]);
    let LinearShape::Conv2d(c) = shape else { unreachable!("a convolution") };
    let c = Conv2d { batch: 300, ..c };
    assert!(Rows::of(LinearShape::Conv2d(c), &mut Seed::from_bytes([1; 16]).stream()).are_products());
    LinearShape::Conv2d(c)
}

/// What is proved element by element.
pub(super) fn few_results() -> Vec<Products> {
    let one = |shape| Products { shape, count: 1 };
    vec![
        one(LinearShape::MatMulT { m: 1, k: 1, n: 1 }),
        one(LinearShape::MatMulT { m: 3, k: 40, n: 2 }),
        Products { shape: LinearShape::MatMul { m: 2, k: 6, n: 4 }, count: 3 },
        Products { shape: LinearShape::MatMul { m: 1, k: 33, n: 1 }, count: 70 },
    ]
}

/// A product of shared values, and a bias.
fn multiply(party: &mut Party, ring: Ring, p: Products) -> Share {
    let [x, w, bias] = operands(ring, p).map(|values| share(party.id, ring, &values));
    let w = Operand::new(party.device, ring, p, &w);
    products(party, ring, p, &x, &w, Some(&bias)).unwrap()
}

fn operands(ring: Ring, p: Products) -> [Vec<u64>; 3] {
    [p.input_len(), p.weight_len(), p.columns()].map(|n| edges(ring, n))
}

#[test]
fn products_pass() {
    for p in shapes().into_iter().chain(few_results()) {
        for bits in [64, 48, 33, 8, 2, 1] {
            let ring = Ring::new(bits);
            let results = three(Security::Malicious, |party| {
                let z = multiply(party, ring, p);
                party.verify().unwrap_or_else(|e| panic!("{:?}, {bits} bits: {e}", p.shape));
                z
            });
            let [x, w, bias] = operands(ring, p);
            let start = p.spread(&bias);
            let shape = p.shape;
            let expected: Vec<u64> = (0..p.count)
                .flat_map(|i| {
                    let (x, w) = (&x[i * shape.input_len()..], &w[i * shape.weight_len()..]);
                    let start = &start[i * shape.output_len()..][..shape.output_len()];
                    let (x, w) = (&x[..shape.input_len()], &w[..shape.weight_len()]);
                    let product = reference(ring, shape, x, w);
                    let sums = product.iter().zip(start).map(|(z, s)| ring.wrap(z.wrapping_add(*s)));
                    sums.collect::<Vec<_>>()
                })
                .collect();
            assert_eq!(open(ring, results.each_ref()), expected, "{shape:?}");
        }
    }
}

/// Add `by` to one element of what a party knows: 0 and 1 components of x, 2 and 3 of w, 4 and 5 the verifiers' sums, 6 the bias.
fn spoil(claim: &mut ProductClaim, what: usize, element: usize, by: u64) {
    let change = |words: &[u64]| {
        let mut words = words.to_vec();
        let at = element % words.len();
        words[at] = words[at].wrapping_add(by);
        words
    };
    match what {
        0 => claim.x.own = Arc::new(change(&claim.x.own).into()),
        1 => claim.x.next = Arc::new(change(&claim.x.next).into()),
        2 => claim.w.own = Arc::new(change(&claim.w.own).into()),
        3 => claim.w.next = Arc::new(change(&claim.w.next).into()),
        4 => claim.before = change(&claim.before).into(),
        6 => claim.bias = claim.bias.as_deref().map(|bias| change(bias).into()),
        _ => claim.after = change(&claim.after).into(),
    }
}

#[test]
fn no_wrong_product_passes() {
    let mut attempt = 0;
    for p in shapes() {
        for bits in [1, 40, 64] {
            for what in 0..7 {
                let (ring, liar) = (Ring::new(bits), PartyId::ALL[attempt % 3]);
                let results = three(Security::Malicious, |party| {
                    multiply(party, ring, p);
                    if party.id == liar {
                        let claims = &mut party.transcript.as_mut().unwrap().products;
                        let by = if what < 4 { 1 } else { 1 << (attempt as u32 % bits) };
                        spoil(&mut claims[0], what, attempt, by);
                    }
                    party.verify()
                });
                // an operand may well meet nothing but zeros
                let caught = results.iter().any(Result::is_err);
                assert!(caught || what < 4 && bits == 1, "{:?}, {bits} bits, {what}", p.shape);
                for result in &results {
                    assert_eq!(result.is_err(), caught);
                    assert!(!matches!(result, Err(RunError::Missing(_) | RunError::Pack { .. })));
                }
                attempt += 1;
            }
        }
    }
}

/// Two lies about a result that add up to nothing but for what their rows, and their columns, are multiplied with.
#[test]
fn lies_that_cancel_without_coefficients_are_found() {
    let (several, matrix) =
        (conv(1, [1, 2], [1, 0, 0, 2], [1, 1]), LinearShape::MatMulT { m: 3, k: 5, n: 4 });
    for shape in [many_images(), several, matrix] {
        // how far apart elements are that differ in one place of the result alone
        let apart = match shape {
            LinearShape::Conv2d(c) => {
                let [height, width] = c.output();
                vec![1, width, height * width, c.out_channels * height * width]
            }
            LinearShape::MatMulT { n, .. } | LinearShape::MatMul { n, .. } => vec![1, n],
        };
        for apart in apart {
            let results = three(Security::Malicious, |party| {
                multiply(party, Ring::R64, Products { shape, count: 1 });
                if party.id == PartyId::ALL[1] {
                    let claims = &mut party.transcript.as_mut().unwrap().products;
                    spoil(&mut claims[0], 4, 0, 1);
                    spoil(&mut claims[0], 4, apart, u64::MAX);
                }
                party.verify()
            });
            assert!(results.iter().all(Result::is_err), "{shape:?}, {apart} apart");
        }
    }
}

/// A party that sends another result than it should, proved element by element: its message is another number for the parties that
/// check it than for itself.
#[test]
fn no_wrong_element_passes() {
    let mut attempt = 0;
    for p in few_results() {
        for bits in [1, 40, 64] {
            for side in ["before", "after"] {
                let (ring, liar) = (Ring::new(bits), PartyId::ALL[attempt % 3]);
                let results = three(Security::Malicious, |party| {
                    multiply(party, ring, p);
                    let transcript = party.transcript.as_mut().unwrap();
                    assert!(transcript.products.is_empty() && transcript.claims.len() == 3);
                    for claim in transcript.claims.iter_mut().filter(|claim| claim.prover == liar) {
                        let Some(s) = &mut claim.rest else { continue };
                        if party.id == if side == "before" { liar.prev() } else { liar.next() } {
                            let mut words = s.to_vec(claim.kind);
                            let at = attempt % words.len();
                            words[at] = words[at].wrapping_add(1 << (attempt as u32 % bits));
                            *s = words.into();
                        }
                    }
                    party.verify()
                });
                assert!(results.iter().all(Result::is_err), "{:?}, {bits} bits, {side}", p.shape);
                attempt += 1;
            }
        }
    }
}

/// Statements modulo several powers of 2, each of which is multiplied by another one. Pieces of items end within a product, and the last has
/// one item.
#[test]
fn products_of_several_rings() {
    let of = |k| Products { shape: LinearShape::MatMulT { m: 3, k, n: 4 }, count: 1 };
    let all = [(64, of(100)), (40, of(7)), (8, of(150)), (33, of(128))];
    for liar in [None, Some(0), Some(3)] {
        let results = three(Security::Malicious, |party| {
            for (bits, p) in all {
                multiply(party, Ring::new(bits), p);
            }
            // else one fold would do
            let x = share(party.id, Ring::R64, &edges(Ring::R64, 99));
            crate::gates::sign::bits(party, Ring::R64, &x).unwrap();
            if let (Some(i), true) = (liar, party.id == PartyId::ALL[2]) {
                let claims = &mut party.transcript.as_mut().unwrap().products;
                spoil(&mut claims[i], 4, 5, 1 << (all[i].0 - 1));
            }
            party.verify()
        });
        assert!(results.iter().all(|result| result.is_err() == liar.is_some()), "{liar:?}");
    }
}

#[test]
fn everything_together() {
    let ring = Ring::new(48);
    let results = three(Security::Malicious, |party| {
        for p in shapes().into_iter().chain(few_results()) {
            multiply(party, ring, p);
        }
        let (x, y) = (share(party.id, ring, &edges(ring, 99)), share(party.id, ring, &edges(ring, 99)));
        crate::linear::mul(party, ring, &x, &y).unwrap();
        crate::gates::max::eval(party, ring, &x, &y).unwrap();
        party.verify()
    });
    results.into_iter().for_each(|r| r.unwrap());
}
