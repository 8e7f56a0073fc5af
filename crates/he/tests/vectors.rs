//! Known answers from `vectors/generate.py`, an implementation that shares no code with this crate.

use privet_he::HePath;
use privet_he::layout::{Layout, Matmul, MatmulLayout};
use privet_he::ntt::Ntt;

const VECTORS: &str = include_str!("../../../vectors/he.txt");

fn numbers(words: &str) -> Vec<u64> {
    words.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

#[test]
fn transforms() {
    let lines = VECTORS.lines().filter_map(|line| line.strip_prefix("ntt "));
    let mut checked = 0;
    for (input, values) in lines.map(|line| line.split_once(" = ").unwrap()) {
        let (input, values) = (numbers(input), numbers(values));
        let (p, coefficients) = (input[0], &input[1..]);
        let ntt = Ntt::new(coefficients.len(), p);
        for path in HePath::ALL.into_iter().filter(|path| path.available()) {
            let mut words = coefficients.to_vec();
            ntt.forward(path, &mut words);
            assert_eq!(words, values, "{path}, p = {p}");
            ntt.inverse(path, &mut words);
            assert_eq!(words, coefficients, "{path}, p = {p}");
        }
        checked += 1;
    }
    assert_eq!(checked, 3);
}

/// `place:value` of everything that is not 0.
fn places(polynomial: &[u64]) -> String {
    let filled = polynomial.iter().enumerate().filter(|(_, value)| **value != 0);
    filled.map(|(at, value)| format!("{at}:{value}")).collect::<Vec<_>>().join(",")
}

#[test]
fn packing() {
    let mut lines = VECTORS.lines().peekable();
    let mut checked = 0;
    while let Some(line) = lines.next() {
        let Some(shape) = line.strip_prefix("matmul ") else { continue };
        let of: Vec<usize> = numbers(shape).into_iter().map(|n| n as usize).collect();
        let [m, k, o, m1, k1, o1] = of[..] else { panic!("{line}") };
        let layout = MatmulLayout::with_blocks(Matmul { groups: 1, m, k, o }, 32, [m1, k1, o1]);
        let (x, w): (Vec<u64>, Vec<u64>) = ((1..=(m * k) as u64).collect(), (1..=(k * o) as u64).collect());
        let mut found = Vec::new();
        for number in 0..layout.queries() {
            let mut packed = vec![0; 32];
            layout.pack_input(number, &x, &mut packed);
            found.push(format!("input {}", places(&packed)));
        }
        for number in 0..layout.weights() {
            let mut packed = vec![0; 32];
            layout.pack_weights(number, &w, &mut packed);
            found.push(format!("weights {}", places(&packed)));
        }
        for answer in 0..layout.answers() {
            let mut outputs = layout.outputs(answer);
            outputs.sort_by_key(|output| output.coefficient);
            let each = outputs.iter().map(|output| format!("{}:{}", output.coefficient, output.index));
            found.push(format!("outputs {}", each.collect::<Vec<_>>().join(",")));
        }
        for found in found {
            assert_eq!(Some(found.as_str()), lines.next(), "{line}");
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked} polynomials");
}
