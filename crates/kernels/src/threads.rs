/// Run `work` on every part, the first on this thread and each other on its own; results in order.
pub fn in_parallel<T: Send, R: Send>(parts: impl Iterator<Item = T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let mut parts = parts;
    let Some(first) = parts.next() else { return Vec::new() };
    std::thread::scope(|s| {
        let work = &work;
        let others: Vec<_> = parts.map(|p| s.spawn(move || work(p))).collect();
        let mut results = vec![work(first)];
        for o in others {
            results.push(o.join().unwrap_or_else(|e| std::panic::resume_unwind(e)));
        }
        results
    })
}

/// `count` items in at most `parts` contiguous ranges of nearly equal length, none of them empty.
pub(crate) fn split(count: usize, parts: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let each = count.div_ceil(parts.max(1)).max(1);
    (0..count).step_by(each).map(move |first| first..(first + each).min(count))
}
