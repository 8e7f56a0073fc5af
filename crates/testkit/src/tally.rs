//! How many attempts ended how, and many attempts at once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Counts of `N` ends by kind of attempt, from any number of threads. It prints one line a kind.
#[derive(Debug)]
pub struct Tally<K, const N: usize>(Mutex<BTreeMap<K, [usize; N]>>);

impl<K: Ord, const N: usize> Default for Tally<K, N> {
    fn default() -> Self {
        Tally(Mutex::new(BTreeMap::new()))
    }
}

impl<K: Ord + Clone, const N: usize> Tally<K, N> {
    /// One more attempt of this kind that ended so.
    pub fn count(&self, kind: K, end: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_insert([0; N])[end] += 1;
    }

    /// The counts by kind.
    pub fn counts(&self) -> BTreeMap<K, [usize; N]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The counts of all kinds together.
    pub fn total(&self) -> [usize; N] {
        let counts = self.counts();
        std::array::from_fn(|end| counts.values().map(|ends| ends[end]).sum())
    }
}

impl<K: Ord + Clone + fmt::Debug, const N: usize> fmt::Display for Tally<K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts().iter().try_for_each(|(kind, ends)| writeln!(f, "  {kind:?}: {ends:?}"))
    }
}

/// Does `work` on every number below `n`, by so many threads, each taking the next number when it is done with one.
pub fn spread(n: usize, threads: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= n {
                        break;
                    }
                    work(i);
                }
            });
        }
    });
}
