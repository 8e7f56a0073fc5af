use privet_he::{HePath, ntt::Ntt};
use std::time::Instant;
fn main() {
    for path in HePath::ALL {
        for n in [4096, 8192] {
            let ntt = Ntt::new(n, 1125899904679937);
            let mut x: Vec<u64> = (0..n as u64).collect();
            let (mut f, mut i) = (f64::MAX, f64::MAX);
            for _ in 0..300 {
                let t = Instant::now();
                ntt.forward(path, &mut x);
                f = f.min(t.elapsed().as_secs_f64());
                let t = Instant::now();
                ntt.inverse(path, &mut x);
                i = i.min(t.elapsed().as_secs_f64());
            }
            println!("{path} N={n} fwd {:.2} us inv {:.2} us", f * 1e6, i * 1e6);
        }
    }
}
