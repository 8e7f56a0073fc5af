//! Products of matrices over the ring, by 32-bit multiplications and by tensor cores.

use crate::report::{REPEATS, Report, number, timed};
use cudarc::driver::CudaSlice;
use privet_kernels::cuda::{Gpu, GpuError, Kernel, ProductPath, Tuning};
use privet_prg::Seed;
use privet_ring::Ring;

/// Random words in the device's memory.
fn random(gpu: &Gpu, len: usize) -> Result<CudaSlice<u64>, GpuError> {
    let on = gpu.context().default_stream();
    let mut out = on.alloc_zeros(len)?;
    gpu.stream(&on, &Seed::random(), 0, Ring::R64, &mut out)?;
    Ok(out)
}

/// m, k and n; a convolution is one of weights and patches, whose gathering is not counted.
const SHAPES: [(&str, [u32; 3]); 11] = [
    ("4096", [4096, 4096, 4096]),
    ("1024", [1024, 1024, 1024]),
    ("ResNet-50 stem", [64, 147, 12544]),
    ("ResNet-50 stage 1, 3 x 3", [64, 576, 3136]),
    ("ResNet-50 stage 1, 1 x 1", [256, 64, 3136]),
    ("ResNet-50 stage 3, 3 x 3", [256, 2304, 196]),
    ("ResNet-50 stage 4, 3 x 3", [512, 4608, 49]),
    ("ResNet-50 stage 4, 1 x 1", [2048, 512, 49]),
    ("VGG-16 conv 3", [256, 2304, 3136]),
    ("VGG-16 conv 3, batch 8", [256, 2304, 25088]),
    ("VGG-16 first dense layer", [4096, 25088, 1]),
];

/// Limbs, tiles, what a warp makes of them, blocks of a multiprocessor: sizes that fit registers.
const LIMBS: [(u32, [u32; 2], [u32; 2], u32); 11] = [
    (8, [64, 64], [1, 2], 1),
    (8, [64, 64], [2, 2], 1),
    (8, [64, 32], [2, 2], 2),
    (8, [32, 64], [2, 2], 2),
    (5, [64, 64], [2, 2], 1),
    (5, [64, 32], [2, 2], 2),
    (4, [64, 64], [2, 2], 2),
    (4, [64, 64], [2, 4], 2),
    (4, [128, 64], [2, 4], 1),
    (4, [128, 64], [2, 2], 1),
    (4, [64, 128], [2, 4], 1),
];

/// Layers, and how many there are of each.
type Layers = &'static [([u32; 3], u32)];
/// All linear layers of a network on one image.
const NETWORKS: [(&str, Layers); 2] = [
    (
        "ResNet-50",
        &[
            ([64, 147, 12544], 1),
            ([64, 64, 3136], 1),
            ([64, 576, 3136], 3),
            ([256, 64, 3136], 4),
            ([64, 256, 3136], 2),
            ([128, 256, 3136], 1),
            ([128, 1152, 784], 4),
            ([512, 128, 784], 4),
            ([512, 256, 784], 1),
            ([128, 512, 784], 3),
            ([256, 512, 784], 1),
            ([256, 2304, 196], 6),
            ([1024, 256, 196], 6),
            ([1024, 512, 196], 1),
            ([256, 1024, 196], 5),
            ([512, 1024, 196], 1),
            ([512, 4608, 49], 3),
            ([2048, 512, 49], 3),
            ([2048, 1024, 49], 1),
            ([512, 2048, 49], 2),
            ([1000, 2048, 1], 1),
        ],
    ),
    (
        "VGG-16",
        &[
            ([64, 27, 50176], 1),
            ([64, 576, 50176], 1),
            ([128, 576, 12544], 1),
            ([128, 1152, 12544], 1),
            ([256, 1152, 3136], 1),
            ([256, 2304, 3136], 2),
            ([512, 2304, 784], 1),
            ([512, 4608, 784], 2),
            ([512, 4608, 196], 3),
            ([4096, 25088, 1], 1),
            ([4096, 4096, 1], 1),
            ([1000, 4096, 1], 1),
        ],
    ),
];

/// Seconds of all layers, one launch after the other.
fn network(gpu: &Gpu, layers: Layers, path: ProductPath, bits: u32) -> Result<String, GpuError> {
    let on = gpu.context().default_stream();
    let mut buffers = Vec::new();
    for &(sizes, times) in layers {
        let [m, k, n] = sizes.map(|s| s as usize);
        for _ in 0..times {
            buffers.push((sizes, random(gpu, m * k)?, random(gpu, k * n)?, random(gpu, m * n)?));
        }
    }
    let ring = Ring::new(bits);
    let times = timed(&on, REPEATS, |on| {
        buffers.iter_mut().try_for_each(|(s, x, w, out)| gpu.product(on, path, ring, *s, false, x, w, out))
    })?;
    let products: f64 = buffers.iter().map(|(s, ..)| s.iter().map(|&s| s as f64).product::<f64>()).sum();
    Ok(format!(
        "\"path\":\"{path:?}\",\"bits\":{bits},\"layers\":{},\"products\":{products:.0},\"seconds\":{},\"products_per_s\":{}",
        buffers.len(),
        number(times.median()),
        number(products / times.median())
    ))
}

fn rate(
    gpu: &Gpu,
    path: ProductPath,
    bits: u32,
    sizes: [u32; 3],
    transposed: bool,
) -> Result<(String, f64), GpuError> {
    let [m, k, n] = sizes.map(|s| s as usize);
    let on = gpu.context().default_stream();
    let (x, w, mut out) = (random(gpu, m * k)?, random(gpu, k * n)?, random(gpu, m * n)?);
    let ring = Ring::new(bits);
    // Short ones are queued several times, so that gaps between launches do not count.
    let times_each = (1 << 33) / (m * k * n).clamp(1 << 26, 1 << 33);
    let times = timed(&on, REPEATS, |on| {
        (0..times_each).try_for_each(|_| gpu.product(on, path, ring, sizes, transposed, &x, &w, &mut out))
    })?;
    let products = (m * k * n * times_each) as f64;
    Ok((times.rates(products), times.median() / times_each as f64))
}

/// One product of each path, for a profiler.
pub fn once(gpu: &Gpu) -> Result<(), GpuError> {
    let len = 2048 * 2048;
    let (x, w, mut out) = (random(gpu, len)?, random(gpu, len)?, random(gpu, len)?);
    let on = gpu.context().default_stream();
    for path in [ProductPath::Words, ProductPath::Limbs] {
        gpu.product(&on, path, Ring::R64, [2048; 3], false, &x, &w, &mut out)?;
    }
    Ok(on.synchronize()?)
}

pub fn measure(gpu: &Gpu, report: &mut Report) -> Result<(), GpuError> {
    let mut tunings = Vec::new();
    for (tile, resident) in [([128, 128], 1), ([128, 64], 2), ([64, 64], 2), ([64, 64], 3)] {
        let tuned = Tuning { product: Kernel::product(tile, resident), limbs: vec![], ..Tuning::default() };
        let gpu = Gpu::with_tuning(0, tuned)?;
        let (rates, _) = rate(&gpu, ProductPath::Words, 64, [4096; 3], false)?;
        tunings.push(format!(
            "{{\"path\":\"words\",\"tile\":{tile:?},\"blocks\":{resident},\"products_per_s\":{rates}}}"
        ));
    }
    for (limbs, tile, warp, resident) in LIMBS {
        let tuned =
            Tuning { limbs: vec![(limbs, Kernel::limbs(limbs, tile, warp, resident))], ..Tuning::default() };
        let gpu = Gpu::with_tuning(0, tuned)?;
        let (rates, _) = rate(&gpu, ProductPath::Limbs, 8 * limbs, [4096; 3], false)?;
        tunings.push(format!(
            "{{\"path\":\"limbs\",\"bits\":{},\"tile\":{tile:?},\"warp\":{warp:?},\"blocks\":{resident},\"products_per_s\":{rates}}}",
            8 * limbs
        ));
    }
    report.add("product_tunings", format!("[{}]", tunings.join(",")));
    let mut found = Vec::new();
    for (name, sizes) in SHAPES {
        for (path, bits) in [
            (ProductPath::Words, 64),
            (ProductPath::Limbs, 64),
            (ProductPath::Limbs, 40),
            (ProductPath::Limbs, 32),
        ] {
            let (rates, seconds) = rate(gpu, path, bits, sizes, false)?;
            found.push(format!(
                "{{\"name\":{name:?},\"m_k_n\":{sizes:?},\"path\":\"{path:?}\",\"bits\":{bits},\"seconds\":{},\"products_per_s\":{rates}}}",
                number(seconds)
            ));
        }
    }
    let (rates, _) = rate(gpu, ProductPath::Limbs, 64, [4096; 3], true)?;
    report.add("transposed_4096_limbs_products_per_s", rates);
    let mut networks = Vec::new();
    for (name, layers) in NETWORKS {
        for (path, bits) in [(ProductPath::Words, 64), (ProductPath::Limbs, 64), (ProductPath::Limbs, 40)] {
            networks.push(format!("{{\"name\":{name:?},{}}}", network(gpu, layers, path, bits)?));
        }
    }
    report.add("networks", format!("[{}]", networks.join(",")));
    report.add("products", format!("[\n{}]", found.join(",\n")));
    Ok(())
}
