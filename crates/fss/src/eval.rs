use crate::keys::{KeyError, KeySource};
use crate::mutation;
use crate::public::Public;
use crate::seeds::PartySeed;
use crate::wire::{PartyId, Wire};
use privet_family::{Secret, States};
use privet_kernels::Device;
use privet_masked::{EvalError, Exchange, open_states};
use privet_net::Channel;
use privet_plan::Form;
use privet_plan::ir::{Node, Plan, ValueId};
use privet_prg::{HashKeys, Prg, Seed};
use privet_ring::{BitVec, Ring};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// One evaluator's side of one record: its keys and masks, and what it opens with the other one. A mask is uniform and fresh for
/// its wire, and neither evaluator knows it.
pub struct Eval<'a> {
    pub(crate) party: PartyId,
    pub(crate) device: &'a dyn Device,
    /// How the node that is evaluated compares.
    pub(crate) form: Form,
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
    /// Evaluate record number `record` of a session with these public keys: its `seed` and key stream, against the other
    /// evaluator on `channel`.
    pub fn new(
        party: PartyId,
        device: &'a dyn Device,
        session: &HashKeys,
        record: u64,
        seed: Seed,
        source: &'a mut dyn KeySource,
        channel: &'a mut dyn Channel,
    ) -> Eval<'a> {
        Eval {
            party,
            device,
            form: Form::Tree,
            seed: PartySeed::new(party, seed),
            public: Public::new(session, record),
            source,
            exchange: Exchange::new(vec![channel]),
        }
    }

    /// The next steps belong to this node: its layer names them in errors and the audit, and its form is how it compares.
    pub(crate) fn enter(&mut self, node: &Node) {
        self.exchange.enter(&node.layer);
        self.form = node.form.unwrap_or(Form::Tree);
    }

    /// True at evaluator 0, which adds public constants to its share.
    pub(crate) fn leads(&self) -> bool {
        self.party.leads()
    }

    /// The next `len` bytes of keys.
    pub(crate) fn take(&mut self, len: usize) -> Result<&[u8], KeyError> {
        self.exchange.stats.key_bytes += len as u64;
        self.source.take(len)
    }

    /// This evaluator's share of the fresh mask of `wire`.
    pub(crate) fn mask_share(&self, wire: Wire, ring: Ring, n: usize) -> Secret {
        self.seed.mask_share(wire, ring, n)
    }

    /// The same of the result that it is about to open under it, where no dealt word has the mask in it.
    pub(crate) fn result_mask_share(&self, wire: Wire, ring: Ring, n: usize) -> Secret {
        if mutation::active("opened-share-unmasked") {
            Secret::new(vec![0; n])
        } else {
            self.mask_share(wire, ring, n)
        }
    }

    /// What the dealer and the other evaluator draw alike as well.
    pub(crate) fn public(&self) -> &Public {
        &self.public
    }

    pub(crate) fn bit_mask_share(&self, wire: Wire, n: usize) -> Secret<BitVec> {
        self.seed.bit_mask_share(wire, n)
    }

    /// This evaluator's shares of the masks before level `level` of a comparison, so many words.
    pub(crate) fn level_mask_share(&self, wire: Wire, level: usize, words: usize) -> Secret {
        let mut share = self.seed.level_mask_stream(wire, level).elements(Ring::R64, words);
        mutation::level_mask(self.party, &mut share);
        Secret::new(share)
    }

    pub(crate) fn plane_stream(&self, wire: Wire, part: usize) -> Prg {
        self.seed.plane_stream(wire, part)
    }

    pub(crate) fn table_stream(&self, wire: Wire) -> Prg {
        self.seed.table_stream(wire)
    }

    /// Open all states of a plan under this record's fresh masks, with the bytes sent for each.
    pub(crate) fn open_states(
        &mut self,
        plan: &Plan,
        states: &States,
    ) -> Result<BTreeMap<ValueId, (Vec<u64>, u64)>, EvalError> {
        let seed = &self.seed;
        let mask = |v, ring, n| mutation::state_mask(seed.mask_share(Wire::node(v), ring, n));
        open_states(&mut self.exchange, plan, states, mask)
    }
}
