//! Every path of the folds against the plain definitions.

use privet_kernels::fold::{
    Chosen, FoldPath, GROUP, LANES_TWICE, NUMBER_GROUP, NumberTerms, Powers, Strided, WordTerms, Words,
    diagonal, number_weights, points, spec,
};
use privet_prg::{Prg, Seed};
use privet_ring::Ring;

fn stream(n: usize) -> Prg {
    Seed::from_bytes([n as u8; 16]).stream()
}

fn paths() -> impl Iterator<Item = FoldPath> {
    FoldPath::ALL.into_iter().filter(|p| p.available())
}

const WORDS: [usize; 11] = [0, 1, 63, 64, 65, 511, 512, 513, 1024 + 17, 4096, 5000];

/// Terms of words as they stand.
fn words_of<'a>(terms: &[(&'a [u64], &'a [u64])]) -> Vec<(Words<'a>, Words<'a>)> {
    terms.iter().map(|(u, v)| ((*u).into(), (*v).into())).collect()
}

/// As many of these bits.
fn masked(bits: &[u64], n: usize) -> Vec<u64> {
    let mut bits = bits.to_vec();
    if let (Some(last), true) = (bits.last_mut(), !n.is_multiple_of(GROUP)) {
        *last &= (1 << (n % GROUP)) - 1;
    }
    bits
}

/// Groups of several batches go into one register, whatever their lengths and terms, and keep their own weights.
#[test]
fn words_of_short_batches() {
    let mut prg = stream(9);
    let mut draw = |n: usize| prg.elements(Ring::R64, n);
    let lens = [1, 64, 65, 500, 0, 63, 130, 512, 513, 3, 1024, 70];
    for terms in [1, 2, 9] {
        let columns: Vec<[Vec<u64>; 4]> = (0..terms).map(|_| [(); 4].map(|()| draw(1024))).collect();
        let weights: Vec<Vec<u64>> = lens.map(|n: usize| draw(n.div_ceil(GROUP))).to_vec();
        // every other batch has sums for operands, and the third one less terms
        let some = |i: usize| 1.max(terms - usize::from(i == 2));
        let (mut expected, mut batches) = (vec![3; points(6)], vec![]);
        for (i, (n, weights)) in lens.into_iter().zip(&weights).enumerate() {
            let columns = &columns[..some(i)];
            let sum = |a: &[u64], b: &[u64]| -> Vec<u64> { a.iter().zip(b).map(|(a, b)| a ^ b).collect() };
            let operands: Vec<_> = columns
                .iter()
                .map(|[a, b, c, d]| match i % 2 {
                    0 => (a[..n].to_vec(), b[..n].to_vec()),
                    _ => (sum(&a[..n], &b[..n]), sum(&c[..n], &d[..n])),
                })
                .collect();
            let of_spec: Vec<_> = operands.iter().map(|(u, v)| (&u[..], &v[..])).collect();
            spec::words_message(&of_spec, weights, &mut expected);
            let of_kernel = columns.iter().map(|[a, b, c, d]| match i % 2 {
                0 => (Words::from(&a[..n]), Words::from(&b[..n])),
                _ => (Words::sum([&a[..n], &b[..n]]), Words::sum([&c[..n], &d[..n]])),
            });
            batches.push(WordTerms { words: n, terms: of_kernel.collect(), weights });
        }
        for path in paths() {
            let mut found = vec![3; points(6)];
            path.words_message(&batches, &mut found);
            assert!(found == expected, "{path}: {terms} terms");
        }
    }
}

#[test]
fn words() {
    for n in WORDS {
        let mut prg = stream(n);
        let mut draw = |n| prg.elements(Ring::R64, n);
        let columns: Vec<_> = (0..6).map(|_| draw(n)).collect();
        let (weights, basis, start) = (draw(n.div_ceil(GROUP)), draw(GROUP), draw(points(6)));
        let basis: &[u64; GROUP] = basis[..].try_into().unwrap();
        for count in 1..=3 {
            let terms: Vec<_> = (0..count).map(|t| (&columns[2 * t][..], &columns[2 * t + 1][..])).collect();
            let mut expected = start.clone();
            if n > 1100 && count != 2 {
                continue;
            }
            spec::words_message(&terms, &weights, &mut expected);
            let some = |range: std::ops::Range<usize>| WordTerms {
                words: n,
                terms: words_of(&terms[range]),
                weights: &weights,
            };
            for path in paths() {
                let mut found = start.clone();
                path.words_message(&[some(0..count)], &mut found);
                assert_eq!(found, expected, "{path}: message of {n} words, {count} terms");
            }
            // together with others, also with none, and with fewer words
            let (m, of_half) = (n.div_ceil(2), &weights[..n.div_ceil(2).div_ceil(GROUP)]);
            let half = [(&terms[0].0[..m], &terms[0].1[..m])];
            spec::words_message(&terms[..1], &weights, &mut expected);
            spec::words_message(&half, of_half, &mut expected);
            for path in paths() {
                let mut found = start.clone();
                let none = WordTerms { words: 0, terms: vec![], weights: &[] };
                let half = WordTerms { words: m, terms: words_of(&half), weights: of_half };
                path.words_message(&[some(0..count), none, some(0..1), half], &mut found);
                assert_eq!(found, expected, "{path}: message of several batches, {n} words, {count} terms");
            }
        }
        for path in paths() {
            let (mut found, mut expected) = (columns[0].clone(), columns[0].clone());
            path.field_weigh(&mut found, &columns[1]);
            spec::field_weigh(&mut expected, &columns[1]);
            assert_eq!(found, expected, "{path}: items times their weights");
        }
        let (mut left, mut right) = (vec![0; n.next_multiple_of(GROUP)], vec![0; n.next_multiple_of(GROUP)]);
        spec::words_fold(&columns[0], basis, Some(&weights), &mut left);
        spec::words_fold(&columns[1], basis, None, &mut right);
        let mut expected = start[..points(4)].to_vec();
        spec::field_message(&left, &right, 4, &mut expected);
        for path in paths() {
            let (values, mut found) = (path.second_values(basis), start[..points(4)].to_vec());
            let terms = words_of(&[(&columns[0], &columns[1])]);
            values.add(&[WordTerms { words: n, terms, weights: &weights }], &mut found);
            assert_eq!(found, expected, "{path}: values of the second fold of {n} words");
        }
        let second_basis: [u64; LANES_TWICE] = draw(LANES_TWICE).try_into().expect("as many as drawn");
        let mut lanes = vec![0; n.next_multiple_of(GROUP)];
        spec::words_fold(&columns[0], basis, None, &mut lanes);
        let mut expected = vec![0; lanes.len() / LANES_TWICE];
        spec::field_fold(&lanes, &second_basis, &mut expected);
        for path in paths() {
            let (fold, mut found) = (path.words_fold_twice(basis, &second_basis), vec![1; 3]);
            fold.append(columns[0][..].into(), &mut found);
            assert_eq!(found[..3], [1; 3], "{path}: what was there");
            assert_eq!(found[3..], expected, "{path}: both folds of {n} words");
        }
        // sums that are made where they are read
        let [a, b] = [[0, 2], [3, 4]].map(|pair| pair.map(|i| &columns[i][..]));
        let [u, v] = [a, b].map(|[a, b]| a.iter().zip(b).map(|(a, b)| a ^ b).collect::<Vec<_>>());
        for path in paths() {
            let of_both = |summed: bool| -> (Vec<u64>, Vec<u64>, Vec<u64>) {
                let [u, v] = match summed {
                    true => [Words::sum(a), Words::sum(b)],
                    false => [(&u[..]).into(), (&v[..]).into()],
                };
                let (mut first, mut second, mut folded) =
                    (start.clone(), start[..points(4)].to_vec(), vec![]);
                let terms = vec![(u, v), (v, (&columns[5][..]).into())];
                let batch = [WordTerms { words: n, terms, weights: &weights }];
                path.words_message(&batch, &mut first);
                path.second_values(basis).add(&batch, &mut second);
                path.words_fold_twice(basis, &second_basis).append(u, &mut folded);
                (first, second, folded)
            };
            assert!(of_both(true) == of_both(false), "{path}: sums of {n} words");
        }
        // one left operand for several batches, which have weights of their own; and then another one
        let others: Vec<_> = weights.iter().map(|s| s.rotate_left(7)).collect();
        let of = |left: usize, right: usize, weights| WordTerms {
            words: n,
            terms: words_of(&[(&columns[left], &columns[right])]),
            weights,
        };
        let batches = [of(0, 1, &weights), of(0, 2, &others), of(0, 3, &weights), of(4, 3, &others)];
        for path in paths() {
            let values = |batches: &[WordTerms]| {
                let (mut first, mut second) = (vec![0; points(6)], vec![0; points(4)]);
                path.words_message(batches, &mut first);
                path.second_values(basis).add(batches, &mut second);
                [first, second].concat()
            };
            let mut expected = vec![0; points(6) + points(4)];
            for batch in &batches {
                let alone = values(std::slice::from_ref(batch));
                expected.iter_mut().zip(alone).for_each(|(sum, value)| *sum ^= value);
            }
            assert!(values(&batches) == expected, "{path}: {n} words, a left operand of several batches");
        }
        let mut expected = [7; GROUP];
        spec::words_combine(&columns[0], &weights, &mut expected);
        for path in paths() {
            let mut found = [7; GROUP];
            path.words_combine(&columns[0], &weights, &mut found);
            assert_eq!(found, expected, "{path}: combination of {n} words");
        }
    }
}

#[test]
fn numbers() {
    for n in WORDS {
        let mut prg = stream(n);
        let mut draw = |n| prg.elements(Ring::R64, n);
        let columns: Vec<_> = (0..3).map(|_| draw(n)).collect();
        let bits: Vec<_> = (0..3).map(|_| masked(&draw(n.div_ceil(GROUP)), n)).collect();
        let (weights, basis, start) = (draw(number_weights(n)), draw(NUMBER_GROUP), draw(points(3)));
        let basis: &[u64; NUMBER_GROUP] = basis[..].try_into().unwrap();
        let terms: Vec<_> = columns.iter().zip(&bits).map(|(u, v)| (&u[..], &v[..])).collect();
        let chosen: Vec<_> = terms.iter().map(|(numbers, bits)| Chosen { numbers, bits }).collect();
        for count in 0..=3 {
            let some =
                |count: usize| NumberTerms { numbers: n, terms: chosen[..count].to_vec(), weights: &weights };
            let mut expected = start.clone();
            spec::numbers_message(&terms[..count], &weights, &mut expected);
            spec::numbers_message(&terms[..1], &weights, &mut expected);
            let mut combined = [7; NUMBER_GROUP];
            spec::numbers_combine(&columns[0], &weights, &mut combined);
            for (numbers, bits) in &terms[..count] {
                let chosen: Vec<_> =
                    spec::spread(bits, n).iter().zip(*numbers).map(|(bit, word)| bit & word).collect();
                spec::numbers_combine(&chosen, &weights, &mut combined);
            }
            for path in paths() {
                let mut found = start.clone();
                let none = NumberTerms { numbers: 0, terms: vec![], weights: &[] };
                path.numbers_message(&[some(count), none, some(1)], &mut found);
                assert_eq!(found, expected, "{path}: message of {n} numbers, {count} terms");
                let mut found = [7; NUMBER_GROUP];
                path.numbers_combine(&columns[0], &chosen[..count], &weights, &mut found);
                assert_eq!(found, combined, "{path}: combination of {n} numbers and {count} products");
            }
        }
        let ones: Vec<_> = spec::spread(&bits[0], n).iter().map(|bit| bit & 1).collect();
        for path in paths() {
            for s in [None, Some(&weights[..])] {
                let mut found = vec![1; 3];
                path.numbers_fold(&columns[0], basis, s, &mut found);
                assert_eq!(found[..3], [1; 3], "{path}: what was there");
                let expected = spec::numbers_fold(&columns[0], basis, s);
                assert_eq!(found[3..], expected, "{path}: fold of {n} numbers, weights {}", s.is_some());
            }
            let mut found = vec![1; 3];
            path.bits_fold(&bits[0], basis, &mut found);
            assert_eq!(found[..3], [1; 3], "{path}: what was there");
            assert_eq!(found[3..], spec::numbers_fold(&ones, basis, None), "{path}: fold of {n} bits");
        }
    }
}

#[test]
fn items() {
    for n in [0, 1, 7, 8, 9, 100, 127, 128, 129, 1030] {
        let mut prg = stream(n);
        let mut draw = |n| prg.elements(Ring::R64, n);
        let (u, v) = (draw(n), draw(n));
        for vars in (0..=4).chain([6]) {
            let (start, basis) = (draw(points(vars)), draw(1 << vars));
            let mut expected = start.clone();
            spec::field_message(&u, &v, vars, &mut expected);
            let mut folded = vec![0; n.div_ceil(1 << vars)];
            spec::field_fold(&u, &basis, &mut folded);
            for path in paths() {
                let mut found = start.clone();
                path.field_message(&u, &v, vars, &mut found);
                assert_eq!(found, expected, "{path}: message of {n} items, {vars} variables");
                let mut found = vec![1; folded.len()];
                path.field_fold(&u, &basis, &mut found);
                assert_eq!(found, folded, "{path}: fold of {n} items, {vars} variables");
            }
        }
    }
}

#[test]
fn ring() {
    for n in [0, 1, 15, 16, 17, 130, 1000, 2100] {
        let mut prg = stream(n);
        let columns: Vec<_> = (0..34).map(|_| prg.elements(Ring::R64, n)).collect();
        for (count, vars) in [(1, 0), (2, 1), (2, 3), (3, 4), (17, 4), (2, 6)] {
            let terms: Vec<_> = (0..count).map(|t| (&columns[2 * t][..], &columns[2 * t + 1][..])).collect();
            // groups side by side, and with others between them
            for stride in [1 << vars, (1 << vars) + 5, 4 << vars] {
                // a group of nothing at the end
                let groups = n.div_ceil(stride) + 1;
                let len = groups * points(vars);
                let mut expected = vec![0; len];
                spec::ring_values(&terms, vars, stride, &mut expected);
                for path in paths() {
                    let (mut found, mut scratch) = (vec![], vec![1; n]);
                    path.ring_values(&terms, vars, (groups, stride), &mut scratch, &mut |first, values| {
                        assert_eq!(first * groups, found.len());
                        found.extend_from_slice(values);
                    });
                    let what = format!("{path}: {n} words, {count} terms, {vars} variables, stride {stride}");
                    assert_eq!(found, expected, "{what}");
                }
            }
        }
    }
}

#[test]
fn rows() {
    for (i, rows) in [0, 1, 3, 4, 5, 8, 11, 127, 128, 129, 300].into_iter().enumerate() {
        for (j, positions) in [0, 1, 2, 7, 8, 9, 31].into_iter().enumerate() {
            let mut prg = stream(rows + positions);
            // also of elements that have few coefficients
            let bits = prg.elements(Ring::new([64, 48, 49, 3][(i + j) % 4]), rows);
            // positions of a row, or rows of a position, side by side; or neither; also with others between them
            for strides in [[positions, 1], [positions + 3, 1], [1, rows], [1, rows + 5], [2 * positions, 2]]
            {
                let last = |n: usize, stride: usize| n.saturating_sub(1) * stride;
                // not a word more than needed
                let words = last(rows, strides[0]) + last(positions, strides[1]) + 1;
                let words = prg.elements(Ring::R64, words);
                let start: Vec<[u64; 64]> =
                    (0..positions).map(|_| prg.elements(Ring::R64, 64).try_into().unwrap()).collect();
                let mut expected = start.clone();
                spec::rows_combine(&words, strides, &bits, &mut expected);
                for path in paths() {
                    let mut found = start.clone();
                    path.rows_combine(&words, strides, &bits, &mut found);
                    assert!(found == expected, "{path}: {rows} rows, {positions} positions, {strides:?}");
                }
            }
        }
    }
}

#[test]
fn diagonals_are_the_products_of_equal_coefficients() {
    for l in 0..64 {
        assert!(spec::is_diagonal(diagonal(l), l));
    }
}

#[test]
fn weights_in_the_galois_rings() {
    let mut prg = stream(1);
    let n = 70;
    let mut weights = prg.elements(Ring::R64, n);
    weights[..3].copy_from_slice(&[0, 1, u64::MAX]);
    let items: Vec<[u64; 64]> = (0..n).map(|_| prg.elements(Ring::R64, 64).try_into().unwrap()).collect();
    for path in paths() {
        let mut found = items.clone();
        path.weigh(&mut found, &weights);
        for ((found, item), s) in found.iter().zip(&items).zip(&weights) {
            assert_eq!(*found, spec::times_bits(item, *s), "{path}");
        }
    }
}

#[test]
fn products_of_polynomials() {
    let mut prg = stream(2);
    for (groups, count) in
        [(0, 3), (1, 1), (1, 8), (1, 243), (3, 27), (7, 9), (8, 3), (9, 4), (15, 3), (16, 1), (40, 2)]
    {
        let mut draw = |n: usize| -> Vec<u64> { prg.elements(Ring::R64, n) };
        let (a, b, start) = (draw(64 * groups * count), draw(64 * groups * count), draw(128 * count));
        let (a, b, start) = (a.as_chunks().0, b.as_chunks().0, start.as_chunks().0);
        // elements of few powers, and sums of products of them
        let few = |of: &[[u64; 64]]| -> Vec<[u64; 64]> {
            let few = |of: &[u64; 64]| std::array::from_fn(|k| if k < 48 { of[k] } else { 0 });
            of.iter().map(few).collect()
        };
        let (c, d, mut expected) = (few(a), few(b), start.to_vec());
        spec::products(&c, &d, groups, &mut expected);
        for path in paths() {
            for powers in [Powers::All, Powers::Below24] {
                let mut found = start.to_vec();
                path.products(&c, &d, powers, groups, &mut found);
                assert!(found == expected, "{path}: {count} sums of {groups}, {powers:?}");
                if count > 1 && groups > 0 {
                    let mut found = [start[0]; 1];
                    let operands = [Strided { a: &c, b: &d, stride: 1 }];
                    path.products_of_some(&operands, powers, groups, &mut found);
                    assert!(found[0] == expected[0], "{path}: {groups} pairs, {powers:?}");
                }
            }
        }
        let mut expected = start.to_vec();
        spec::products(a, b, groups, &mut expected);
        for path in paths() {
            let mut found = start.to_vec();
            path.products(a, b, Powers::All, groups, &mut found);
            assert!(found == expected, "{path}: {count} sums of {groups}");
            // every third pair, also past the last one
            for stride in [1, 3] {
                let some = |of: &[[u64; 64]]| of.iter().step_by(stride).copied().collect::<Vec<_>>();
                let groups = groups.min(a.len().div_ceil(stride));
                let (mut found, mut expected) = ([start[0]; 2], [start[0]; 2]);
                let twice = |of: &[[u64; 64]]| [&some(of)[..groups], &some(of)[..groups]].concat();
                spec::products(&twice(a), &twice(b), groups.max(1), &mut expected);
                let operands = [(); 2].map(|()| Strided { a, b, stride });
                path.products_of_some(&operands, Powers::All, groups, &mut found);
                assert!(found == expected, "{path}: {groups} pairs, {stride} apart");
            }
        }
    }
}

/// One coefficient times one other, the largest word in both, at every distance: sums of halves must leave nothing elsewhere.
#[test]
fn products_of_single_coefficients() {
    let single = |k: usize| -> [u64; 64] { std::array::from_fn(|i| if i == k { u64::MAX } else { 0 }) };
    let (a, b): (Vec<_>, Vec<_>) = (0..64 * 64).map(|i| (single(i / 64), single(i % 64))).unzip();
    for path in paths() {
        for groups in [1, 64] {
            let mut found = vec![[0; 128]; a.len() / groups];
            path.products(&a, &b, Powers::All, groups, &mut found);
            for (s, found) in found.iter().enumerate() {
                let mut expected = [0u64; 128];
                for i in s * groups..(s + 1) * groups {
                    let (p, q) = (i / 64, i % 64);
                    // none where they are of different rings
                    if p % 2 == q % 2 {
                        expected[p + q - p % 2] += 1;
                    }
                }
                assert!(*found == expected, "{path}: sum {s} of {groups}");
            }
        }
    }
}

/// Every power of Y in either ring at every power of Y, and the sums of two powers of which the second is the largest of the second ring.
#[test]
fn folds_at_powers() {
    let items: Vec<[u64; 64]> = (0..128)
        .map(|i| std::array::from_fn(|k| u64::from(i % 2 == 1 && k == i / 2).wrapping_neg()))
        .collect();
    for bit in 0..64 {
        for r in [1 << bit, 1 << bit | 1 << 63] {
            let mut expected = vec![];
            spec::ring_fold(&items, &[r], &mut expected);
            for path in paths() {
                let mut found = vec![];
                path.ring_fold(&items, &[r], &mut found);
                assert!(found == expected, "{path}: {r:#x}");
            }
        }
    }
}

#[test]
fn folds_over_the_galois_rings() {
    let mut prg = stream(3);
    for (items, vars) in
        [(0, 2), (1, 0), (3, 1), (5, 3), (17, 5), (64, 3), (65, 3), (130, 4), (57, 4), (257, 5), (9, 0)]
    {
        let words = prg.elements(Ring::R64, 64 * items);
        let mut r = prg.elements(Ring::R64, vars);
        r.iter_mut().zip([u64::MAX, 1, 0]).for_each(|(r, edge)| *r = edge);
        let mut expected = vec![[7; 64]];
        spec::ring_fold(words.as_chunks().0, &r, &mut expected);
        for path in paths() {
            let mut found = vec![[7; 64]];
            path.ring_fold(words.as_chunks().0, &r, &mut found);
            assert!(found == expected, "{path}: {items} items, {vars} variables");
        }
    }
}
