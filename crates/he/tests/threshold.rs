//! Products under a joint key: shares of operand and weights in, shares of the product out, for several numbers of parties.

use privet_he::layout::{Layout, Matmul, MatmulLayout};
use privet_he::threshold::{KeyShare, Partial, Publics, Summand};
use privet_he::{Context, PublicKey, Query, Weights};
use privet_prg::{Prg, Seed};
use privet_ring::Ring;

mod plain;

fn shares(prg: &mut Prg, ring: Ring, v: &[u64], n: usize) -> Vec<Vec<u64>> {
    let mut out: Vec<Vec<u64>> = (1..n).map(|_| prg.elements(ring, v.len())).collect();
    let last = (0..v.len()).map(|i| ring.wrap(out.iter().fold(v[i], |rest, s| rest.wrapping_sub(s[i]))));
    out.push(last.collect());
    out
}

#[test]
fn shares_of_a_product_come_out() {
    let mut prg = Seed::from_bytes([1; 16]).stream();
    for (n, k) in [(2, 64), (3, 64), (5, 64), (3, 41), (4, 37)] {
        let (ring, shape) = (Ring::new(k), Matmul { groups: 1, m: 4, k: 60, o: 11 });
        // shares of weights are uniform, as wide as the ring
        let (p, layout) = MatmulLayout::plan(shape, ring, k, n).unwrap();
        let context = Context::new(p.set()).unwrap();
        let (x, w) = (prg.elements(ring, layout.input_len()), prg.elements(ring, layout.weight_len()));
        let (xs, ws) = (shares(&mut prg, ring, &x, n), shares(&mut prg, ring, &w, n));
        let mut own: Vec<Prg> = (0..n).map(|_| Seed::random().stream()).collect();
        let mut publics: Vec<Publics> = (0..n).map(|_| Publics::new(Seed::from_bytes([2; 16]))).collect();

        let (keys, parts): (Vec<KeyShare>, Vec<Vec<u8>>) = (0..n)
            .map(|i| KeyShare::generate(&context, publics[i].reference(), &mut own[i]))
            .map(|(key, public)| (key, public.encode()))
            .unzip();
        let read = |b: &Vec<u8>| PublicKey::decode(&context, b).unwrap();
        let public = PublicKey::sum(&context, parts.iter().map(read).collect());

        let queries: Vec<Vec<u8>> = (0..n)
            .map(|i| keys[i].encrypt(publics[i].reference(), &p, &layout, &xs[i], &mut own[i]).encode())
            .collect();
        let read = |b: &Vec<u8>| Query::decode(&context, layout.queries(), b).unwrap();
        let query = Query::sum(&context, queries.iter().map(read).collect());

        let summands: Vec<Vec<u8>> = (0..n)
            .map(|i| {
                Weights::new(&context, &p, &layout, &ws[i]).multiply(&public, &layout, &query, &mut own[i])
            })
            .map(|summand| summand.encode())
            .collect();
        assert!(summands.iter().all(|s| s.len() == Summand::bytes(&p, &layout)));
        let joined = || {
            let read = |b: &Vec<u8>| Summand::decode(&context, &p, &layout, b).unwrap();
            Summand::sum(&context, summands.iter().map(read).collect())
        };

        let (mut partials, mut out, mut opener) = (Vec::new(), Vec::new(), None);
        for i in 0..n {
            let (partial, share, body) = joined().partial(&keys[i], &p, &layout, &mut own[i]);
            let bytes = partial.encode(&p);
            assert_eq!(bytes.len(), Partial::bytes(&p, &layout));
            partials.push(Partial::decode(&p, &layout, &bytes).unwrap());
            out.push(share);
            opener.get_or_insert(body);
        }
        out.push(opener.unwrap().open(&p, &layout, &partials));

        let sum = |i: usize| ring.wrap(out.iter().fold(0u64, |s, share| s.wrapping_add(share[i])));
        let found: Vec<u64> = (0..layout.output_len()).map(sum).collect();
        let expected: Vec<u64> = plain::matmul(shape, &x, &w).into_iter().map(|y| ring.wrap(y)).collect();
        assert_eq!(found, expected, "{n} parties, {k} bits");
    }
}

#[test]
#[should_panic(expected = "queries of one reference")]
fn queries_of_two_references_do_not_add_up() {
    let shape = Matmul { groups: 1, m: 1, k: 4, o: 1 };
    let (p, layout) = MatmulLayout::plan(shape, Ring::new(41), 41, 2).unwrap();
    let context = Context::new(p.set()).unwrap();
    let (mut prg, mut publics) =
        (Seed::from_bytes([3; 16]).stream(), Publics::new(Seed::from_bytes([4; 16])));
    let (key, _) = KeyShare::generate(&context, publics.reference(), &mut prg);
    let mut query = || key.encrypt(publics.reference(), &p, &layout, &[1, 2, 3, 4], &mut prg);
    Query::sum(&context, vec![query(), query()]);
}
