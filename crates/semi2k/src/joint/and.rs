//! XOR shares of products of bits.
//!
//! Of every pair of parties each is receiver of a row with its x as choices; the other puts in its y. One x may go with
//! several y: they ride on one transfer. So a product takes a transfer each way, and a tree's node, where one bit goes with
//! two, the same.
//!
//! SECURITY. Rows alone (`row.rs`): a simulator draws what n - 1 parties get, and their shares follow.

use super::bits::xor;
use super::peers::{Exchanged, Peers, Rows};
use super::row::{Give, LOAD, Load, RUN, Take, exchanges};
use crate::PrepareError;
use privet_prg::Wiped;
use std::ops::Range;

/// A factor, this party's share, and those it is multiplied with.
pub(super) type Factor<'a> = (&'a [u64], Vec<&'a [u64]>);

/// Part of a factor's words, with part of what it is multiplied with.
struct Piece {
    factor: usize,
    with: Range<usize>,
    words: Range<usize>,
}

impl Piece {
    fn n(&self) -> usize {
        64 * self.words.len()
    }
}

fn pieces(factors: &[Factor<'_>]) -> Vec<Piece> {
    let mut all = Vec::new();
    for (factor, (x, ys)) in factors.iter().enumerate() {
        for at in (0..x.len()).step_by(RUN / 64) {
            let words = at..(at + RUN / 64).min(x.len());
            let with = (0..ys.len()).step_by(LOAD).map(|y| y..(y + LOAD).min(ys.len()));
            all.extend(with.map(|with| Piece { factor, with, words: words.clone() }));
        }
    }
    all
}

/// This party's shares of every factor with each of those it is multiplied with.
pub(super) fn and(
    peers: &mut Peers<'_>,
    factors: &[Factor<'_>],
) -> Result<Vec<Vec<Wiped<u64>>>, PrepareError> {
    let own = |x: &[u64], y: &[u64]| x.iter().zip(y).map(|(x, y)| x & y).collect::<Wiped<u64>>();
    let mut out: Vec<Vec<_>> = factors.iter().map(|(x, ys)| ys.iter().map(|y| own(x, y)).collect()).collect();
    for pieces in exchanges(pieces(factors), peers.room, Piece::n) {
        let give = |piece: &Piece| Give {
            n: piece.n(),
            load: Load::one(0, piece.with.len()),
            words: [&[]; 2],
            shift: 0,
            bits: factors[piece.factor].1[piece.with.clone()]
                .iter()
                .map(|y| &y[piece.words.clone()])
                .collect(),
        };
        let take = |piece: &Piece| Take {
            n: piece.n(),
            load: Load::one(0, piece.with.len()),
            choices: &factors[piece.factor].0[piece.words.clone()],
        };
        let rows =
            |_| Rows { give: pieces.iter().map(give).collect(), take: pieces.iter().map(take).collect() };
        for Exchanged { given, taken, .. } in peers.rows("products of bits", rows)? {
            for (piece, shares) in pieces.iter().zip(given).chain(pieces.iter().zip(taken)) {
                for (y, bits) in piece.with.clone().zip(&shares.bits) {
                    xor(bits, &mut out[piece.factor][y][piece.words.clone()]);
                }
            }
        }
    }
    Ok(out)
}
