//! Memory of a preparation stays flat however large a node is, and that of a run is what its operands, its material and its
//! messages take: counted at the allocator, one test alone in its process.

use privet_family::keys::{KeyError, KeySource, MemoryKeys};
use privet_heot::{Cx, Given, Hints, Link, MaterialMaker, PackingAim, Session, Side, Spool, Weights};
use privet_plan::Plan;
use privet_plan::ir::{Node, Op, Output, PLAN_VERSION, Type, ValueId};
use privet_prg::Seed;
use privet_ring::Ring;
use privet_testkit::Mesh;
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

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

const RING: Ring = Ring::new(37);

/// A ReLU of n elements.
fn plan(n: usize) -> Plan {
    let ty = || Type { shape: vec![n], bits: RING.bits(), frac: 0 };
    let node = |op, inputs: Vec<ValueId>| Node { op, inputs, ty: ty(), layer: "relu".into(), form: None };
    let input = Op::Input { name: "x".into(), owner: "data_owner".into(), limit: 1.0 };
    let nodes = vec![node(input, vec![]), node(Op::Relu, vec![0])];
    let outputs = vec![Output { value: 1, name: "y".into(), to: "receiver".into() }];
    Plan { version: PLAN_VERSION, name: "relu".into(), batch: 1, nodes, outputs, updates: Vec::new() }
}

/// Most bytes that both parties hold beyond what is there when it begins, and what it gives.
fn most<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = NOW.load(SeqCst);
    MOST.store(before, SeqCst);
    let made = work();
    (MOST.load(SeqCst) - before, made)
}

/// Both parties' memory while they make material that nobody keeps.
fn making(n: usize) -> usize {
    let plan = plan(n);
    let made = most(|| {
        Mesh::new(2).run(|links| {
            let side = Side::ALL[links.me()];
            let channel = links.to(1 - links.me());
            let mut maker = MaterialMaker::start(&plan, (side, Link::Near), 1, 1, channel).unwrap();
            maker.run(channel, &mut |_| Ok(())).unwrap();
        });
    });
    made.0
}

/// A record of which nothing is freed while it is read.
struct Record {
    frames: Vec<Vec<u8>>,
    read: usize,
}

impl KeySource for Record {
    fn take(&mut self, len: usize) -> Result<&[u8], KeyError> {
        self.read += 1;
        let frame = self.frames.get(self.read - 1).filter(|frame| frame.len() == len);
        frame.map(Vec::as_slice).ok_or_else(|| KeyError::Corrupt("another frame was due".into()))
    }
}

/// Both parties' memory in a run, beside their records and their shares of the input.
fn running(n: usize) -> usize {
    let plan = plan(n);
    let records = Mesh::new(2).run(|links| {
        let mut frames = Vec::new();
        let keep = &mut |frame: &[u8]| {
            frames.push(frame.to_vec());
            Ok(())
        };
        let (at, channel) = ((Side::ALL[links.me()], Link::Near), links.to(1 - links.me()));
        MaterialMaker::start(&plan, at, 1, 1, channel).unwrap().run(channel, keep).unwrap();
        Mutex::new(Record { frames, read: 0 })
    });
    let shares = [0, 1].map(|_| Mutex::new(Seed::random().stream().elements(RING, n)));
    let (bytes, ()) = most(|| {
        Mesh::new(2).run(|links| {
            let (me, side) = (links.me(), Side::ALL[links.me()]);
            let mut record = records[me].lock().unwrap();
            let input = std::mem::take(&mut *shares[me].lock().unwrap());
            let channel = links.to(1 - me);
            let session = match side {
                Side::Server => {
                    let weights = Arc::new(Weights::new(&plan, BTreeMap::new()).unwrap());
                    let aim = PackingAim { runs: 1, link: Link::Near };
                    let hints = Hints::new(&plan, weights, aim, 1, Spool::default());
                    Session::serve(&plan, Arc::new(hints), &mut [], channel).unwrap()
                }
                Side::Client => Session::join(&plan, 1, Spool::default(), &mut [], channel).unwrap(),
            };
            let (inputs, publics) = (HashMap::from([(0, input)]), BTreeMap::new());
            let given = Given { inputs, publics, masks: &mut MemoryKeys::default() };
            let mut cx = Cx::new(side, channel, &mut *record, Seed::from_bytes([1; 16]), 10);
            privet_heot::run(&mut cx, &plan, &session, given, &mut |_| ()).unwrap();
        });
    });
    bytes
}

#[test]
fn memory_of_a_preparation_is_flat_and_that_of_a_run_is_its_messages() {
    let [some, many] = [1 << 16, 1 << 18].map(making);
    // Two rounds of either direction may wait at each party, 5 MB each, and parties are not in step. Transfers kept whole would take
    // 190 MB a party more.
    assert!(many < some + (48 << 20) && many < 128 << 20, "{some} bytes for 2^16 elements, {many} for 2^18");
    let n = 1 << 18;
    let each = running(n) / n;
    println!("making takes {some} and {many} bytes, running {each} an element");
    assert!(each < 200, "{each} bytes an element at both parties together");
}
