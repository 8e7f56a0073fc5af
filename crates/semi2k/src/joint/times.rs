//! Bits times words: additive shares of `x y`, where x is shared by XOR and y by a sum. Many products go together.
//!
//! *Two parties.* With party i's bit and words, `x y_i = x_i y_i + x_j (1 - 2 x_i) y_i`. So each is receiver of a row with its bit
//! as choice, and the other one puts in `(1 - 2 x_i) y_i`: one exchange for all.
//!
//! *More.* Parties stand in a row as in `chain.rs`. With z = (x_0 ^ .. ^ x_(j-1)) y shared among all, the party at position j
//! brings in its bit:
//!
//! `(x ^ x_j) y = z + x_j (y - 2 z)`
//!
//! It is receiver of a row from every other party, which puts in its share of `y - 2 z`. So n stages take a transfer each
//! way between any two parties. Either way a transfer carries two words.
//!
//! SECURITY. Rows alone (`row.rs`): a simulator draws what n - 1 parties get, and their shares follow. Each word has bits of its
//! own of both strings, all of its width, so shares are fresh.

use super::bits::add_where;
use super::peers::{Exchanged, Peers, Rows};
use super::row::{Give, Load, RUN, Shares, Take, WORDS, exchanges};
use crate::{PrepareError, mutation};
use privet_prg::Wiped;
use privet_ring::Ring;
use std::ops::Range;

/// A plane of bits and what it is multiplied with, one word or two, of each this party's share.
pub(super) struct Product<'a> {
    pub bits: &'a [u64],
    pub words: Vec<(&'a [u64], Ring)>,
}

/// Part of a product, and who stands where.
struct Piece<'a> {
    product: usize,
    of: &'a Product<'a>,
    at: Range<usize>,
    first: usize,
}

impl<'a> Piece<'a> {
    /// Elements, padding included.
    fn n(&self) -> usize {
        64 * self.at.len()
    }

    fn bits(&self) -> &'a [u64] {
        &self.of.bits[self.at.clone()]
    }

    fn load(&self) -> Load {
        Load::words(self.of.words.iter().map(|(_, ring)| ring.bits()))
    }

    /// The words, with zeros past the last.
    fn words(&self) -> Vec<Wiped<u64>> {
        let some = |(all, _): &(&[u64], Ring)| {
            let end = |words: usize| (64 * words).min(all.len());
            let mut words = Wiped::copy_of(&all[end(self.at.start)..end(self.at.end)]);
            words.resize(self.n(), 0);
            words
        };
        self.of.words.iter().map(some).collect()
    }

    fn give<'r>(&self, words: &'r [Wiped<u64>]) -> Give<'r> {
        let mut all: [&[u64]; WORDS] = [&[]; WORDS];
        all.iter_mut().zip(words).for_each(|(to, words)| *to = words);
        Give { n: self.n(), load: self.load(), words: all, shift: 0, bits: Vec::new() }
    }

    fn take(&self) -> Take<'a> {
        Take { n: self.n(), load: self.load(), choices: self.bits() }
    }

    /// Whether a party brings in its bit at a stage.
    fn enters(&self, party: usize, stage: usize, parties: usize) -> bool {
        (self.first + stage) % parties == party
    }
}

/// Words of a plane that are one row: a whole one between two parties, else parts for parties that take turns.
pub(super) fn size(parties: usize, words: usize) -> usize {
    let turns = if parties == 2 { 1 } else { parties };
    words.div_ceil(turns).clamp(1, RUN / 64)
}

/// Words of a factor that go on one transfer.
pub(super) fn on_a_transfer<T>(words: &[T]) -> impl Iterator<Item = &[T]> {
    words.chunks(WORDS)
}

fn pieces<'a>(products: &'a [Product<'a>], parties: usize) -> Vec<Piece<'a>> {
    let mut all = Vec::new();
    for (product, of) in products.iter().enumerate() {
        let (words, size) = (of.bits.len(), size(parties, of.bits.len()));
        for start in (0..words).step_by(size) {
            let first = all.len() % parties;
            all.push(Piece { product, of, at: start..(start + size).min(words), first });
        }
    }
    all
}

/// This party's shares of each product, word by word, as many as the plane has bits; what lies above the ring is anything.
pub(super) fn times(
    peers: &mut Peers<'_>,
    products: &[Product<'_>],
) -> Result<Vec<Vec<Wiped<u64>>>, PrepareError> {
    let empty = |of: &Product<'_>| of.words.iter().map(|_| Wiped::with_room(64 * of.bits.len())).collect();
    let mut out: Vec<Vec<Wiped<u64>>> = products.iter().map(empty).collect();
    for pieces in exchanges(pieces(products, peers.parties()), peers.room, Piece::n) {
        let made = match peers.parties() {
            2 => crossed(peers, &pieces)?,
            _ => in_turns(peers, &pieces)?,
        };
        for (piece, made) in pieces.iter().zip(made) {
            let out = &mut out[piece.product];
            out.iter_mut().zip(&made).for_each(|(out, made)| out.extend_from_slice(made));
        }
    }
    Ok(out)
}

fn add(shares: &Shares, to: &mut [Wiped<u64>]) {
    for (to, shares) in to.iter_mut().zip(&shares.words) {
        to.iter_mut().zip(shares.iter()).for_each(|(to, s)| *to = to.wrapping_add(*s));
    }
}

/// Between two parties: shares of every piece, word by word.
fn crossed(peers: &mut Peers<'_>, pieces: &[Piece<'_>]) -> Result<Vec<Vec<Wiped<u64>>>, PrepareError> {
    let (mut z, mut turned) = (Vec::with_capacity(pieces.len()), Vec::with_capacity(pieces.len()));
    for piece in pieces {
        let mut y = piece.words();
        let own = |y: &Wiped<u64>| {
            let mut own = Wiped::zeros(y.len());
            add_where(piece.bits(), y, &mut own);
            own
        };
        let own: Vec<Wiped<u64>> = y.iter().map(own).collect();
        // (1 - 2 x) y
        for (y, own) in y.iter_mut().zip(&own) {
            y.iter_mut().zip(own.iter()).for_each(|(y, own)| *y = y.wrapping_sub(own << 1));
        }
        z.push(own);
        turned.push(y);
    }
    if mutation::active("last-stage-left-out") && peers.me == 0 {
        turned.iter_mut().flatten().for_each(|words| words.fill(0));
    }
    let rows = |_| Rows {
        give: pieces.iter().zip(&turned).map(|(piece, words)| piece.give(words)).collect(),
        take: pieces.iter().map(Piece::take).collect(),
    };
    for Exchanged { given, taken, .. } in peers.rows("bits times words", rows)? {
        for (z, shares) in z.iter_mut().zip(given.iter().zip(&taken)) {
            add(shares.0, z);
            add(shares.1, z);
        }
    }
    Ok(z)
}

/// Among more parties: the same.
fn in_turns(peers: &mut Peers<'_>, pieces: &[Piece<'_>]) -> Result<Vec<Vec<Wiped<u64>>>, PrepareError> {
    let (me, parties) = (peers.me, peers.parties());
    let y: Vec<_> = pieces.iter().map(Piece::words).collect();
    let zeros = |piece: &Piece<'_>| piece.of.words.iter().map(|_| Wiped::zeros(piece.n())).collect();
    let mut z: Vec<Vec<Wiped<u64>>> = pieces.iter().map(zeros).collect();
    for stage in 0..parties - mutation::active("last-stage-left-out") as usize {
        let rest = y.iter().zip(&z).map(|(y, z)| y.iter().zip(z).map(|(y, z)| rest(y, z)).collect());
        let rest: Vec<Vec<Wiped<u64>>> = rest.collect();
        let rows = |peer| {
            let mut rows = Rows::default();
            for (piece, rest) in pieces.iter().zip(&rest) {
                if piece.enters(peer, stage, parties) {
                    rows.give.push(piece.give(rest));
                } else if piece.enters(me, stage, parties) {
                    rows.take.push(piece.take());
                }
            }
            rows
        };
        let all = peers.rows("bits times words", rows)?;
        for ((piece, rest), z) in pieces.iter().zip(&rest).zip(&mut z) {
            if piece.enters(me, stage, parties) {
                rest.iter().zip(z).for_each(|(rest, z)| add_where(piece.bits(), rest, z));
            }
        }
        for Exchanged { peer, given, taken } in all {
            let (mut given, mut taken) = (given.into_iter(), taken.into_iter());
            for (piece, z) in pieces.iter().zip(&mut z) {
                let shares = match (piece.enters(peer, stage, parties), piece.enters(me, stage, parties)) {
                    (true, _) => given.next(),
                    (_, true) => taken.next(),
                    _ => continue,
                };
                add(&shares.expect("shares of every row"), z);
            }
        }
    }
    Ok(z)
}

/// `y - 2 z`.
fn rest(y: &[u64], z: &[u64]) -> Wiped<u64> {
    y.iter().zip(z).map(|(y, z)| y.wrapping_sub(z << 1)).collect()
}
