//! Material: what a run's gates use up, made before the run by both sides, whatever weights and inputs are.
//!
//! A step of a gate *needs* correlations of one kind for n elements ([`Need`]). Each kind ([`Correlation`]) says how many transfers an
//! element takes, what either side keeps of it, and how a [`Maker`] makes that of transfers, alone or with the peer. Material is made,
//! written and read chunk by chunk, in the order in which gates read it. It is handed out once, and who uses it takes it by value.

mod frame;
mod making;
mod stock;

pub(crate) use frame::{Frame, Material, Shape};
pub use making::{Keep, MaterialMaker};
pub(crate) use making::{needs, needs_of, source, transfers};
pub(crate) use stock::Stock;

use crate::context::{RunError, Side};
use crate::encryption::Encryption;
use crate::keys::Keys;
use crate::leaf::Leaves;
use crate::matrices::{Matrices, Way};
use crate::multiples::Multiples;
use crate::mux::Offers;
use crate::product::{Factors, Second, Slotted};
use crate::rows::Rows;
use crate::tree::Triples;
use privet_net::{Channel, Step};
use privet_ot::Pair;
use privet_prg::Prg;

/// Elements of a frame. AGREEMENT: both sides cut alike. What a digit's transfers take for so many fits a second-level cache.
pub(crate) const CHUNK: usize = 1 << 13;

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

    /// What it takes, as bytes of a link of 1 Gbit/s: what a side sends, and its work.
    pub fn weight(&self) -> u64 {
        self.bytes[0].max(self.bytes[1]) + (self.values + self.words) / VALUES
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

    /// Whether it takes keys that a preparation's products share.
    pub fn is_gathered(&self) -> bool {
        matches!(self, Kind::Matrices(Matrices { way: Way::Gathered, .. }))
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
        made.weight() + TRANSFER * (transfers[0] + transfers[1]) as u64
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

/// A chunk of correlations.
fn make(of: &impl Correlation, maker: &mut Maker<'_>, first: usize, n: usize) -> Result<Frame, RunError> {
    let mut frame = Frame::zeros(of.shape(maker.side), first, n);
    of.make(maker, &mut frame)?;
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What both sides' records take, for kinds with planes, with elements and with both, in several chunks.
    #[test]
    fn chunks_cover_all_elements_and_needs_know_their_bytes() {
        for n in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            let all: Vec<_> = chunks(n, CHUNK).collect();
            assert_eq!(all.iter().map(|(_, n)| n).sum::<usize>(), n);
            assert!(all.iter().enumerate().all(|(i, (first, n))| *first == i * CHUNK && *n > 0));
        }
        let need = |of: Kind, n| Need { of, n };
        let leaves =
            need(Leaves::whole(36, crate::leaf::Wanted::Less, crate::leaf::Digits::Three).into(), 2 * CHUNK);
        // the lowest digit has 8 entries, the 11 others 4 and 8; 3 bits of a choice and the pads of it
        assert_eq!(Side::ALL.map(|side| leaves.bytes(side)), [140, 59].map(|bits| bits * CHUNK as u64 / 4));
    }
}
