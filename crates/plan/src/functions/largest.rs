//! The largest of a line of numbers, in tournaments of two, or of up to sixteen: by prices.
//!
//! In a game of several all pairs are compared at once. Who beats all others is a product of bits. So a game of four takes the
//! rounds of one comparison and of two products in place of two comparisons, for twice as many comparisons. Where a family chooses by
//! several bits at once ([`Op::ChooseEvery`]), it takes one product.

use super::build::{Build, Value, Way};
use crate::ir::{MOST_CHOSEN_BY, Op};
use privet_ring::Pool2d;

/// Players of the games, and the most of the last one. Two again: while there are few, their comparisons may have another form.
const PLAYERS: [(usize, usize); 6] = [(2, 2), (4, 4), (8, 8), (4, 8), (4, 16), (8, 16)];
/// As many as games of two may leave one of before the others begin, as powers of two: while there are many, pairs cost less.
const FIRST: std::ops::Range<u32> = 0..6;
/// Bits that are multiplied at once, of those who beats whom.
const TOGETHER: [usize; 3] = [2, 4, MOST_CHOSEN_BY];

/// The largest along dimension 1 of `[outer, extent, inner]`, as `[outer, 1, inner]`, while all |x| < 2^(k-2).
pub(super) fn largest(b: &mut Build<'_>, x: Value) -> Value {
    let extent = b.shape(x)[1];
    let of_two = |b: &mut Build<'_>, x: Value| in_twos(b, x, extent);
    let of_several = |first: usize, players: (usize, usize)| {
        move |b: &mut Build<'_>, x: Value| {
            let left = in_twos(b, x, first);
            in_games(b, left, players)
        }
    };
    let several: Vec<_> = FIRST
        .map(|log| 1 << log)
        .flat_map(|first| PLAYERS.map(|players| (first, players)))
        .filter(|(first, players)| extent / first >= players.0)
        .map(|(first, players)| of_several(first, players))
        .collect();
    let mut ways: Vec<&Way<'_>> = vec![&of_two];
    ways.extend(several.iter().map(|way| way as &Way<'_>));
    b.cheapest(x, &ways)
}

/// The largest of every `size` neighbours along dimension 1, in games of two; those that are left over stay.
fn in_twos(b: &mut Build<'_>, x: Value, size: usize) -> Value {
    if size == 1 {
        return x;
    }
    let &[outer, extent, inner] = b.shape(x) else { unreachable!("three dimensions") };
    let (groups, rest) = (extent / size, extent % size);
    let whole = part(b, x, 0, extent - rest);
    let whole = b.reshape(whole, &[outer, 1, groups * size, inner]);
    let window =
        Pool2d { kernel: [size, 1], stride: [size, 1], padding: [0, 0], dilation: [1, 1], ceil_mode: false };
    let y = b.node(Op::MaxPool2d { window }, &[whole], &[outer, 1, groups, inner], x.bits, x.frac);
    let y = b.reshape(y, &[outer, groups, inner]);
    with_rest(b, y, x, rest)
}

/// In games of `players` until a game of all that are left has at most `last`, or so many are not left, then of two; who is left over in
/// a level is a player of the next.
fn in_games(b: &mut Build<'_>, mut x: Value, (players, last): (usize, usize)) -> Value {
    loop {
        let &[outer, extent, inner] = b.shape(x) else { unreachable!("three dimensions") };
        let players = if (players..=last).contains(&extent) { extent } else { players };
        let (games, rest) = (extent / players, extent % players);
        if games == 0 || players == 2 {
            return in_twos(b, x, extent);
        }
        let of: Vec<Value> = (0..players)
            .map(|i| {
                let player = part(b, x, i * games, (i + 1) * games);
                b.reshape(player, &[outer * games * inner])
            })
            .collect();
        let winners = winner(b, &of);
        let winners = b.reshape(winners, &[outer, games, inner]);
        x = with_rest(b, winners, x, rest);
    }
}

/// x from `start` to `end` along dimension 1.
fn part(b: &mut Build<'_>, x: Value, start: usize, end: usize) -> Value {
    let &[outer, extent, inner] = b.shape(x) else { unreachable!("three dimensions") };
    match end - start == extent {
        true => x,
        false => b.node(
            Op::Slice { dim: 1, start, end, step: 1 },
            &[x],
            &[outer, end - start, inner],
            x.bits,
            x.frac,
        ),
    }
}

/// y, and behind it the last `rest` of x.
fn with_rest(b: &mut Build<'_>, y: Value, x: Value, rest: usize) -> Value {
    let &[outer, extent, inner] = b.shape(x) else { unreachable!("three dimensions") };
    if rest == 0 {
        return y;
    }
    let (left, count) = (part(b, x, extent - rest, extent), b.shape(y)[1] + rest);
    b.node(Op::Concat { dim: 1 }, &[y, left], &[outer, count, inner], x.bits, x.frac)
}

/// The largest of several `[n]`, element by element: of equal ones the first.
fn winner(b: &mut Build<'_>, xs: &[Value]) -> Value {
    let players = b.stack(xs);
    let ways = TOGETHER.map(|together| move |b: &mut Build<'_>, xs: Value| winner_by(b, xs, together));
    b.cheapest_among(players, ways)
}

/// The same of the rows of `[players, n]`, multiplying up to `together` bits at once.
fn winner_by(b: &mut Build<'_>, xs: Value, together: usize) -> Value {
    let xs: Vec<Value> = (0..b.shape(xs)[0]).map(|i| b.row(xs, i)).collect();
    let (last, others) = xs.split_last().unwrap_or_else(|| unreachable!("there are players"));
    let pairs: Vec<(usize, usize)> =
        (0..xs.len()).flat_map(|i| (i + 1..xs.len()).map(move |j| (i, j))).collect();
    let differences: Vec<Value> = pairs.iter().map(|&(i, j)| b.sub(xs[i], xs[j])).collect();
    let differences = b.stack(&differences);
    let less = b.is_negative(differences, 1);
    let not_less = b.add_const(less, 1);
    // whether i beats j
    let mut beats: Vec<Vec<Value>> = (0..others.len())
        .map(|i| {
            let row = |j: usize| pairs.iter().position(|&pair| pair == (i.min(j), i.max(j)));
            let others = (0..xs.len()).filter(|&j| j != i);
            let bit = |j: usize| b.row(if i < j { not_less } else { less }, row(j).unwrap_or_default());
            others.map(bit).collect()
        })
        .collect();
    let most = if together == 2 { 1 } else { together };
    while beats[0].len() > most {
        beats = products(b, &beats, together.min(beats[0].len()));
    }
    let ahead: Vec<Value> = others.iter().map(|&x| b.sub(x, *last)).collect();
    let ahead = b.stack(&ahead);
    let wins: Vec<Value> = (0..beats[0].len()).map(|j| column(b, &beats, j)).collect();
    let added = b.choose_every(&wins, ahead);
    let added = b.weighted(added, vec![1; others.len()]);
    b.add(*last, added)
}

/// Bit j of every player.
fn column(b: &mut Build<'_>, beats: &[Vec<Value>], j: usize) -> Value {
    let bits: Vec<Value> = beats.iter().map(|bits| bits[j]).collect();
    b.stack(&bits)
}

/// Products of `together` bits of every player; where some are left over, of the last ones, which may be in two products.
fn products(b: &mut Build<'_>, beats: &[Vec<Value>], together: usize) -> Vec<Vec<Value>> {
    let bits = beats[0].len();
    let first = |product: usize| (product * together).min(bits - together);
    let count = bits.div_ceil(together);
    let factors: Vec<Value> = (0..together)
        .map(|j| {
            let of = |bits: &Vec<Value>| (0..count).map(|p| bits[first(p) + j]).collect::<Vec<Value>>();
            b.stack(&beats.iter().flat_map(of).collect::<Vec<Value>>())
        })
        .collect();
    let (last, others) = factors.split_last().unwrap_or_else(|| unreachable!("there are bits"));
    let made = b.choose_every(others, *last);
    (0..beats.len()).map(|i| (0..count).map(|p| b.row(made, i * count + p)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpret::{NoCoins, interpret};
    use crate::ir::{Node, Output, PLAN_VERSION, Plan, Type};
    use privet_ring::{Ring, Tensor};
    use std::collections::BTreeMap;

    /// All numbers of bits that are multiplied at once, with ties.
    #[test]
    fn every_way_to_multiply_bits_has_the_largest_as_its_winner() {
        let (n, ring) = (50, Ring::new(9));
        for (players, together) in (2..=16).flat_map(|players| TOGETHER.map(|most| (players, most))) {
            let ty = Type { shape: vec![players, n], bits: 9, frac: 0 };
            let op = Op::Input { name: "x".into(), owner: "o".into(), limit: 1.0 };
            let nodes = vec![Node { op, inputs: vec![], ty: ty.clone(), layer: String::new(), form: None }];
            let (name, outputs, updates) = (String::new(), vec![], vec![]);
            let mut plan = Plan { version: PLAN_VERSION, name, batch: players, nodes, outputs, updates };
            let mut b = Build::new(&mut plan, "");
            let x = b.value(0);
            let y = winner_by(&mut b, x, together);
            plan.outputs.push(Output { value: y.id, name: "y".into(), to: "r".into() });
            plan.check().unwrap();
            let numbers: Vec<i64> = (0..(players * n) as i64).map(|i| i * i * 7919 % 37 % 6 - 3).collect();
            let data = numbers.iter().map(|&v| ring.wrap(v as u64)).collect();
            let inputs = BTreeMap::from([("x".to_string(), Tensor::new(ty.shape, data).unwrap())]);
            let found = interpret(&plan, &inputs, &BTreeMap::new(), &mut NoCoins).unwrap();
            for (at, &y) in found[0].data().iter().enumerate() {
                let largest = (0..players).map(|i| numbers[i * n + at]).max();
                assert_eq!(Some(ring.signed(y)), largest, "{players} players, {together}");
            }
        }
    }

    /// Every schedule, numbers of players that leave some over, ties, and the ends of what may be compared.
    #[test]
    fn every_game_has_the_largest_as_its_winner() {
        let (outer, inner, ring) = (2, 3, Ring::new(9));
        for extent in [1, 2, 3, 4, 5, 7, 8, 9, 17, 64, 67] {
            for (first, players) in FIRST.flat_map(|log| PLAYERS.map(|players| (1 << log, players))) {
                let ty = Type { shape: vec![outer, extent, inner], bits: 9, frac: 0 };
                let op = Op::Input { name: "x".into(), owner: "o".into(), limit: 1.0 };
                let nodes =
                    vec![Node { op, inputs: vec![], ty: ty.clone(), layer: String::new(), form: None }];
                let (name, outputs, updates) = (String::new(), vec![], vec![]);
                let mut plan = Plan { version: PLAN_VERSION, name, batch: outer, nodes, outputs, updates };
                let mut b = Build::new(&mut plan, "");
                let x = b.value(0);
                let left = in_twos(&mut b, x, first.min(extent));
                let y = in_games(&mut b, left, players);
                plan.outputs.push(Output { value: y.id, name: "y".into(), to: "r".into() });
                plan.check().unwrap();
                let numbers: Vec<i64> = (0..ty.len() as i64)
                    .map(|i| match i * 7919 % 11 {
                        0 => 127,
                        1 => -127,
                        _ => (i * i * 31 + 5 * i) % 9 - 4,
                    })
                    .collect();
                let data = numbers.iter().map(|&v| ring.wrap(v as u64)).collect();
                let inputs = BTreeMap::from([("x".to_string(), Tensor::new(ty.shape, data).unwrap())]);
                let found = interpret(&plan, &inputs, &BTreeMap::new(), &mut NoCoins).unwrap();
                for (at, &y) in found[0].data().iter().enumerate() {
                    let line = |j: usize| numbers[(at / inner * extent + j) * inner + at % inner];
                    let largest = (0..extent).map(line).max();
                    assert_eq!(Some(ring.signed(y)), largest, "{extent} {first} {players:?}");
                }
            }
        }
    }
}
