//! What goes on the wire: exact lengths, every word checked.

use crate::context::{Context, Points};
use crate::encode;
use crate::modulus::PRIME_BITS;
use crate::mutation;
use crate::params::Set;
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
    /// Bits past the last word.
    #[error("bits past the last word are not zero; the sender encodes otherwise, or the bytes were changed")]
    Padding,
}

impl From<PackError> for WireError {
    fn from(error: PackError) -> WireError {
        match error {
            PackError::Length { expected, found, .. } => WireError::Length { expected, found },
            PackError::Padding { .. } => WireError::Padding,
        }
    }
}

const WORD: Ring = Ring::new(PRIME_BITS);

/// Polynomials, 50 bits a word.
pub(crate) fn put_polynomials(polynomials: &[Points]) -> Vec<u8> {
    let mut out = Vec::new();
    polynomials.iter().for_each(|v| pack(WORD, &v.words, &mut out));
    out
}

/// The inverse of [`put_polynomials`]. Nothing is allocated before the length is right.
pub(crate) fn polynomials(context: &Context, n: usize, bytes: &[u8]) -> Result<Vec<Points>, WireError> {
    let each = context.set().poly_bytes();
    let expected = each.saturating_mul(n);
    if bytes.len() != expected {
        return Err(WireError::Length { expected, found: bytes.len() });
    }
    bytes.chunks_exact(each).map(|body| residues(context, body)).collect()
}

/// Bytes of a polynomial of which so many bits of a coefficient are sent, or all words.
pub(crate) fn poly_bytes(set: &Set, kept: Option<u32>) -> usize {
    kept.map_or(set.poly_bytes(), |bits| wide_bytes(bits, set.degree))
}

/// Polynomials of which so many bits of a coefficient were sent.
pub(crate) fn coarse(context: &Context, bits: u32, n: usize, bytes: &[u8]) -> Result<Vec<Coarse>, WireError> {
    let each = wide_bytes(bits, context.degree());
    let expected = each.saturating_mul(n);
    if bytes.len() != expected {
        return Err(WireError::Length { expected, found: bytes.len() });
    }
    let read = |body| Ok(Coarse { bits, words: wide(bits, context.degree(), body)? });
    bytes.chunks_exact(each).map(read).collect()
}

/// A polynomial's coefficients, multiples of `q / 2^bits` but for roundings: pseudo-random words that are sent.
pub(crate) struct Coarse {
    pub bits: u32,
    pub words: Vec<u128>,
}

impl Coarse {
    /// The multiples that are nearest to a polynomial.
    pub fn of(context: &Context, v: Points, bits: u32) -> Coarse {
        let mut words = encode::switch(context, &context.coefficients(v), bits);
        if mutation::active("coarser-than-stated") {
            words.iter_mut().for_each(|word| *word &= !1);
        }
        Coarse { bits, words }
    }

    /// As values.
    pub fn points(&self, context: &Context) -> Points {
        context.points(encode::widen(context, &self.words, self.bits))
    }
}

/// Words of every prime, all below it.
fn residues(context: &Context, bytes: &[u8]) -> Result<Points, WireError> {
    let words = unpack(WORD, bytes, context.degree() * context.primes().len())?;
    for prime in context.primes() {
        let own = &words[context.range(prime)];
        if let Some(at) = own.iter().position(|w| !context.is_residue(prime, *w)) {
            return Err(WireError::Residue { index: context.range(prime).start + at });
        }
    }
    Ok(Points { words })
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
