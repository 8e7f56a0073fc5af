//! Correlated OTs as values that are used once, and what is made of them.
//!
//! Sender: Delta and blocks q. Receiver: choice bits c and blocks `t = q ^ c Delta`. A run is made by a producer
//! ([`crate::pool`]) and consumed by `into_pads`: it has no `Clone`, and nothing gives its blocks.

use crate::cpu::{Path, by_path, words};
use crate::delta::Delta;
use crate::error::Malformed;
use crate::hash::Pads;
use crate::mutation;
use crate::pack::{Strings, bits_at};
use privet_prg::Wiped;
use privet_ring::BitVec;

pub(crate) type Blocks = Wiped<u128>;

const CHOICES: &str = "masked choices";

/// A sender's run of correlated OTs.
#[must_use = "correlations that are dropped are lost at both parties"]
pub struct SenderCots {
    pub(crate) delta: Delta,
    pub(crate) hash: Pads,
    pub(crate) first: u64,
    pub(crate) blocks: Blocks,
}

/// A receiver's run of correlated OTs, of random choices.
#[must_use = "correlations that are dropped are lost at both parties"]
pub struct ReceiverCots {
    pub(crate) hash: Pads,
    pub(crate) first: u64,
    pub(crate) blocks: Blocks,
}

/// Random OTs of a sender: two strings of 128 bits a transfer.
pub struct SenderPads {
    /// The strings for choice 0 and for choice 1.
    pub strings: [Strings; 2],
}

/// Random OTs of a receiver: random choices, and the string of each.
pub struct ReceiverPads {
    /// The choices, 64 to a word. Secret.
    pub choices: Wiped<u64>,
    /// The chosen strings.
    pub strings: Strings,
}

/// A receiver's run whose choices are the wanted ones. The sender reads its own by the message ([`SenderCots::into_chosen`]).
#[must_use = "correlations that are dropped are lost at both parties"]
pub struct ChosenCots(ReceiverCots);

/// The choices that a receiver wants, masked by those of its transfers: what goes on the wire.
///
/// Only [`ReceiverCots::choose`] makes one, and that uses the transfers' random choices up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskedBits(BitVec);

impl SenderCots {
    /// Transfers.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Both strings of every transfer, `tccr(q)` and `tccr(q ^ Delta)`: 2 AES a transfer.
    pub fn into_pads(self) -> SenderPads {
        let mut zero = self.blocks;
        let mut one = Wiped::copy_of(&zero);
        flip(Path::detect(), &mut one, self.delta.block());
        self.hash.tccr(self.first, &mut zero);
        self.hash.tccr(self.first, &mut one);
        SenderPads { strings: [zero, one].map(Strings::new) }
    }

    /// As [`SenderCots::into_pads`], the strings exchanged where a masked choice is 1: then the receiver holds those that it
    /// wants. With f the masked choices, `q ^ f Delta` is `t` where the wanted choice is 0.
    ///
    /// # Panics
    /// Where there is not one choice a transfer.
    pub fn into_chosen(mut self, masked: &MaskedBits) -> SenderPads {
        assert_eq!(masked.0.len(), self.len(), "one choice a transfer");
        exchange(Path::detect(), &mut self.blocks, masked.0.words(), self.delta.block());
        self.into_pads()
    }
}

impl ReceiverCots {
    /// Transfers.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The wanted choices instead, 64 to a word, and the message that tells the sender how. What is wanted past the last
    /// transfer is ignored.
    ///
    /// # Panics
    /// Where there are too few wanted choices.
    #[must_use = "the sender must get the masked choices"]
    pub fn choose(self, wanted: &[u64]) -> (ChosenCots, MaskedBits) {
        let mut masked = bits_at(&self.blocks, 0);
        if mutation::active("choices-unmasked") {
            masked.fill(0);
        }
        assert_eq!(masked.len(), wanted.len(), "one choice a transfer");
        masked.iter_mut().zip(wanted).for_each(|(m, w)| *m ^= w);
        let masked = BitVec::from_words(self.len(), std::mem::take(&mut *masked));
        (ChosenCots(self), MaskedBits(masked))
    }

    /// The choices and the chosen string of every transfer, `tccr(t)`: 1 AES a transfer.
    pub fn into_pads(self) -> ReceiverPads {
        let mut blocks = self.blocks;
        let choices = bits_at(&blocks, 0);
        self.hash.tccr(self.first, &mut blocks);
        ReceiverPads { choices, strings: Strings::new(blocks) }
    }
}

impl ChosenCots {
    /// The string of the wanted choice of every transfer: 1 AES a transfer.
    pub fn into_strings(self) -> Strings {
        self.0.into_pads().strings
    }
}

by_path! {
    /// XORs `delta` into all blocks.
    fn flip(blocks: &mut [u128], delta: u128) = flip_body
}

#[inline(always)]
fn flip_body(blocks: &mut [u128], delta: u128) {
    let halves = [delta as u64, (delta >> 64) as u64];
    for block in words(blocks).as_chunks_mut::<2>().0 {
        block[0] ^= halves[0];
        block[1] ^= halves[1];
    }
}

by_path! {
    /// XORs `delta` into the blocks whose bit is 1.
    fn exchange(blocks: &mut [u128], bits: &[u64], delta: u128) = exchange_body
}

#[inline(always)]
fn exchange_body(blocks: &mut [u128], bits: &[u64], delta: u128) {
    let halves = [delta as u64, (delta >> 64) as u64];
    for (blocks, bits) in blocks.chunks_mut(64).zip(bits) {
        for (i, block) in words(blocks).as_chunks_mut::<2>().0.iter_mut().enumerate() {
            // the bits are public, and still this is no branch, which would be taken at random
            let here = (bits >> i & 1).wrapping_neg();
            block[0] ^= here & halves[0];
            block[1] ^= here & halves[1];
        }
    }
}

impl MaskedBits {
    /// The message: `ceil(n / 8)` bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    /// The message of `n` choices.
    pub fn from_bytes(n: usize, bytes: &[u8]) -> Result<MaskedBits, Malformed> {
        crate::error::exact(CHOICES, bytes, n.div_ceil(8))?;
        BitVec::from_bytes(n, bytes).map(MaskedBits).ok_or(Malformed::Bits { step: CHOICES, bits: n })
    }
}

macro_rules! hidden {
    ($($name:ident),*) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }
    )*};
}
hidden!(SenderCots, ReceiverCots, ChosenCots, SenderPads, ReceiverPads);
