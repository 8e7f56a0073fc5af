//! Public tables at a secret place: the place's bits, and from them for each value of one or two digits whether it is there, as a
//! number. Over one digit a table is a public sum of these; over a second one an inner product, which costs one element.

use super::bits::to_ring;
use super::digits;
use crate::context::Party;
use crate::gate::{Gate, Held};
use crate::linear::dots;
use crate::local::{difference, sum};
use crate::planes::Words;
use crate::price::lookup::{sizes, width};
use crate::price::{Moves, Setting};
use crate::value::Value;
use crate::{RunError, Share};
use privet_kernels::LinearShape;
use privet_plan::cost::Operation;
use privet_ring::Ring;
use std::ops::Range;

/// A function of a vector of any length that gives so many columns, `width` times as few elements at a time as a gate takes.
pub(super) fn in_blocks(
    cx: &mut Party,
    x: &Share,
    [columns, width]: [usize; 2],
    mut function: impl FnMut(&mut Party, Range<usize>, &Share) -> Result<Share, RunError>,
) -> Result<Share, RunError> {
    let n = x.len();
    let limits = cx.limits.over(width);
    if n <= limits.block {
        return function(cx, 0..n, x);
    }
    let (mut own, mut next) = (vec![0; columns * n], vec![0; columns * n]);
    for block in limits.blocks(n) {
        if block.start > 0 {
            cx.verify_if_large()?;
        }
        let part = |x: &[u64]| x[block.clone()].to_vec();
        let y = function(cx, block.clone(), &Share::new(part(&x.own), part(&x.next)))?;
        for (to, from) in [(&mut own, &y.own), (&mut next, &y.next)] {
            for (to, from) in to.chunks_exact_mut(n).zip(from.chunks_exact(block.len())) {
                to[block.clone()].copy_from_slice(from);
            }
        }
    }
    Ok(Share::new(own, next))
}

/// Vectors one after the other.
pub(super) fn joined<'a>(parts: impl Iterator<Item = &'a Share> + Clone) -> Share {
    let one = |pick: fn(&Share) -> &[u64]| parts.clone().flat_map(|x| pick(x).iter().copied()).collect();
    Share::new(one(|x| &x.own), one(|x| &x.next))
}

/// Equal parts of a vector.
fn parts(x: &Share, count: usize) -> Vec<Share> {
    let n = x.len() / count.max(1);
    (0..count)
        .map(|i| Share::new(x.own[i * n..(i + 1) * n].to_vec(), x.next[i * n..(i + 1) * n].to_vec()))
        .collect()
}

/// What stands in tables: columns by index.
pub(crate) enum Entries<'a> {
    /// The same for every element.
    Alike(&'a [Vec<i64>]),
    /// So many columns, by column, index and element.
    Each(usize, &'a dyn Fn(usize, usize, usize) -> u64),
}

impl Entries<'_> {
    fn columns(&self) -> usize {
        match self {
            Entries::Alike(tables) => tables.len(),
            Entries::Each(columns, _) => *columns,
        }
    }

    /// Indices with the same entries together; the last group is where most columns are 0, if they are somewhere.
    fn groups(&self, values: usize) -> Vec<Vec<usize>> {
        match self {
            Entries::Alike(tables) => groups(tables),
            Entries::Each(..) => (0..values).map(|value| vec![value]).collect(),
        }
    }
}

/// Indices of tables that have the same entries in all of them, together; those where all are 0, if there are some, come last.
pub(crate) fn groups(tables: &[Vec<i64>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(Vec<i64>, Vec<usize>)> = vec![];
    for index in 0..tables.first().map_or(0, Vec::len) {
        let entries: Vec<i64> = tables.iter().map(|table| table[index]).collect();
        match groups.iter_mut().find(|(of, _)| *of == entries) {
            Some((_, group)) => group.push(index),
            None => groups.push((entries, vec![index])),
        }
    }
    if let Some(zero) = groups.iter().position(|(entries, _)| entries.iter().all(|&entry| entry == 0)) {
        let zero = groups.remove(zero);
        groups.push(zero);
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// What stands at the values that so many bits tell, if at most one of them is 1, for a list of columns: `least + sum over t of bits[t] (entries(t) - least)`,
/// `least` being the entry where no bit is 1. The bits are `rows` of elements one after the other in `bits`; `indices` says which entries belong to
/// them, column after column, the least one last. Columns one after the other.
fn chosen(
    cx: &Party,
    to: Ring,
    n: usize,
    (bits, rows): (&Share, Range<usize>),
    entries: &Entries,
    columns: &[(usize, Vec<usize>)],
) -> Share {
    // a public number is added to component 0
    let first = [cx.id.index() == 0, cx.id.next().index() == 0];
    let [own, next] = [(&bits.own, first[0]), (&bits.next, first[1])].map(|(bits, first)| {
        let bits = &bits[rows.start * n..rows.end * n];
        match entries {
            Entries::Alike(tables) => alike(cx, to, n, bits, first, tables, columns),
            Entries::Each(_, entry) => each(to, n, bits, first, entry, columns),
        }
    });
    Share::new(own, next)
}

/// The same of one component where entries are the same for all elements: a matrix product.
fn alike(
    cx: &Party,
    to: Ring,
    n: usize,
    bits: &[u64],
    first: bool,
    tables: &[Vec<i64>],
    columns: &[(usize, Vec<usize>)],
) -> Vec<u64> {
    let mut weights = Vec::with_capacity(columns.len() * bits.len().checked_div(n).unwrap_or(0));
    let mut out = Vec::with_capacity(columns.len() * n);
    for (column, indices) in columns {
        let entry = |index: usize| tables[*column][index] as u64;
        let (least, others) = indices.split_last().unwrap_or_else(|| unreachable!("a table has entries"));
        weights.extend(others.iter().map(|index| to.wrap(entry(*index).wrapping_sub(entry(*least)))));
        out.resize(out.len() + n, if first { to.wrap(entry(*least)) } else { 0 });
    }
    if n > 0 && !bits.is_empty() {
        let shape = LinearShape::MatMul { m: columns.len(), k: bits.len() / n, n };
        let bits = cx.device.prepare(to, shape, bits);
        cx.device.linear_acc(to, shape, &weights, bits.as_ref(), &mut out);
    }
    out
}

/// The same of one component where every element has entries of its own.
fn each(
    to: Ring,
    n: usize,
    bits: &[u64],
    first: bool,
    entry: &dyn Fn(usize, usize, usize) -> u64,
    columns: &[(usize, Vec<usize>)],
) -> Vec<u64> {
    let mut out = Vec::with_capacity(columns.len() * n);
    for (column, indices) in columns {
        let (least, others) = indices.split_last().unwrap_or_else(|| unreachable!("a table has entries"));
        out.extend((0..n).map(|i| {
            let least = entry(*column, *least, i);
            let start = if first { least } else { 0 };
            let sum = others.iter().enumerate().fold(start, |sum, (t, index)| {
                let more = entry(*column, *index, i).wrapping_sub(least);
                sum.wrapping_add(bits[t * n + i].wrapping_mul(more))
            });
            to.wrap(sum)
        }));
    }
    out
}

/// The sum of planes of which at most one has a bit set at each place.
fn united(planes: &[Words], group: &[usize]) -> Words {
    let (first, others) = group.split_first().unwrap_or_else(|| unreachable!("no group is empty"));
    others.iter().fold(planes[*first].clone(), |sum, other| sum.xor(&planes[*other]))
}

/// Entries at the index of these bits, for `n` elements.
pub(super) fn read(
    cx: &mut Party,
    bits: &[Words],
    n: usize,
    to: Ring,
    entries: &Entries,
) -> Result<Vec<Share>, RunError> {
    let (count, columns) = (bits.len() as u32, entries.columns());
    let groups = entries.groups(1 << count);
    let [low, high] = sizes(count, columns as u64, groups.len() as u64);
    if high == 0 {
        let hot = digits::one_hots(cx, &[low], bits)?;
        let (rest, wanted) = groups.split_last().unwrap_or_else(|| unreachable!("a table has entries"));
        let planes: Vec<Words> = wanted.iter().map(|group| united(&hot[0], group)).collect();
        let numbers = to_ring(cx, to, &digits::joined(&planes, n))?;
        let indices: Vec<usize> = wanted.iter().chain([rest]).map(|group| group[0]).collect();
        let of: Vec<_> = (0..columns).map(|column| (column, indices.clone())).collect();
        return Ok(parts(&chosen(cx, to, n, (&numbers, 0..wanted.len()), entries, &of), columns));
    }
    let hot = digits::one_hots(cx, &[low, high], bits)?;
    let [below, above] = [low, high].map(|size| (1usize << size) - 1);
    let planes = [&hot[0][..below], &hot[1][..above]].concat();
    let numbers = to_ring(cx, to, &digits::joined(&planes, n))?;
    // the line of each value of the high digit, column after column
    let line =
        |h: usize| (0..columns).map(move |column| (column, (0..=below).map(|l| h << low | l).collect()));
    let of: Vec<(usize, Vec<usize>)> = (0..=above).flat_map(line).collect();
    let mut lines = parts(&chosen(cx, to, n, (&numbers, 0..below), entries, &of), above + 1);
    let last = lines.pop().unwrap_or_else(|| unreachable!("a line for each value"));
    let lines: Vec<Share> = lines.iter().map(|line| difference(to, line, &last)).collect();
    let upper: Vec<Share> = (0..above)
        .map(|h| {
            let row = |x: &[u64]| x[(below + h) * n..(below + h + 1) * n].repeat(columns);
            Share::new(row(&numbers.own), row(&numbers.next))
        })
        .collect();
    Ok(parts(&sum(to, &last, &dots(cx, to, &lines, &upper)?), columns))
}

/// `tables[i][x]`, table after table.
pub(crate) fn tables(
    cx: &mut Party,
    [from, to]: [Ring; 2],
    tables: &[Vec<i64>],
    x: &Share,
) -> Result<Share, RunError> {
    let width = width(from.bits(), tables.len() as u64, groups(tables).len() as u64);
    in_blocks(cx, x, [tables.len(), width], |cx, _, x| {
        let bits = digits::bits(cx, from.bits(), x)?;
        Ok(joined(read(cx, &bits, x.len(), to, &Entries::Alike(tables))?.iter()))
    })
}

/// [`privet_plan::ir::Op::Lookup`].
pub(crate) struct Tables<'a>(pub &'a [Vec<i64>]);

impl Gate for Tables<'_> {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        Ok(tables(cx, [x.from(), x.to()], self.0, &x.share(0))?.into())
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        let (tables, groups) = (self.0.len() as u64, groups(self.0).len() as u64);
        setting.tables(of.elements() / tables, of.operand_bits(), [tables, groups], of.result_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{share, value};

    #[test]
    fn tables_of_every_small_size() {
        for bits in 1..=8 {
            let (ring, x) = (Ring::new(bits), (0..1 << bits).collect::<Vec<u64>>());
            let contents: Vec<Vec<i64>> =
                (1..4i64).map(|t| (0..1i64 << bits).map(|i| i * i * t - 77).collect()).collect();
            for to in [9, 64].map(Ring::new) {
                let y = value(to, |cx| tables(cx, [ring, to], &contents, &share(cx.id, ring, &x)).unwrap());
                let expected: Vec<u64> = contents.iter().flatten().map(|&y| to.wrap(y as u64)).collect();
                assert_eq!(y, expected, "{ring} to {to}");
            }
        }
    }
}
