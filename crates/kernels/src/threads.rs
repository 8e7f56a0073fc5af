//! Work on several threads. They begin with the first work and stay, as a new thread costs as much as many a kernel.

use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::available_parallelism;

/// A thread for every core but the caller's. What there are too many parts for waits; nothing if no thread can be had.
static OTHERS: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let others = available_parallelism().map_or(1, NonZero::get).saturating_sub(1).max(1);
    let name = |i| format!("privet-work-{i}");
    ThreadPoolBuilder::new().num_threads(others).thread_name(name).build().ok()
});

/// Run `work` on every part, the first on this thread and the others where a thread is free; results in order. No part may wait for another.
pub fn in_parallel<T: Send, R: Send>(parts: impl Iterator<Item = T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let mut parts = parts;
    let Some(first) = parts.next() else { return Vec::new() };
    let others: Vec<T> = parts.collect();
    let pool = if others.is_empty() { None } else { OTHERS.as_ref() };
    let Some(pool) = pool else { return std::iter::once(first).chain(others).map(work).collect() };
    let mut results: Vec<Option<R>> = std::iter::repeat_with(|| None).take(others.len() + 1).collect();
    let (own, rest) = results.split_at_mut(1);
    pool.in_place_scope(|scope| {
        let work = &work;
        for (part, result) in others.into_iter().zip(rest) {
            scope.spawn(move |_| *result = Some(work(part)));
        }
        own[0] = Some(work(first));
    });
    results
        .into_iter()
        .map(|result| result.unwrap_or_else(|| unreachable!("a scope waits for its work")))
        .collect()
}

/// Do both, side by side if `apart` and where a thread is free. Neither may wait for the other.
pub fn in_two<A: Send, B>(
    apart: bool,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B,
) -> (A, B) {
    let pool = if apart { OTHERS.as_ref() } else { None };
    let Some(pool) = pool else { return (first(), second()) };
    let mut result = None;
    let second = pool.in_place_scope(|scope| {
        scope.spawn(|_| result = Some(first()));
        second()
    });
    (result.unwrap_or_else(|| unreachable!("a scope waits for its work")), second)
}

/// `count` items in at most `parts` contiguous ranges of nearly equal length, none of them empty.
pub(crate) fn split(count: usize, parts: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let each = count.div_ceil(parts.max(1)).max(1);
    (0..count).step_by(each).map(move |first| first..(first + each).min(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn results_are_in_order_whatever_parts_there_are() {
        for parts in [0, 1, 2, 7, 300] {
            let expected: Vec<usize> = (0..parts).map(|i| 3 * i).collect();
            assert_eq!(in_parallel(0..parts, |i| 3 * i), expected);
        }
        // within each other's work as well
        let sums = in_parallel(0..9, |i| in_parallel(0..9, |j| i * j).into_iter().sum::<usize>());
        assert_eq!(sums, (0..9).map(|i| 36 * i).collect::<Vec<_>>());
        assert!([false, true].iter().all(|apart| in_two(*apart, || 1, || "two") == (1, "two")));
    }

    /// Else a service would go on with what a kernel did not finish; and the threads serve whoever comes next.
    #[test]
    fn a_panic_in_any_part_reaches_the_caller() {
        for bad in [0, 1, 5] {
            let work = || in_parallel(0..6, |i| assert_ne!(i, bad, "on purpose"));
            assert!(catch_unwind(AssertUnwindSafe(work)).is_err(), "part {bad}");
        }
        for (first, second) in [(true, false), (false, true)] {
            let work = || in_two(true, || assert!(!first, "on purpose"), || assert!(!second, "on purpose"));
            assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
        }
        assert_eq!(in_parallel(0..4, |i| i), [0, 1, 2, 3]);
    }
}
