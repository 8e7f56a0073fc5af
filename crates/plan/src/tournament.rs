//! Balanced tournaments: which pairs meet in which round of a maximum, the same for every protocol.
//!
//! A tournament maps a flat vector of current candidates to the next one, level by level. The interpreter
//! and every protocol family walk the same levels, so that they agree even where a difference wraps.

use crate::strided;
use privet_ring::{Pool2d, Ring};
use std::collections::HashMap;

/// Levels to apply in order; the last one's result is the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tournament {
    /// Elements before the first level.
    pub input_len: usize,
    /// The levels; none when there is nothing to do.
    pub levels: Vec<Level>,
}

/// One level over candidates laid out as `[outer, from, inner]`: the same pairs meet on every line.
///
/// Usage: [`Level::differences`] of all pairs at once, their ReLU, then [`Level::winners`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Lines before the axis.
    pub outer: usize,
    /// Lines after the axis.
    pub inner: usize,
    /// Candidates on a line before the level.
    pub from: usize,
    /// Positions on a line that meet, `(left, right)`; each pair once. Empty where candidates only move.
    pub pairs: Vec<(u32, u32)>,
    /// The candidates on a line after the level.
    pub slots: Vec<Slot>,
}

/// Where a candidate of the next level comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// The winner of `pairs[i]`.
    Winner(u32),
    /// Position `i` of the line, without a game.
    Copy(u32),
}

impl Tournament {
    /// Pairs of all levels, that is, the comparisons that the tournament costs.
    pub fn pair_count(&self) -> usize {
        self.levels.iter().map(Level::pair_len).sum()
    }

    /// Elements after the last level.
    pub fn output_len(&self) -> usize {
        self.levels.last().map_or(self.input_len, Level::output_len)
    }
}

impl Level {
    /// Elements that go in: `outer * from * inner`.
    pub fn input_len(&self) -> usize {
        self.outer * self.from * self.inner
    }

    /// Pairs on all lines.
    pub fn pair_len(&self) -> usize {
        self.outer * self.pairs.len() * self.inner
    }

    /// Elements that come out.
    pub fn output_len(&self) -> usize {
        self.outer * self.slots.len() * self.inner
    }

    /// What the left one of every pair is more than the right one, modulo 2^k; `[outer, pairs, inner]`.
    pub fn differences(&self, ring: Ring, current: &[u64]) -> Vec<u64> {
        self.meet(current, |left, right| ring.wrap(left.wrapping_sub(right)))
    }

    /// The next candidates: of every pair the right one plus `more` of it (`[outer, pairs, inner]`), modulo 2^k.
    pub fn winners(&self, ring: Ring, current: &[u64], more: &[u64]) -> Vec<u64> {
        self.next(current, more, |right, more| ring.wrap(right.wrapping_add(more)))
    }

    /// A function of the left and the right one of every pair, `[outer, pairs, inner]`.
    pub fn meet<T: Copy, U>(&self, current: &[T], f: impl Fn(T, T) -> U) -> Vec<U> {
        debug_assert_eq!(current.len(), self.input_len());
        let mut out = Vec::with_capacity(self.pair_len());
        for line in current.chunks(self.line()) {
            let at = |p: u32| p as usize * self.inner;
            if self.inner == 1 {
                out.extend(self.pairs.iter().map(|(left, right)| f(line[at(*left)], line[at(*right)])));
                continue;
            }
            for (left, right) in &self.pairs {
                let right = &line[at(*right)..][..self.inner];
                out.extend(line[at(*left)..].iter().zip(right).map(|(left, right)| f(*left, *right)));
            }
        }
        out
    }

    /// The next candidates: of every pair a function of its right one and of its result (`[outer, pairs, inner]`).
    pub fn next<T: Copy>(&self, current: &[T], results: &[T], f: impl Fn(T, T) -> T) -> Vec<T> {
        debug_assert_eq!((current.len(), results.len()), (self.input_len(), self.pair_len()));
        let mut out = Vec::with_capacity(self.output_len());
        // lines without a pair have no results
        let mut results = results.chunks((self.pairs.len() * self.inner).max(1));
        for line in current.chunks(self.line()) {
            let results = results.next().unwrap_or(&[]);
            let right = |i: u32| self.pairs[i as usize].1 as usize * self.inner;
            if self.inner == 1 {
                out.extend(self.slots.iter().map(|slot| match *slot {
                    Slot::Winner(i) => f(line[right(i)], results[i as usize]),
                    Slot::Copy(i) => line[i as usize],
                }));
                continue;
            }
            for slot in &self.slots {
                match *slot {
                    Slot::Winner(i) => {
                        let results = &results[i as usize * self.inner..][..self.inner];
                        out.extend(
                            line[right(i)..].iter().zip(results).map(|(right, result)| f(*right, *result)),
                        );
                    }
                    Slot::Copy(i) => out.extend_from_slice(&line[i as usize * self.inner..][..self.inner]),
                }
            }
        }
        out
    }

    /// Elements of a line before the level: those of no candidates are in lines of none.
    fn line(&self) -> usize {
        (self.from * self.inner).max(1)
    }
}

/// The tournaments of a max pool over NCHW `shape`: first over each window's rows (the vertical axis), giving
/// `[n, c, output height, w]`, then over its columns. Padding takes no part.
pub fn max_pool(window: &Pool2d, shape: &[usize]) -> [Tournament; 2] {
    let input = [shape[2], shape[3]];
    let output = window.output(input);
    let groups = |axis: usize| -> Vec<Vec<u32>> {
        (0..output[axis]).map(|o| window.window(axis, o, input[axis]).map(|p| p as u32).collect()).collect()
    };
    let planes = shape[0] * shape[1];
    [build(planes, input[0], input[1], groups(0)), build(planes * output[0], input[1], 1, groups(1))]
}

/// The tournament of a maximum along `dim`.
pub fn argmax(shape: &[usize], dim: usize) -> Tournament {
    let (outer, extent, inner) = strided::split(shape, dim);
    build(outer, extent, inner, vec![(0..extent as u32).collect()])
}

/// Position along `dim` of every element of `shape`: what [`argmax`]'s tournament carries beside the values.
pub fn positions(shape: &[usize], dim: usize) -> Vec<u64> {
    let (outer, extent, inner) = strided::split(shape, dim);
    (0..outer).flat_map(|_| (0..extent as u64).flat_map(move |p| std::iter::repeat_n(p, inner))).collect()
}

/// Tournaments inside every group of positions, neighbours first, the odd one out moving up unplayed. Pairs
/// that several groups share are played once.
fn build(outer: usize, extent: usize, inner: usize, mut groups: Vec<Vec<u32>>) -> Tournament {
    let mut levels = Vec::new();
    let mut from = extent;
    let done = |groups: &[Vec<u32>], from: usize| {
        groups.len() == from && groups.iter().enumerate().all(|(i, g)| g[..] == [i as u32])
    };
    while !done(&groups, from) {
        let (mut pairs, mut slots) = (Vec::new(), Vec::new());
        let (mut pair_ids, mut slot_ids) = (HashMap::new(), HashMap::new());
        let last = groups.iter().all(|g| g.len() <= 2);
        for group in &mut groups {
            let next = group.chunks(2).map(|players| {
                let slot = match *players {
                    [left, right] => Slot::Winner(*pair_ids.entry((left, right)).or_insert_with(|| {
                        pairs.push((left, right));
                        pairs.len() as u32 - 1
                    })),
                    _ => Slot::Copy(players[0]),
                };
                let mut place = || {
                    slots.push(slot);
                    slots.len() as u32 - 1
                };
                // the last level lays results out in the order of the groups, equal ones included
                if last { place() } else { *slot_ids.entry(slot).or_insert_with(place) }
            });
            *group = next.collect();
        }
        let made = slots.len();
        levels.push(Level { outer, inner, from, pairs, slots });
        from = made;
    }
    Tournament { input_len: outer * extent * inner, levels }
}
