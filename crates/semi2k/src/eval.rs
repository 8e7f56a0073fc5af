use crate::mutation;
use crate::preprocess::BitsAt;
use crate::seeds::{PartySeed, Public};
use crate::shares::{Seats, Words};
use privet_family::keys::{KeyError, KeySource};
use privet_family::{Secret, States, Wire};
use privet_kernels::Device;
pub use privet_masked::EvalError;
use privet_masked::{Exchange, open_states};
use privet_net::Channel;
use privet_plan::Form;
use privet_plan::ir::{Node, Plan, ValueId};
use privet_ring::Ring;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// One party's side of one record's run: its frames and masks, and what it opens with all others. A mask has a summand of every
/// party, uniform and fresh for its wire, so what is opened is uniform also for n - 1 parties together.
pub struct Eval<'a> {
    pub(crate) device: &'a dyn Device,
    /// How the node that is evaluated compares.
    pub(crate) form: Option<Form>,
    seed: PartySeed,
    public: Public,
    source: &'a mut dyn KeySource,
    exchange: Exchange<'a>,
}

impl<'a> Deref for Eval<'a> {
    type Target = Exchange<'a>;

    fn deref(&self) -> &Exchange<'a> {
        &self.exchange
    }
}

impl<'a> DerefMut for Eval<'a> {
    fn deref_mut(&mut self) -> &mut Exchange<'a> {
        &mut self.exchange
    }
}

impl<'a> Eval<'a> {
    /// Run a record: its `seed` and frames, what all parties draw alike for it, and a channel to every other party, in the order
    /// of their numbers.
    pub fn new(
        device: &'a dyn Device,
        public: Public,
        seed: PartySeed,
        source: &'a mut dyn KeySource,
        peers: Vec<&'a mut dyn Channel>,
    ) -> Eval<'a> {
        Eval { device, form: None, seed, public, source, exchange: Exchange::new(peers) }
    }

    /// The next steps belong to this node: its layer names them in errors and the audit, and its form is how it compares.
    pub(crate) fn enter(&mut self, node: &Node) {
        self.exchange.enter(&node.layer);
        self.form = node.form;
    }

    /// This party.
    pub(crate) fn seats(&self) -> Seats {
        Seats::one(self.seed.party())
    }

    /// True at party 0, which adds public constants to its share.
    pub(crate) fn leads(&self) -> bool {
        mutation::leads(self.seed.party())
    }

    /// The next frame of the record: so many elements.
    pub(crate) fn take(&mut self, ring: Ring, n: usize) -> Result<Vec<u64>, KeyError> {
        self.exchange.stats.key_bytes += ring.packed_bytes(n) as u64;
        crate::record::elements(self.source, ring, n)
    }

    /// The next frame as it is, of so many elements: for whom reads a few of them.
    pub(crate) fn take_packed(&mut self, ring: Ring, n: usize) -> Result<&[u8], KeyError> {
        self.exchange.stats.key_bytes += ring.packed_bytes(n) as u64;
        self.source.take(ring.packed_bytes(n))
    }

    /// The next frame: words of bits.
    pub(crate) fn take_bits(&mut self, words: usize) -> Result<Secret, KeyError> {
        if words == 0 {
            return Ok(Secret::default());
        }
        Ok(Secret::new(self.take(Ring::R64, words)?))
    }

    /// This party's summand of the fresh mask of `wire`.
    pub(crate) fn mask(&self, wire: Wire, ring: Ring, n: usize) -> Words {
        Words::new(self.seats(), ring, vec![self.seed.mask(wire, ring, n)])
    }

    /// The same of the result that it is about to open under it.
    pub(crate) fn result_mask(&self, wire: Wire, ring: Ring, n: usize) -> Secret {
        match mutation::active("opened-share-unmasked") {
            true => Secret::new(vec![0; n]),
            false => self.seed.mask(wire, ring, n),
        }
    }

    /// This party's shares of private bits.
    pub(crate) fn private_bits(&self, at: BitsAt, words: usize) -> Secret {
        self.seed.private_bits(at, words)
    }

    /// What all parties draw alike.
    pub(crate) fn public(&self) -> &Public {
        &self.public
    }

    /// Open all states of a plan under this record's fresh masks, with the bytes sent for each.
    pub(crate) fn open_states(
        &mut self,
        plan: &Plan,
        states: &States,
    ) -> Result<BTreeMap<ValueId, (Vec<u64>, u64)>, EvalError> {
        let seed = &self.seed;
        let mask = |v, ring, n| mutation::state_mask(seed.mask(Wire::node(v), ring, n));
        open_states(&mut self.exchange, plan, states, mask)
    }
}
