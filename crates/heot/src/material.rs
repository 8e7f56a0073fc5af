//! Material: what a run's gates use up, made before the run by both sides, whatever weights and inputs are.
//!
//! A step of a gate *needs* correlations of one kind for n elements ([`Need`]). Each kind ([`Correlation`]) says how many transfers an
//! element takes, what either side keeps of it, and how a [`Maker`] makes that of transfers, alone or with the peer. Material is made,
//! written and read chunk by chunk, in the order in which gates read it. It is handed out once, and who uses it takes it by value.

use crate::context::{RunError, Side};
use crate::encryption::Encryption;
use crate::gate::{self, At, kind};
use crate::keys::Keys;
use crate::leaf::Leaves;
use crate::matrices::Matrices;
use crate::multiples::Multiples;
use crate::mux::Offers;
use crate::product::{Factors, Second, Slotted};
use crate::rows::Rows;
use crate::tree::Triples;
use crate::{mutation, planes};
use privet_family::is_static;
use privet_family::keys::{KeyError, KeySource};
use privet_he::torus::Link;
use privet_net::{Channel, Step};
use privet_ot::params::{B11, B12};
use privet_ot::{Pair, Source, Width};
use privet_plan::Plan;
use privet_plan::ir::ValueId;
use privet_prg::{Prg, Seed, Wiped};
use privet_ring::{Ring, pack};
use std::marker::PhantomData;
use zeroize::Zeroizing;

/// Elements of a frame. AGREEMENT: both sides cut alike. What a digit's transfers take for so many fits a second-level cache.
pub(crate) const CHUNK: usize = 1 << 13;

/// What a side keeps of an element: so many bits in planes, then ring elements, each entry so many of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    planes: usize,
    elements: Vec<(Ring, usize)>,
}

impl Shape {
    /// Bits in planes, and one ring element for each ring.
    pub fn of(planes: usize, rings: Vec<Ring>) -> Shape {
        Shape { planes, elements: rings.into_iter().map(|ring| (ring, 1)).collect() }
    }

    /// Several ring elements to each entry.
    pub fn of_many(elements: Vec<(Ring, usize)>) -> Shape {
        Shape { planes: 0, elements }
    }

    /// Words of n elements.
    fn words(&self, n: usize) -> usize {
        self.planes * planes::words(n)
            + self.elements.iter().map(|(ring, each)| packed_words(*ring, each * n)).sum::<usize>()
    }
}

fn packed_words(ring: Ring, n: usize) -> usize {
    planes::words(n * ring.bits() as usize)
}

/// What a preparation takes for frames beside transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    /// Bytes that a side sends.
    pub bytes: [u64; 2],
    /// Values of polynomials that each side transforms, nearly.
    pub values: u64,
    /// Elements that seeds of rows expand to.
    pub words: u64,
    /// Messages one after the other, or two that pass at once.
    pub steps: u64,
}

impl Made {
    /// One after the other.
    pub fn then(self, next: Made) -> Made {
        let bytes = [0, 1].map(|i| self.bytes[i] + next.bytes[i]);
        let (values, words) = (self.values + next.values, self.words + next.words);
        Made { bytes, values, words, steps: self.steps + next.steps }
    }

    /// So many times.
    fn times(self, n: usize) -> Made {
        let n = n as u64;
        let (values, words) = (self.values * n, self.words * n);
        Made { bytes: self.bytes.map(|bytes| bytes * n), values, words, steps: self.steps * n }
    }
}

/// A kind of correlation.
pub(crate) trait Correlation: Copy + Into<Kind> {
    /// Transfers of an element: in which the server has both strings, and in which the client has.
    fn transfers(&self) -> [usize; 2];

    /// What a side keeps of an element.
    fn shape(&self, side: Side) -> Shape;

    /// What a frame of n elements takes beside transfers.
    fn made(&self, _n: usize) -> Made {
        Made::default()
    }

    /// AES blocks that the server computes in a run for an element, as estimates count its work.
    fn blocks(&self) -> u64 {
        0
    }

    /// Elements of a frame. AGREEMENT.
    fn chunk(&self) -> usize {
        CHUNK
    }

    /// Fills a frame.
    fn make(&self, maker: &mut Maker<'_>, frame: &mut Frame) -> Result<(), RunError>;
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

            fn made(&self, n: usize) -> Made {
                match self { $(Kind::$of(of) => of.made(n)),* }
            }

            fn blocks(&self) -> u64 {
                match self { $(Kind::$of(of) => of.blocks()),* }
            }

            fn chunk(&self) -> usize {
                match self { $(Kind::$of(of) => of.chunk()),* }
            }

            fn make(&self, maker: &mut Maker<'_>, frame: &mut Frame) -> Result<(), RunError> {
                match self { $(Kind::$of(of) => of.make(maker, frame)),* }
            }
        }
    };
}

kinds!(Leaves, Triples, Offers, Keys, Factors, Multiples, Rows, Slotted, Matrices);

impl Kind {
    /// Whether it is made by encryption, under coins that both sides toss.
    pub fn is_encrypted(&self) -> bool {
        matches!(self, Kind::Slotted(_) | Kind::Matrices(_))
    }
}

/// What takes as long as a byte of a link of 1 Gbit/s, 8 ns: a transfer takes as long as so many, with all that follows from it; so many
/// values are transformed, or seeds expanded to so many elements, in the time of one.
const TRANSFER: u64 = 3;
const VALUES: u64 = 7;

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
        self.chunks().map(|(_, n)| 8 * shape.words(n) as u64).sum()
    }

    /// AES blocks that the server computes in a run.
    pub fn blocks(&self) -> u64 {
        self.of.blocks() * self.n as u64
    }

    /// What making it takes beside transfers.
    pub fn made(&self) -> Made {
        // frames are alike but for the last one
        let (whole, rest) = (self.n / self.of.chunk(), self.n % self.of.chunk());
        let of = |frames: usize, n: usize| {
            if frames == 0 || n == 0 { Made::default() } else { self.of.made(n).times(frames) }
        };
        of(whole, self.of.chunk()).then(of(1, rest))
    }

    /// What making it takes, as bytes of a link of 1 Gbit/s: what a side sends, its work on transfers, and that on polynomials.
    pub fn weight(&self) -> u64 {
        let (made, transfers) = (self.made(), self.transfers());
        made.bytes[0].max(made.bytes[1])
            + (made.values + made.words) / VALUES
            + TRANSFER * (transfers[0] + transfers[1]) as u64
    }

    /// What both sides open of operands under these as masks: what it is, ring elements, and their bits. The other kinds mask what goes to
    /// one side: choices and entries.
    pub fn opens(&self) -> Option<(&'static str, u64, u32)> {
        let (what, each, ring) = match self.of {
            Kind::Factors(Factors { ring, second: Second::Same }) => ("masked factors", 1, ring),
            Kind::Factors(Factors { ring, .. }) | Kind::Slotted(Slotted { ring }) => {
                ("masked factors", 2, ring)
            }
            Kind::Rows(of) => ("masked factors", 1 + of.each, of.ring),
            Kind::Matrices(of) => ("masked matrices", of.opened(), of.ring),
            Kind::Leaves(_) | Kind::Triples(_) | Kind::Offers(_) | Kind::Keys(_) | Kind::Multiples(_) => {
                return None;
            }
        };
        Some((what, (each * self.n) as u64, ring.bits()))
    }

    /// Where each frame begins, and how many elements it has.
    pub fn chunks(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        chunks(self.n, self.of.chunk())
    }
}

/// Where each chunk of n elements begins, and how many it has: `most`, but for the last one.
pub(crate) fn chunks(n: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).step_by(most).map(move |first| (first, most.min(n - first)))
}

/// Who makes material: a side with its transfers, the way to the peer, coins of its own, and what encryption takes.
pub(crate) struct Maker<'a> {
    pub side: Side,
    pub pair: &'a mut Pair,
    pub channel: &'a mut dyn Channel,
    /// Number of the steps.
    pub step: u32,
    pub prg: &'a mut Prg,
    pub encryption: &'a mut Encryption,
}

impl Maker<'_> {
    /// Both sides' messages pass at once; there is none where nothing is due.
    pub fn exchange(&mut self, what: &str, mine: Vec<u8>, theirs: usize) -> Result<Vec<u8>, RunError> {
        let step = Step::new(self.step, what);
        if !mine.is_empty() {
            self.channel.send(&step, mine)?;
        }
        if theirs == 0 { Ok(Vec::new()) } else { Ok(self.channel.recv(&step, theirs)?) }
    }

    /// What to say of a peer whose message is not well formed.
    pub fn wrong(&self, step: &str, what: impl ToString) -> RunError {
        let peer = self.channel.peer().to_owned();
        RunError::Form { step: step.to_owned(), peer, what: what.to_string() }
    }
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
    fn place(&self, i: usize) -> (Ring, usize, std::ops::Range<usize>) {
        let sizes = self.shape.elements.iter().map(|(ring, each)| packed_words(*ring, each * self.n));
        let first = self.shape.planes * self.each() + sizes.take(i).sum::<usize>();
        let (ring, each) = self.shape.elements[i];
        (ring, each * self.n, first..first + packed_words(ring, each * self.n))
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

    /// The i-th ring element of all, or the i-th several of them.
    pub fn elements(&self, i: usize) -> Wiped<u64> {
        let (ring, count, at) = self.place(i);
        unpack(ring, &self.words[at], count)
    }

    /// Sets the i-th ring element of all, or the i-th several.
    pub fn set_elements(&mut self, i: usize, values: &[u64]) {
        let (ring, count, at) = self.place(i);
        debug_assert_eq!(values.len(), count);
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
    Fresh(Box<Fresh>),
}

/// What tests make material of, as it is asked for.
#[cfg(test)]
pub(crate) struct Fresh {
    pub pair: Pair,
    pub prg: Prg,
    pub encryption: Encryption,
    /// Number of the steps that make it.
    pub step: u32,
}

#[cfg(test)]
impl<'a> Stock<'a> {
    /// Of transfers and coins; the steps that make material have this number.
    pub fn fresh(pair: Pair, prg: Prg, step: u32) -> Stock<'a> {
        Stock::Fresh(Box::new(Fresh { pair, prg, encryption: Encryption::new(1), step }))
    }
}

impl Stock<'_> {
    /// All chunks of a need.
    ///
    /// Of what is made with the peer there is more than one message; `channel` leads there.
    pub fn take<K: Correlation>(
        &mut self,
        side: Side,
        of: K,
        n: usize,
        #[cfg_attr(not(test), expect(unused_variables, reason = "records are made before"))]
        channel: &mut dyn Channel,
    ) -> Result<Material<K>, RunError> {
        let (shape, need) = (of.shape(side), Need { of: of.into(), n });
        let mut frames = Vec::new();
        for (first, n) in need.chunks() {
            let frame = match self {
                Stock::Record(record) => {
                    let words = read(record.take(8 * shape.words(n))?);
                    Frame { first, n, shape: shape.clone(), words }
                }
                #[cfg(test)]
                Stock::Fresh(fresh) => {
                    let Fresh { pair, prg, encryption, step } = &mut **fresh;
                    let mut maker =
                        Maker { side, pair, channel: &mut *channel, step: *step, prg, encryption };
                    make(&of, &mut maker, first, n)?
                }
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
fn make(of: &impl Correlation, maker: &mut Maker<'_>, first: usize, n: usize) -> Result<Frame, RunError> {
    let mut frame = Frame::zeros(of.shape(maker.side), first, n);
    of.make(maker, &mut frame)?;
    Ok(frame)
}

/// Transfers of both directions above which Ferret's fixed messages are less than what SoftSpoken sends. AGREEMENT.
const MANY: usize = 1 << 18;

/// Transfers that are asked for at once beyond what is due: a message then serves many chunks. AGREEMENT.
const AHEAD: usize = 1 << 20;

/// Transfers above which distant sides take Ferret's next larger set: of each it sends half as many bits, for a twentieth more work,
/// and begins with twice as many bytes. AGREEMENT.
const VERY_MANY: usize = 1 << 24;

/// How so many transfers are made over such a link: alike at both sides.
pub(crate) fn source(transfers: usize, link: Link) -> Source {
    match link {
        Link::Distant if transfers > VERY_MANY => Source::Ferret(B12),
        Link::Near | Link::Distant if transfers > MANY => Source::Ferret(B11),
        Link::Near | Link::Distant => Source::SoftSpoken(Width::Four),
    }
}

/// What a run needs, in the order in which it is read.
pub(crate) fn needs(plan: &Plan) -> Vec<Need> {
    (0..plan.nodes.len()).flat_map(|v| needs_of(plan, v)).collect()
}

/// The same of one node.
pub(crate) fn needs_of(plan: &Plan, v: ValueId) -> Vec<Need> {
    match kind(&plan.nodes[v].op) {
        gate::Kind::Gate(gate) if !is_static(plan, v) && !plan.nodes[v].ty.is_empty() => {
            gate.uses(&At { plan, id: v }).needs
        }
        gate::Kind::Gate(_)
        | gate::Kind::Input { .. }
        | gate::Kind::Weight { .. }
        | gate::Kind::Public
        | gate::Kind::Lacks(_) => Vec::new(),
    }
}

/// Transfers of needs: in which the server has both strings, and in which the client has.
pub(crate) fn transfers(needs: &[Need]) -> [usize; 2] {
    let all = needs.iter().map(Need::transfers);
    all.fold([0; 2], |sum, of| [sum[0] + of[0], sum[1] + of[1]])
}

/// Where what is prepared is kept, frame by frame.
pub type Keep<'a> = &'a mut (dyn FnMut(&[u8]) -> Result<(), KeyError> + Send);

/// Makes the material of some runs of a plan together with the peer, one after the other. All randomness is drawn here, and gone when
/// it is dropped: what a run's transfers follow from serves the other runs as well, and each transfer is used once.
pub struct MaterialMaker {
    needs: Vec<Need>,
    side: Side,
    pair: Pair,
    /// Transfers of all runs that are not made yet.
    left: [usize; 2],
    /// That encryption computes with; it has public coins of its own in each run.
    threads: usize,
}

/// What a record's making is called in errors.
fn step() -> Step {
    Step::new(1, "transfers")
}

impl MaterialMaker {
    /// For so many runs. Both sides name the same number of runs and the same link. Encryption computes with so many threads.
    ///
    /// # Errors
    /// The peer's messages, or the way to it.
    pub fn start(
        plan: &Plan,
        (side, link): (Side, Link),
        threads: usize,
        runs: usize,
        channel: &mut dyn Channel,
    ) -> Result<MaterialMaker, RunError> {
        let needs = needs(plan);
        let left = transfers(&needs).map(|each| each.saturating_mul(runs));
        let source = source(left[0].saturating_add(left[1]), link);
        let pair = Pair::start(channel, &step(), source, &Seed::random())?;
        Ok(MaterialMaker { needs, side, pair, left, threads })
    }

    /// The next run's material: this side's own goes to `keep`, frame by frame, and is the record that one run reads.
    ///
    /// # Errors
    /// The peer's messages, the way to it, what `keep` says, or a run more than it was started for.
    pub fn run(&mut self, channel: &mut dyn Channel, keep: Keep<'_>) -> Result<(), RunError> {
        let MaterialMaker { needs, side, pair, left, threads } = self;
        let (side, mut prg, mut encryption) = (*side, coins(), Encryption::new(*threads));
        let of_run = transfers(needs);
        if left.iter().zip(of_run).any(|(left, due)| *left < due) {
            return Err(RunError::Missing("material of more runs than were begun".into()));
        }
        let mine = |[server, client]: [usize; 2]| match side {
            Side::Server => [server, client],
            Side::Client => [client, server],
        };
        for need in needs.iter() {
            for (first, n) in need.chunks() {
                let due = need.of.transfers().map(|each| each * n);
                let [send, receive] = mine(due);
                if pair.sender.available() < send || pair.receiver.available() < receive {
                    let [send, receive] = mine([0, 1].map(|i| left[i].min(due[i] + AHEAD)));
                    pair.prepare(channel, &step(), send, receive)?;
                }
                *left = [0, 1].map(|i| left[i] - due[i]);
                let (prg, encryption) = (&mut prg, &mut encryption);
                let mut maker = Maker { side, pair, channel: &mut *channel, step: 1, prg, encryption };
                keep(&make(&need.of, &mut maker, first, n)?.bytes())?;
            }
        }
        Ok(())
    }
}

/// A side's own coins for what it draws beside transfers.
fn coins() -> Prg {
    let seed = if mutation::active("material-repeats") { Seed::from_bytes([0; 16]) } else { Seed::random() };
    seed.stream()
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
            let all: Vec<_> = chunks(n, CHUNK).collect();
            assert_eq!(all.iter().map(|(_, n)| n).sum::<usize>(), n);
            assert!(all.iter().enumerate().all(|(i, (first, n))| *first == i * CHUNK && *n > 0));
        }
        let need = |of: Kind, n| Need { of, n };
        let leaves = need(Leaves::whole(36, crate::leaf::Wanted::Less).into(), 2 * CHUNK);
        // 8 entries of one bit, and 11 times of two; 3 bits of a choice and the pads of it
        assert_eq!(Side::ALL.map(|side| leaves.bytes(side)), [184, 59].map(|bits| bits * CHUNK as u64 / 4));
    }
}
