//! Products of words element by element (Gilboa, CRYPTO 1999), for numbers of elements too small for encryption.
//!
//! Of every pair of parties each is receiver of a row for every bit l of its y, which is the choice; the other puts in its x
//! modulo 2^(k-l). The shares are summed up with weight 2^l. Of a square one direction is enough: the cross terms are equal,
//! so `2 x_i x_j` takes k - l - 1 bits in row l; row 0 carries `2 x_i` in all k bits, so that the lowest bits are shared
//! afresh as well.
//!
//! SECURITY. Rows alone (`row.rs`): a simulator draws what n - 1 parties get, and their shares follow.

use super::bits::{plane_words, planes};
use super::chain::{Block, batches};
use super::peers::{Exchanged, Peers, Rows};
use super::row::{Give, Load, Take};
use crate::{PrepareError, mutation};
use privet_prg::Wiped;
use privet_ring::Ring;

type Words = Wiped<u64>;

/// This party's shares of x y in `ring`, from its shares of either; what lies above the ring is anything.
pub(super) fn multiply(
    peers: &mut Peers<'_>,
    ring: Ring,
    x: &[u64],
    y: &[u64],
) -> Result<Words, PrepareError> {
    let mut out: Words = x.iter().zip(y).map(|(x, y)| x.wrapping_mul(*y)).collect();
    let both = |_: &Block, _, _| true;
    cross(peers, ring, 0, [x, y], both, &mut out)?;
    Ok(out)
}

/// This party's shares of x^2 in `ring`, from its share of x; what lies above the ring is anything.
pub(super) fn square(peers: &mut Peers<'_>, ring: Ring, x: &[u64]) -> Result<Words, PrepareError> {
    let mut out: Words = x.iter().map(|x| x.wrapping_mul(*x)).collect();
    let parties = peers.parties();
    let once = |block: &Block, from, to| block.position(from, parties) < block.position(to, parties);
    cross(peers, ring, 1, [x, x], once, &mut out)?;
    Ok(out)
}

/// Adds `2^double` times (1 or 2) the products of one party's x with another's y, for those (from, to) that `meet`.
fn cross(
    peers: &mut Peers<'_>,
    ring: Ring,
    double: u32,
    [x, y]: [&[u64]; 2],
    meet: impl Fn(&Block, usize, usize) -> bool + Sync,
    out: &mut [u64],
) -> Result<(), PrepareError> {
    let (me, n) = (peers.me, x.len());
    // the highest bit of y counts in no double product, but a ring of one bit needs a row to share afresh
    let rows = (ring.bits() - double).max(1);
    // by how many bits x is shifted before it is sent, and the product afterwards
    let fresh = |row: u32| row == 0 && !mutation::active("squares-not-fresh");
    let shifts = |row: u32| if fresh(row) { [double, 0] } else { [0, row + double] };
    let width = |row: u32| ring.bits() - shifts(row)[1];
    let planes = planes(y, rows as usize);
    let words = plane_words(n);
    for blocks in batches(words, peers, rows as usize) {
        let elements = |block: &Block| 64 * block.words.start..(64 * block.words.end).min(n);
        let gives = |block: &Block, peer| meet(block, me, peer);
        let takes = |block: &Block, peer| meet(block, peer, me);
        let give = |block: &Block, row| Give {
            n: block.n(),
            load: Load::one(width(row), 0),
            words: [&x[elements(block)], &[]],
            shift: shifts(row)[0],
            bits: Vec::new(),
        };
        let take = |block: &Block, row| Take {
            n: block.n(),
            load: Load::one(width(row), 0),
            choices: &planes[row as usize * words..][block.words.clone()],
        };
        let all = peers.rows("products of words", |peer| {
            let mut all = Rows::default();
            for block in &blocks {
                if gives(block, peer) {
                    all.give.extend((0..rows).map(|row| give(block, row)));
                }
                if takes(block, peer) {
                    all.take.extend((0..rows).map(|row| take(block, row)));
                }
            }
            all
        })?;
        for Exchanged { peer, given, taken } in all {
            let (mut given, mut taken) = (given.into_iter(), taken.into_iter());
            for block in &blocks {
                let given = given.by_ref().take(if gives(block, peer) { rows as usize } else { 0 });
                let of_given: Vec<_> = given.collect();
                let taken = taken.by_ref().take(if takes(block, peer) { rows as usize } else { 0 });
                let of_taken: Vec<_> = taken.collect();
                for shares in [of_given, of_taken] {
                    for (row, shares) in (0..).zip(shares) {
                        let out = out[elements(block)].iter_mut();
                        let [_, after] = shifts(row);
                        out.zip(shares.words[0].iter())
                            .for_each(|(out, s)| *out = out.wrapping_add(s << after));
                    }
                }
            }
        }
    }
    Ok(())
}
