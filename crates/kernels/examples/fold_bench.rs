//! Speed of the folds on every path of this machine: nanoseconds a word (or item) and term; JSON lines.
//!
//! `cargo run --release -p privet-kernels --example fold_bench`

use privet_kernels::fold::{Chosen, FoldPath, GROUP, NumberTerms, Powers, WordTerms, points};
use privet_prg::Seed;
use privet_ring::Ring;
use std::time::Instant;

const WORDS: usize = 1 << 19;
const RUNS: usize = 20;

fn best(mut f: impl FnMut()) -> f64 {
    let times = (0..RUNS).map(|_| {
        let start = Instant::now();
        f();
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

fn main() {
    let mut prg = Seed::from_bytes([1; 16]).stream();
    let columns: Vec<_> = (0..4).map(|_| prg.elements(Ring::R64, WORDS)).collect();
    let weights = prg.elements(Ring::R64, WORDS / GROUP);
    let basis: [u64; GROUP] = std::array::from_fn(|_| prg.elements(Ring::R64, 1)[0]);
    let words = |terms: usize| {
        let terms =
            columns.as_chunks::<2>().0[..terms].iter().map(|[u, v]| (u[..].into(), v[..].into())).collect();
        [WordTerms { words: WORDS, terms, weights: &weights }]
    };
    let bits = &columns[1][..WORDS / GROUP];
    let numbers = |terms: usize| {
        let terms = columns[..terms].iter().map(|numbers| Chosen { numbers, bits }).collect();
        [NumberTerms { numbers: WORDS, terms, weights: &columns[3][..WORDS / 8] }]
    };
    let mut out = vec![0; WORDS];
    let line = |path: String, what: &str, seconds: f64, per: usize| {
        println!("{{\"path\":\"{path}\",\"what\":\"{what}\",\"ns\":{:.3}}}", seconds * 1e9 / per as f64);
    };
    for path in FoldPath::ALL.into_iter().filter(|p| p.available()) {
        let name = path.to_string();
        let mut sums = vec![0; points(6)];
        for terms in [1, 2] {
            let t = best(|| path.words_message(&words(terms), &mut sums));
            line(name.clone(), &format!("words_message of {terms}, word and term"), t, terms * WORDS);
            let t = best(|| path.numbers_message(&numbers(terms), &mut sums[..points(3)]));
            line(name.clone(), &format!("numbers_message of {terms}, number and term"), t, terms * WORDS);
        }
        let by_first = |right: usize| WordTerms {
            words: WORDS,
            terms: vec![(columns[0][..].into(), columns[right][..].into())],
            weights: &weights,
        };
        let t = best(|| path.words_message(&[by_first(1), by_first(2)], &mut sums));
        line(name.clone(), "words_message of 2 with one left operand, word and term", t, 2 * WORDS);
        let powers = basis.first_chunk().expect("eight");
        let t = best(|| {
            out.clear();
            path.bits_fold(bits, powers, &mut out);
        });
        line(name.clone(), "bits_fold, bit", t, WORDS);
        for (what, s) in [("", None), (" with weights", Some(&columns[3][..WORDS / 8]))] {
            let t = best(|| {
                out.clear();
                path.numbers_fold(&columns[0], powers, s, &mut out);
            });
            line(name.clone(), &format!("numbers_fold{what}, number"), t, WORDS);
        }
        let one = Chosen { numbers: &columns[1], bits };
        for more in [&[][..], &[one]] {
            let t = best(|| path.numbers_combine(&columns[0], more, &columns[3][..WORDS / 8], &mut [0; 8]));
            line(name.clone(), &format!("numbers_combine and {} products, number", more.len()), t, WORDS);
        }
        let second = path.second_values(&basis);
        let sums = &mut [0; points(4)];
        let t = best(|| second.add(&words(1), sums));
        line(name.clone(), "second_values, word and term", t, WORDS);
        let t = best(|| second.add(&[by_first(1), by_first(2)], sums));
        line(name.clone(), "second_values with one left operand, word and term", t, 2 * WORDS);
        let twice = path.words_fold_twice(&basis, basis.first_chunk().expect("sixteen"));
        let t = best(|| {
            out.clear();
            twice.append(columns[0][..].into(), &mut out);
        });
        line(name.clone(), "words_fold_twice, word", t, WORDS);
        let t = best(|| path.words_combine(&columns[0], &weights, &mut [0; GROUP]));
        line(name.clone(), "words_combine, word", t, WORDS);
        for vars in [2, 3, 4] {
            let t = best(|| path.field_message(&columns[0], &columns[1], vars, &mut vec![0; points(vars)]));
            line(name.clone(), &format!("field_message {vars}, item"), t, WORDS);
        }
        let t = best(|| path.field_fold(&columns[0], &basis[..16], &mut out[..WORDS / 16]));
        line(name.clone(), "field_fold, item", t, WORDS);
        // as many groups at a time as the proofs take
        let mut scratch = vec![];
        for (vars, groups) in [(4, 256), (6, 16), (6, 32), (6, 64), (6, 128), (6, 256)] {
            let words = groups << vars;
            let t = best(|| {
                for at in (0..WORDS).step_by(words) {
                    let part = |i: usize| &columns[i][at..at + words];
                    let terms = [(part(0), part(1)), (part(2), part(3))];
                    let mut nothing = |_, _: &[u64]| {};
                    path.ring_values(&terms, vars, (groups, 1 << vars), &mut scratch, &mut nothing);
                }
            });
            line(name.clone(), &format!("ring_values {vars} {groups}, word and term"), t, 2 * WORDS);
        }
        let mut sums = vec![[0; GROUP]; 1024];
        for (rows, positions) in [(128, 128), (128, 784), (512, 1024), (4096, 32), (512, 10)] {
            let n = rows * positions;
            for (what, strides) in [("row by row", [positions, 1]), ("position by position", [1, rows])] {
                for powers in [64, 48] {
                    let bits: Vec<_> = columns[1][..rows].iter().map(|bits| bits >> (64 - powers)).collect();
                    let t =
                        best(|| path.rows_combine(&columns[0][..n], strides, &bits, &mut sums[..positions]));
                    let what =
                        format!("rows_combine {rows} x {positions} {what}, {powers} bits, row and position");
                    line(name.clone(), &what, t, n);
                }
            }
        }
        let items = &mut columns[0].clone();
        let items = items.as_chunks_mut().0;
        let weights = &columns[1][..items.len()];
        let t = best(|| path.weigh(items, weights));
        line(name.clone(), "weigh, item", t, items.len());
        for vars in [3, 4] {
            let t = best(|| path.ring_fold(items, &weights[..vars], &mut vec![]));
            line(name.clone(), &format!("ring_fold {vars}, item"), t, items.len());
        }
        for groups in [1, 8, 32] {
            let sums = &mut vec![[0; 128]; items.len() / groups];
            let some = &items[..groups * sums.len()];
            for (powers, what) in [(Powers::All, ""), (Powers::Below24, " of few powers")] {
                let t = best(|| path.products(some, some, powers, groups, sums));
                line(name.clone(), &format!("products {groups}{what}, pair"), t, some.len());
            }
        }
    }
}
