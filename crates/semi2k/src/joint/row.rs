//! A row: up to [`RUN`] transfers with chosen choices, each of which carries products of its choice.
//!
//! The receiver has a bit c, the sender a word v and bits d. After one message each way (masked choices, then
//! [`Give::answer`]) they hold additive shares of `c v mod 2^w` and XOR shares of every `c d`. Every protocol of this folder
//! that multiplies is made of rows.
//!
//! Of a transfer's strings r0, r1 the sender sends `r0 - r1 + v` and keeps `-r0`; the receiver keeps `r_c`, plus the message
//! where c is 1. Bits are the same modulo 2.
//!
//! SECURITY. The word and every bit of a transfer are masked by parts of its string that nothing else takes: [`Strings`]
//! gives every bit once. The receiver knows `r_c` alone; `r_(1-c)` is uniform to it, so what it is sent is uniform, whatever
//! v and d are. The sender is sent choices masked by the transfers' random ones. A simulator draws both messages.

use super::bits::{add_where, to_bytes, xor_where};
use crate::mutation;
use privet_ot::{ChosenCots, MaskedBits, ReceiverCots, SenderCots, Strings};
use privet_prg::Wiped;
use privet_ring::{Ring, pack, unpack};

/// Transfers of a row at most: 64 KiB of blocks stay in the second-level cache.
pub(super) const RUN: usize = 4096;
/// Whole rows of one exchange at most, each way: it bounds what lies in buffers. AGREEMENT, as [`FAR_ROWS`].
pub(super) const ROWS: usize = 64;
/// The same between distant parties, whose links take in some megabytes while a message is on its way: 2^21 transfers, 32 MiB of blocks.
pub(super) const FAR_ROWS: usize = 512;
/// Bits that one transfer carries at most beside no word.
pub(super) const LOAD: usize = 64;
/// Words that one transfer carries at most: its string masks two of 64 bits.
pub(super) const WORDS: usize = 2;

/// What one transfer of a row carries: words of so many bits (0: none), and so many bits. Together they are at most as long as its
/// string, 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub widths: [u32; WORDS],
    pub bits: usize,
}

impl Load {
    /// Nothing: such a row is left out at both parties.
    pub const NONE: Load = Load { widths: [0; WORDS], bits: 0 };

    /// A word, or none, and bits.
    pub const fn one(width: u32, bits: usize) -> Load {
        Load { widths: [width, 0], bits }
    }

    /// Words of these widths.
    pub fn words(widths: impl Iterator<Item = u32>) -> Load {
        let mut load = Load::NONE;
        load.widths.iter_mut().zip(widths).for_each(|(to, width)| *to = width);
        load
    }

    /// Widths of the words that there are.
    fn each_word(self) -> impl Iterator<Item = u32> {
        self.widths.into_iter().filter(|width| *width > 0)
    }

    /// Bytes of the sender's message for `n` transfers, a multiple of 64.
    pub fn bytes(self, n: usize) -> usize {
        (self.each_word().sum::<u32>() as usize + self.bits) * n / 8
    }
}

/// Cuts what takes so many transfers each into parts of one exchange: at most `room` whole rows, and one at least.
pub(super) fn exchanges<T>(all: Vec<T>, room: usize, transfers: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let (mut parts, mut taken): (Vec<Vec<T>>, usize) = (Vec::new(), 0);
    for one in all {
        let n = transfers(&one);
        match parts.last_mut().filter(|_| taken + n <= room * RUN) {
            Some(part) => part.push(one),
            None => {
                taken = 0;
                parts.push(vec![one]);
            }
        }
        taken += n;
    }
    parts
}

/// A row of which this party is the sender.
pub(super) struct Give<'a> {
    /// Transfers, a multiple of 64.
    pub n: usize,
    /// What each carries.
    pub load: Load,
    /// For each word of the load one a transfer, zero past the last, of which `2^shift` times is carried: modulo `2^width`.
    pub words: [&'a [u64]; WORDS],
    pub shift: u32,
    /// Bits, 64 to a word, for all transfers.
    pub bits: Vec<&'a [u64]>,
}

/// A row of which this party is the receiver.
pub(super) struct Take<'a> {
    /// Transfers, a multiple of 64.
    pub n: usize,
    /// What each carries.
    pub load: Load,
    /// The choices, 64 to a word.
    pub choices: &'a [u64],
}

/// A party's shares of the products of one row. Words are right modulo 2^width.
pub(super) struct Shares {
    /// Of each word of the load.
    pub words: Vec<Wiped<u64>>,
    pub bits: Vec<Wiped<u64>>,
}

impl Shares {
    /// What masks a row: the next bits of each string.
    fn read(mut strings: Strings, load: Load) -> Shares {
        let words = load.each_word().map(|width| strings.words(Ring::new(width))).collect();
        let mut shares = Shares { words, bits: (0..load.bits).map(|_| strings.bits()).collect() };
        mutation::strings(&mut shares.words, &mut shares.bits);
        shares
    }
}

impl Give<'_> {
    /// Appends the message; gives the sender's shares.
    pub fn answer(&self, cots: SenderCots, masked: &MaskedBits, out: &mut Vec<u8>) -> Shares {
        let strings = cots.into_chosen(masked).strings;
        assert_eq!(self.bits.len(), self.load.bits, "bits of the load");
        let [mut shares, one] = strings.map(|strings| Shares::read(strings, self.load));
        let of_words = shares.words.iter_mut().zip(one.words).zip(self.load.each_word().zip(self.words));
        for ((shares, mut message), (width, words)) in of_words {
            for (message, share) in message.iter_mut().zip(shares.iter_mut()) {
                *message = share.wrapping_sub(*message);
                *share = share.wrapping_neg();
            }
            message.iter_mut().zip(words).for_each(|(m, v)| *m = m.wrapping_add(v << self.shift));
            pack(Ring::new(width), &message, out);
        }
        for ((share, mut message), d) in shares.bits.iter().zip(one.bits).zip(&self.bits) {
            message.iter_mut().zip(share.iter().zip(*d)).for_each(|(m, (s, d))| *m ^= s ^ d);
            to_bytes(&message, out);
        }
        shares
    }
}

/// A row that waits for the sender's message.
pub(super) struct Waiting<'a> {
    row: &'a Take<'a>,
    cots: ChosenCots,
}

impl<'a> Take<'a> {
    /// Appends the masked choices.
    pub fn choose(&'a self, cots: ReceiverCots, out: &mut Vec<u8>) -> Waiting<'a> {
        let (cots, masked) = cots.choose(self.choices);
        out.extend_from_slice(&masked.to_bytes());
        Waiting { row: self, cots }
    }
}

impl Waiting<'_> {
    /// The receiver's shares, from the message of [`Load::bytes`] bytes.
    pub fn finish(self, message: &[u8]) -> Shares {
        let Take { n, load, choices } = *self.row;
        let mut shares = Shares::read(self.cots.into_strings(), load);
        let mut of_bits = message;
        for (width, shares) in load.each_word().zip(&mut shares.words) {
            let (head, tail) = of_bits.split_at(width as usize * n / 8);
            of_bits = tail;
            let message = unpack(Ring::new(width), head, n).expect("as many bytes as the load says");
            add_where(choices, &message, shares);
        }
        for (i, share) in shares.bits.iter_mut().enumerate() {
            xor_where(choices, &of_bits[i * n / 8..(i + 1) * n / 8], share);
        }
        shares
    }
}
