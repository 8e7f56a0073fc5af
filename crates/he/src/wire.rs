//! What goes on the wire: exact lengths, every word checked.

use crate::context::{Context, Points};
use crate::modulus::PRIME_BITS;
use privet_prg::Seed;
use privet_ring::{PackError, Ring, pack, unpack};
use thiserror::Error;

/// Bytes that are not what was announced.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum WireError {
    /// Too few or too many bytes.
    #[error("{expected} bytes were due, {found} came; both parties must have one plan and one version")]
    Length {
        /// Bytes due.
        expected: usize,
        /// Bytes that came.
        found: usize,
    },
    /// A word that is not below its prime.
    #[error("word {index} is not below its prime; the sender encodes otherwise, or the bytes were changed")]
    Residue {
        /// The word's number.
        index: usize,
    },
}

impl From<PackError> for WireError {
    fn from(PackError::Length { expected, found, .. }: PackError) -> WireError {
        WireError::Length { expected, found }
    }
}

const WORD: Ring = Ring::new(PRIME_BITS);

/// A public seed, then bodies of 50 bits a word.
pub(crate) fn seeded(seed: &Seed, bodies: &[Points]) -> Vec<u8> {
    let mut out = seed.expose().to_vec();
    bodies.iter().for_each(|body| pack(WORD, &body.words, &mut out));
    out
}

/// The inverse of [`seeded`]. Nothing is allocated before the length is right.
pub(crate) fn read_seeded(
    context: &Context,
    bodies: usize,
    bytes: &[u8],
) -> Result<(Seed, Vec<Points>), WireError> {
    let each = context.set().poly_bytes();
    let expected = each.checked_mul(bodies).and_then(|b| b.checked_add(Seed::BYTES)).unwrap_or(usize::MAX);
    let wrong = WireError::Length { expected, found: bytes.len() };
    let Some((seed, rest)) = bytes.split_first_chunk().filter(|_| bytes.len() == expected) else {
        return Err(wrong);
    };
    let bodies = rest
        .chunks_exact(each)
        .map(|body| residues(context, context.degree(), body))
        .collect::<Result<_, _>>()?;
    Ok((Seed::from_bytes(*seed), bodies))
}

/// `each` words of every prime, all below it.
pub(crate) fn residues(context: &Context, each: usize, bytes: &[u8]) -> Result<Points, WireError> {
    let words = unpack(WORD, bytes, each * context.primes().len())?;
    for prime in context.primes() {
        let own = &words[prime * each..(prime + 1) * each];
        if let Some(at) = own.iter().position(|w| !context.is_residue(prime, *w)) {
            return Err(WireError::Residue { index: prime * each + at });
        }
    }
    Ok(Points { words })
}

/// Append words of all primes, 50 bits each.
pub(crate) fn put_residues(words: &[u64], out: &mut Vec<u8>) {
    pack(WORD, words, out);
}

/// Bytes of so many words.
pub(crate) fn residue_bytes(words: usize) -> usize {
    WORD.packed_bytes(words)
}

/// Bytes of `n` integers of `bits` <= 128 bits.
pub(crate) fn wide_bytes(bits: u32, n: usize) -> usize {
    Ring::new(bits.min(64)).packed_bytes(n) + if bits > 64 { Ring::new(bits - 64).packed_bytes(n) } else { 0 }
}

/// Append integers of `bits` bits: their low 64 bits, then what is above.
pub(crate) fn put_wide(bits: u32, values: &[u128], out: &mut Vec<u8>) {
    let low: Vec<u64> = values.iter().map(|v| *v as u64).collect();
    pack(Ring::new(bits.min(64)), &low, out);
    if bits > 64 {
        let high: Vec<u64> = values.iter().map(|v| (*v >> 64) as u64).collect();
        pack(Ring::new(bits - 64), &high, out);
    }
}

/// The inverse of [`put_wide`], for exactly [`wide_bytes`] bytes.
pub(crate) fn wide(bits: u32, n: usize, bytes: &[u8]) -> Result<Vec<u128>, WireError> {
    let expected = wide_bytes(bits, n);
    if bytes.len() != expected {
        return Err(WireError::Length { expected, found: bytes.len() });
    }
    let (low, high) = bytes.split_at(Ring::new(bits.min(64)).packed_bytes(n));
    let low = unpack(Ring::new(bits.min(64)), low, n)?;
    if bits <= 64 {
        return Ok(low.into_iter().map(u128::from).collect());
    }
    let high = unpack(Ring::new(bits - 64), high, n)?;
    Ok(low.into_iter().zip(high).map(|(l, h)| u128::from(h) << 64 | u128::from(l)).collect())
}
