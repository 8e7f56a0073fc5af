//! Work that nobody waits for yet. A thread that gives way to all others does it, where a core is free; who wants the results does what is left.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, OnceLock};

/// Results of some steps, each of which stands for itself. Dropped, the steps that did not begin are not done.
pub struct Aside<T>(Arc<Steps<T>>);

struct Steps<T> {
    results: Vec<OnceLock<T>>,
    /// Whether who wants the results does what is left, or nobody wants them any more.
    taken: AtomicBool,
    work: Box<dyn Fn(usize) -> T + Send + Sync>,
}

impl<T: Clone + Send + Sync + 'static> Aside<T> {
    /// Begin with so many steps. Each is to be short: it may be done twice, and the machine is asked for nothing else meanwhile where a core is free.
    pub fn begin(steps: usize, work: impl Fn(usize) -> T + Send + Sync + 'static) -> Aside<T> {
        let results = std::iter::repeat_with(OnceLock::new).take(steps).collect();
        let steps = Arc::new(Steps { results, taken: AtomicBool::new(false), work: Box::new(work) });
        if let Some(thread) = &*THREAD {
            // A thread that ended leaves all steps to who wants their results.
            let _ = thread.send(steps.clone());
        }
        Aside(steps)
    }

    /// All results, in order. Steps that are not done are done here, also one that is at hand: its thread may get no core for long.
    pub fn finish(self) -> Vec<T> {
        let Steps { results, taken, work } = &*self.0;
        taken.store(true, Ordering::Relaxed);
        // the last first, so that the one at hand may be done by then
        let last_first = results.iter().enumerate().rev();
        let mut all: Vec<T> =
            last_first.map(|(i, result)| result.get().cloned().unwrap_or_else(|| work(i))).collect();
        all.reverse();
        all
    }
}

impl<T> Drop for Aside<T> {
    fn drop(&mut self) {
        self.0.taken.store(true, Ordering::Relaxed);
    }
}

trait Work: Send + Sync {
    fn go_on(&self);
}

impl<T: Send + Sync> Work for Steps<T> {
    fn go_on(&self) {
        for (i, result) in self.results.iter().enumerate() {
            if self.taken.load(Ordering::Relaxed) {
                return;
            }
            let _ = result.set((self.work)(i));
        }
    }
}

/// Begins with the first work and stays; nothing if it cannot be had.
static THREAD: LazyLock<Option<Sender<Arc<dyn Work>>>> = LazyLock::new(|| {
    let (sender, receiver) = channel::<Arc<dyn Work>>();
    let work = move || {
        give_way();
        for steps in receiver {
            // Who wants the results does a step again that panicked, and panics as well.
            let _ = catch_unwind(AssertUnwindSafe(|| steps.go_on()));
        }
    };
    std::thread::Builder::new().name("privet-aside".into()).spawn(work).ok().map(|_| sender)
});

/// Let this thread run where nothing else does.
fn give_way() {
    #[cfg(target_os = "linux")]
    {
        let none = libc::sched_param { sched_priority: 0 };
        // SAFETY: it sets the policy of the calling thread (0) and reads one integer. A refusal changes nothing.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &none) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::time::{Duration, Instant};

    #[test]
    fn results_are_in_order_whoever_makes_them() {
        for steps in [0, 1, 2, 100] {
            let expected: Vec<usize> = (0..steps).map(|i| i * i).collect();
            assert_eq!(Aside::begin(steps, |i| i * i).finish(), expected);
            let aside = Aside::begin(steps, |i| i * i);
            let patience = Instant::now() + Duration::from_secs(60);
            while aside.0.results.iter().any(|result| result.get().is_none()) {
                assert!(Instant::now() < patience, "the thread does what is begun");
                std::thread::yield_now();
            }
            assert_eq!(aside.finish(), expected);
        }
    }

    /// A step at hand on a thread that gets no core holds up nobody; and steps of a dropped one are not begun.
    #[test]
    fn nobody_waits_for_a_step_at_hand() {
        let (at_hand, go_on) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let barriers = (at_hand.clone(), go_on.clone());
        let begun = Arc::new(AtomicBool::new(false));
        let second = begun.clone();
        let of_thread = move |i| {
            if i == 0 && std::thread::current().name() == Some("privet-aside") {
                barriers.0.wait();
                barriers.1.wait();
            }
            second.fetch_or(i == 1, Ordering::Relaxed);
            i
        };
        let aside = Aside::begin(2, of_thread);
        at_hand.wait();
        assert_eq!(aside.finish(), [0, 1]);
        begun.store(false, Ordering::Relaxed);
        go_on.wait();
        // the thread comes to the next work, and did not begin the second step before
        let next = Aside::begin(1, |_| ());
        while next.0.results[0].get().is_none() {
            std::thread::yield_now();
        }
        assert!(!begun.load(Ordering::Relaxed));
    }

    #[test]
    fn a_panic_reaches_who_wants_the_results() {
        let aside = Aside::begin(3, |i| assert_ne!(i, 1, "on purpose"));
        assert!(catch_unwind(AssertUnwindSafe(|| aside.finish())).is_err());
        assert_eq!(Aside::begin(2, |i| i).finish(), [0, 1]);
    }
}
