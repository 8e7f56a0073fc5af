use crate::{Ring, groups};
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
    let (whole, rest) = values.as_chunks();
    // no more than is due: a buffer that a caller made large enough for secrets must not move
    out.reserve(ring.packed_bytes(values.len()));
    groups::write(ring, whole, out);
    let (mut bits, mut have) = (0u128, 0);
    for value in rest {
        bits |= u128::from(ring.wrap(*value)) << have;
        have += ring.bits();
        while have >= 8 {
            out.push(bits as u8);
            (bits, have) = (bits >> 8, have - 8);
        }
    }
    if have > 0 {
        out.push(bits as u8);
    }
}

/// The inverse of [`pack`]: exactly `n` elements from exactly [`packed_len`] bytes, of which each list of elements has one form:
/// bits past the last element must be zero.
pub fn unpack(ring: Ring, bytes: &[u8], n: usize) -> Result<Vec<u64>, PackError> {
    check(ring, bytes.len(), bytes.last().copied(), n)?;
    if ring.bits() == 64 {
        return Ok(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect());
    }
    let mut out = Vec::with_capacity(n);
    let done = groups::read(ring, bytes, n / groups::GROUP, |group| out.extend_from_slice(&group));
    out.extend((done * groups::GROUP..n).map(|i| element(ring, bytes, i)));
    Ok(out)
}

/// Whether bytes of this length and with this last one may be `n` packed elements.
pub(crate) fn check(ring: Ring, found: usize, last: Option<u8>, n: usize) -> Result<(), PackError> {
    let (expected, used) = (ring.packed_bytes(n), n * ring.bits() as usize % 8);
    if expected != found {
        return Err(PackError::Length { elements: n, bits: ring.bits(), expected, found });
    }
    match last {
        Some(last) if used != 0 && last >> used != 0 => {
            Err(PackError::Padding { elements: n, bits: ring.bits() })
        }
        _ => Ok(()),
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
