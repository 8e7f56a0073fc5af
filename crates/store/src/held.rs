//! Records in memory: those of a stream, which are used soon and need no disk.
//!
//! They are gone when the process ends, which cannot make a record usable twice: it makes it usable never.

use crate::error::{StoreError, io_at};
use crate::mapped::Frames;
use crate::names::{SessionName, record_name};
use crate::pending::PendingFile;
use crate::shelf::Shelf;
use crate::space::{Place, Space};
use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zeroize::{Zeroize, Zeroizing};

/// Zero bytes in one pass of whole registers; a byte at a time would take as long as reading them.
fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    // Zeros that nobody reads before memory is given back would be left out: here somebody may.
    std::hint::black_box(bytes);
}

/// A record's bytes in the pieces in which they came; a piece is wiped and freed once it is read.
pub struct Pieces {
    pieces: VecDeque<Vec<u8>>,
    /// Bytes of the first piece that were handed out.
    offset: usize,
    /// Bytes that may still be handed out.
    left: u64,
    /// A frame that lies in several pieces.
    gathered: Zeroizing<Vec<u8>>,
    space: Arc<Space>,
}

impl Pieces {
    fn new(space: Arc<Space>) -> Pieces {
        Pieces { pieces: VecDeque::new(), offset: 0, left: 0, gathered: Zeroizing::default(), space }
    }

    /// Bytes there are.
    pub fn len(&self) -> u64 {
        self.left
    }

    /// The last `N` bytes.
    pub fn tail<const N: usize>(&self) -> Option<[u8; N]> {
        let bytes = self.pieces.iter().rev().flat_map(|p| p.iter().rev());
        let mut tail = [0; N];
        let mut places = tail.iter_mut().rev();
        bytes.zip(places.by_ref()).for_each(|(b, place)| *place = *b);
        places.next().is_none().then_some(tail)
    }

    /// Hand out so many bytes less at the end.
    pub fn without_end(mut self, bytes: u64) -> Pieces {
        self.left = self.left.saturating_sub(bytes);
        self
    }

    /// Add a piece, if there is room for it; gives it back otherwise.
    fn push(&mut self, piece: Vec<u8>) -> Result<(), Vec<u8>> {
        if !self.space.take_memory(piece.len() as u64) {
            return Err(piece);
        }
        self.left += piece.len() as u64;
        self.pieces.push_back(piece);
        Ok(())
    }

    fn drop_first(&mut self) {
        if let Some(mut piece) = self.pieces.pop_front() {
            wipe(&mut piece);
            self.space.give_back(Place::Memory, piece.len() as u64);
        }
        self.offset = 0;
    }

    fn gather(&mut self, len: usize) -> io::Result<()> {
        self.gathered.clear();
        if self.gathered.capacity() < len {
            // A new one: what grows leaves copies behind.
            self.gathered = Zeroizing::new(Vec::with_capacity(len));
        }
        while self.gathered.len() < len {
            let first = self.pieces.front().ok_or(ErrorKind::UnexpectedEof)?;
            let n = (len - self.gathered.len()).min(first.len() - self.offset);
            self.gathered.extend_from_slice(&first[self.offset..self.offset + n]);
            self.offset += n;
            if self.offset == first.len() {
                self.drop_first();
            }
        }
        Ok(())
    }
}

impl Frames for Pieces {
    fn next(&mut self, len: usize) -> io::Result<&[u8]> {
        self.left = self.left.checked_sub(len as u64).ok_or(ErrorKind::UnexpectedEof)?;
        while self.pieces.front().is_some_and(|p| p.len() == self.offset) {
            self.drop_first();
        }
        let there = self.pieces.front().map_or(0, |p| p.len() - self.offset);
        if there < len {
            self.gather(len)?;
            return Ok(&self.gathered);
        }
        let start = self.offset;
        self.offset += len;
        Ok(&self.pieces[0][start..start + len])
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        while !self.pieces.is_empty() {
            self.drop_first();
        }
    }
}

/// The records of a store that are in memory, whole and unused.
#[derive(Default)]
pub(super) struct Held(Mutex<BTreeMap<(SessionName, u64), Pieces>>);

impl Held {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(SessionName, u64), Pieces>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers of a session's records.
    pub fn records(&self, session: &SessionName) -> Vec<u64> {
        self.lock().range((*session, 0)..=(*session, u64::MAX)).map(|((_, index), _)| *index).collect()
    }

    /// Whether a record is there.
    pub fn has(&self, session: &SessionName, index: u64) -> bool {
        self.lock().contains_key(&(*session, index))
    }

    /// Put a record in; gives it back where there is one of that number.
    fn put(&self, session: SessionName, index: u64, pieces: Pieces) -> Result<(), Pieces> {
        match self.lock().entry((session, index)) {
            Entry::Occupied(_) => Err(pieces),
            Entry::Vacant(slot) => {
                slot.insert(pieces);
                Ok(())
            }
        }
    }

    /// Take a record out.
    pub fn take(&self, session: &SessionName, index: u64) -> Option<Pieces> {
        self.lock().remove(&(*session, index))
    }

    /// Forget a session's records.
    pub fn discard(&self, session: &SessionName) {
        self.lock().retain(|(of, _), _| of != session);
    }
}

/// A record on its way in, which counts only once it is committed: in memory while there is room, in a file
/// otherwise.
pub struct Staged<'a> {
    shelf: &'a Shelf,
    session: SessionName,
    index: u64,
    place: Staging,
}

enum Staging {
    Memory(Pieces),
    File(PendingFile),
}

impl<'a> Staged<'a> {
    pub(super) fn new(
        shelf: &'a Shelf,
        session: &SessionName,
        index: u64,
        place: Place,
    ) -> Result<Staged<'a>, StoreError> {
        let place = match (place, shelf.space()) {
            (Place::Memory, Some(space)) => Staging::Memory(Pieces::new(space.clone())),
            _ => Staging::File(shelf.record(session, index)?),
        };
        Ok(Staged { shelf, session: *session, index, place })
    }

    /// Append the bytes that came next. What does not fit into memory moves to a file, with all before it.
    pub fn append(&mut self, bytes: Vec<u8>) -> Result<(), StoreError> {
        let mut rest = match &mut self.place {
            Staging::File(_) => bytes,
            Staging::Memory(pieces) => match pieces.push(bytes) {
                Ok(()) => return Ok(()),
                Err(bytes) => {
                    let file = self.shelf.record(&self.session, self.index)?;
                    let before = std::mem::replace(&mut self.place, Staging::File(file));
                    if let Staging::Memory(mut pieces) = before {
                        while let Some(piece) = pieces.pieces.front() {
                            self.write(piece)?;
                            pieces.drop_first();
                        }
                    }
                    bytes
                }
            },
        };
        let written = self.write(&rest);
        rest.zeroize();
        written
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        match &mut self.place {
            Staging::File(file) => file.write_all(bytes).map_err(io_at(self.shelf.dir())),
            Staging::Memory(_) => Ok(()),
        }
    }

    /// The record is whole. Refused where one of its number came meanwhile.
    pub fn commit(self) -> Result<(), StoreError> {
        let Staged { shelf, session, index, place } = self;
        match (place, shelf.held()) {
            (Staging::File(file), _) => file.commit(),
            (Staging::Memory(pieces), Some(held)) => {
                let occupied = |_| StoreError::Occupied { what: record_name(&session, index) };
                held.put(session, index, pieces).map_err(occupied)
            }
            (Staging::Memory(_), None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use crate::format::{Header, RecordId, RecordReader, RecordWriter};
    use privet_prg::Seed;

    const SESSION: SessionName = [5; 16];
    const LENGTHS: [usize; 4] = [3000, 1, 70, 4096];

    fn id(index: u64) -> RecordId {
        RecordId { session: SESSION, index, party: 1, plan: [2; 32] }
    }

    fn frame(i: usize) -> Vec<u8> {
        (0..LENGTHS[i]).map(|j| (i * 31 + j) as u8).collect()
    }

    fn bytes(index: u64) -> Vec<u8> {
        let header = Header { id: id(index), set: [8; 16], seed: Seed::from_bytes([3; 16]) };
        let mut writer = RecordWriter::new(Vec::new(), &header).unwrap();
        (0..LENGTHS.len()).for_each(|i| writer.frame(&frame(i)).unwrap());
        writer.finish().unwrap()
    }

    /// Put a record of `bytes` into the store, in pieces of at most `piece` bytes.
    fn put(store: &Store, index: u64, bytes: &[u8], piece: usize) {
        let shelf = store.shelf().unwrap();
        let mut staged = shelf.stage(&SESSION, index, None, &|| true).unwrap().unwrap();
        bytes.chunks(piece).for_each(|c| staged.append(c.to_vec()).unwrap());
        staged.commit().unwrap();
    }

    fn read(store: &mut Store, index: u64) -> Result<(), String> {
        let mut record = store.claim(&id(index)).map_err(|e| e.to_string())?;
        for (i, &len) in LENGTHS.iter().enumerate() {
            assert!(record.take(len).map_err(|e| e.to_string())? == frame(i), "frame {i}");
        }
        assert!(record.take(1).is_err(), "more than was written");
        Ok(())
    }

    fn files(store: &Store) -> usize {
        let dir = store.session_dir(&SESSION);
        std::fs::read_dir(dir).map_or(0, |d| d.flatten().filter(|e| e.path().extension().is_some()).count())
    }

    #[test]
    fn records_in_memory_are_used_once_however_they_were_cut_up() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path()).unwrap().with_memory(1 << 20);
        std::fs::create_dir(store.session_dir(&SESSION)).unwrap();
        for (index, piece) in [(0, 1), (1, 7), (2, 128), (3, 136), (4, 5000), (5, 1 << 20)] {
            put(&store, index, &bytes(index), piece);
            assert_eq!((files(&store), store.records(&SESSION).unwrap()), (0, vec![index]));
            read(&mut store, index).unwrap();
            assert!(store.records(&SESSION).unwrap().is_empty());
            // Sent again by somebody who may not.
            let again = store.shelf().unwrap().stage(&SESSION, index, None, &|| true).err();
            assert!(matches!(again, Some(StoreError::Used { .. })));
            assert!(read(&mut store, index).unwrap_err().contains("used before"));
        }
        assert!(store.home.space.take_memory(1 << 20), "records that are gone keep their room");
    }

    #[test]
    fn a_record_in_memory_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path()).unwrap().with_memory(1 << 20);
        std::fs::create_dir(store.session_dir(&SESSION)).unwrap();
        let shelf = store.shelf().unwrap();
        // Begun before the first one was there, by another way in.
        let mut late = shelf.stage(&SESSION, 0, None, &|| true).unwrap().unwrap();
        late.append(bytes(1)).unwrap();
        put(&store, 0, &bytes(0), 512);
        assert!(matches!(late.commit(), Err(StoreError::Occupied { .. })));
        for again in [shelf.stage(&SESSION, 0, None, &|| true).err(), shelf.file(&SESSION, 0).err()] {
            assert!(matches!(again, Some(StoreError::Occupied { .. })));
        }
        read(&mut store, 0).unwrap();
        // In a file likewise; a record in memory is not put beside it.
        let mut file = shelf.file(&SESSION, 2).unwrap();
        file.append(bytes(2)).unwrap();
        file.commit().unwrap();
        assert!(matches!(shelf.stage(&SESSION, 2, None, &|| true).err(), Some(StoreError::Occupied { .. })));
        read(&mut store, 2).unwrap();
    }

    #[test]
    fn what_does_not_fit_into_memory_moves_to_disk() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path()).unwrap().with_memory(4000);
        for (index, piece) in [(0, 100), (1, 3999), (2, 1 << 20)] {
            put(&store, index, &bytes(index), piece);
            assert_eq!(files(&store), 1, "pieces of {piece}");
            read(&mut store, index).unwrap();
        }
        assert!(store.home.space.take_memory(4000));
    }

    #[test]
    fn damaged_and_foreign_records_in_memory_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path()).unwrap().with_memory(1 << 20);
        let sound = bytes(0);
        for (cut, piece) in
            [0, 1, 127, 128, 159, 160, 3000, sound.len() - 1].into_iter().zip([1, 9].repeat(4))
        {
            put(&store, 0, &sound[..cut], piece);
            let error = store.claim(&id(0)).err().unwrap().to_string();
            assert!(error.contains("truncated"), "{cut}: {error}");
        }
        put(&store, 0, &bytes(1), 50);
        assert!(store.claim(&id(0)).err().unwrap().to_string().contains("another run (found 1, wanted 0)"));
        for at in [9, 300, 3200, sound.len() - 40, sound.len() - 1] {
            let mut changed = sound.clone();
            changed[at] ^= 4;
            // Not claimed: a record whose damage is found late is used up.
            put(&store, 0, &changed, 512);
            let pieces = store.home.held.take(&SESSION, 0).unwrap();
            let read = RecordReader::open_pieces(pieces, &id(0)).map_err(|e| e.to_string());
            let taken = read.and_then(|mut r| {
                LENGTHS.iter().try_for_each(|&n| r.take(n).map(drop).map_err(|e| e.to_string()))
            });
            assert!(taken.is_err(), "byte {at}");
        }
        // Nothing of these was used: the right record still works.
        put(&store, 0, &sound, 64);
        read(&mut store, 0).unwrap();
    }
}
