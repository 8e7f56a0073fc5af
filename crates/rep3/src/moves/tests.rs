use super::{And, Chosen, Deal, Known, Product, Select, Side, Sides, Split, Turned};
use crate::parts::{Parts, Role};
use crate::planes::{Bits, Words};
use crate::proof::{Algebra, Column};
use crate::testing::{check_claims, edges, open_planes, share, three, value};
use crate::{Party, PartyId, Planes, Security, Share};
use privet_prg::Seed;
use privet_ring::Ring;
use std::ops::Range;

/// Every party's own part of public values.
fn mine(cx: &Party, parts: &Parts, values: &[u64]) -> Vec<u64> {
    values[parts.elements(cx.id).mine].to_vec()
}

/// What the two others know of public values.
fn known(cx: &Party, parts: &Parts, values: &[u64]) -> Known {
    let part = parts.elements(cx.id);
    Known { before: values[part.before].to_vec().into(), after: values[part.after].to_vec().into() }
}

#[test]
fn products_of_dealt_bits_and_known_ones_add_up() {
    for n in [0, 1, 70, 400, 4000] {
        let mut stream = Seed::from_bytes([3; 16]).stream();
        let mut draw = || stream.elements(Ring::R64, n);
        let (a, b, c, d) = (draw(), draw(), draw(), draw());
        let results = three(Security::Malicious, |cx| {
            let parts = Parts::of(n);
            let words = parts.elements(cx.id).map(|part| part.len());
            let columns = [&a, &c].map(|v| Deal {
                algebra: Algebra::Bits,
                values: mine(cx, &parts, v),
                words,
                masks: None,
            });
            let [a, c] = cx.deal("values", columns).unwrap();
            let terms = vec![(a, known(cx, &parts, &b)), (c, known(cx, &parts, &d))];
            let [sum] = cx.split("products", [Split { terms, words }]).unwrap();
            let sum = sum.join(cx.id, &parts);
            (Planes::new(64 * n, 1, sum.own.to_vec(), sum.next.to_vec()), cx.transcript.take().unwrap())
        });
        let expected: Vec<u64> = (0..n).map(|i| a[i] & b[i] ^ c[i] & d[i]).collect();
        assert_eq!(open_planes(results.each_ref().map(|r| &r.0)), expected, "{n}");
        check_claims(results.each_ref().map(|r| &r.1));
    }
}

/// A public number that changes all bits of what is multiplied with it.
const WEIGHT: u64 = 0u64.wrapping_sub(5 << 7 | 3);

/// Dealt numbers times known bits, and known numbers times the components of a bit.
#[test]
fn bits_times_numbers_add_up() {
    for bits in [1, 13, 31, 33, 64] {
        let ring = Ring::new(bits);
        let algebra = Algebra::Ring(ring);
        for n in [0, 1, 70, 400, 4000] {
            let mut stream = Seed::from_bytes([3; 16]).stream();
            let mut draw = |ring| stream.elements(ring, n);
            let (a, c, y, z) = (draw(ring), draw(ring), draw(ring), draw(ring));
            let one = Ring::new(1);
            let (v, w, d0, d1, d2) = (draw(one), draw(one), draw(one), draw(one), draw(one));
            let d = [&d0, &d1, &d2];
            let program = |chosen: usize, turned: bool| {
                let (d, parts) = (&d, Parts::of(n));
                let (a, c, y, z, v, w) = (&a, &c, &y, &z, &v, &w);
                move |cx: &mut Party| -> Share {
                    let words = parts.elements(cx.id).map(|part| part.len());
                    let columns =
                        [a, c].map(|x| Deal { algebra, values: mine(cx, &parts, x), words, masks: None });
                    let [a, c] = cx.deal("values", columns).unwrap();
                    let bits = |of: &[u64]| known(cx, &parts, of).bit(0);
                    let mut terms = vec![
                        Chosen { number: a, weight: 1, bit: bits(v) },
                        Chosen { number: c, weight: WEIGHT, bit: bits(w) },
                    ];
                    terms.truncate(chosen);
                    let plane = |bits: &[u64]| crate::planes::to_planes(cx.device, bits, &[0]);
                    let own = plane(d[cx.id.index()]);
                    let bit = Planes::new(n, 1, own, plane(d[cx.id.next().index()]));
                    let bit = bit.dealt(cx.id, &parts);
                    let turned = turned.then(|| Turned {
                        spread: Some(bit.spread(ring)),
                        bit,
                        after: known(cx, &parts, y),
                        before: known(cx, &parts, z),
                    });
                    let [sum] = cx.select("sum", [Select { ring, chosen: terms, turned, words }]).unwrap();
                    sum.join(cx.id, &parts)
                }
            };
            for (chosen, turned) in [(1, false), (2, false), (1, true), (2, true), (0, true)] {
                let found = value(ring, program(chosen, turned));
                let parts = Parts::of(n);
                for (i, found) in found.into_iter().enumerate() {
                    let dealer = PartyId::ALL.into_iter().find(|j| parts.elements(*j).mine.contains(&i));
                    let j = dealer.unwrap().index();
                    let mut expected = 0u64;
                    for (a, weight, v) in [(&a, 1, &v), (&c, WEIGHT, &w)].into_iter().take(chosen) {
                        expected = expected.wrapping_add(a[i].wrapping_mul(weight).wrapping_mul(v[i]));
                    }
                    if turned {
                        let [first, second] = [z[i] * d[j][i], y[i] * d[(j + 1) % 3][i]];
                        expected = expected.wrapping_add(first).wrapping_add(second);
                    }
                    assert_eq!(found, ring.wrap(expected), "{i} of {n} of {ring}: {chosen}, {turned}");
                }
            }
        }
    }
}

#[test]
fn bits_are_combined() {
    let words: Vec<Vec<u64>> = (0..3).map(|i| edges(Ring::R64, 2000 + i)[i..].to_vec()).collect();
    for security in [Security::SemiHonest, Security::Malicious] {
        let results = three(security, |cx| {
            // sharings over Z_2 of the same words: components of 64 bits, the third one corrected
            let planes = |w: &[u64]| {
                let masks = |seed: u8| Seed::from_bytes([seed; 16]).stream().elements(Ring::R64, w.len());
                let third =
                    w.iter().zip(masks(1).iter().zip(masks(2))).map(|(w, (a, b))| w ^ a ^ b).collect();
                let components = [masks(1), masks(2), third];
                let [own, next] = [cx.id, cx.id.next()].map(|id| components[id.index()].clone());
                Words { own: own.into(), next: next.into() }
            };
            let [x, y, plus] = [0, 1, 2].map(|i| planes(&words[i]));
            let gates = [And { x: x.clone(), y: y.clone(), plus: Some(plus) }, And { x, y, plus: None }];
            let made = cx.and("and", &gates).unwrap();
            let planes = made.iter().map(|z| z.plane(64 * z.len())).collect::<Vec<Planes>>();
            (planes, cx.transcript.take())
        });
        for (i, plus) in [(0, &words[2]), (1, &vec![0; 2000])] {
            let found = open_planes(results.each_ref().map(|r| &r.0[i]));
            let expected: Vec<u64> = (0..2000).map(|w| words[0][w] & words[1][w] ^ plus[w]).collect();
            assert_eq!(found, expected, "{security}");
        }
        if let [Some(a), Some(b), Some(c)] = results.each_ref().map(|r| r.1.as_ref()) {
            check_claims([a, b, c]);
        }
    }
}

/// What a corrupt dealer sends instead of its value is still shared among all, and its statement does not hold.
#[test]
#[should_panic(expected = "does not hold")]
fn a_dealt_product_that_is_none_is_noticed() {
    let n = 200;
    let (x, y) = (edges(Ring::R64, n), edges(Ring::new(40), n));
    let transcripts = three(Security::Malicious, |cx| {
        let parts = Parts::of(n);
        let words = parts.elements(cx.id).map(|part| part.len());
        let (a, b) = (mine(cx, &parts, &x), mine(cx, &parts, &y));
        let mut product: Vec<u64> = a.iter().zip(&b).map(|(a, b)| a & b).collect();
        if cx.id.index() == 1 {
            product[17] ^= 1 << 12;
        }
        let columns =
            [a, b, product].map(|values| Deal { algebra: Algebra::Bits, values, words, masks: None });
        let [a, b, product] = cx.deal("values", columns).unwrap();
        cx.claim_dealt(&[Product(&a, &b)], &product);
        cx.transcript.take().unwrap()
    });
    check_claims(transcripts.each_ref());
}

/// Numbers of which one verifier knows four and the other two, and each the bits that choose among the other's: the same everywhere,
/// but for one place where they differ by `error`.
fn compared(ring: Ring, error: u64) {
    let n = 100;
    let mut stream = Seed::from_bytes([4; 16]).stream();
    let mut draw = |ring| stream.elements(ring, n);
    let bits = [(); 3].map(|()| draw(Ring::new(1)));
    let first: [Vec<u64>; 4] = std::array::from_fn(|_| draw(ring));
    let mut second = [(); 2].map(|()| draw(ring));
    for i in 0..n {
        // bits 1 and 2 choose among the first, bit 0 among the second
        let chosen = first[(bits[1][i] | bits[2][i] << 1) as usize][i];
        second[bits[0][i] as usize][i] = ring.wrap(chosen.wrapping_add(if i == 77 { error } else { 0 }));
    }
    fn side<'a>(
        bits: Vec<Column>,
        of: &'a [Vec<u64>],
        at_none: bool,
    ) -> Side<impl Fn(Range<usize>, usize, &mut [u64]) + 'a> {
        Side {
            bits,
            numbers: |range: Range<usize>, x: usize, to: &mut [u64]| to.copy_from_slice(&of[x][range]),
            at_none: at_none.then(|| of[0].clone().into()),
        }
    }
    let [first_bit, others @ ..] = bits.each_ref().map(|bits| Bits::of_numbers(bits, 0).spread(ring));
    let before = |at_none| side(vec![first_bit.clone()], &first, at_none);
    let after = |at_none| side(others.to_vec(), &second, at_none);
    let transcripts = three(Security::Malicious, |cx| {
        for (at_none, prover) in [false, true].into_iter().flat_map(|of| PartyId::ALL.map(|id| (of, id))) {
            let sides = match Role::of(cx.id, prover) {
                Role::Mine => Sides::Both(before(at_none), after(at_none)),
                Role::After => Sides::Before(before(at_none), 2),
                Role::Before => Sides::After(after(at_none), 1),
            };
            cx.claim_same(ring, prover, n, sides);
        }
        cx.transcript.take().unwrap()
    });
    check_claims(transcripts.each_ref());
}

#[test]
fn chosen_numbers_that_are_the_same_are_stated() {
    for bits in [1, 2, 13, 21, 22, 32, 33, 64] {
        compared(Ring::new(bits), 0);
    }
}

#[test]
#[should_panic(expected = "word 25, does not hold")]
fn a_difference_in_the_highest_bit_is_noticed() {
    compared(Ring::new(21), 1 << 20);
}

#[test]
#[should_panic(expected = "word 77, does not hold")]
fn a_difference_in_the_lowest_bit_is_noticed() {
    compared(Ring::new(33), 1);
}

/// A wrong bit of a sum, with everything that follows from it computed honestly.
#[test]
#[should_panic(expected = "does not hold")]
fn a_bit_that_is_not_of_the_sum_is_noticed() {
    use crate::adder::{Adder, Top};
    let (ring, n) = (Ring::new(20), 200);
    let transcripts = three(Security::Malicious, |cx| {
        let x = share(cx.id, ring, &edges(ring, n));
        let (parts, adder) = (Parts::of(n), Adder { x: &x, m: 19, top: Top::Bit, tree: true });
        let mut bits = adder.deal(cx, &parts);
        if cx.id.index() == 2 {
            // the top bit, which no product is made of
            let plane = bits.words.mine / (20 + 9);
            bits.values[19 * plane] ^= 1;
        }
        let [a] = cx.deal("bits", [bits]).unwrap();
        adder.dealt(cx, parts, a, |b| b);
        cx.transcript.take().unwrap()
    });
    check_claims(transcripts.each_ref());
}
