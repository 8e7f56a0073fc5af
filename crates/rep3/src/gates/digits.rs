//! The bits of short numbers, and for each of their values whether a number has it: bits as planes, so that all of it is ANDs of
//! words. Turned into numbers are only those that a table needs.

use crate::adder::{Summands, Top};
use crate::context::Party;
use crate::moves::{And, Split};
use crate::planes::{Words, to_planes};
use crate::proof::Column;
use crate::{PartyId, Planes, RunError, Share, tree};

/// Carries of an addition of so many bits, level by level: from which place to which, and whether the upper one hands carries on after that
/// (Sklansky, IRE Transactions on Electronic Computers 9, 1960).
pub(crate) fn levels(places: usize) -> Vec<Vec<(usize, usize, bool)>> {
    let mut levels = vec![];
    let mut span = 1;
    while span < places {
        let above = (0..places).filter(|l| l & span != 0);
        levels.push(above.map(|l| ((l & !(span - 1)) - 1, l, l & !(2 * span - 1) != 0)).collect());
        span *= 2;
    }
    levels
}

/// Products of more than one bit of a digit, round by round: each of two that are there by then. Sets of bits are masks.
pub(crate) fn products(bits: u32) -> Vec<Vec<(usize, usize, usize)>> {
    let mut rounds: Vec<Vec<(usize, usize, usize)>> = vec![];
    for set in 1usize..1 << bits {
        let count = set.count_ones();
        if count < 2 {
            continue;
        }
        let mut low = 0usize;
        while low.count_ones() < count.div_ceil(2) {
            low |= 1 << (set & !low).trailing_zeros();
        }
        let round = count.next_power_of_two().ilog2() as usize - 1;
        rounds.resize_with(rounds.len().max(round + 1), Vec::new);
        rounds[round].push((set, low, set & !low));
    }
    rounds
}

/// The low `n` bits of x, a plane each: the sum of two numbers, one known to the dealer of a part and one to the two others.
pub(crate) fn bits(cx: &mut Party, n: u32, x: &Share) -> Result<Vec<Words>, RunError> {
    let (id, n) = (cx.id, n as usize);
    if n == 1 {
        // the components of one bit are bits
        let plane = |component: &[u64]| Column::from(to_planes(cx.device, component, &[0]));
        return Ok(vec![Words { own: plane(&x.own), next: plane(&x.next) }]);
    }
    let operands = (x, n, Top::None);
    let summands = Summands::deal(cx, "digits", operands, |b| b)?;
    // Nothing comes in to the lowest bit. Each other one carries what comes in if that is the bit of a, its tie (`tree.rs`).
    let split = Split { terms: vec![summands.even(0, 1)], words: summands.words };
    let [lowest] = cx.split("digits generate", [split])?;
    let of_bit = |l: usize| match l % 2 {
        0 => summands.even(l / 2, 1),
        _ => summands.odd(l / 2, 1),
    };
    let tie = |l: usize| tree::alone(&of_bit(l).0).join_planes(id, &summands.parts, 1).all();
    let mut carries = vec![lowest.join_planes(id, &summands.parts, 1).all()];
    carries.extend((1..n - 1).map(tie));
    let mut ties: Vec<Option<Words>> = carries.iter().cloned().map(Some).collect();
    ties[0] = None;
    let sums: Vec<Words> = (0..n).map(|l| tree::sum(id, &summands, of_bit(l)).all()).collect();
    let mut propagate = sums.clone();
    for level in levels(n - 1) {
        let gates: Vec<And> = level
            .iter()
            .flat_map(|&(from, to, hands_on)| {
                let x = propagate[to].clone();
                let y = match &ties[to] {
                    Some(tie) => carries[from].xor(tie),
                    None => carries[from].clone(),
                };
                let carries = And { x: x.clone(), y, plus: Some(carries[to].clone()) };
                let hands = hands_on.then(|| And { x, y: propagate[from].clone(), plus: None });
                std::iter::once(carries).chain(hands)
            })
            .collect();
        let mut made = cx.and("digits carry", &gates)?.into_iter();
        for (from, to, hands_on) in level {
            let mut next = || made.next().unwrap_or_else(|| unreachable!("one for each gate"));
            (carries[to], ties[to]) = (next(), ties[from].clone());
            if hands_on {
                propagate[to] = next();
            }
        }
    }
    let carried = sums[1..].iter().zip(&carries).map(|(sum, carry)| sum.xor(carry));
    Ok(std::iter::once(sums[0].clone()).chain(carried).collect())
}

/// For every value of each digit whether it has it; digits are the bits of a number in order, of `sizes` bits each. Rounds: log2 of the bits
/// of the longest digit.
pub(crate) fn one_hots(cx: &mut Party, sizes: &[u32], bits: &[Words]) -> Result<Vec<Vec<Words>>, RunError> {
    let mut first = 0;
    let mut digits: Vec<Vec<Option<Words>>> = sizes
        .iter()
        .map(|&size| {
            let mut sets = vec![None; 1 << size];
            for bit in 0..size as usize {
                sets[1 << bit] = Some(bits[first + bit].clone());
            }
            first += size as usize;
            sets
        })
        .collect();
    let rounds: Vec<_> = sizes.iter().map(|&size| products(size)).collect();
    for round in 0..rounds.iter().map(Vec::len).max().unwrap_or(0) {
        let of = |digit: usize| rounds[digit].get(round).into_iter().flatten().map(move |of| (digit, *of));
        let wanted: Vec<_> = (0..sizes.len()).flat_map(of).collect();
        let factor = |digit: usize, set: usize| {
            digits[digit][set].clone().unwrap_or_else(|| unreachable!("made before"))
        };
        let gates: Vec<And> = wanted
            .iter()
            .map(|&(digit, (_, x, y))| And { x: factor(digit, x), y: factor(digit, y), plus: None })
            .collect();
        let made = cx.and("one of many", &gates)?;
        for ((digit, (set, ..)), words) in wanted.into_iter().zip(made) {
            digits[digit][set] = Some(words);
        }
    }
    let (id, words) = (cx.id, bits[0].len());
    Ok(digits.into_iter().map(|sets| values(id, words, sets)).collect())
}

/// From the products of all sets of bits to the values: a number is v where all bits of v are set, and those that it has beside them are not.
fn values(id: PartyId, words: usize, sets: Vec<Option<Words>>) -> Vec<Words> {
    let nothing = Planes::new(64 * words, 1, vec![0; words], vec![0; words]);
    // the product of no bit is 1
    let one = nothing.not(id).all();
    let mut values: Vec<Words> =
        sets.into_iter().map(|product| product.unwrap_or_else(|| one.clone())).collect();
    for bit in 0..values.len().ilog2() {
        for value in (0..values.len()).filter(|value| value >> bit & 1 == 0) {
            values[value] = values[value].xor(&values[value | 1 << bit]);
        }
    }
    values
}

/// The first `n` bits of planes, one plane after the other.
pub(crate) fn joined(planes: &[Words], n: usize) -> Planes {
    let side = |pick: fn(&Words) -> &[u64]| {
        let mut out = vec![0u64; (planes.len() * n).div_ceil(64)];
        for (i, plane) in planes.iter().enumerate() {
            for (w, word) in pick(plane).iter().enumerate() {
                let kept = n - 64 * w;
                let word = if kept < 64 { word & ((1 << kept) - 1) } else { *word };
                let (at, shift) = ((i * n + 64 * w) / 64, (i * n + 64 * w) % 64);
                out[at] |= word << shift;
                if shift > 0 && at + 1 < out.len() {
                    out[at + 1] |= word >> (64 - shift);
                }
            }
        }
        out
    };
    Planes::new(planes.len() * n, 1, side(|w| &w.own), side(|w| &w.next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{share, value};
    use privet_ring::Ring;

    /// All values of every size, in one digit and in two.
    #[test]
    fn every_value_has_its_bit() {
        for n in 1..=7u32 {
            let (ring, x) =
                (Ring::new(n), (0..1u64 << n).chain(0..5).map(|x| x % (1 << n)).collect::<Vec<_>>());
            for low in [n, n.div_ceil(2)] {
                let sizes: Vec<u32> = [low, n - low].into_iter().filter(|&size| size > 0).collect();
                let found = value(Ring::new(1), |cx| {
                    let bits = bits(cx, n, &share(cx.id, ring, &x)).unwrap();
                    let hot = one_hots(cx, &sizes, &bits).unwrap().concat();
                    let planes = joined(&hot, x.len());
                    let words = |plane: &[u64]| crate::planes::elements(plane, 0..planes.n);
                    Share::new(words(&planes.own), words(&planes.next))
                });
                let of = |size: u32, shift: u32| {
                    let x = &x;
                    (0..1u64 << size).flat_map(move |v| {
                        x.iter().map(move |x| u64::from(x >> shift & ((1 << size) - 1) == v))
                    })
                };
                let mut expected: Vec<u64> = of(low, 0).collect();
                if low < n {
                    expected.extend(of(n - low, low));
                }
                assert_eq!(found, expected, "{n} bits in digits of {sizes:?}");
            }
        }
    }
}
