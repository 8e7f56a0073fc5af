use super::{And, Deal, Known, Split};
use crate::parts::Parts;
use crate::planes::Words;
use crate::proof::Algebra;
use crate::testing::{check_claims, edges, open_planes, share, three, value};
use crate::{Party, Planes, Security, Share};
use privet_prg::Seed;
use privet_ring::Ring;

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
fn products_of_dealt_and_known_values_add_up() {
    for bits in [1, 13, 64] {
        let ring = Ring::new(bits);
        let algebra = Algebra::Ring(ring);
        for n in [0, 1, 70, 400, 4000] {
            let mut stream = Seed::from_bytes([3; 16]).stream();
            let mut draw = || stream.elements(ring, n);
            let (a, b, c, d) = (draw(), draw(), draw(), draw());
            let program = |cx: &mut Party| -> Share {
                let parts = Parts::of(n);
                let words = parts.elements(cx.id).map(|part| part.len());
                let columns = [&a, &c].map(|v| Deal { algebra, values: mine(cx, &parts, v), words });
                let [a, c] = cx.deal("values", columns).unwrap();
                let terms = vec![(a, known(cx, &parts, &b)), (c, known(cx, &parts, &d))];
                let [sum] = cx.split("products", [Split { algebra, terms, words }]).unwrap();
                sum.join(cx.id, &parts)
            };
            let expected: Vec<u64> = (0..n)
                .map(|i| ring.wrap(a[i].wrapping_mul(b[i]).wrapping_add(c[i].wrapping_mul(d[i]))))
                .collect();
            assert_eq!(value(ring, program), expected, "{n} of {ring}");
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
    let (ring, n) = (Ring::new(20), 200);
    let algebra = Algebra::Ring(ring);
    let (x, y) = (edges(ring, n), edges(ring, n));
    let transcripts = three(Security::Malicious, |cx| {
        let parts = Parts::of(n);
        let words = parts.elements(cx.id).map(|part| part.len());
        let (a, b) = (mine(cx, &parts, &x), mine(cx, &parts, &y));
        let mut product: Vec<u64> = a.iter().zip(&b).map(|(a, b)| ring.wrap(a.wrapping_mul(*b))).collect();
        if cx.id.index() == 1 {
            product[17] ^= 1 << 12;
        }
        let columns = [a, b, product].map(|values| Deal { algebra, values, words });
        let [a, b, product] = cx.deal("values", columns).unwrap();
        let minus = product.map(|p| p.iter().map(|p| ring.wrap(p.wrapping_neg())).collect());
        cx.claim_dealt(algebra, &[super::Product(&a, &b)], &minus);
        cx.transcript.take().unwrap()
    });
    check_claims(transcripts.each_ref());
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
