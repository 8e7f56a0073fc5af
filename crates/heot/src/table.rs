//! Public tables read at a shared index: a transfer of one of 2^b entries, of b transfers of keys (Naor and Pinkas, STOC 1999).
//!
//! *Before a run* the server has pads of all places, and the client a random place and its pad ([`Keys`]). *In the run* entry j stands for the index that
//! is j plus the server's share. The client sends its index XORed with its place, and the server masks entry j by the pad of that XORed with
//! j. Entry 0 is its pad.

use crate::context::{Cx, RunError, Side};
use crate::keys::Keys;
use crate::mutation;
use crate::mux;
use crate::planes::{self, Planes, bit};
use crate::uses::{Uses, plane_bytes, word_bytes};
use crate::wire::Outgoing;
use privet_kernels::in_parallel;
use privet_prg::Wiped;
use privet_ring::{PackError, Ring, pack, unpack};
use std::ops::Range;
use zeroize::Zeroizing;

/// A table of 2^b entries turned, so that of index x stands first; it is in the first of two places. Each bit of x turns the whole table or leaves
/// it, under a mask: x is a secret share, and memory is read alike for all.
fn rotate(x: u64, [out, turned]: [&mut Wiped<u64>; 2]) {
    let last = out.len() - 1;
    for i in 0..out.len().ilog2() {
        let here = (x >> i & 1).wrapping_neg();
        for (j, to) in turned.iter_mut().enumerate() {
            *to = out[j] ^ (out[j] ^ out[(j + (1 << i)) & last]) & here;
        }
        std::mem::swap(out, turned);
    }
}

/// What the server knows of tables.
#[derive(Clone, Copy)]
pub(crate) enum Entries<'a> {
    /// All elements have the same tables.
    Same(&'a [Vec<u64>]),
    /// Each element has its own: those of element i and table t are written.
    Own { tables: usize, of: &'a (dyn Fn(usize, usize, &mut [u64]) + Sync) },
}

impl Entries<'_> {
    /// Tables.
    fn count(&self) -> usize {
        match self {
            Entries::Same(tables) => tables.len(),
            Entries::Own { tables, .. } => *tables,
        }
    }

    /// Those of an element and a table.
    fn write(&self, element: usize, table: usize, out: &mut [u64]) {
        match self {
            Entries::Same(tables) => out.copy_from_slice(&tables[table]),
            Entries::Own { of, .. } => of(element, table, out),
        }
    }
}

/// Shares of entry x of each table, table after table; x is shared modulo 2^b, where tables have 2^b entries.
pub(crate) fn look_up(
    cx: &mut Cx,
    bits: u32,
    to: Ring,
    tables: &Entries<'_>,
    x: &[u64],
) -> Result<Vec<u64>, RunError> {
    if bits == 0 {
        let only = |table: usize, i: usize| {
            let mut entry = [0];
            tables.write(i, table, &mut entry);
            cx.side.constant(entry[0])
        };
        return Ok((0..tables.count()).flat_map(|t| (0..x.len()).map(move |i| only(t, i))).collect());
    }
    let index = Ring::new(bits);
    let x: Vec<u64> = x.iter().map(|x| index.wrap(*x)).collect();
    let of = Keys { bits, to, tables: tables.count() };
    match cx.side {
        Side::Server => offer(cx, of, tables, &x),
        Side::Client => choose(cx, of, &x),
    }
}

/// Elements of which the server makes entries at a time: whole bytes of each entry.
const BLOCK: usize = 64;

/// Where entry `entry` of elements from `first` on lies in the message: rows of tables.
fn entry_place(of: Keys, entry: usize, first: usize, n: usize) -> usize {
    (entry - 1) * of.to.packed_bytes(n * of.tables) + of.to.packed_bytes(first * of.tables)
}

/// Elements of a frame in one part for each thread, which begin at whole bytes of entries.
fn parts(n: usize, threads: usize) -> Vec<Range<usize>> {
    let each = n.div_ceil(threads).next_multiple_of(BLOCK);
    (0..n).step_by(each).map(|first| first..n.min(first + each)).collect()
}

/// Shares of all tables' entries, table after table.
fn offer(cx: &mut Cx, of: Keys, tables: &Entries<'_>, x: &[u64]) -> Result<Vec<u64>, RunError> {
    let (n, bits, count) = (x.len(), of.bits as usize, of.tables);
    let material = cx.take(of, n)?;
    let theirs = cx.exchange("index", Vec::new(), plane_bytes(n) as usize * bits)?;
    let theirs = cx.incoming(n, theirs)?;
    let mut message = vec![0; ((1 << bits) - 1) * of.to.packed_bytes(n * count)];
    let mut shares = vec![0; n * count];
    for frame in material {
        let x = &x[frame.first..][..frame.n];
        let offered = Offered {
            of,
            tables,
            first: frame.first,
            x,
            halves: (0..4 * bits).map(|i| frame.elements(i)).collect(),
            exchanged: theirs.chunk(0..bits, frame.first, frame.n),
        };
        let made =
            in_parallel(parts(frame.n, cx.threads).into_iter(), |part| (part.start, offered.make(part)));
        for (start, (own, entries)) in made {
            let first = frame.first + start;
            for (i, row) in own.chunks_exact(count).enumerate() {
                row.iter().enumerate().for_each(|(t, share)| shares[t * n + first + i] = *share);
            }
            for (entry, packed) in (1..).zip(entries) {
                message[entry_place(of, entry, first, n)..][..packed.len()].copy_from_slice(&packed);
            }
        }
    }
    cx.exchange("entries", message, 0)?;
    Ok(shares)
}

/// What the server makes a frame's entries of.
struct Offered<'a> {
    of: Keys,
    tables: &'a Entries<'a>,
    /// The frame's first element.
    first: usize,
    /// Its shares of the indices.
    x: &'a [u64],
    /// Halves of keys, four of each bit.
    halves: Vec<Wiped<u64>>,
    /// What the client sent: bits of its indices, XORed with its places.
    exchanged: Vec<u64>,
}

impl Offered<'_> {
    /// Shares of some elements, row after row; and of each entry but 0 what is sent.
    fn make(&self, part: Range<usize>) -> (Vec<u64>, Vec<Vec<u8>>) {
        let Offered { of, tables, first: before, x, halves, exchanged } = self;
        let (bits, count, each) = (of.bits as usize, of.tables, planes::words(x.len()));
        let mut shares = Vec::with_capacity(part.len() * count);
        let others = || 1..1 << bits;
        let bytes = of.to.packed_bytes(part.len() * count);
        let mut packed: Vec<Vec<u8>> = others().map(|_| Vec::with_capacity(bytes)).collect();
        let (mut pads, mut room): (Wiped<u64>, _) = (Wiped::zeros(of.words()), of.room());
        let mut keys = Zeroizing::new(vec![[[0; 2]; 2]; bits]);
        let [mut turned, mut other]: [Wiped<u64>; 2] = [0, 1].map(|_| Wiped::zeros(1 << bits));
        let mut rows: Vec<Vec<u64>> = others().map(|_| Vec::with_capacity(BLOCK * count)).collect();
        for first in part.clone().step_by(BLOCK) {
            for i in first..part.end.min(first + BLOCK) {
                for (keys, halves) in keys.iter_mut().zip(halves.as_chunks::<4>().0) {
                    let [a, b, c, d] = halves.each_ref().map(|half| half[i]);
                    *keys = [[a, b], [c, d]];
                }
                of.all_pads(&keys, &mut pads, &mut room);
                if mutation::active("entries-unmasked") {
                    pads.fill(0);
                }
                // what came is masked by the client's place: as an address it tells nothing
                let exchanged =
                    (0..bits).fold(0, |sum, b| sum | (bit(&exchanged[b * each..], i) as usize) << b);
                let pad = |entry: usize, t: usize| pads[(entry ^ exchanged) * count + t];
                for t in 0..count {
                    tables.write(before + i, t, &mut turned);
                    rotate(x[i], [&mut turned, &mut other]);
                    // entry 0 is its pad
                    let hidden = pad(0, t).wrapping_sub(turned[0]);
                    shares.push(of.to.wrap(hidden.wrapping_neg()));
                    for (entry, row) in (1..).zip(&mut rows) {
                        row.push(turned[entry].wrapping_add(hidden).wrapping_sub(pad(entry, t)));
                    }
                }
            }
            for (row, packed) in rows.iter_mut().zip(&mut packed) {
                pack(of.to, row, packed);
                row.clear();
            }
        }
        (shares, packed)
    }
}

fn choose(cx: &mut Cx, of: Keys, x: &[u64]) -> Result<Vec<u64>, RunError> {
    let (n, bits, count) = (x.len(), of.bits as usize, of.tables);
    let material = cx.take(of, n)?;
    let own = Planes::of(x, of.bits);
    let mut message = Outgoing::new(bits, n);
    for frame in material.frames() {
        (0..bits).for_each(|i| mux::masked(frame, i, own.get(i), i, &mut message));
    }
    cx.exchange("index", message.bytes(), 0)?;
    let theirs = cx.exchange("entries", Vec::new(), ((1 << bits) - 1) * of.to.packed_bytes(n * count))?;
    let mut shares = vec![0; n * count];
    for frame in material {
        let pads: Vec<Wiped<u64>> = (0..count).map(|t| frame.elements(t)).collect();
        let made = in_parallel(parts(frame.n, cx.threads).into_iter(), |part| {
            let mut got: Vec<Wiped<u64>> =
                pads.iter().map(|pads| Wiped::copy_of(&pads[part.clone()])).collect();
            let first = frame.first + part.start;
            for entry in 1..1usize << bits {
                let here = &theirs[entry_place(of, entry, first, n)..];
                let here = &here[..of.to.packed_bytes(part.len() * count)];
                let sent = unpack(of.to, here, part.len() * count)?;
                for (i, (x, row)) in x[first..].iter().zip(sent.chunks_exact(count)).enumerate() {
                    // all entries are read, so that memory does not tell which one is used
                    let here = u64::from(entry as u64 == *x).wrapping_neg();
                    got.iter_mut().zip(row).for_each(|(got, word)| got[i] = got[i].wrapping_add(word & here));
                }
            }
            Ok((first, got))
        });
        for made in made {
            let (first, got) = made.map_err(|e: PackError| cx.wrong(e))?;
            for (t, got) in got.iter().enumerate() {
                let to = &mut shares[t * n + first..];
                to.iter_mut().zip(got.iter()).for_each(|(share, got)| *share = of.to.wrap(*got));
            }
        }
    }
    Ok(shares)
}

/// What [`look_up`] of n elements uses.
pub(crate) fn uses(bits: u32, to: u32, tables: usize, n: usize) -> Uses {
    if bits == 0 {
        return Uses::default();
    }
    let entries = ((1 << bits) - 1) * word_bytes(to, n * tables);
    let of = Keys { bits, to: Ring::new(to), tables };
    Uses::of(of, n, [entries, u64::from(bits) * plane_bytes(n)], 2)
}
