//! Speed of random streams and tree hashes beside the bare AES batch call, in million blocks a second.
//!
//! `cargo run --release -p privet-prg --example prg_bench`; one thread, data in the first-level cache,
//! fastest of many repeats.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use privet_prg::{HashKeys, Seed, TreeHash};
use privet_ring::Ring;
use std::time::Instant;

const BLOCKS: usize = 1024;

fn main() {
    let seed = Seed::random();
    let mut prg = seed.stream();
    let hash = TreeHash::new(HashKeys::from_seed(&prg.seed()));
    let aes = Aes128::new(&Array(*seed.expose()));
    let mut plain = vec![Array([0; 16]); BLOCKS];
    let mut bytes = vec![0u8; 16 * BLOCKS];
    let mut words = vec![0u64; 2 * BLOCKS];
    let mut blocks = vec![0u128; BLOCKS];
    report("aes encrypt_blocks in place", || aes.encrypt_blocks(&mut plain));
    report("Prg::fill_bytes", || prg.fill_bytes(&mut bytes));
    report("Prg::fill_blocks", || prg.fill_blocks(&mut blocks));
    report("Prg::fill, 64-bit ring", || prg.fill(Ring::R64, &mut words));
    report("Prg::fill, 40-bit ring", || prg.fill(Ring::new(40), &mut words));
    report("TreeHash::inner", || hash.inner(&mut blocks));
    report("TreeHash::inner, 64 at a time", || blocks.chunks_mut(64).for_each(|b| hash.inner(b)));
    let mut index = 0;
    report("Seed::derive (one each)", || {
        for _ in 0..BLOCKS {
            index += 1;
            std::hint::black_box(seed.derive(privet_prg::Domain::Public, index));
        }
    });
}

fn report(name: &str, mut work: impl FnMut()) {
    let time = |_| {
        let start = Instant::now();
        (0..20).for_each(|_| work());
        start.elapsed().as_secs_f64()
    };
    let best = (0..400).map(time).fold(f64::INFINITY, f64::min);
    println!("{name:32} {:8.1}", 20e-6 * BLOCKS as f64 / best);
}
