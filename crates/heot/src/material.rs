//! Material: what a run's gates use up, made of correlated transfers before the run, whatever weights and inputs are.
//!
//! A step of a gate *needs* correlations of one kind for n elements ([`Need`]). Each kind ([`Correlation`]) says how many transfers an
//! element takes, what either side keeps of it, and how that is made of transfers, without a message. Material is made, written and
//! read [`CHUNK`] elements at a time, in the order in which gates read it. It is handed out once, and who uses it takes it by value.

use crate::context::{RunError, Side};
use crate::gate::{self, At, kind};
use crate::leaf::Leaves;
use crate::mux::{Offers, Widening};
use crate::table::Keys;
use crate::tree::Triples;
use crate::{mutation, planes};
use privet_family::is_static;
use privet_family::keys::{KeyError, KeySource};
use privet_net::{Channel, Step};
use privet_ot::params::B11;
use privet_ot::{Pair, Short, Source, Width};
use privet_plan::Plan;
use privet_plan::ir::ValueId;
use privet_prg::{Seed, Wiped};
use privet_ring::{Ring, pack};
use std::marker::PhantomData;
use zeroize::Zeroizing;

/// Elements of a frame. AGREEMENT: both sides cut alike. What a digit's transfers take for so many fits a second-level cache.
pub(crate) const CHUNK: usize = 1 << 13;

/// What a side keeps of an element: so many bits in planes, then so many ring elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub planes: usize,
    pub elements: Vec<Ring>,
}

impl Shape {
    /// Words of n elements.
    fn words(&self, n: usize) -> usize {
        self.planes * planes::words(n)
            + self.elements.iter().map(|ring| packed_words(*ring, n)).sum::<usize>()
    }
}

fn packed_words(ring: Ring, n: usize) -> usize {
    planes::words(n * ring.bits() as usize)
}

/// A kind of correlation.
pub(crate) trait Correlation: Copy + Into<Kind> {
    /// Transfers of an element: in which the server has both strings, and in which the client has.
    fn transfers(&self) -> [usize; 2];

    /// What a side keeps of an element.
    fn shape(&self, side: Side) -> Shape;

    /// Fills a frame from transfers.
    fn make(&self, side: Side, pair: &mut Pair, frame: &mut Frame) -> Result<(), Short>;
}

macro_rules! kinds {
    ($($of:ident),* $(,)?) => {
        /// Every kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            $(#[doc = "Of this type."] $of($of)),*
        }

        $(impl From<$of> for Kind {
            fn from(of: $of) -> Kind {
                Kind::$of(of)
            }
        })*

        impl Correlation for Kind {
            fn transfers(&self) -> [usize; 2] {
                match self { $(Kind::$of(of) => of.transfers()),* }
            }

            fn shape(&self, side: Side) -> Shape {
                match self { $(Kind::$of(of) => of.shape(side)),* }
            }

            fn make(&self, side: Side, pair: &mut Pair, frame: &mut Frame) -> Result<(), Short> {
                match self { $(Kind::$of(of) => of.make(side, pair, frame)),* }
            }
        }
    };
}

kinds!(Leaves, Triples, Offers, Widening, Keys);

/// Correlations of a kind for n elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub of: Kind,
    pub n: usize,
}

impl Need {
    /// Transfers: in which the server has both strings, and in which the client has.
    pub fn transfers(&self) -> [usize; 2] {
        self.of.transfers().map(|each| each * self.n)
    }

    /// Bytes of a side's record.
    pub fn bytes(&self, side: Side) -> u64 {
        let shape = self.of.shape(side);
        chunks(self.n).map(|(_, n)| 8 * shape.words(n) as u64).sum()
    }
}

/// Where each chunk of n elements begins, and how many it has.
pub(crate) fn chunks(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).step_by(CHUNK).map(move |first| (first, CHUNK.min(n - first)))
}

/// One side's material of a chunk. Wiped on drop.
pub(crate) struct Frame {
    /// The first element of it.
    pub first: usize,
    /// How many elements it has.
    pub n: usize,
    shape: Shape,
    words: Wiped<u64>,
}

impl Frame {
    fn zeros(shape: Shape, first: usize, n: usize) -> Frame {
        Frame { first, n, words: Wiped::zeros(shape.words(n)), shape }
    }

    /// Words of a plane.
    fn each(&self) -> usize {
        planes::words(self.n)
    }

    /// Plane i.
    pub fn plane(&self, i: usize) -> &[u64] {
        debug_assert!(i < self.shape.planes);
        &self.words[i * self.each()..][..self.each()]
    }

    /// Plane i, to be filled in.
    pub fn plane_mut(&mut self, i: usize) -> &mut [u64] {
        debug_assert!(i < self.shape.planes);
        let each = self.each();
        &mut self.words[i * each..][..each]
    }

    /// So many planes from plane i on, to be filled in.
    pub fn planes_mut(&mut self, i: usize, count: usize) -> &mut [u64] {
        let each = self.each();
        &mut self.words[i * each..][..count * each]
    }

    /// Where the i-th ring element of all lies.
    fn place(&self, i: usize) -> (Ring, std::ops::Range<usize>) {
        let sizes = self.shape.elements.iter().map(|ring| packed_words(*ring, self.n));
        let first = self.shape.planes * self.each() + sizes.take(i).sum::<usize>();
        let ring = self.shape.elements[i];
        (ring, first..first + packed_words(ring, self.n))
    }

    /// Whether another one has the same elements and the same shape.
    #[cfg(feature = "mutations")]
    pub fn is_like(&self, other: &Frame) -> bool {
        (self.first, self.n, &self.shape) == (other.first, other.n, &other.shape)
    }

    #[cfg(feature = "mutations")]
    pub fn copy(&self) -> Frame {
        Frame { first: self.first, n: self.n, shape: self.shape.clone(), words: self.words.clone() }
    }

    /// As it is written: words, the lowest byte first.
    fn bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(8 * self.words.len()));
        pack(Ring::R64, &self.words, &mut bytes);
        bytes
    }

    /// The i-th ring element of all.
    pub fn elements(&self, i: usize) -> Wiped<u64> {
        let (ring, at) = self.place(i);
        unpack(ring, &self.words[at], self.n)
    }

    /// Sets the i-th ring element of all.
    pub fn set_elements(&mut self, i: usize, values: &[u64]) {
        let (ring, at) = self.place(i);
        pack_into(ring, values, &mut self.words[at]);
    }
}

/// Elements without gaps, in whole words.
fn pack_into(ring: Ring, values: &[u64], out: &mut [u64]) {
    let (bits, mut have, mut word) = (ring.bits(), 0, 0u128);
    let mut out = out.iter_mut();
    let mut put = |word: u128| out.next().map(|to| *to = word as u64);
    for value in values {
        word |= u128::from(ring.wrap(*value)) << have;
        have += bits;
        if have >= 64 {
            put(word);
            (word, have) = (word >> 64, have - 64);
        }
    }
    put(word);
}

/// The inverse of [`pack_into`].
fn unpack(ring: Ring, words: &[u64], n: usize) -> Wiped<u64> {
    let bits = ring.bits() as usize;
    let at = |i: usize| {
        let (word, shift) = (i * bits / 64, i * bits % 64);
        let above = words.get(word + 1).map_or(0, |above| above << 1 << (63 - shift));
        ring.wrap(words[word] >> shift | above)
    };
    (0..n).map(at).collect()
}

/// A side's material for a step of a gate: of n elements, chunk by chunk. It has no `Clone`, and is used up by who takes it.
#[must_use = "material that is dropped is lost at both sides"]
pub(crate) struct Material<K> {
    frames: Vec<Frame>,
    of: PhantomData<K>,
}

impl<K> Material<K> {
    /// Chunk by chunk, to look at what goes out first.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter()
    }
}

impl<K> IntoIterator for Material<K> {
    type Item = Frame;
    type IntoIter = std::vec::IntoIter<Frame>;

    /// Chunk by chunk; each is wiped once it was used.
    fn into_iter(self) -> Self::IntoIter {
        self.frames.into_iter()
    }
}

/// Where a run takes its material from.
pub(crate) enum Stock<'a> {
    /// A record.
    Record(&'a mut dyn KeySource),
    /// Transfers, of which it is made when it is asked for.
    #[cfg(test)]
    Fresh(Box<Pair>),
}

impl Stock<'_> {
    /// All chunks of a need.
    pub fn take<K: Correlation>(&mut self, side: Side, of: K, n: usize) -> Result<Material<K>, RunError> {
        let shape = of.shape(side);
        let mut frames = Vec::with_capacity(n.div_ceil(CHUNK));
        for (first, n) in chunks(n) {
            let frame = match self {
                Stock::Record(record) => {
                    let words = read(record.take(8 * shape.words(n))?);
                    Frame { first, n, shape: shape.clone(), words }
                }
                #[cfg(test)]
                Stock::Fresh(pair) => make(&of, side, pair, first, n)?,
            };
            frames.push(mutation::again(frame));
        }
        Ok(Material { frames, of: PhantomData })
    }
}

fn read(bytes: &[u8]) -> Wiped<u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// A chunk of correlations.
fn make(of: &impl Correlation, side: Side, pair: &mut Pair, first: usize, n: usize) -> Result<Frame, Short> {
    let mut frame = Frame::zeros(of.shape(side), first, n);
    of.make(side, pair, &mut frame)?;
    Ok(frame)
}

/// Transfers of both directions above which Ferret's fixed messages are less than what SoftSpoken sends. AGREEMENT.
const MANY: usize = 1 << 18;

/// Transfers that are asked for at once beyond what is due: a message then serves many chunks. AGREEMENT.
const AHEAD: usize = 1 << 20;

/// How so many transfers are made: alike at both sides.
pub(crate) fn source(transfers: usize) -> Source {
    if transfers > MANY { Source::Ferret(B11) } else { Source::SoftSpoken(Width::Four) }
}

/// What a run needs, in the order in which it is read.
pub(crate) fn needs(plan: &Plan) -> Vec<Need> {
    let of_node = |v: ValueId| match kind(&plan.nodes[v].op) {
        gate::Kind::Gate(gate) if !is_static(plan, v) && !plan.nodes[v].ty.is_empty() => {
            gate.uses(&At { plan, id: v }).needs
        }
        gate::Kind::Gate(_)
        | gate::Kind::Input { .. }
        | gate::Kind::Weight { .. }
        | gate::Kind::Public
        | gate::Kind::Lacks(_) => Vec::new(),
    };
    (0..plan.nodes.len()).flat_map(of_node).collect()
}

/// Transfers of needs: in which the server has both strings, and in which the client has.
pub(crate) fn transfers(needs: &[Need]) -> [usize; 2] {
    let all = needs.iter().map(Need::transfers);
    all.fold([0; 2], |sum, of| [sum[0] + of[0], sum[1] + of[1]])
}

/// Where what is prepared is kept, frame by frame.
pub type Keep<'a> = &'a mut (dyn FnMut(&[u8]) -> Result<(), KeyError> + Send);

/// Makes a run's material together with the peer; a side's own goes to `keep`, frame by frame, and is the record that one run
/// reads. All randomness is drawn here, and gone when it returns.
pub fn make_material(
    plan: &Plan,
    side: Side,
    channel: &mut dyn Channel,
    keep: Keep<'_>,
) -> Result<(), RunError> {
    let needs = needs(plan);
    let mine = |[server, client]: [usize; 2]| match side {
        Side::Server => [server, client],
        Side::Client => [client, server],
    };
    let mut left = transfers(&needs);
    let source = source(left[0] + left[1]);
    let step = Step::new(1, "transfers");
    let mut pair = Pair::start(channel, &step, source, &Seed::random())?;
    for need in &needs {
        for (first, n) in chunks(need.n) {
            let due = need.of.transfers().map(|each| each * n);
            let [send, receive] = mine(due);
            if pair.sender.available() < send || pair.receiver.available() < receive {
                let [send, receive] = mine([0, 1].map(|i| left[i].min(due[i] + AHEAD)));
                pair.prepare(channel, &step, send, receive)?;
            }
            left = [left[0] - due[0], left[1] - due[1]];
            keep(&make(&need.of, side, &mut pair, first, n)?.bytes())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lie_without_gaps_in_whole_words() {
        let mut prg = Seed::random().stream();
        for bits in [1, 2, 7, 12, 25, 31, 32, 33, 37, 63, 64] {
            for n in [1, 2, 63, 64, 65, 200] {
                let (ring, wide) = (Ring::new(bits), prg.elements(Ring::R64, n));
                let mut words = vec![0; packed_words(ring, n)];
                pack_into(ring, &wide, &mut words);
                let expected: Vec<u64> = wide.iter().map(|x| ring.wrap(*x)).collect();
                assert_eq!(unpack(ring, &words, n)[..], expected, "{n} of {bits} bits");
            }
        }
    }

    /// What both sides' records take, for kinds with planes, with elements and with both, in several chunks.
    #[test]
    fn chunks_cover_all_elements_and_needs_know_their_bytes() {
        for n in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            let all: Vec<_> = chunks(n).collect();
            assert_eq!(all.iter().map(|(_, n)| n).sum::<usize>(), n);
            assert!(all.iter().enumerate().all(|(i, (first, n))| *first == i * CHUNK && *n > 0));
        }
        let need = |of: Kind, n| Need { of, n };
        let leaves = need(Leaves { bits: 36, wanted: crate::leaf::Wanted::Less }.into(), 2 * CHUNK);
        // 8 entries of one bit, and 11 times of two; 3 bits of a choice and the pads of it
        assert_eq!(Side::ALL.map(|side| leaves.bytes(side)), [184, 59].map(|bits| bits * CHUNK as u64 / 4));
    }
}
