//! Known answers for comparison keys from `vectors/generate.py`, which shares no code with the crates: key
//! bytes, layout and both parties' shares, on every path.

mod vectors;

use privet_kernels::compare::cpu::{self, ComparePath};
use vectors::{Batch, bytes};

fn paths() -> impl Iterator<Item = ComparePath> {
    ComparePath::ALL.into_iter().filter(|p| p.available())
}

#[test]
fn the_file_covers_small_large_and_partial_blocks() {
    let shapes: Vec<_> = Batch::all().iter().map(Batch::shape).collect();
    assert!(shapes.iter().any(|s| s.bits == 64) && shapes.iter().any(|s| s.bits < 7));
    assert!(shapes.iter().any(|s| s.count > 64 && s.count % 64 != 0));
}

#[test]
fn dealt_keys() {
    for (batch, path) in Batch::all().iter().flat_map(|b| paths().map(move |p| (b, p))) {
        let shape = batch.shape();
        let mut keys = [vec![0; shape.key_bytes()], vec![0; shape.key_bytes()]];
        let [key0, key1] = &mut keys;
        let (alpha, roots, deltas) = (batch.numbers("alpha"), batch.blocks("roots"), batch.blocks("deltas"));
        cpu::generate(path, &batch.hash(), shape, &alpha, &roots, &deltas, key0, key1);
        assert!(keys[0] == bytes(batch.0["key0"]), "{path:?}, party 0, n = {}", shape.bits);
        assert!(keys[1] == bytes(batch.0["key1"]), "{path:?}, party 1, n = {}", shape.bits);
    }
}

#[test]
fn evaluated_shares() {
    for (batch, path) in Batch::all().iter().flat_map(|b| paths().map(move |p| (b, p))) {
        let (shape, x) = (batch.shape(), batch.numbers("x"));
        for (key, lt, eq) in [("key0", "lt0", "eq0"), ("key1", "lt1", "eq1")] {
            let out = cpu::eval(path, &batch.hash(), shape, &bytes(batch.0[key]), &x, true);
            let found =
                |bits: &privet_ring::BitVec| (0..shape.count).map(|j| bits.get(j)).collect::<Vec<_>>();
            assert_eq!(found(&out.lt), batch.shares(lt), "{path:?}, {lt}, n = {}", shape.bits);
            assert_eq!(found(&out.eq), batch.shares(eq), "{path:?}, {eq}, n = {}", shape.bits);
        }
    }
}
