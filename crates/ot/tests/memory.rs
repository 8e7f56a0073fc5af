//! Memory stays flat however many transfers are made: counted at the allocator, one test alone in its process.

use privet_net::Step;
use privet_ot::params::B10;
use privet_ot::{Pair, Source};
use privet_prg::Seed;
use privet_testkit::Mesh;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(NOW.fetch_add(layout.size(), SeqCst) + layout.size(), SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Most bytes that both parties hold while `rounds` rounds are streamed, both ways.
fn most(rounds: usize) -> usize {
    MOST.store(NOW.load(SeqCst), SeqCst);
    let before = NOW.load(SeqCst);
    Mesh::new(2).run(|links| {
        let (step, secret) = (Step::new(1, "stream"), Seed::from_bytes([links.me() as u8; 16]));
        let channel = links.to(1 - links.me());
        let mut pair = Pair::start(channel, &step, Source::Ferret(B10), &secret).unwrap();
        let mut left = rounds * B10.usable();
        while left > 0 {
            let here = left.min(1 << 14);
            pair.prepare(channel, &step, here, here).unwrap();
            drop(pair.sender.take(here).unwrap().into_pads());
            drop(pair.receiver.take(here).unwrap().into_pads());
            left -= here;
        }
    });
    MOST.load(SeqCst) - before
}

#[test]
fn six_rounds_take_no_more_memory_than_two() {
    let (two, six) = (most(2), most(6));
    // If parties kept the tables of rounds that have ended, four more rounds would cost 16 tables. Parties are not in
    // step, so the most that both hold at once varies by a few.
    let table = 16 * B10.k();
    assert!(six < two + 8 * table, "{two} bytes for two rounds, {six} for six");
    // A table, a reserve and the next round of each direction at each party, and what is on the way.
    assert!(six < 4 * 10 * table, "{six} bytes");
}
