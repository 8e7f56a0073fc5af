use std::num::NonZero;
use std::thread;

/// Multiplications below which threads cost more than they save.
const WORTH_A_THREAD: usize = 1 << 20;

/// Run `work` on every item, on all cores when `macs` multiplications make it worthwhile.
pub(super) fn for_each<T: Send>(macs: usize, items: Vec<T>, work: impl Fn(T) + Sync) {
    let threads = threads(macs);
    if threads == 1 || items.len() < 2 {
        return items.into_iter().for_each(work);
    }
    let share = items.len().div_ceil(threads);
    let mut items = items.into_iter();
    thread::scope(|scope| {
        loop {
            let batch: Vec<T> = items.by_ref().take(share).collect();
            if batch.is_empty() {
                return;
            }
            scope.spawn(|| batch.into_iter().for_each(&work));
        }
    });
}

/// Threads for `macs` multiplications.
pub(super) fn threads(macs: usize) -> usize {
    if macs < WORTH_A_THREAD { 1 } else { thread::available_parallelism().map_or(1, NonZero::get) }
}
