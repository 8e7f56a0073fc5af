//! One party's side of everything that is multiplied by oblivious transfer, on the shares that gates' programs see.

use super::cost::room;
use super::lanes::{Lane, Lanes};
use super::peers::{Peer, Peers};
use super::times::Product;
use super::{Encryption, Layer, Task, and, masks, multiply, times};
use crate::{Bits, BitwiseMask, MaskOf, PrepareError, Seats, Words};
use privet_family::Secret;
use privet_net::Step;
use privet_ot::Source;
use privet_prg::{Seed, Wiped};
use privet_ring::{Ring, pack, packed_len, unpack};

/// A party among its peers, for one job.
///
/// All parties call alike: the same methods in the same order, with operands of the same sizes. Each method is a few steps,
/// whatever the sizes; what is on the way is bounded, so memory stays flat however many elements a call has.
pub struct Transfers<'a> {
    peers: Peers<'a>,
}

impl<'a> Transfers<'a> {
    /// Of party `me` with all its peers, by number. The first step has number `first` at all parties.
    ///
    /// # Panics
    /// Where peers are not all parties but `me`, by number.
    pub fn new(me: usize, peers: Vec<Peer<'a>>, first: u32) -> Transfers<'a> {
        Transfers { peers: Peers::new(me, peers, first) }
    }

    /// With as many transfers in an exchange as suit this source: alike at all parties.
    pub fn by(mut self, source: Source) -> Transfers<'a> {
        self.peers.room = room(source);
        self
    }

    /// In a lane, at this seat.
    pub(super) fn shared(seat: Seats, room: usize, lane: Lane<'a, 'a>) -> Transfers<'a> {
        Transfers { peers: Peers::shared(seat.parties().start, room, lane) }
    }

    /// Lanes to the same peers.
    pub(super) fn lanes(&mut self, count: usize) -> Lanes<'_> {
        self.peers.lanes(count)
    }

    /// The same for one program, until [`Transfers::go_on`].
    pub(super) fn again(&mut self) -> Transfers<'_> {
        Transfers { peers: self.peers.again() }
    }

    /// From this step on, which comes after what was done with the same peers.
    pub(super) fn go_on(&mut self, step: u32) {
        self.peers.go_on(step);
    }

    /// The step that comes next.
    pub(super) fn next_step(&mut self) -> u32 {
        self.peers.next_step()
    }

    /// Whole rows of an exchange at most, each way.
    pub(super) fn room(&self) -> usize {
        self.peers.room
    }

    /// Parties.
    pub fn parties(&self) -> usize {
        self.peers.parties()
    }

    /// This party's seat.
    pub fn seats(&self) -> Seats {
        Seats::one(self.peers.me)
    }

    /// The mask of which these are the bits, plane after plane: see [`crate::Preprocess::bitwise_mask`].
    ///
    /// # Panics
    /// Where the planes are not as many words as the mask has.
    pub fn bitwise_mask(&mut self, of: &MaskOf, bits: &Bits) -> Result<BitwiseMask, PrepareError> {
        let words = of.count.div_ceil(64);
        assert_eq!(bits.words(), of.bits as usize * words, "all planes of a mask");
        let planes = |plane: usize| plane * words..(plane + 1) * words;
        let own = (0..of.bits as usize).map(|plane| &bits.own()[planes(plane)]).collect();
        let shared = masks::masks(&mut self.peers, own, of.ring, &of.words, of.pairs)?;
        Ok(BitwiseMask {
            bits: (0..of.bits as usize).map(|plane| bits.slice(planes(plane))).collect(),
            pairs: shared.pairs.into_iter().map(|pair| self.bits(pair)).collect(),
            words: shared.words.into_iter().map(|words| self.words(of.ring, words, of.count)).collect(),
        })
    }

    /// See [`crate::Preprocess::and`].
    pub fn and(&mut self, factors: &[(&Bits, Vec<&Bits>)]) -> Result<Vec<Vec<Bits>>, PrepareError> {
        let factors: Vec<and::Factor<'_>> = factors
            .iter()
            .map(|(x, ys)| (x.own().as_slice(), ys.iter().map(|y| y.own().as_slice()).collect()))
            .collect();
        let products = and::and(&mut self.peers, &factors)?;
        Ok(products.into_iter().map(|of| of.into_iter().map(|z| self.bits(z)).collect()).collect())
    }

    /// See [`crate::Preprocess::to_words`].
    pub fn to_words(&mut self, bits: &[&Bits], n: usize, ring: Ring) -> Result<Vec<Words>, PrepareError> {
        let own: Vec<&[u64]> = bits.iter().map(|bits| bits.own().as_slice()).collect();
        let words = masks::to_words(&mut self.peers, &own, ring)?;
        Ok(words.into_iter().map(|words| self.words(ring, words, n)).collect())
    }

    /// See [`crate::Preprocess::times`].
    pub fn times(&mut self, factors: &[(&Bits, Vec<&Words>)]) -> Result<Vec<Vec<Words>>, PrepareError> {
        let mut products = Vec::with_capacity(factors.len());
        for (bits, words) in factors {
            for words in times::on_a_transfer(words) {
                let words = words.iter().map(|words| (words.own().as_slice(), words.ring())).collect();
                products.push(Product { bits: bits.own(), words });
            }
        }
        let mut made = times::times(&mut self.peers, &products)?.into_iter().flatten();
        let mut of = |words: &&Words| {
            let shares = made.next().expect("shares of every product");
            self.words(words.ring(), shares, words.len())
        };
        Ok(factors.iter().map(|(_, words)| words.iter().map(&mut of).collect()).collect())
    }

    /// Products element by element, in the ring of x, which must not be the larger one: for small numbers of elements.
    pub fn multiply(&mut self, x: &Words, y: &Words) -> Result<Words, PrepareError> {
        assert!(x.ring().bits() <= y.ring().bits() && x.len() == y.len(), "operands of one kind");
        let shares = multiply::multiply(&mut self.peers, x.ring(), x.own(), y.own())?;
        Ok(self.words(x.ring(), shares, x.len()))
    }

    /// Squares element by element: for small numbers of elements.
    pub fn square(&mut self, x: &Words) -> Result<Words, PrepareError> {
        let shares = multiply::square(&mut self.peers, x.ring(), x.own())?;
        Ok(self.words(x.ring(), shares, x.len()))
    }

    /// One step: begins a session of encryption among the same parties. `secret` is this party's own fresh seed, used for
    /// nothing else; `threads` are those that it computes with.
    pub fn encryption(&mut self, secret: &Seed, threads: usize) -> Result<Encryption, PrepareError> {
        Encryption::start(&mut self.peers, secret, threads)
    }

    /// One step: prepares weights for all calls of a task. `w` is this party's share, or all of them at the task's owner;
    /// nobody else has any.
    ///
    /// # Panics
    /// Where weights are missing, or are none of the task.
    pub fn linear(
        &mut self,
        encryption: &mut Encryption,
        task: Task,
        w: Option<&[u64]>,
    ) -> Result<Layer, PrepareError> {
        encryption.linear(&mut self.peers, task, w)
    }

    /// Shares of a task's products with the operands of all its runs, one after the other: see
    /// [`crate::Preprocess::products`]. All parties' weights are those of `linear`, all parties' operands those of `x`.
    pub fn products(
        &mut self,
        encryption: &mut Encryption,
        linear: &Layer,
        x: &Words,
    ) -> Result<Words, PrepareError> {
        let shares = encryption.products(&mut self.peers, linear, x.own())?;
        let n = shares.len();
        Ok(self.words(x.ring(), shares, n))
    }

    /// Products element by element, in the ring of x, which must not be the larger one: for thousands of elements.
    pub fn multiply_encrypted(
        &mut self,
        encryption: &mut Encryption,
        x: &Words,
        y: &Words,
    ) -> Result<Words, PrepareError> {
        assert!(x.ring().bits() <= y.ring().bits() && x.len() == y.len(), "operands of one kind");
        let shares = encryption.multiply(&mut self.peers, x.ring(), x.own(), y.own())?;
        Ok(self.words(x.ring(), shares, x.len()))
    }

    /// See [`crate::Preprocess::open`]: every party tells all others its share.
    pub fn open(&mut self, what: &str, x: &Words) -> Result<Vec<u64>, PrepareError> {
        let (ring, n) = (x.ring(), x.len());
        let mut message = Vec::with_capacity(packed_len(ring, n));
        pack(ring, x.own(), &mut message);
        let mut sum = x.own().to_vec();
        for share in self.peers.tell(what, &message)? {
            let failed = |e| PrepareError::Failed(format!("a share of `{what}`: {e}"));
            let share = unpack(ring, &share, n).map_err(failed)?;
            sum.iter_mut().zip(share).for_each(|(sum, share)| *sum = ring.wrap(sum.wrapping_add(share)));
        }
        Ok(sum)
    }

    /// One step of another protocol, with every peer at once; gives what each talk gives, in the order of peers. Where there
    /// are several, each has a thread of its own.
    pub fn each<T: Send>(
        &mut self,
        what: &str,
        talk: impl Fn(&mut Peer<'_>, &Step) -> Result<T, PrepareError> + Sync,
    ) -> Result<Vec<T>, PrepareError> {
        self.peers.each(what, talk)
    }

    fn bits(&self, share: Wiped<u64>) -> Bits {
        Bits::new(self.seats(), vec![Secret::new(share.expose())])
    }

    /// The first `n`, reduced.
    fn words(&self, ring: Ring, share: Wiped<u64>, n: usize) -> Words {
        let mut share = Secret::new(share.expose());
        share.iter_mut().for_each(|s| *s = ring.wrap(*s));
        share.truncate(n);
        Words::new(self.seats(), ring, vec![share])
    }
}
