//! What can go wrong between the two parties.

use privet_net::NetError;
use thiserror::Error;

/// A message that no honest peer sends. `step` is the protocol's name for the message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// Another length than the step prescribes.
    #[error("{step}: {found} bytes where {expected} were expected")]
    Length {
        /// The message.
        step: &'static str,
        /// Bytes expected.
        expected: usize,
        /// Bytes found.
        found: usize,
    },
    /// Bytes that are no group element, or the neutral one.
    #[error("{step}: element {index} is no valid element of ristretto255")]
    Element {
        /// The message.
        step: &'static str,
        /// Which element.
        index: usize,
    },
    /// Bits beyond the last one are set.
    #[error("{step}: bits beyond the last of {bits} are set")]
    Bits {
        /// The message.
        step: &'static str,
        /// Bits expected.
        bits: usize,
    },
}

/// A failed oblivious transfer. It holds nothing secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OtError {
    /// The channel failed.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The peer sent what no honest peer sends.
    #[error("{peer} sent a wrong message, {what}; compare the versions on both sides")]
    Message {
        /// The peer's name.
        peer: String,
        /// What is wrong.
        what: Malformed,
    },
}

/// The message as blocks of 16 bytes, exactly `n`.
pub(crate) fn blocks(step: &'static str, bytes: &[u8], n: usize) -> Result<Vec<u128>, Malformed> {
    exact(step, bytes, 16 * n)?;
    Ok(bytes.as_chunks::<16>().0.iter().map(|b| u128::from_le_bytes(*b)).collect())
}

/// The message, of exactly `expected` bytes.
pub(crate) fn exact<'a>(step: &'static str, bytes: &'a [u8], expected: usize) -> Result<&'a [u8], Malformed> {
    let found = bytes.len();
    if found == expected { Ok(bytes) } else { Err(Malformed::Length { step, expected, found }) }
}
