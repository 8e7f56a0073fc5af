//! Sums of packed elements that come piece by piece.

use crate::{PackError, Ring, groups, pack};

/// Adds packed elements to as many sums of the same ring, modulo 2^k. Their bytes come in pieces, which may end anywhere.
pub struct Adder<'a> {
    ring: Ring,
    sums: &'a mut [u64],
    /// Sums that are done: whole groups, which take whole bytes.
    done: usize,
    /// Bytes that came and belong to the next sums.
    rest: Vec<u8>,
    came: usize,
}

impl<'a> Adder<'a> {
    /// To `sums`, of which every one will get an element.
    pub fn new(ring: Ring, sums: &'a mut [u64]) -> Adder<'a> {
        Adder { ring, sums, done: 0, rest: Vec::new(), came: 0 }
    }

    /// The next bytes.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        self.came += bytes.len();
        if !self.rest.is_empty() {
            // what begins a group is completed: a group of k-bit elements takes k bytes
            let size = self.ring.bits() as usize;
            let missing = self.rest.len().next_multiple_of(size) - self.rest.len();
            let (head, tail) = bytes.split_at(missing.min(bytes.len()));
            self.rest.extend_from_slice(head);
            bytes = tail;
            if head.len() < missing {
                return;
            }
            self.add_rest(self.rest.len() / size * groups::GROUP);
        }
        let read = self.add_groups(bytes);
        self.rest.extend_from_slice(&bytes[read..]);
    }

    /// All bytes have come. After an error the sums mean nothing: the bytes were not those of so many elements, of which each list has one
    /// form.
    pub fn end(mut self) -> Result<(), PackError> {
        pack::check(self.ring, self.came, self.rest.last().copied(), self.sums.len())?;
        self.add_rest(self.sums.len() - self.done);
        Ok(())
    }

    /// Adds the groups that `bytes` begins with, as many as can be read whole; says how many bytes these are.
    fn add_groups(&mut self, bytes: &[u8]) -> usize {
        let ring = self.ring;
        let sums = &mut self.sums[self.done..];
        let (most, size) = (sums.len() / groups::GROUP, ring.bits() as usize);
        if ring.bits() == 64 {
            let words = &bytes.as_chunks().0[..(bytes.len() / size).min(most) * groups::GROUP];
            sums.iter_mut().zip(words).for_each(|(sum, x)| *sum = sum.wrapping_add(u64::from_le_bytes(*x)));
            self.done += words.len();
            return 8 * words.len();
        }
        let mut whole = sums.as_chunks_mut().0.iter_mut();
        let done = groups::read(ring, bytes, most, |group| {
            if let Some(sums) = whole.next() {
                add(ring, sums, group);
            }
        });
        self.done += groups::GROUP * done;
        size * done
    }

    /// Adds the next `n` elements, or as many as there are sums, whose bytes are all that is left.
    fn add_rest(&mut self, n: usize) {
        let sums = self.sums[self.done..].iter_mut().take(n);
        self.done += sums.len();
        for (i, sum) in sums.enumerate() {
            *sum = self.ring.wrap(sum.wrapping_add(pack::element(self.ring, &self.rest, i)));
        }
        self.rest.clear();
    }
}

#[inline(always)]
fn add(ring: Ring, sums: &mut [u64; groups::GROUP], of: [u64; groups::GROUP]) {
    for (sum, x) in sums.iter_mut().zip(of) {
        *sum = ring.wrap(sum.wrapping_add(x));
    }
}
