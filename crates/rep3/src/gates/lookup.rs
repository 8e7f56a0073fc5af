//! Public tables at a secret place: the place's bits, and from them for each value of one or two digits whether it is there, as a
//! number. Over one digit a table is a public sum of these; over a second one an inner product, which costs one element.

use super::bits::to_ring;
use super::digits;
use crate::context::Party;
use crate::gate::{Gate, Held};
use crate::linear::dots;
use crate::local::sum;
use crate::planes::Words;
use crate::price::lookup::{sizes, width};
use crate::price::{Moves, Setting};
use crate::value::Value;
use crate::{RunError, Share};
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

/// A line of tables: entries by the value of a digit, less those of another line.
struct Line {
    /// Where the entries stand, by value. Nothing says that the last value is there.
    indices: Vec<usize>,
    /// Where those stand that are taken off; empty if nothing is.
    less: Vec<usize>,
}

impl Line {
    /// The entry of value `t`, of which `entry` tells what stands at an index.
    fn entry(&self, t: usize, entry: impl Fn(usize) -> u64) -> u64 {
        entry(self.indices[t]).wrapping_sub(self.less.get(t).map_or(0, |index| entry(*index)))
    }

    /// The last value.
    fn rest(&self) -> usize {
        self.indices.len() - 1
    }
}

/// What stands on a line at the values that so many bits tell, if at most one of them is 1: `rest + sum over t of bits[t] (entry(t) - rest)`,
/// `rest` being the entry where no bit is 1. The bits are those of `n` elements one after the other; so are the columns.
fn chosen(cx: &Party, to: Ring, n: usize, bits: &Share, entries: &Entries, line: &Line) -> Share {
    // a public number is added to component 0
    let first = [cx.id.index() == 0, cx.id.next().index() == 0];
    let [own, next] = [(&bits.own, first[0]), (&bits.next, first[1])].map(|(bits, first)| {
        let bits = &bits[..line.rest() * n];
        match entries {
            Entries::Alike(tables) => alike(cx, to, n, bits, first, tables, line),
            Entries::Each(columns, entry) => each(to, n, bits, first, entry, *columns, line),
        }
    });
    Share::new(own, next)
}

/// The same of one component where entries are the same for all elements: sums by public weights.
fn alike(
    cx: &Party,
    to: Ring,
    n: usize,
    bits: &[u64],
    first: bool,
    tables: &[Vec<i64>],
    line: &Line,
) -> Vec<u64> {
    let mut weights = Vec::with_capacity(tables.len() * line.rest());
    let mut out = Vec::with_capacity(tables.len() * n);
    for table in tables {
        let entry = |t: usize| line.entry(t, |index| table[index] as u64);
        let rest = entry(line.rest());
        weights.extend((0..line.rest()).map(|t| entry(t).wrapping_sub(rest)));
        out.resize(out.len() + n, if first { rest } else { 0 });
    }
    let rows: Vec<&[u64]> = if n == 0 { vec![] } else { bits.chunks_exact(n).collect() };
    cx.device.add_weighted(&weights, &rows, &mut out);
    out.iter_mut().for_each(|y| *y = to.wrap(*y));
    out
}

/// The same of one component where every element has entries of its own.
fn each(
    to: Ring,
    n: usize,
    bits: &[u64],
    first: bool,
    entry: &dyn Fn(usize, usize, usize) -> u64,
    columns: usize,
    line: &Line,
) -> Vec<u64> {
    let mut out = Vec::with_capacity(columns * n);
    for column in 0..columns {
        out.extend((0..n).map(|i| {
            let of = |t: usize| line.entry(t, |index| entry(column, index, i));
            let rest = of(line.rest());
            let start = if first { rest } else { 0 };
            let more = (0..line.rest()).map(|t| bits[t * n + i].wrapping_mul(of(t).wrapping_sub(rest)));
            to.wrap(more.fold(start, u64::wrapping_add))
        }));
    }
    out
}

/// The sum of planes of which at most one has a bit set at each place.
fn united(planes: &[Words], group: &[usize]) -> Words {
    let (first, others) = group.split_first().unwrap_or_else(|| unreachable!("no group is empty"));
    others.iter().fold(planes[*first].clone(), |sum, other| sum.xor(&planes[*other]))
}

/// Entries at the index of these bits, for `n` elements: column after column.
pub(super) fn read(
    cx: &mut Party,
    bits: &[Words],
    n: usize,
    to: Ring,
    entries: &Entries,
) -> Result<Share, RunError> {
    let (count, columns) = (bits.len() as u32, entries.columns());
    let groups = entries.groups(1 << count);
    let [low, high] = sizes(count, columns as u64, groups.len() as u64);
    if high == 0 {
        let hot = digits::one_hots(cx, &[low], bits)?;
        let planes: Vec<Words> =
            groups[..groups.len() - 1].iter().map(|group| united(&hot[0], group)).collect();
        let numbers = to_ring(cx, to, &digits::joined(&planes, n))?;
        let line = Line { indices: groups.iter().map(|group| group[0]).collect(), less: vec![] };
        return Ok(chosen(cx, to, n, &numbers, entries, &line));
    }
    let hot = digits::one_hots(cx, &[low, high], bits)?;
    let [below, above] = [low, high].map(|size| (1usize << size) - 1);
    let planes = [&hot[0][..below], &hot[1][..above]].concat();
    let numbers = to_ring(cx, to, &digits::joined(&planes, n))?;
    // the line of each value of the high digit, less that of the last one
    let line = |h: usize| (0..=below).map(|l| h << low | l).collect::<Vec<usize>>();
    let last = chosen(cx, to, n, &numbers, entries, &Line { indices: line(above), less: vec![] });
    let lines: Vec<Share> = (0..above)
        .map(|h| chosen(cx, to, n, &numbers, entries, &Line { indices: line(h), less: line(above) }))
        .collect();
    let upper: Vec<Share> = (0..above)
        .map(|h| {
            let row = |x: &[u64]| x[(below + h) * n..(below + h + 1) * n].repeat(columns);
            Share::new(row(&numbers.own), row(&numbers.next))
        })
        .collect();
    Ok(sum(to, &last, &dots(cx, to, &lines, &upper)?))
}

/// [`read`], a share for each column.
pub(super) fn columns(
    cx: &mut Party,
    bits: &[Words],
    n: usize,
    to: Ring,
    entries: &Entries,
) -> Result<Vec<Share>, RunError> {
    let all = read(cx, bits, n, to, entries)?;
    Ok((0..entries.columns()).map(|column| all.part(column * n..(column + 1) * n)).collect())
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
        read(cx, &bits, x.len(), to, &Entries::Alike(tables))
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
