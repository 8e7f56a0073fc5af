//! Keys in memory are wiped before their memory is given back: an allocator of this binary's own looks at every block that is
//! freed.

mod common;

use common::{SESSION, header, id, session_id};
use privet_store::format::{HEADER_BYTES, RecordWriter, TRAILER_BYTES};
use privet_store::{SessionFile, Store};
use privet_testkit::Freed;

/// What keys are made of here, and nothing else is.
const MARK: [u8; 16] = *b"\xE7key bytes here\xE7";

#[global_allocator]
static FREED: Freed = Freed::with(MARK);

/// A record of two frames, in pieces of so many bytes, each in memory of its own.
fn pieces(index: u64, size: usize) -> Vec<Vec<u8>> {
    let mut writer = RecordWriter::new(Vec::new(), &header(id(index, 0))).unwrap();
    for _ in 0..2 {
        writer.frame(&MARK.repeat(40)).unwrap();
    }
    let whole = writer.finish().unwrap();
    assert!(whole.len() > HEADER_BYTES + TRAILER_BYTES + 80 * MARK.len());
    whole.chunks(size).map(<[u8]>::to_vec).collect()
}

/// One test, because the allocator sees what all threads free.
#[test]
fn no_key_bytes_are_left_in_memory_that_is_given_back() {
    assert_eq!(FREED.seen(|| drop(MARK.repeat(3))), 1, "the allocator sees what is not wiped");
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap().with_memory(1 << 20);
    let keys = SessionFile { id: session_id(0), checks: 0, keys: MARK.repeat(2).into() };
    let shelf = store.shelf().unwrap();
    shelf.new_session(&keys, 8).unwrap();
    // In one piece, and in many, so that frames are gathered from several.
    let records = [(0, pieces(0, usize::MAX)), (1, pieces(1, 100)), (2, pieces(2, 100)), (3, pieces(3, 100))];
    let frame = MARK.repeat(40);
    let lists: usize = records.iter().map(|(_, pieces)| pieces.len()).sum();
    assert!(lists > 20);
    let found = FREED.seen(|| {
        for (index, pieces) in records {
            let mut staged = shelf.stage(&SESSION, index, Some(4000), &|| true).unwrap().unwrap();
            pieces.into_iter().for_each(|piece| staged.append(piece).unwrap());
            match index {
                // Never complete.
                3 => drop(staged),
                _ => staged.commit().unwrap(),
            }
        }
        for index in [0, 1] {
            let mut record = store.claim(&id(index, 0)).unwrap();
            for _ in 0..2 {
                assert!(record.take(frame.len()).unwrap() == &frame[..]);
            }
        }
        assert!(store.records(&SESSION).unwrap() == [2], "they are in memory");
        assert!(!dir.path().join("0.keys").exists());
        // Begun, and over with a record left.
        drop(store.begin_session(&session_id(0), 0).unwrap());
        store.drop_session(&SESSION).unwrap();
        drop(shelf);
        drop(store);
    });
    assert_eq!(found, 0, "blocks with key bytes were freed");
    assert!(FREED.seen(|| drop(keys)) == 0, "a session's keys");
}
