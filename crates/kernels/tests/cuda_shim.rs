//! Kernels for GPUs, bit for bit as the CPU: their texts run on the CPU through `shim/`, so no GPU is needed.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod shim;
mod vectors;

use aes::Aes128Enc;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use privet_kernels::bits::cpu::BitsPath;
use privet_kernels::chunks::cpu::{self as chunked, ChunksPath};
use privet_kernels::chunks::{Chunks, words};
use privet_kernels::compare::{BLOCK, CompareShape, cpu, cpu::ComparePath};
use privet_kernels::cuda::{CombineArgs, Kernel, LeavesArgs, ProductArgs, Share, StreamArgs, WalkArgs};
use privet_kernels::{LinearShape, linear};
use privet_prg::{Domain, HashKeys, Prg, Seed, TreeHash};
use privet_ring::{BitVec, Ring};
use shim::Shim;
use vectors::{Batch, bytes};

/// What stands in outputs before, and behind their ends after.
const POISON: u64 = 0xa5a5_5a5a_dead_beef;

fn seed(index: u64) -> Seed {
    Seed::from_bytes([9; 16]).derive(Domain::Public, index)
}

/// Words at a multiple of 16 bytes, as allocations of a GPU are, and poisoned ones behind, so many that known mistakes hit no others.
struct Aligned(Vec<u128>, usize);

impl Aligned {
    fn new(words: &[u64]) -> Aligned {
        let mut all = words.to_vec();
        all.resize(words.len().next_multiple_of(2) + (1 << 14), POISON);
        Aligned(all.chunks(2).map(|p| (p[1] as u128) << 64 | p[0] as u128).collect(), words.len())
    }

    fn of_bytes(bytes: &[u8]) -> Aligned {
        Aligned::new(&bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect::<Vec<_>>())
    }

    fn address(&mut self) -> u64 {
        self.0.as_mut_ptr() as u64
    }

    /// The words. Panics if one behind them was written.
    fn words(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.0.iter().flat_map(|&v| [v as u64, (v >> 64) as u64]).collect();
        assert!(all.split_off(self.1).iter().all(|&w| w == POISON), "a write behind the end");
        all
    }
}

/// Small blocks, so that a thread walks several keys and both warps of a block meet.
const WALK: [u32; 2] = [64, 1];

/// Both results of a batch, from the kernel.
fn walk(
    shim: &mut Shim,
    hash: &TreeHash,
    shape: CompareShape,
    key: &[u8],
    x: &[u64],
    order: u64,
    want_eq: bool,
) -> Result<[Vec<u64>; 2], String> {
    let words = shape.count.div_ceil(BLOCK);
    let (mut keys, mut points) = (Aligned::of_bytes(key), Aligned::new(x));
    let mut out = [Aligned::new(&vec![POISON; words]), Aligned::new(&vec![POISON; words])];
    let [lt, eq] = &mut out;
    let addresses = [keys.address(), points.address(), lt.address(), if want_eq { eq.address() } else { 0 }];
    let args = WalkArgs::new(hash, shape, addresses);
    let [blocks, threads] = Kernel::walk(WALK[0], WALK[1]).spread(shape.count, 2);
    // SAFETY: buffers of a batch of this shape.
    unsafe { shim.launch([blocks, 1, 1], threads, order, &args)? };
    Ok(out.map(|o| o.words()))
}

fn walker(text: &str) -> Option<Shim> {
    Shim::of(Kernel::walk(WALK[0], WALK[1]), text)
}

/// A dealt batch with points near thresholds.
fn batch(bits: u32, count: usize, prg: &mut Prg) -> (TreeHash, [Vec<u8>; 2], Vec<u64>) {
    let ring = Ring::new(bits);
    let hash = TreeHash::new(HashKeys::draw(prg));
    let mut alpha = prg.elements(ring, count);
    let choices = prg.elements(Ring::R64, count);
    let x: Vec<u64> = (alpha.iter_mut().zip(choices).enumerate())
        .map(|(i, (a, choice))| {
            *a = [*a, 0, ring.mask(), *a][choice as usize % 4];
            let near = [*a, a.wrapping_add(1), a.wrapping_sub(1), *a ^ (choice >> 8), 0, u64::MAX];
            ring.wrap(near[i % near.len()])
        })
        .collect();
    let (mut roots, mut deltas) = (vec![0; count], vec![0; count]);
    prg.fill_blocks(&mut roots);
    prg.fill_blocks(&mut deltas);
    let shape = CompareShape { bits, count };
    let mut keys = [vec![0; shape.key_bytes()], vec![0; shape.key_bytes()]];
    let [key0, key1] = &mut keys;
    cpu::generate(ComparePath::Portable, &hash, shape, &alpha, &roots, &deltas, key0, key1);
    (hash, keys, x)
}

/// Whether random batches of some shapes come out as on the CPU.
fn walks_as_the_cpu(shim: &mut Shim, shapes: &[(u32, usize)]) -> Result<(), String> {
    let mut prg = seed(1).stream();
    for (i, &(bits, count)) in shapes.iter().enumerate() {
        let (hash, keys, x) = batch(bits, count, &mut prg);
        let shape = CompareShape { bits, count };
        for (party, key) in keys.iter().enumerate() {
            let expected = cpu::eval(ComparePath::Portable, &hash, shape, key, &x, true);
            let [lt, eq] = walk(shim, &hash, shape, key, &x, (i + party) as u64 % 3, true)?;
            if lt != expected.lt.words() || eq != expected.eq.words() {
                return Err(format!("{bits} bits, {count} keys, party {party}"));
            }
        }
    }
    Ok(())
}

#[test]
fn walks_the_known_answers() {
    let Some(mut shim) = Shim::new(Kernel::walk(WALK[0], WALK[1])) else { return };
    for (order, batch) in Batch::all().iter().enumerate() {
        for (key, lt, eq) in [("key0", "lt0", "eq0"), ("key1", "lt1", "eq1")] {
            let (shape, x) = (batch.shape(), batch.numbers("x"));
            let found =
                walk(&mut shim, &batch.hash(), shape, &bytes(batch.0[key]), &x, order as u64, true).unwrap();
            let [found_lt, found_eq] = found.map(|words| BitVec::from_words(shape.count, words));
            let shares = |bits: &BitVec| (0..shape.count).map(|j| bits.get(j)).collect::<Vec<_>>();
            assert_eq!(shares(&found_lt), batch.shares(lt), "{lt}, n = {}", shape.bits);
            assert_eq!(shares(&found_eq), batch.shares(eq), "{eq}, n = {}", shape.bits);
        }
    }
}

#[test]
fn walks_every_domain_as_the_cpu() {
    let Some(mut shim) = Shim::new(Kernel::walk(WALK[0], WALK[1])) else { return };
    let counts = [1, 31, 32, 33, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 40, 5 * BLOCK + 3];
    let shapes: Vec<_> = (1..=64).zip(counts.into_iter().cycle()).collect();
    walks_as_the_cpu(&mut shim, &shapes).unwrap();
    let (hash, [key, _], x) = batch(20, 70, &mut seed(2).stream());
    let shape = CompareShape { bits: 20, count: 70 };
    let with = walk(&mut shim, &hash, shape, &key, &x, 0, true).unwrap();
    let without = walk(&mut shim, &hash, shape, &key, &x, 0, false).unwrap();
    assert_eq!((&without[0], &without[1]), (&with[0], &vec![POISON; 2]));
}

/// Whether words of streams come out as AES in counter mode says.
fn streams_as_the_cpu(shim: &mut Shim) -> Result<(), String> {
    for (i, words) in [1, 2, 63, 64, 65, 200, 513].into_iter().enumerate() {
        let (seed, ring) = (seed(10 + i as u64), Ring::new([64, 1, 33, 24][i % 4]));
        // one stream's counters pass 2^32
        let first = if i % 2 == 0 { 0 } else { u32::MAX as u64 - i as u64 };
        let mut out = Aligned::new(&vec![POISON; words]);
        let args = StreamArgs::new(&seed, first, ring.mask(), out.address(), words);
        // SAFETY: a buffer of so many words.
        unsafe { shim.launch([2, 1, 1], 64, i as u64 % 3, &args)? };
        let aes = Aes128Enc::new(seed.expose().into());
        let block = |i: u64| {
            let mut block = ((first + i) as u128).to_le_bytes().into();
            aes.encrypt_block(&mut block);
            u128::from_le_bytes(block.into())
        };
        let expected: Vec<u64> =
            (0..words).map(|w| ring.wrap((block(w as u64 / 2) >> (64 * (w % 2))) as u64)).collect();
        assert!(
            first > 0 || expected == seed.stream().elements(ring, words),
            "the test has the stream of prg"
        );
        if out.words() != expected {
            return Err(format!("{words} words from block {first}"));
        }
    }
    Ok(())
}

fn stream_kernel() -> Kernel {
    Kernel::stream(64, 1)
}

#[test]
fn streams_as_prg() {
    let Some(mut shim) = Shim::new(stream_kernel()) else { return };
    streams_as_the_cpu(&mut shim).unwrap();
}

/// Whether products of awkward sizes come out as the plain definition.
fn multiplies_as_the_cpu(shim: &mut Shim, kernel: &Kernel, bits: u32) -> Result<(), String> {
    let mut prg = seed(3).stream();
    let sizes = [[1, 1, 1], [3, 8, 5], [64, 40, 64], [65, 17, 130], [130, 34, 1], [2, 300, 67]];
    for (i, ([m, k, n], transposed)) in sizes.into_iter().flat_map(|s| [(s, false), (s, true)]).enumerate() {
        let ring = Ring::new(bits);
        let mut draw = |len| {
            let mut v = prg.elements(Ring::R64, len);
            v.iter_mut().step_by(7).for_each(|v| *v = u64::MAX);
            v
        };
        let (x, w, before) = (draw(m * k), draw(k * n), draw(m * n));
        let shape =
            if transposed { LinearShape::MatMulT { m, k, n } } else { LinearShape::MatMul { m, k, n } };
        let product = linear::reference(ring, shape, &x, &w);
        let expected: Vec<u64> =
            before.iter().zip(product).map(|(b, p)| ring.wrap(b.wrapping_add(p))).collect();
        let (mut x, mut w, mut out) = (Aligned::new(&x), Aligned::new(&w), Aligned::new(&before));
        let sizes = [m, k, n].map(|s| s as u32);
        let share = kernel.share(sizes, 2);
        let args = ProductArgs::new(sizes, transposed, &share, [x.address(), w.address(), out.address()]);
        // SAFETY: buffers of matrices of these sizes.
        unsafe { shim.launch(share.grid, kernel.threads, i as u64 % 3, &args)? };
        let found: Vec<u64> = out.words().iter().map(|&v| ring.wrap(v)).collect();
        if found != expected {
            return Err(format!("{m} x {k} x {n}, transposed: {transposed}"));
        }
    }
    Ok(())
}

#[test]
fn multiplies_as_the_plain_definition() {
    for tile in [[64, 64], [128, 64], [128, 128]] {
        let kernel = Kernel::product(tile, 1);
        let Some(mut shim) = Shim::new(kernel.clone()) else { return };
        multiplies_as_the_cpu(&mut shim, &kernel, 64).unwrap();
    }
}

#[test]
fn tensor_cores_multiply_as_the_plain_definition() {
    let sizes = [
        (8, [64, 64], [2, 2]),
        (8, [64, 64], [1, 2]),
        (5, [64, 32], [2, 2]),
        (4, [128, 64], [2, 4]),
        (4, [64, 128], [2, 4]),
    ];
    for (limbs, tile, warp) in sizes {
        let kernel = Kernel::limbs(limbs, tile, warp, 1);
        let Some(mut shim) = Shim::new(kernel.clone()) else { return };
        multiplies_as_the_cpu(&mut shim, &kernel, 8 * limbs).unwrap();
    }
}

/// As many of the largest bytes as a block adds up.
#[test]
fn sums_of_bytes_do_not_wrap() {
    let kernel = Kernel::limbs(8, [64, 64], [2, 2], 1);
    let Some(mut shim) = Shim::new(kernel.clone()) else { return };
    let k = kernel.tile[2] as usize;
    let [mut x, mut w] = [(); 2].map(|()| Aligned::new(&vec![u64::MAX; k]));
    let mut out = Aligned::new(&[0]);
    let (sizes, [x, w]) = ([1, k as u32, 1], [x.address(), w.address()]);
    let share = Share { grid: [1; 3], deep: k as u32, rows_first: true };
    let args = ProductArgs::new(sizes, false, &share, [x, w, out.address()]);
    // SAFETY: buffers of these sizes.
    unsafe { shim.launch(share.grid, kernel.threads, 0, &args).unwrap() };
    // (-1)^2, so many times
    assert_eq!(out.words(), [k as u64]);
    assert!((1..1000).all(|mp| kernel.share([1, 1 << 20, 1], mp).deep <= kernel.tile[2]));
}

/// Whether both steps of comparisons by chunks come out as on the CPU.
fn chunks_as_the_cpu(leaves: &mut Shim, combine: &mut Shim) -> Result<(), String> {
    let mut prg = seed(4).stream();
    let shapes = [(63, 4, 4, 700), (64, 1, 3, 512), (24, 7, 4, 65), (8, 8, 2, 1), (40, 2, 4, 1025)];
    for (i, (bits, width, fan, n)) in shapes.into_iter().enumerate() {
        for equal in [false, true] {
            let (chunks, leads) = (Chunks::new(bits, width, fan, equal), i % 2 == 0);
            let mut random = |planes: usize| prg.elements(Ring::R64, words(planes, n));
            let tables = random(chunks.tables());
            let mut expected = vec![0; words(chunks.leaves(), n)];
            let levels: Vec<_> = chunks
                .levels
                .iter()
                .map(|l| [l.opened(), l.products(), l.opened()].map(&mut random))
                .collect();
            let x = prg.elements(Ring::new(bits), n);
            let path = (ChunksPath::Portable, BitsPath::Portable);
            chunked::leaves(path, &chunks, leads, &x, &tables, &mut expected);
            let mut out = Aligned::new(&vec![POISON; expected.len()]);
            let mut buffers = [Aligned::new(&x), Aligned::new(&tables)];
            let [x, tables] = buffers.each_mut().map(Aligned::address);
            let args = LeavesArgs::new(&chunks, leads, n, [x, tables, out.address()]);
            // SAFETY: buffers of so many comparisons by these chunks.
            unsafe { leaves.launch([2, 1, 1], 64, i as u64, &args)? };
            if out.words() != expected {
                return Err(format!("leaves of {chunks:?}"));
            }
            for (level, [opened, products, masks]) in chunks.levels.iter().zip(levels) {
                let mut expected = vec![0; words(level.results(), n)];
                chunked::combine(path.0, level, leads, [&opened, &products, &masks], &mut expected);
                let mut out = Aligned::new(&vec![POISON; expected.len()]);
                let mut buffers = [opened, products, masks].map(|b| Aligned::new(&b));
                let [opened, products, masks] = buffers.each_mut().map(Aligned::address);
                let args = CombineArgs::new(level, leads, n, [opened, products, masks, out.address()]);
                // SAFETY: as above.
                unsafe { combine.launch([3, 1, 1], 32, i as u64, &args)? };
                if out.words() != expected {
                    return Err(format!("{level:?}"));
                }
            }
        }
    }
    Ok(())
}

#[test]
fn chunks_as_the_definition() {
    for fan in [4, 9] {
        let (leaves, combine) = (Shim::new(Kernel::leaves()), Shim::new(Kernel::combine(fan)));
        let (Some(mut leaves), Some(mut combine)) = (leaves, combine) else { return };
        chunks_as_the_cpu(&mut leaves, &mut combine).unwrap();
    }
}

/// `text` with the occurrence `index` of `from` replaced.
fn mutant(text: &str, from: &str, to: &str, index: usize) -> String {
    let (at, _) =
        text.match_indices(from).nth(index).unwrap_or_else(|| panic!("no occurrence {index} of {from}"));
    format!("{}{to}{}", &text[..at], &text[at + from.len()..])
}

/// Mistakes to make: a few of them, all with `PRIVET_NIGHTLY=1`, because each one is compiled.
fn mistakes<T>(all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    let few = if std::env::var_os("PRIVET_NIGHTLY").is_some() { usize::MAX } else { 4 };
    all.into_iter().take(few)
}

/// Every barrier, and every constant that a slip of the pen could change, is seen by the checks above.
#[test]
fn known_mistakes_of_walks_are_found() {
    let walk = Kernel::walk(WALK[0], WALK[1]).text;
    let barrier = "__syncthreads();";
    let of_aes = [
        (barrier, "", 0),
        (barrier, "", 1),
        ("0x11b", "0x11d", 0),
        ("0x63", "0x62", 0),
        ("i < 7", "i < 6", 0),
        ("0x1032", "0x3210", 0),
        ("0x5504", "0x5540", 0),
        ("0x0051", "0x0041", 0),
        ("0x7200", "0x5200", 0),
        ("turned(v, 8)", "turned(v, 16)", 0),
        ("r < 40", "r < 36", 0),
    ];
    let of_walk = [
        ("s.x ^ s.z", "s.x", 0),
        ("#define LEAF_BITS 7", "#define LEAF_BITS 8", 0),
        ("#define ROW 64", "#define ROW 32", 0),
        ("(int)at + 1", "(int)at", 0),
        ("path <<= 1", "path <<= 2", 0),
        ("& ~right", "& right", 0),
        ("corrected(a.leaf", "corrected(a.inner", 0),
        ("0 - (s.x & 1)", "0 - (s.x >> 1 & 1)", 0),
        ("(u32)(a.count - first)", "ROW", 0),
        ("at < 96", "at < 95", 0),
    ];
    let shapes = [(20, 3 * BLOCK + 7), (64, 70), (7, 128)];
    for (from, to, index) in mistakes(of_aes).chain(mistakes(of_walk)) {
        let Some(mut shim) = walker(&mutant(walk, from, to, index)) else { return };
        assert!(walks_as_the_cpu(&mut shim, &shapes).is_err(), "`{from}` as `{to}` is not found");
    }
    let kernel = stream_kernel();
    for (from, to) in
        [("counter >> 32", "0"), ("v.y &= (u32)(a.mask >> 32)", ""), ("2 * i + 1 < a.words", "true")]
    {
        let text = mutant(kernel.text, from, to, 0);
        let Some(mut shim) = Shim::of(kernel.clone(), &text) else { return };
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| streams_as_the_cpu(&mut shim)));
        assert!(!matches!(found, Ok(Ok(()))), "`{from}` as `{to}` is not found");
    }
}

/// As above, of both products.
#[test]
fn known_mistakes_of_products_are_found() {
    let barrier = "__syncthreads();";
    let of_product = [
        (barrier, ""),
        ("step % 2 * STAGE", "step % 1 * STAGE"),
        ("+ ah * bl", ""),
        ("d < end ? from", "d <= end ? from"),
        ("from[(u64)d * n + c]", "from[(u64)d * n]"),
        ("step <= steps", "step < steps"),
        ("blockIdx.z * a.deep", "0"),
        ("atomicAdd(a.out + (u64)r * a.n + c, sum[i][j])", "a.out[(u64)r * a.n + c] = sum[i][j]"),
    ];
    let of_limbs = [
        (barrier, ""),
        ("step % 2 * STAGE", "0"),
        ("0x5140", "0x5410"),
        ("0x7362", "0x7326"),
        ("low.y", "low.x"),
        ("at + 4 <= end", "at + 2 <= end"),
        ("p.line % ROWS / 8 + p.quarter / 4 * 2", "p.line % ROWS / 8 * 2 + p.quarter / 4"),
        ("p.quarter / 4 * 32", "p.quarter % 2 * 32"),
        ("l + o < LIMBS", "l + o < LIMBS - 1"),
        ("<< (8 * l)", "<< (4 * l)"),
        ("part / 2 * 8", "part % 2 * 8"),
        ("from[(u64)(at + i) * n", "from[(u64)at * n"),
        ("blockIdx.z * a.deep", "0"),
    ];
    let product = of_product.map(|m| (Kernel::product([64, 64], 1), m));
    let limbs = of_limbs.map(|m| (Kernel::limbs(8, [64, 64], [2, 2], 1), m));
    for (kernel, (from, to)) in mistakes(product).chain(mistakes(limbs)) {
        let text = mutant(kernel.text, from, to, 0);
        let Some(mut shim) = Shim::of(kernel.clone(), &text) else { return };
        assert!(multiplies_as_the_cpu(&mut shim, &kernel, 64).is_err(), "`{from}` as `{to}` is not found");
    }
}

/// What a secret chooses lies in the lane's own bank of shared memory, so that no access waits for another one.
#[test]
fn every_look_up_stays_in_the_bank_of_its_lane() {
    let read = "(*(const u32 *)(at))";
    let walk = mutant(Kernel::walk(WALK[0], WALK[1]).text, read, "shim_own_bank(at)", 0);
    let stream = mutant(stream_kernel().text, read, "shim_own_bank(at)", 0);
    let Some(mut shim) = walker(&walk) else { return };
    walks_as_the_cpu(&mut shim, &[(20, 2 * BLOCK), (64, 70)]).unwrap();
    let Some(mut shim) = Shim::of(stream_kernel(), &stream) else { return };
    streams_as_the_cpu(&mut shim).unwrap();
    // Right results from lane 0's copy are a mistake too.
    let Some(mut shim) = walker(&mutant(&walk, "lane = 4 * number", "lane = 0", 0)) else { return };
    let error = walks_as_the_cpu(&mut shim, &[(20, BLOCK)]);
    assert_eq!(error, Err("a lane reads another one's bank".to_owned()));
}

/// As above, of both steps by chunks.
#[test]
fn known_mistakes_of_chunks_are_found() {
    let of_leaves = [
        ("x < last ?", "true ?"),
        ("(x - 1) * side", "x * side"),
        (": a.leads", ": 0"),
        ("i < a.count ? a.points[i] : 0", "a.points[i < a.count ? i : 0]"),
        ("2 * (u32)(words - first)", "2 * SIDE"),
        ("c + 1 < a.chunks", "true"),
    ];
    let of_combine = [
        ("f[1u << j] =", "f[j + 1] ="),
        ("(q & w[set]) ^ w", "q & w[set] & w"),
        ("LAST && !EQUAL ? G - 1", "EQUAL ? G - 1"),
        ("2 * (u32)(a.words - first)", "2 * SIDE"),
        ("leads ? ~0u : 0", "0"),
        ("EQUAL || !LAST", "!LAST && !EQUAL"),
    ];
    let kernels = [Kernel::leaves(), Kernel::combine(4)];
    let all = mistakes(of_leaves).map(|m| (0, m)).chain(mistakes(of_combine).map(|m| (1, m)));
    for (which, (from, to)) in all {
        let mut texts = kernels.each_ref().map(|k| k.text.to_owned());
        texts[which] = mutant(&texts[which], from, to, 0);
        let [leaves, combine] = [0, 1].map(|i| Shim::of(kernels[i].clone(), &texts[i]));
        let (Some(mut leaves), Some(mut combine)) = (leaves, combine) else { return };
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            chunks_as_the_cpu(&mut leaves, &mut combine)
        }));
        assert!(!matches!(found, Ok(Ok(()))), "`{from}` as `{to}` is not found");
    }
}

/// A kernel of its own, of 64 threads.
fn own(body: &str, shared: u32) -> Option<Shim> {
    let text = format!("extern unsigned shared_memory[];\nvoid own(unsigned long long *out) {{ {body} }}");
    let kernel =
        Kernel { name: "own", text: "", constants: vec![], threads: 64, resident: 1, shared, tile: [0; 3] };
    Shim::of(kernel, &text)
}

#[test]
fn the_shim_tells_what_a_gpu_would_not() {
    let mistakes = [
        ("if (threadIdx.x < 40) __syncthreads();", "threads wait for others that do not come"),
        (
            "if (threadIdx.x < 40) __syncthreads(); else __syncthreads();",
            "threads wait for each other at different places",
        ),
        ("shared_memory[threadIdx.x + 1] = 1;", "a write behind the shared memory asked for"),
        ("out[0] = __ballot_sync(1, true);", "only whole warps vote here"),
    ];
    for (body, error) in mistakes {
        let Some(mut shim) = own(body, 4 * 64) else { return };
        let mut out = 0u64;
        let address = &raw mut out as u64;
        // SAFETY: one word, and the kernel's one argument is its address.
        assert_eq!(unsafe { shim.launch([1, 1, 1], 64, 0, &address) }, Err(error.to_owned()), "{body}");
    }
    let votes = "unsigned v = __ballot_sync(~0u, threadIdx.x % 3 == 0); if (threadIdx.x == 63) out[0] = v;";
    for order in [0, 1, 2, 77] {
        let Some(mut shim) = own(votes, 0) else { return };
        let mut out = 0u64;
        let address = &raw mut out as u64;
        // SAFETY: as above.
        unsafe { shim.launch([1, 1, 1], 64, order, &address).unwrap() };
        let expected = (0..32u64).filter(|l| (l + 32) % 3 == 0).fold(0, |v, l| v | 1 << l);
        assert_eq!(out, expected);
    }
}
