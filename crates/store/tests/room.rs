//! Budgets on disk and in memory, of one store and of several.

mod common;

use common::{SESSION, fill, id, key_file, other_session, put, record, reopen};
use privet_store::{Space, Store, StoreError, hex, pending_record};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[test]
fn a_budget_refuses_keys_and_leaves_nothing_half_stored() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1);
    let stored = |path: std::path::PathBuf| fs::metadata(path).unwrap().len();
    let used = stored(dir.path().join(hex(&SESSION)).join("session.key")) + stored(key_file(dir.path(), 0));
    let keys = record(id(1, 0), &[vec![7; 5000]]);
    let room = keys.len() as u64;
    let names = |dir: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(dir.join(hex(&SESSION))).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names(dir.path());

    let store = Store::open(dir.path()).unwrap().with_budget(Some(used + room - 1));
    let shelf = store.shelf().unwrap();
    let mut file = shelf.record(&SESSION, 1).unwrap();
    let error = keys.chunks(1000).find_map(|c| file.write_all(c).err()).expect("one byte too many");
    let error = StoreError::Io { path: "store".into(), source: error }.to_string();
    let budget = format!("the store may hold {} bytes (`disk_budget`", used + room - 1);
    assert!(error.contains(&budget) && error.ends_with("or prepare fewer runs at a time"), "{error}");
    drop(file);
    assert_eq!(names(dir.path()), before, "a half record stays");
    // What was taken back is free again.
    let mut file = shelf.record(&SESSION, 1).unwrap();
    file.write_all(&keys[..keys.len() - 1]).unwrap();
    drop((file, store));

    let store = reopen(dir.path()).with_budget(Some(used + room));
    let shelf = store.shelf().unwrap();
    let mut file = shelf.record(&SESSION, 1).unwrap();
    file.write_all(&keys).unwrap();
    file.commit().unwrap();
    assert_eq!(store.records(&SESSION).unwrap(), [0, 1]);
    let mut file = shelf.record(&SESSION, 2).unwrap();
    assert!(file.write_all(&[1]).is_err(), "a committed record keeps its room");
    assert!(shelf.new_session(&other_session([1; 16]), 1).is_err());
    drop(file);
    // Sessions that are being checked count as well, and a smaller budget than what is there leaves no room.
    let store = store.with_budget(Some(1));
    assert!(store.checking_shelf().unwrap().new_session(&other_session([2; 16]), 1).is_err());
    assert!(store.shelf().unwrap().record(&SESSION, 3).unwrap().write_all(&[1]).is_err());
}

#[test]
fn half_records_of_the_dead_are_removed_and_those_of_the_living_are_not() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1);
    let part = |index: u64| key_file(dir.path(), index).with_extension("part");
    fs::write(part(1), [1; 100]).unwrap();
    let mut file = pending_record(dir.path(), &SESSION, 2).unwrap();
    file.write_all(&record(id(2, 0), &[])).unwrap();
    let store = reopen(dir.path());
    assert!(!part(1).exists() && part(2).exists());
    file.commit().unwrap();
    assert_eq!(store.records(&SESSION).unwrap(), [0, 2]);
}

#[test]
fn used_records_make_room_within_the_budget() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1);
    let bytes = fs::metadata(key_file(dir.path(), 0)).unwrap().len();
    let session = fs::metadata(dir.path().join(hex(&SESSION)).join("session.key")).unwrap().len();
    // Room for the journal's line as well.
    let mut store = Store::open(dir.path()).unwrap().with_budget(Some(session + bytes + 100));
    let keys = record(id(1, 0), &[vec![1; 8]]);
    assert!(store.shelf().unwrap().record(&SESSION, 1).unwrap().write_all(&keys).is_err());
    drop(store.claim(&id(0, 0)).unwrap());
    store.shelf().unwrap().record(&SESSION, 1).unwrap().write_all(&keys).unwrap();
}

#[test]
fn stores_of_one_party_share_its_room() {
    let dir = tempfile::tempdir().unwrap();
    let dirs = ["train", "evaluate"].map(|plan| dir.path().join(plan));
    let keys = record(id(0, 0), &[vec![7; 5000]]);
    let n = keys.len() as u64;
    let space = Arc::new(Space::new(dir.path(), Some(2 * n), n));
    let mut stores = dirs.clone().map(|dir| Store::open(&dir).unwrap().within(space.clone()));
    let write = |store: &Store, index| {
        let mut file = store.shelf().unwrap().record(&SESSION, index).map_err(|e| e.to_string())?;
        file.write_all(&keys).map_err(|e| e.to_string())?;
        file.commit().map_err(|e| e.to_string())
    };
    write(&stores[0], 0).unwrap();
    // What others put there counts as well: the files are counted before keys come.
    put(&dirs[1], 1, &record(id(1, 0), &[vec![7; 5000]]));
    assert!(write(&stores[0], 2).unwrap_err().contains("disk_budget"));
    assert!(write(&stores[1], 2).unwrap_err().contains("disk_budget"));
    // A record that one plan's run uses up makes room for the other's, as soon as it is over. (The journal grew.)
    stores[1].drop_record(&SESSION, 1).unwrap();
    let claimed = stores[0].claim(&id(0, 0)).unwrap();
    let space_left = |store: &Store| {
        let shelf = store.shelf().unwrap();
        let mut staged = shelf.stage(&SESSION, 5, None, &|| true).unwrap().unwrap();
        (0..).take_while(|_| staged.append(vec![0; 500]).is_ok()).count() as u64 * 500
    };
    let (with, without) = (space_left(&stores[1]), {
        drop(claimed);
        space_left(&stores[1])
    });
    assert!(
        with + n <= without + 500 && without <= 2 * n && without + 600 > 2 * n,
        "{with}, {without} of {n}"
    );
    // Memory likewise: a stream of one plan waits until a record of the other is gone.
    let shelves = [stores[0].shelf().unwrap(), stores[1].shelf().unwrap()];
    let mut first = shelves[0].stage(&SESSION, 6, Some(n), &|| true).unwrap().unwrap();
    first.append(keys.clone()).unwrap();
    first.commit().unwrap();
    let blocker = vec![0; 2 * n as usize - 600];
    let mut file = shelves[0].record(&SESSION, 7).unwrap();
    file.write_all(&blocker).unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| shelves[1].stage(&SESSION, 6, Some(n), &|| true).unwrap().is_some());
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waits.is_finished(), "neither place has room");
        // Nobody wakes one that is wanted no more, for example since its dealer is gone.
        let asked = AtomicU64::new(0);
        let wanted = || asked.fetch_add(1, Ordering::Relaxed) < 2;
        assert!(shelves[1].stage(&SESSION, 8, Some(n), &wanted).unwrap().is_none());
        stores[0].drop_record(&SESSION, 6).unwrap();
        assert!(waits.join().unwrap());
    });
    drop(file);
}
