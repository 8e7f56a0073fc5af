//! The plain definition: one comparison, a bit a plane, to be believed by reading. It branches on secrets, so it serves tests
//! and reading only.

use super::{Chunks, Group, Level};

/// The chunks of `v`, from the top.
fn digits(chunks: &Chunks, v: u64) -> Vec<usize> {
    let mut shift = chunks.bits();
    let digit = |&size: &u32| {
        shift -= size;
        (v >> shift) as usize & ((1 << size) - 1)
    };
    chunks.sizes.iter().map(digit).collect()
}

/// The dealer's tables: of every chunk its unary code, `1{v < chunk}` for v = 0, 1, ... up to the largest but one.
pub fn tables(chunks: &Chunks, r: u64) -> Vec<bool> {
    let digits = digits(chunks, r).into_iter().zip(&chunks.sizes);
    digits.flat_map(|(digit, size)| (0..(1 << size) - 1).map(move |v| v < digit)).collect()
}

/// One party's shares of `lt = 1{X < chunk}` and `eq = 1{X = chunk}` of every chunk at the public chunk X, from its shares
/// of the tables: `lt` is the table at X (nothing is above the largest X), and `eq` the step there, as the code is 1 below.
pub fn leaves(chunks: &Chunks, leads: bool, x: u64, tables: &[bool]) -> Vec<bool> {
    let (mut rest, mut out) = (tables, Vec::new());
    for (i, (at, size)) in digits(chunks, x).into_iter().zip(&chunks.sizes).enumerate() {
        let (table, below) = rest.split_at((1 << size) - 1);
        rest = below;
        let lt = at < table.len() && table[at];
        let before = if at == 0 { leads } else { table[at - 1] };
        if !chunks.equal {
            out.push(lt);
        }
        if chunks.equal || i + 1 < chunks.sizes.len() {
            out.push(lt ^ before);
        }
    }
    out
}

/// The variables that a set of bits names.
fn members(set: usize) -> impl Iterator<Item = usize> {
    (0..usize::BITS as usize).filter(move |j| set >> j & 1 == 1)
}

/// Sets of variables whose product with nothing is dealt: two and more of them.
fn alone(group: &Group) -> impl Iterator<Item = usize> {
    (0..1usize << group.variables()).filter(|set| set.count_ones() >= 2)
}

/// Items and sets of variables above them whose product with the item's b is dealt.
fn with_item(group: &Group) -> impl Iterator<Item = (usize, usize)> {
    let items = if group.equal { 0 } else { group.size };
    (0..items).rev().flat_map(|i| (1..1 << i).map(move |set| (i, set)))
}

/// The dealer's products of a level's masks.
pub fn products(level: &Level, masks: &[bool]) -> Vec<bool> {
    let mut out = Vec::new();
    for group in level.each() {
        let all = |set: usize| members(set).all(|j| masks[group.eq(j)]);
        out.extend(alone(&group).map(all));
        out.extend(with_item(&group).map(|(i, set)| masks[group.lt(i)] && all(set)));
    }
    out
}

/// One party's shares of the next items, `lt = XOR_i lt_i AND_(j<i) eq_j` and `eq = AND_j eq_j` of every group, from the
/// opened `lt_i ^ b_i` and `eq_j ^ a_j`, its shares of the products, and its shares of the masks.
pub fn combine(level: &Level, leads: bool, opened: &[bool], products: &[bool], masks: &[bool]) -> Vec<bool> {
    let (mut dealt, mut out) = (products.iter().copied(), Vec::new());
    for group in level.each() {
        let alone: Vec<(usize, bool)> = alone(&group).zip(&mut dealt).collect();
        let with_item: Vec<((usize, usize), bool)> = with_item(&group).zip(&mut dealt).collect();
        // the share of a product of a's
        let of = |set: usize| match set.count_ones() {
            0 => leads,
            1 => masks[group.eq(set.trailing_zeros() as usize)],
            _ => alone.iter().find(|(s, _)| *s == set).expect("dealt").1,
        };
        let with = |i: usize, set: usize| match set {
            0 => masks[group.lt(i)],
            _ => with_item.iter().find(|(key, _)| *key == (i, set)).expect("dealt").1,
        };
        // what is public before the product of the masks `set` in the product of the first i `eq`
        let coefficient = |i: usize, set: usize| members(((1 << i) - 1) & !set).all(|j| opened[group.eq(j)]);
        let sum = |terms: &mut dyn Iterator<Item = bool>| terms.fold(false, |a, b| a ^ b);
        if !group.equal {
            out.push(sum(&mut (0..group.size)
                .flat_map(|i| (0..1usize << i).map(move |set| (i, set)))
                .map(|(i, set)| coefficient(i, set) && ((opened[group.lt(i)] && of(set)) ^ with(i, set)))));
        }
        if group.equal || !group.last {
            let g = group.size;
            out.push(sum(&mut (0..1usize << g).map(|set| coefficient(g, set) && of(set))));
        }
    }
    out
}
