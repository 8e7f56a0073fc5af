use crate::Ring;
use thiserror::Error;

/// Packed bytes that do not hold what was announced.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PackError {
    /// Too few or too many bytes.
    #[error("{elements} elements of {bits} bits take {expected} bytes, but {found} were given")]
    Length {
        /// Elements wanted.
        elements: usize,
        /// Ring bits.
        bits: u32,
        /// Bytes these take.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// Bits past the last element that are not zero: nobody who packs writes such bytes.
    #[error(
        "the bits past {elements} elements of {bits} bits are not zero: the sender runs another version or is broken"
    )]
    Padding {
        /// Elements wanted.
        elements: usize,
        /// Ring bits.
        bits: u32,
    },
}

/// Bytes that `n` elements of `ring` take: `ceil(n * k / 8)`.
pub const fn packed_len(ring: Ring, n: usize) -> usize {
    ring.packed_bytes(n)
}

/// Append `values` to `out`, `k` bits each, little endian, without gaps.
pub fn pack(ring: Ring, values: &[u64], out: &mut Vec<u8>) {
    let bits = ring.bits();
    if bits == 64 {
        return pack_words(values, out);
    }
    out.reserve(ring.packed_bytes(values.len()));
    let (mut acc, mut have) = (0u128, 0u32);
    for &v in values {
        acc |= (ring.wrap(v) as u128) << have;
        have += bits;
        if have >= 64 {
            out.extend_from_slice(&(acc as u64).to_le_bytes());
            acc >>= 64;
            have -= 64;
        }
    }
    let tail = have.div_ceil(8) as usize;
    out.extend_from_slice(&acc.to_le_bytes()[..tail]);
}

/// Whole words, by way of a piece that stays in the first-level cache, as an iterator of bytes goes byte by byte.
fn pack_words(values: &[u64], out: &mut Vec<u8>) {
    const PIECE: usize = 256;
    let mut bytes = [0; 8 * PIECE];
    out.reserve(8 * values.len());
    for piece in values.chunks(PIECE) {
        for (to, v) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(piece) {
            *to = v.to_le_bytes();
        }
        out.extend_from_slice(&bytes[..8 * piece.len()]);
    }
}

/// The inverse of [`pack`]: exactly `n` elements from exactly [`packed_len`] bytes, of which each list of elements has one form:
/// bits past the last element must be zero.
pub fn unpack(ring: Ring, bytes: &[u8], n: usize) -> Result<Vec<u64>, PackError> {
    check_len(ring, bytes, n)?;
    if ring.bits() == 64 {
        return Ok(bytes.as_chunks::<8>().0.iter().map(|c| u64::from_le_bytes(*c)).collect());
    }
    let mut out = Vec::with_capacity(n);
    each(ring, bytes, n, |x| out.push(x))?;
    Ok(out)
}

/// Add packed elements to as many sums of the same ring, modulo 2^k. After an error the sums mean nothing.
pub fn add_packed(ring: Ring, bytes: &[u8], sums: &mut [u64]) -> Result<(), PackError> {
    check_len(ring, bytes, sums.len())?;
    if ring.bits() == 64 {
        let words = bytes.as_chunks::<8>().0;
        sums.iter_mut().zip(words).for_each(|(sum, x)| *sum = sum.wrapping_add(u64::from_le_bytes(*x)));
        return Ok(());
    }
    let n = sums.len();
    let mut sums = sums.iter_mut();
    each(ring, bytes, n, |x| {
        if let Some(sum) = sums.next() {
            *sum = ring.wrap(sum.wrapping_add(x));
        }
    })
}

fn check_len(ring: Ring, bytes: &[u8], n: usize) -> Result<(), PackError> {
    match ring.packed_bytes(n) {
        expected if expected == bytes.len() => Ok(()),
        expected => Err(PackError::Length { elements: n, bits: ring.bits(), expected, found: bytes.len() }),
    }
}

/// Every one of n packed elements in order.
#[inline]
fn each(ring: Ring, bytes: &[u8], n: usize, mut of: impl FnMut(u64)) -> Result<(), PackError> {
    let bits = ring.bits();
    let (mut acc, mut have) = (0u128, 0u32);
    let (words, tail) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    let mut words = words.iter().copied().chain(std::iter::once(last));
    for _ in 0..n {
        if have < bits {
            let w = words.next().unwrap_or([0; 8]);
            acc |= (u64::from_le_bytes(w) as u128) << have;
            have += 64;
        }
        of(ring.wrap(acc as u64));
        acc >>= bits;
        have -= bits;
    }
    // what is left of the last word
    match acc {
        0 => Ok(()),
        _ => Err(PackError::Padding { elements: n, bits }),
    }
}

/// Element `i` of packed ones: what [`unpack`] gives at its place, without the others.
///
/// # Panics
/// Where the bytes end before it.
pub fn element(ring: Ring, bytes: &[u8], i: usize) -> u64 {
    let (bits, at) = (ring.bits() as usize, i * ring.bits() as usize);
    let (first, shift) = (at / 8, at % 8);
    let used = &bytes[first..(at + bits).div_ceil(8)];
    let mut word = [0; 16];
    word[..used.len()].copy_from_slice(used);
    ring.wrap((u128::from_le_bytes(word) >> shift) as u64)
}
