//! Correlated OTs as values that are used once, and what is made of them.
//!
//! Sender: Delta and blocks q. Receiver: choice bits c and blocks `t = q ^ c Delta`. A run is made by a producer
//! ([`crate::pool`]) and consumed by `into_pads`: it has no `Clone`, and nothing gives its blocks.

use crate::delta::{Delta, mask, wide};
use crate::error::Malformed;
use crate::hash::Pads;
use crate::mutation;
use crate::pack::{Strings, bits_at};
use privet_ring::BitVec;
use zeroize::Zeroizing;

pub(crate) type Blocks = Zeroizing<Vec<u128>>;

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
    /// The choices. Secret.
    pub choices: BitVec,
    /// The chosen strings.
    pub strings: Strings,
}

/// The choices that a receiver wants, masked by those of its transfers: what goes on the wire.
///
/// Only [`ReceiverPads::choose`] makes one, and that uses the transfers' random choices up.
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
        let delta = self.delta.block();
        let mut zero = self.blocks;
        let mut one = Zeroizing::new(zero.iter().map(|q| q ^ delta).collect::<Vec<_>>());
        self.hash.tccr(self.first, &mut zero);
        self.hash.tccr(self.first, &mut one);
        SenderPads { strings: [zero, one].map(Strings::new) }
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

    /// The choices and the chosen string of every transfer, `tccr(t)`: 1 AES a transfer.
    pub fn into_pads(self) -> ReceiverPads {
        let mut blocks = self.blocks;
        let choices = bits_at(&blocks, 0);
        self.hash.tccr(self.first, &mut blocks);
        ReceiverPads { choices, strings: Strings::new(blocks) }
    }
}

impl SenderPads {
    /// Exchanges the strings where a masked choice is 1: then the receiver holds those that it wants.
    ///
    /// # Panics
    /// Where there is not one choice a transfer, or strings have been read.
    pub fn chosen(mut self, masked: MaskedBits) -> SenderPads {
        assert_eq!(masked.0.len(), self.strings[0].len(), "one choice a transfer");
        let [zero, one] = &mut self.strings;
        for (i, (a, b)) in zero.blocks_mut().iter_mut().zip(one.blocks_mut()).enumerate() {
            let change = (*a ^ *b) & wide(mask(masked.0.get(i)));
            *a ^= change;
            *b ^= change;
        }
        self
    }
}

impl ReceiverPads {
    /// The strings of the wanted choices instead, and the message that tells the sender how.
    ///
    /// # Panics
    /// Where there is not one choice a transfer.
    #[must_use = "the sender must get the masked choices"]
    pub fn choose(self, wanted: &BitVec) -> (Strings, MaskedBits) {
        let mut masked = self.choices;
        if mutation::active("choices-unmasked") {
            masked = BitVec::zeros(masked.len());
        }
        masked.xor_assign(wanted);
        (self.strings, MaskedBits(masked))
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
hidden!(SenderCots, ReceiverCots, SenderPads, ReceiverPads);
