//! Which code an input reached, from the counters that LLVM's sanitizer coverage places (`scripts/fuzz.sh` sets the
//! flags). Without those flags there are no counters, and every input looks alike.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Counters of one compiled unit: address and number. They live as long as the process.
static UNITS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Called by instrumented units before `main`, with their counters.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    let unit = (start as usize, stop as usize - start as usize);
    let mut units = UNITS.lock().unwrap_or_else(|e| e.into_inner());
    if unit.1 > 0 && !units.contains(&unit) {
        units.push(unit);
    }
}

/// What all inputs so far have reached.
pub struct Coverage {
    units: Vec<(usize, usize)>,
    /// For every counter, the classes of counts that were seen, a bit each.
    seen: Vec<u8>,
}

impl Coverage {
    /// Nothing yet.
    pub fn new() -> Self {
        let units = UNITS.lock().unwrap_or_else(|e| e.into_inner()).clone();
        let total = units.iter().map(|u| u.1).sum();
        Coverage { units, seen: vec![0; total] }
    }

    /// Whether the program was built with counters.
    pub fn is_instrumented(&self) -> bool {
        !self.seen.is_empty()
    }

    /// Forgets counts before an input.
    pub fn start(&mut self) {
        for unit in &self.units {
            for word in words(unit) {
                if word.load(Relaxed) != 0 {
                    word.store(0, Relaxed);
                }
            }
        }
    }

    /// Whether the input reached something new, or something clearly more often than any before.
    pub fn is_new(&mut self) -> bool {
        let (mut new, mut base) = (false, 0);
        for unit in &self.units {
            // Most words are zero, so reading eight counters at a time is what makes this fast.
            for (w, word) in words(unit).iter().enumerate() {
                let counts = word.load(Relaxed).to_ne_bytes();
                if counts == [0; 8] {
                    continue;
                }
                for (seen, count) in self.seen[base + 8 * w..].iter_mut().zip(counts) {
                    if count != 0 {
                        let class = 1 << count.ilog2();
                        new |= *seen & class == 0;
                        *seen |= class;
                    }
                }
            }
            base += unit.1;
        }
        new
    }

    /// Counters reached so far.
    pub fn reached(&self) -> usize {
        self.seen.iter().filter(|s| **s != 0).count()
    }
}

impl Default for Coverage {
    fn default() -> Self {
        Self::new()
    }
}

/// A unit's counters, eight at a time; a few at its ends, which are not aligned, are left out.
fn words(&(start, len): &(usize, usize)) -> &'static [AtomicU64] {
    // SAFETY: LLVM reserves these bytes for counters, readable and writable for the whole run of the program; any bytes are
    // a valid `AtomicU64`. Instrumented code writes them without synchronisation, in this thread only.
    unsafe { std::slice::from_raw_parts(start as *const u8, len).align_to::<AtomicU64>().1 }
}
