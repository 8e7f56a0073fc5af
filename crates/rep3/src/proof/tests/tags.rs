//! Tags of weights.

use super::super::extension::Extension;
use super::super::galois::Gr;
use super::super::tags::{Difference, Tagged};
use super::super::{TaggedClaim, Taken};
use super::products::{few_results, shapes};
use crate::linear::{self, Operand};
use crate::testing::{edges, keys, share, three};
use crate::{PartyId, Security};
use privet_family::{Products, Secret};
use privet_kernels::{LinearShape, cpu};
use privet_prg::{Domain, Seed};
use privet_ring::Ring;
use std::sync::Arc;

/// Also of more rows than are multiplied with tags one by one.
fn all() -> Vec<Products> {
    let matrix = [LinearShape::MatMulT { m: 40, k: 5, n: 7 }, LinearShape::MatMul { m: 17, k: 9, n: 3 }];
    let [transposed, matrix] = matrix.map(|shape| Products { shape, count: 1 });
    let several = Products { count: 3, ..matrix };
    shapes().into_iter().chain(few_results()).chain([transposed, matrix, several]).collect()
}

/// What each party remembers of a layer's results, with tags and a bias; the tags are proved.
fn remembered(products: Products, ring: Ring) -> [Vec<TaggedClaim>; 3] {
    let [x, w, bias] =
        [products.input_len(), products.weight_len(), products.columns()].map(|n| edges(ring, n));
    three(Security::Malicious, |cx| {
        let [x, w, bias] = [&x, &w, &bias].map(|values| share(cx.id, ring, values));
        let operand = Operand::of_session(cx, ring, products, &w).unwrap();
        cx.verify().unwrap();
        linear::products(cx, ring, products, &x, &operand, Some(&bias)).unwrap();
        let Taken { claims, products, tagged, .. } = cx.transcript.as_mut().unwrap().take();
        assert!(claims.is_empty() && products.is_empty(), "nothing else is stated");
        tagged.into_iter().map(Tagged::into_claim).collect()
    })
}

/// Each party's component of the difference, and the three added up: the same when all is verified and ahead of it.
fn difference(all: &[Vec<TaggedClaim>; 3], coefficients: u8) -> Gr {
    let device = cpu(1);
    PartyId::ALL.into_iter().zip(all).fold(Gr::ZERO, |sum, (id, claims)| {
        let seed = Seed::from_bytes([coefficients; 16]);
        let mut prg = seed.derive(Domain::Common, 1).stream();
        let [last, ahead] = [false, true].map(|ahead| {
            let mut results: Vec<_> = claims.iter().map(|claim| Tagged::new(claim.clone(), ahead)).collect();
            let waiting = results.iter_mut().filter(|results| results.waits());
            waiting.for_each(|results| results.begin(device.as_ref(), &mut prg));
            let masks = [keys(id).own.stream(), keys(id).next.stream()];
            Gr::get(&Difference::of(device.as_ref(), results, &seed, masks).0.tells())
        });
        assert_eq!(last, ahead);
        sum.add(last)
    })
}

#[test]
fn tags_say_what_products_are() {
    for products in all() {
        for ring in [64, 40, 7].map(Ring::new) {
            let all = remembered(products, ring);
            assert!(
                [1, 2].iter().all(|&seed| difference(&all, seed) == Gr::ZERO),
                "{:?} in {ring}",
                products.shape
            );
        }
    }
}

/// One element of one component, by a corrupt party of which both holders have the message; also by half of the ring, which is 0 where it is doubled. What the
/// cheating party knows of the key does not explain the difference.
#[test]
fn a_wrong_product_makes_a_difference_that_no_party_knows() {
    for products in all() {
        for ring in [64, 40].map(Ring::new) {
            let all = remembered(products, ring);
            let n = products.output_len();
            for (element, error) in [(0, 1), (n - 1, 1 << (ring.bits() - 1)), (n / 2, 12345)] {
                for by in PartyId::ALL {
                    let mut wrong = all.clone();
                    spoil(&mut wrong[by.index()][0].z.own, element, error, ring);
                    spoil(&mut wrong[by.prev().index()][0].z.next, element, error, ring);
                    let found = difference(&wrong, 3);
                    // what it is where nobody has the component of the key that the cheating party lacks
                    let [explained, nothing] = [&wrong, &all].map(|claims| {
                        let mut claims = claims.clone();
                        for (id, component) in [(by.next(), 1), (by.prev(), 0)] {
                            let claims = claims[id.index()].iter_mut();
                            claims.for_each(|claim| claim.tags = claim.tags.less_key(component).into());
                        }
                        difference(&claims, 3)
                    });
                    let unexplained = found.sub(explained.sub(nothing));
                    for of_ring in 0..2 {
                        let differs = |sum: &Gr| sum.iter().skip(of_ring).step_by(2).any(|word| *word != 0);
                        let what = format!("{:?} in {ring}: element {element} by {by}", products.shape);
                        assert!(differs(&found) && differs(&unexplained), "{what}");
                    }
                }
            }
        }
    }
}

fn spoil(component: &mut Arc<Secret>, element: usize, error: u64, ring: Ring) {
    let mut words = component.to_vec();
    words[element] = ring.wrap(words[element].wrapping_add(error));
    *component = Arc::new(words.into());
}
