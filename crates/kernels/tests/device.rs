//! The CPU device: what several threads compute is what one does.

use privet_kernels::{CompareShape, Device, LinearShape, cpu};
use privet_prg::{HashKeys, Prg, Seed, TreeHash};
use privet_ring::Ring;

struct Keys {
    hash: TreeHash,
    shape: CompareShape,
    alpha: Vec<u64>,
    x: Vec<u64>,
    keys: [Vec<u8>; 2],
}

fn deal(device: &dyn Device, prg: &mut Prg, bits: u32, count: usize) -> Keys {
    let hash = TreeHash::new(HashKeys::from_seed(&prg.seed()));
    let shape = CompareShape { bits, count };
    let alpha = prg.elements(Ring::new(bits), count);
    let mut x = prg.elements(Ring::new(bits), count);
    x.iter_mut().zip(&alpha).step_by(3).for_each(|(x, a)| *x = *a);
    let (mut roots, mut deltas) = (vec![0; count], vec![0; count]);
    prg.fill_blocks(&mut roots);
    prg.fill_blocks(&mut deltas);
    let mut keys = [vec![0; shape.key_bytes()], vec![0; shape.key_bytes()]];
    let [key0, key1] = &mut keys;
    device.compare_gen(&hash, shape, &alpha, &roots, &deltas, key0, key1);
    Keys { hash, shape, alpha, x, keys }
}

#[test]
fn comparisons_do_not_depend_on_threads() {
    // Several threads with a last block that is not full; exactly two threads' worth; less than one block; nothing.
    for count in [4 * 4096 + 77, 2 * 4096, 5, 0] {
        for bits in [9, 40] {
            let seed = [count as u8 ^ bits as u8; 16];
            let one = deal(cpu(1).as_ref(), &mut Seed::from_bytes(seed).stream(), bits, count);
            let three = deal(cpu(3).as_ref(), &mut Seed::from_bytes(seed).stream(), bits, count);
            assert!(one.keys == three.keys, "keys of {count} comparisons");
            let [mut lt, mut eq] = [None, None];
            for key in &one.keys {
                let a = cpu(1).compare_eval(&one.hash, one.shape, key, &one.x, true);
                let b = cpu(3).compare_eval(&one.hash, one.shape, key, &one.x, true);
                assert_eq!((&a.lt, &a.eq), (&b.lt, &b.eq), "{count} comparisons of {bits} bits");
                let none = cpu(3).compare_eval(&one.hash, one.shape, key, &one.x, false);
                assert!(none.eq.is_empty() && none.lt == a.lt);
                lt.get_or_insert_with(|| privet_ring::BitVec::zeros(count)).xor_assign(&a.lt);
                eq.get_or_insert_with(|| privet_ring::BitVec::zeros(count)).xor_assign(&a.eq);
            }
            let (lt, eq) = (lt.unwrap_or_default(), eq.unwrap_or_default());
            for i in 0..count {
                assert_eq!(lt.get(i) == 1, one.x[i] < one.alpha[i]);
                assert_eq!(eq.get(i) == 1, one.x[i] == one.alpha[i]);
            }
        }
    }
}

#[test]
fn products_side_by_side_are_those_one_after_the_other() {
    let (ring, mut prg) = (Ring::new(40), Seed::from_bytes([3; 16]).stream());
    for shape in [
        LinearShape::MatMul { m: 3, k: 5, n: 7 },
        LinearShape::MatMul { m: 70, k: 64, n: 33 },
        LinearShape::MatMulT { m: 4, k: 9, n: 2 },
    ] {
        for count in [0, 1, 2, 5] {
            let x = prg.elements(ring, count * shape.input_len());
            let w = prg.elements(ring, count * shape.weight_len());
            let start = prg.elements(ring, count * shape.output_len());
            let device = cpu(1);
            let mut expected = start.clone();
            for i in 0..count {
                let part = |data: &[u64], len: usize| data[i * len..(i + 1) * len].to_vec();
                let w = device.prepare(ring, shape, &part(&w, shape.weight_len()));
                let len = shape.output_len();
                let (x, out) = (part(&x, shape.input_len()), &mut expected[i * len..(i + 1) * len]);
                device.linear_acc(ring, shape, &x, w.as_ref(), out);
            }
            for threads in [1, 2, 3] {
                let (device, mut out) = (cpu(threads), start.clone());
                let w = device.prepare_each(ring, shape, count, &w);
                device.linear_acc_each(ring, shape, &x, &w, &mut out);
                assert!(out == expected, "{count} products of {shape:?} with {threads} threads");
            }
        }
    }
}

#[test]
#[should_panic(expected = "number of inputs")]
fn inputs_of_another_shape_are_refused() {
    let (device, shape) = (cpu(1), LinearShape::MatMulT { m: 1, k: 2, n: 1 });
    let weights = device.prepare(Ring::R64, shape, &[1, 2]);
    device.linear_acc(Ring::R64, shape, &[1, 2, 3], weights.as_ref(), &mut [0]);
}

#[test]
fn the_name_says_what_runs() {
    let name = cpu(2).name();
    assert!(name.starts_with("cpu (matmul ") && name.ends_with("2 threads)"), "{name}");
}
