//! Public tables read at a shared index: a transfer of one of 2^b entries, of b transfers of keys (Naor and Pinkas, STOC 1999).
//!
//! Entry j stands for the index that is j plus the server's share. Its pad is the sum of what the b keys of j's bits expand to
//! at j: of every entry but its own the client lacks a key, and keys expand to other words at other entries.

use crate::context::{Cx, RunError, Side, put_words};
use crate::planes;
use crate::uses::{Uses, plane_bytes, word_bytes};
use privet_ot::Strings;
use privet_prg::{Domain, Seed};
use privet_ring::Ring;
use zeroize::Zeroizing;

/// Each element's key.
fn keys(mut strings: Strings) -> Vec<Seed> {
    let (low, high) = (strings.words(Ring::R64), strings.words(Ring::R64));
    let key = |(low, high): (&u64, &u64)| {
        let mut bytes = Zeroizing::new([0; 16]);
        bytes[..8].copy_from_slice(&low.to_le_bytes());
        bytes[8..].copy_from_slice(&high.to_le_bytes());
        Seed::from_bytes(*bytes)
    };
    low.iter().zip(high.iter()).map(key).collect()
}

/// Adds what a key expands to at an entry.
fn pad(key: &Seed, entry: usize, ring: Ring, sum: &mut [u64]) {
    let words = Zeroizing::new(key.derive(Domain::Table, entry as u64).stream().elements(ring, sum.len()));
    sum.iter_mut().zip(words.iter()).for_each(|(sum, w)| *sum = ring.wrap(sum.wrapping_add(*w)));
}

/// A table of 2^b entries, that of index x first. Each bit of x turns the whole table or leaves it, under a mask: x is a secret
/// share, and memory is read alike for all.
fn rotated(table: &[u64], x: u64) -> Vec<u64> {
    let (mut out, last) = (table.to_vec(), table.len() - 1);
    for i in 0..table.len().ilog2() {
        let here = (x >> i & 1).wrapping_neg();
        out = (0..=last).map(|j| out[j] ^ (out[j] ^ out[(j + (1 << i)) & last]) & here).collect();
    }
    out
}

/// Shares of `tables[t][x]`, table after table; x is shared modulo 2^b, where tables have 2^b entries.
pub(crate) fn look_up(
    cx: &mut Cx,
    bits: u32,
    to: Ring,
    tables: &[Vec<u64>],
    x: &[u64],
) -> Result<Vec<u64>, RunError> {
    if bits == 0 {
        let first = |table: &Vec<u64>| vec![cx.side.constant(table[0]); x.len()];
        return Ok(tables.iter().flat_map(first).collect());
    }
    let index = Ring::new(bits);
    let x: Vec<u64> = x.iter().map(|x| index.wrap(*x)).collect();
    let rows = match cx.side {
        Side::Server => offer(cx, bits, to, tables, &x)?,
        Side::Client => choose(cx, bits, to, tables.len(), &x)?,
    };
    Ok((0..tables.len()).flat_map(|t| rows.iter().map(move |row| row[t])).collect())
}

/// For each element, shares of all tables' entries.
fn offer(
    cx: &mut Cx,
    bits: u32,
    to: Ring,
    tables: &[Vec<u64>],
    x: &[u64],
) -> Result<Vec<Vec<u64>>, RunError> {
    let (n, each) = (x.len(), plane_bytes(x.len()) as usize);
    let mut cots = Vec::new();
    for _ in 0..bits {
        cots.push(cx.sender(n)?);
    }
    let theirs = cx.exchange("index", Vec::new(), each * bits as usize)?;
    let mut strings = Vec::new();
    for (cots, choices) in cots.into_iter().zip(theirs.chunks_exact(each)) {
        strings.push(cots.into_chosen(&cx.masked_bits(n, choices)?).strings.map(keys));
    }
    let mut entries: Vec<Vec<u64>> = vec![Vec::with_capacity(n * tables.len()); (1 << bits) - 1];
    let mut shares = Vec::with_capacity(n);
    for (i, x) in x.iter().enumerate() {
        let turned: Vec<Vec<u64>> = tables.iter().map(|table| rotated(table, *x)).collect();
        let row = |entry: usize| -> Vec<u64> { turned.iter().map(|table| table[entry]).collect() };
        let pad_of = |entry: usize| {
            let mut sum = vec![0; tables.len()];
            strings
                .iter()
                .enumerate()
                .for_each(|(b, keys)| pad(&keys[entry >> b & 1][i], entry, to, &mut sum));
            sum
        };
        // entry 0 is its pad
        let hidden: Vec<u64> =
            pad_of(0).iter().zip(row(0)).map(|(p, r)| to.wrap(p.wrapping_sub(r))).collect();
        for (entry, entries) in (1..).zip(&mut entries) {
            let words = row(entry).into_iter().zip(&hidden).zip(pad_of(entry));
            entries.extend(words.map(|((r, h), p)| to.wrap(r.wrapping_add(*h).wrapping_sub(p))));
        }
        shares.push(hidden.iter().map(|h| to.wrap(h.wrapping_neg())).collect());
    }
    let mut message = Vec::new();
    entries.iter().for_each(|e| put_words(to, e, &mut message));
    cx.exchange("entries", message, 0)?;
    Ok(shares)
}

fn choose(cx: &mut Cx, bits: u32, to: Ring, tables: usize, x: &[u64]) -> Result<Vec<Vec<u64>>, RunError> {
    let n = x.len();
    let own = planes::split(x, bits);
    let (mut chosen, mut message) = (Vec::new(), Vec::new());
    for plane in &own {
        let (cots, masked) = cx.receiver(n)?.choose(plane);
        message.extend_from_slice(&masked.to_bytes());
        chosen.push(cots);
    }
    cx.exchange("index", message, 0)?;
    let keys: Vec<Vec<Seed>> = chosen.into_iter().map(|cots| keys(cots.into_strings())).collect();
    let each = to.packed_bytes(n * tables);
    let theirs = cx.exchange("entries", Vec::new(), each * ((1 << bits) - 1))?;
    let mut shares: Vec<Vec<u64>> = vec![vec![0; tables]; n];
    for (i, (share, x)) in shares.iter_mut().zip(x).enumerate() {
        keys.iter().for_each(|keys| pad(&keys[i], *x as usize, to, share));
    }
    for (entry, bytes) in (1u64..).zip(theirs.chunks_exact(each)) {
        let words = cx.words(to, bytes, n * tables)?;
        for (i, (share, x)) in shares.iter_mut().zip(x).enumerate() {
            // all entries are read, so that memory does not tell which one is used
            let here = u64::from(entry == *x).wrapping_neg();
            let row = &words[i * tables..][..tables];
            share.iter_mut().zip(row).for_each(|(s, w)| *s = to.wrap(s.wrapping_add(w & here)));
        }
    }
    Ok(shares)
}

/// What [`look_up`] of n elements uses.
pub(crate) fn uses(bits: u32, to: u32, tables: usize, n: usize) -> Uses {
    if bits == 0 {
        return Uses::default();
    }
    Uses {
        transfers: [bits as usize * n, 0],
        bytes: [((1 << bits) - 1) * word_bytes(to, n * tables), u64::from(bits) * plane_bytes(n)],
        steps: 2,
    }
}
