//! Every path that this machine has agrees with the plain definition.

use privet_kernels::bits::{cpu::BitsPath, spec};
use privet_prg::Seed;
use privet_ring::Ring;

#[test]
fn every_path_agrees_with_the_definition() {
    let mut stream = Seed::from_bytes([7; 16]).stream();
    for n in [0, 1, 63, 64, 65, 511, 512, 513, 1000, 1600] {
        let values = stream.elements(Ring::R64, n);
        for bits in [0usize, 1, 2, 31, 63, 64] {
            // every other plane first, and one plane that nothing is written to
            let places: Vec<usize> = (0..bits).map(|l| l / 2 + (l % 2) * (bits.div_ceil(2) + 1)).collect();
            let start = vec![u64::MAX; (bits + 2) * n.div_ceil(64)];
            let mut expected = start.clone();
            spec::planes(&values, &places, &mut expected);
            for path in BitsPath::ALL.into_iter().filter(|p| p.available()) {
                let mut found = start.clone();
                path.planes(&values, &places, &mut found);
                assert!(found == expected, "{path}: {n} elements, {bits} bits");
            }
        }
    }
}
