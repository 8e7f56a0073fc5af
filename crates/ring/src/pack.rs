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
    if bits.is_multiple_of(8) {
        return pack_bytes(ring, values, out);
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

/// Elements of whole bytes, by way of a piece that stays in the first-level cache, as an iterator of bytes goes byte by byte.
fn pack_bytes(ring: Ring, values: &[u64], out: &mut Vec<u8>) {
    const PIECE: usize = 256;
    let size = ring.packed_bytes(1);
    let mut bytes = [0; 8 * PIECE];
    out.reserve(size * values.len());
    for piece in values.chunks(PIECE) {
        // the zeros above an element are where the next one goes
        let mut rest = &mut bytes[..];
        for v in piece {
            let Some(to) = rest.first_chunk_mut() else { break };
            *to = ring.wrap(*v).to_le_bytes();
            rest = &mut rest[size..];
        }
        out.extend_from_slice(&bytes[..size * piece.len()]);
    }
}

/// The inverse of [`pack`]: exactly `n` elements from exactly [`packed_len`] bytes, of which each list of elements has one form:
/// bits past the last element must be zero.
pub fn unpack(ring: Ring, bytes: &[u8], n: usize) -> Result<Vec<u64>, PackError> {
    check_len(ring, bytes, n)?;
    if ring.bits() == 64 {
        return Ok(bytes.as_chunks::<8>().0.iter().map(|c| u64::from_le_bytes(*c)).collect());
    }
    Ok(elements(ring, bytes, n)?.collect())
}

/// Add packed elements to as many sums of the same ring, modulo 2^k. After an error the sums mean nothing.
pub fn add_packed(ring: Ring, bytes: &[u8], sums: &mut [u64]) -> Result<(), PackError> {
    check_len(ring, bytes, sums.len())?;
    if ring.bits() == 64 {
        let words = bytes.as_chunks::<8>().0;
        sums.iter_mut().zip(words).for_each(|(sum, x)| *sum = sum.wrapping_add(u64::from_le_bytes(*x)));
        return Ok(());
    }
    let found = elements(ring, bytes, sums.len())?;
    sums.iter_mut().zip(found).for_each(|(sum, x)| *sum = ring.wrap(sum.wrapping_add(x)));
    Ok(())
}

fn check_len(ring: Ring, bytes: &[u8], n: usize) -> Result<(), PackError> {
    match ring.packed_bytes(n) {
        expected if expected == bytes.len() => Ok(()),
        expected => Err(PackError::Length { elements: n, bits: ring.bits(), expected, found: bytes.len() }),
    }
}

/// The n packed elements, in order.
fn elements(ring: Ring, bytes: &[u8], n: usize) -> Result<impl Iterator<Item = u64>, PackError> {
    let bits = ring.bits() as usize;
    if let (1.., Some(last)) = (n * bits % 8, bytes.last())
        && last >> (n * bits % 8) != 0
    {
        return Err(PackError::Padding { elements: n, bits: ring.bits() });
    }
    // wherever in a byte such an element begins, one word from there on has all of it
    let is_short = bits <= 57;
    Ok((0..n).map(move |i| {
        let at = i * bits;
        let (rest, shift) = (bytes.get(at / 8..).unwrap_or_default(), at % 8);
        if is_short && let Some(word) = rest.first_chunk() {
            ring.wrap(u64::from_le_bytes(*word) >> shift)
        } else if let Some(words) = rest.first_chunk() {
            ring.wrap((u128::from_le_bytes(*words) >> shift) as u64)
        } else {
            element(ring, bytes, i)
        }
    }))
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
