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
    for down in [1, 2] {
        let tuned = Tuning { limbs: vec![(8, Kernel::limbs(8, down))], ..Tuning::default() };
        let gpu = Gpu::with_tuning(0, tuned)?;
        let (rates, _) = rate(&gpu, ProductPath::Limbs, 64, [4096; 3], false)?;
        tunings.push(format!("{{\"path\":\"limbs\",\"down\":{down},\"products_per_s\":{rates}}}"));
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
    report.add("products", format!("[\n{}]", found.join(",\n")));
    Ok(())
}
