//! What the calls of [`super::Transfers`] cost, from sizes alone. Tests hold this to what is counted.
//!
//! Costs are of two parties together, and equal for every two of them. Among n parties there are n (n - 1) / 2 such pairs, and
//! a party has a share of 1 / n of all that is sent, as all take turns in the roles. Elements count in whole words of 64. Steps are
//! those of the source that takes the least work ([`room`]).

use super::layers::{MOST, TOGETHER};
use super::row::{FAR_ROWS, LOAD, ROWS, RUN, WORDS, exchanges};
use super::times::{on_a_transfer, size};
use super::{Task, elements_cost};
use privet_family::Products;
use privet_he::layout::Cost;
use privet_ot::channel::START_BYTES;
use privet_ot::params::B11;
use privet_ot::{Source, Width};
use privet_plan::cost::Offline;
use privet_ring::Ring;
use std::ops::{Add, Range};

/// What a call costs two parties together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Correlated transfers, of both directions.
    pub transfers: u64,
    /// Bytes of messages, both ways, but for what makes the transfers ([`privet_ot::Source`]).
    pub bytes: u64,
    /// Exchanges one after the other: two messages each way, after those that make the transfers.
    pub steps: u64,
}

/// The source of transfers that takes the least work.
pub(crate) const LEAST_WORK: Source = Source::SoftSpoken(Width::Four);
/// The source that sends the least for its work.
pub(crate) const LEAST_BYTES: Source = Source::Ferret(B11);

/// Bytes that a source sends for so many transfers, without those that begin a session.
pub(crate) fn extension(source: Source, transfers: u64) -> u64 {
    match source {
        // k = 4: 31 bits
        Source::SoftSpoken(width) => transfers * width.bits() / 8,
        Source::Ferret(p) => (transfers * p.message_bytes() as u64).div_ceil(p.usable() as u64),
    }
}

/// Rows that one exchange has room for, each way, by the source: the one that sends the least is for distant parties.
pub(super) const fn room(source: Source) -> usize {
    match source {
        Source::SoftSpoken(_) => ROWS,
        Source::Ferret(_) => FAR_ROWS,
    }
}

/// Rounds of messages that a source takes for so many transfers, both ways together, beside those of exchanges: Ferret's, one a batch.
pub(crate) fn batches(source: Source, transfers: u64) -> u64 {
    match source {
        Source::SoftSpoken(_) => 0,
        Source::Ferret(p) => transfers / (2 * p.usable() as u64),
    }
}

/// Transfers that one exchange has room for, both ways together.
pub(crate) const fn in_a_step(source: Source) -> u64 {
    2 * (room(source) * RUN) as u64
}

/// Rounds in which parties agree on a job's numbers, and on a record being whole.
const AGREED: u64 = 5;

/// What a party does once in a job, divided by its records: how far others are, transfers of bases, what Ferret starts with, and public
/// coins.
pub(crate) fn job(parties: usize, records: usize, source: Source) -> Offline {
    let first = match source {
        Source::SoftSpoken(_) => 0,
        Source::Ferret(_) => 2,
    };
    let (peers, records) = (parties as u64 - 1, records as u64);
    Offline {
        base: (peers * BASE_TRANSFERS).div_ceil(records),
        wire_bytes: (peers * START_BYTES as u64).div_ceil(records),
        rounds: (3 + AGREED + privet_net::DISTANCE_ROUNDS + first).div_ceil(records),
        ..Offline::default()
    }
}

/// Base transfers of a pair, of both directions.
const BASE_TRANSFERS: u64 = 2 * 128;

/// What takes as long as a byte of a link of 1 Gbit/s, 8 ns: a transfer with all that it carries takes 22 ns at each side, a
/// transform of one prime 10 us, a product of its values 0.6 us. They weigh ways against each other, alike at all parties.
const TRANSFER: u64 = 3;
const TRANSFORM: usize = 1250;
const PRODUCT: usize = 75;

/// What a party sends and computes with all its peers, as bytes. Transfers count as those of [`LEAST_WORK`], whatever makes them.
pub(super) fn of_transfers(parties: usize, t: Transferred) -> u64 {
    let each = (t.bytes + extension(LEAST_WORK, t.transfers)) / 2 + TRANSFER * t.transfers;
    (parties as u64 - 1) * each
}

/// The same of so many calls of an encrypted product, hints included.
pub(super) fn of_encryption(parties: usize, c: &Cost, calls: usize) -> u64 {
    let once = (parties - 1) * c.hint_bytes + TRANSFORM * c.hint_transforms + PRODUCT * c.hint_products;
    let sent = (parties - 1) * c.operand_bytes + c.partial_bytes;
    (once + calls * (sent + TRANSFORM * c.transforms + PRODUCT * c.products)) as u64
}

/// Values of a polynomial; those of the smallest set have half as many.
const DEGREE: usize = 8192;
/// Products of values that take as long as one transform of them.
const PRODUCTS: usize = 16;

/// Transfers and what they carry, as one of two parties has them, without what makes them ([`extension`]). An exchange is two
/// messages each way, one after the other.
pub(crate) fn before(t: Transferred) -> Offline {
    let (wire_bytes, rounds) = (t.bytes / 2, 2 * t.steps);
    Offline { transfers: t.transfers, wire_bytes, rounds, ..Offline::default() }
}

/// Values that a party transforms in an encrypted product's calls.
fn values(c: &Cost, calls: usize) -> usize {
    let transforms = c.hint_transforms + calls * c.transforms;
    let products = c.hint_products + calls * c.products;
    DEGREE * (transforms + products.div_ceil(PRODUCTS))
}

/// An encrypted product's calls divided by the records that they serve, the same way. The party with the most work transforms so many values.
fn encrypted(c: &Cost, most: usize, calls: usize, records: usize) -> Offline {
    let wire = c.hint_bytes + calls * (c.operand_bytes + c.partial_bytes);
    let each = |n: usize| n.div_ceil(records) as u64;
    Offline { values: each(most), wire_bytes: each(wire), rounds: 2 * each(calls), ..Offline::default() }
}

/// What a record takes for a product of masks between two parties, where the second ones serve so many records. They are all known
/// to one party, if so.
pub(crate) fn linear(what: Products, ring: Ring, records: usize, owned: bool) -> Offline {
    let bytes = size_of::<u64>() * (what.count * what.shape.input_len() + what.output_len());
    let calls = records.div_ceil((TOGETHER / bytes.max(1)).max(1));
    let task =
        Task { what, runs: records.div_ceil(calls), calls, ring, owner: owned.then_some((0, ring.bits())) };
    let small = (task.what.macs() * task.runs as u64 <= MOST)
        .then(|| multiply(2, task.what.macs() as usize * task.runs, ring));
    match task.mean_cost(2) {
        Ok(cost)
            if small.is_none_or(|t| of_encryption(2, &cost, calls) < calls as u64 * of_transfers(2, t)) =>
        {
            // who owns the weights multiplies alone: others wait for it
            let of = |party| task.cost(2, party).map_or(0, |c| values(&c, calls));
            encrypted(&cost, of(0).max(of(1)), calls, records)
        }
        _ => before(multiply(2, task.what.macs() as usize, ring)),
    }
}

/// What a record takes for products of so many elements between two parties.
pub(crate) fn elements(n: usize, ring: Ring) -> Offline {
    let by_transfers = multiply(2, n, ring);
    match elements_cost(ring, n, 2) {
        Ok(cost) if of_encryption(2, &cost, 1) < of_transfers(2, by_transfers) => {
            encrypted(&cost, values(&cost, 1), 1, 1)
        }
        _ => before(by_transfers),
    }
}

impl Add for Transferred {
    type Output = Transferred;

    /// One call after the other.
    fn add(self, other: Transferred) -> Transferred {
        Transferred {
            transfers: self.transfers + other.transfers,
            bytes: self.bytes + other.bytes,
            steps: self.steps + other.steps,
        }
    }
}

/// Rows of `words` words of transfers: each has a masked choice beside the bits that it carries.
fn rows(words: usize, rows: u64, carried: u64) -> Transferred {
    let words = words as u64;
    Transferred { transfers: 64 * words * rows, bytes: 8 * words * (rows + carried), steps: 0 }
}

/// Exchanges of what goes in blocks through `stages` stages, `rows` rows to a block.
fn steps(parties: usize, words: usize, rows: u64, stages: usize) -> u64 {
    let size = words.div_ceil(parties).clamp(1, RUN / 64);
    let together = parties as u64 * (ROWS as u64 / rows.max(1)).max(1);
    (words.div_ceil(size) as u64).div_ceil(together) * stages as u64
}

/// [`super::Transfers::bitwise_mask`], of `bits` bits, in `ring`.
pub fn bitwise_mask(
    parties: usize,
    count: usize,
    bits: u32,
    ring: Ring,
    words: &[Range<u32>],
    pairs: bool,
) -> Transferred {
    let (mut number, mut carried) = (0, 0);
    for bit in 0..bits {
        let of = || words.iter().filter(|range| range.contains(&bit));
        let modulus = of().map(|range| ring.bits().saturating_sub(bit - range.start)).max().unwrap_or(0);
        let fresh = of().any(|range| range.start == bit);
        let word = if fresh { modulus } else { modulus.saturating_sub(1) };
        let pair = pairs && bit < bits / 2 * 2;
        number += u64::from(word > 0 || pair);
        carried += u64::from(word) + u64::from(pair);
    }
    let side = count.div_ceil(64);
    Transferred { steps: steps(parties, side, number, parties - 1), ..rows(side, number, carried) }
}

/// Words cut into runs of so many.
fn runs(words: usize, size: usize) -> impl Iterator<Item = usize> {
    (0..words).step_by(size).map(move |at| (words - at).min(size))
}

/// [`super::Transfers::and`] of factors with so many words and so many others.
pub fn and(factors: &[(usize, usize)]) -> Transferred {
    let pieces = factors.iter().flat_map(|(words, ys)| {
        runs(*words, RUN / 64).flat_map(|run| std::iter::repeat_n(run, ys.div_ceil(LOAD)))
    });
    let both = |(words, ys): &(usize, usize)| rows(*words, 2 * ys.div_ceil(LOAD) as u64, 2 * *ys as u64);
    let all = factors.iter().map(both).fold(Transferred::default(), Transferred::add);
    Transferred { steps: exchanges(pieces.collect(), ROWS, |words| 64 * words).len() as u64, ..all }
}

/// [`super::Transfers::to_words`] of planes of so many words.
pub fn to_words(parties: usize, words: usize, ring: Ring) -> Transferred {
    Transferred { steps: steps(parties, words, 1, parties - 1), ..rows(words, 1, ring.bits().into()) }
}

/// [`super::Transfers::times`] of so many planes of so many words, each with operands of these rings.
pub fn times(parties: usize, planes: usize, words: usize, rings: &[Ring]) -> Transferred {
    let bits = |ring: &Ring| 2 * u64::from(ring.bits());
    let of_one = on_a_transfer(rings).map(|on_one| rows(words, 2, on_one.iter().map(bits).sum()));
    let of_one = of_one.fold(Transferred::default(), Transferred::add);
    let rows = planes * rings.len().div_ceil(WORDS);
    let pieces = (0..rows).flat_map(|_| runs(words, size(parties, words)));
    let stages = if parties == 2 { 1 } else { parties };
    Transferred {
        transfers: planes as u64 * of_one.transfers,
        bytes: planes as u64 * of_one.bytes,
        steps: (exchanges(pieces.collect(), ROWS, |words| 64 * words).len() * stages) as u64,
    }
}

/// [`super::Transfers::multiply`].
pub fn multiply(parties: usize, count: usize, ring: Ring) -> Transferred {
    let (k, words) = (u64::from(ring.bits()), count.div_ceil(64));
    Transferred { steps: steps(parties, words, k, 1), ..rows(words, 2 * k, k * (k + 1)) }
}

/// [`super::Transfers::square`].
pub fn square(parties: usize, count: usize, ring: Ring) -> Transferred {
    let (k, words) = (u64::from(ring.bits()), count.div_ceil(64));
    let number = (k - 1).max(1);
    Transferred {
        steps: steps(parties, words, number, 1),
        ..rows(words, number, k + (k - 1) * k.saturating_sub(2) / 2)
    }
}

/// [`super::Transfers::open`].
pub fn open(count: usize, ring: Ring) -> Transferred {
    Transferred { transfers: 0, bytes: 2 * ring.packed_bytes(count) as u64, steps: 1 }
}
