use crate::keys::{KeyError, KeySource};
use crate::mutation;
use crate::public::Public;
use crate::seeds::PartySeed;
use crate::wire::{PartyId, Wire};
use privet_family::Secret;
use privet_family::{NodeStats, Opening, OpeningKind};
use privet_kernels::Device;
use privet_net::{Channel, NetError, Step};
use privet_plan::Form;
use privet_plan::ir::Node;
use privet_prg::{HashKeys, Prg, Seed};
use privet_ring::{BitVec, PackError, Ring, pack, unpack};
use std::sync::Arc;
use thiserror::Error;

/// Why an evaluation ended early. Nothing was revealed.
#[derive(Debug, Error)]
pub enum EvalError {
    /// The other evaluator or the way to it.
    #[error("{0}")]
    Net(#[from] NetError),
    /// The keys.
    #[error("{0}")]
    Keys(#[from] KeyError),
    /// An opening that does not hold what was announced.
    #[error("{0}")]
    Pack(#[from] PackError),
    /// The other evaluator sent bits past the end of a bit vector.
    #[error("step `{0}`: the other party's bits are not well formed; it runs another version or is broken")]
    Bits(String),
    /// An operand that the caller did not give.
    #[error("{0}")]
    Missing(String),
}

/// An opening of which this evaluator's half is on its way.
pub(crate) struct Sent {
    step: Step,
    ring: Ring,
    share: Vec<u64>,
}

/// One evaluator's side of one record.
pub struct Eval<'a> {
    pub(crate) party: PartyId,
    pub(crate) device: &'a dyn Device,
    /// How the node that is evaluated compares.
    pub(crate) form: Form,
    seed: PartySeed,
    public: Public,
    source: &'a mut dyn KeySource,
    channel: &'a mut dyn Channel,
    step: u32,
    layer: Arc<str>,
    pub(crate) stats: NodeStats,
    openings: Vec<Opening>,
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
            channel,
            step: 0,
            layer: "".into(),
            stats: NodeStats::default(),
            openings: Vec::new(),
        }
    }

    /// The next steps belong to this node: its layer names them in errors and the audit, and its form is how it compares.
    pub(crate) fn enter(&mut self, node: &Node) {
        self.layer = node.layer.as_str().into();
        self.form = node.form.unwrap_or(Form::Tree);
    }

    /// What has been opened so far.
    pub fn openings(&self) -> &[Opening] {
        &self.openings
    }

    /// True at evaluator 0, which adds public constants to its share.
    pub(crate) fn leads(&self) -> bool {
        self.party.leads()
    }

    /// The next `len` bytes of keys.
    pub(crate) fn take(&mut self, len: usize) -> Result<&[u8], KeyError> {
        self.stats.key_bytes += len as u64;
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

    /// Open a masked value: exchange shares of `y + r` and add. Masked: `r` is uniform in the ring, fresh
    /// for this wire, and neither evaluator knows it, so what is opened is uniform whatever `y` is.
    pub(crate) fn open_masked(
        &mut self,
        what: &str,
        ring: Ring,
        share: Vec<u64>,
    ) -> Result<Vec<u64>, EvalError> {
        let sent = self.send_masked(what, ring, share)?;
        self.stats.rounds += 1;
        self.receive_masked(sent)
    }

    /// The first half of [`Eval::open_masked`], for several openings in one round, which the caller counts.
    pub(crate) fn send_masked(&mut self, what: &str, ring: Ring, share: Vec<u64>) -> Result<Sent, EvalError> {
        let mut payload = Vec::new();
        pack(ring, &share, &mut payload);
        let step = self.send(what, payload, share.len() as u64 * ring.bits() as u64)?;
        Ok(Sent { step, ring, share })
    }

    /// The second half; in the order in which the openings were sent.
    pub(crate) fn receive_masked(&mut self, sent: Sent) -> Result<Vec<u64>, EvalError> {
        let Sent { step, ring, mut share } = sent;
        let theirs = self.channel.recv(&step, ring.packed_bytes(share.len()))?;
        let theirs = unpack(ring, &theirs, share.len())?;
        for (a, b) in share.iter_mut().zip(theirs) {
            *a = ring.wrap(a.wrapping_add(b));
        }
        Ok(share)
    }

    /// Open masked bits: exchange XOR shares of `c ^ m`, with `m` uniform and known to neither evaluator.
    pub(crate) fn open_masked_bits(&mut self, what: &str, mut share: BitVec) -> Result<BitVec, EvalError> {
        let n = share.len();
        let step = self.send(what, share.to_bytes(), n as u64)?;
        self.stats.rounds += 1;
        let theirs = self.channel.recv(&step, n.div_ceil(8))?;
        let theirs = BitVec::from_bytes(n, &theirs)
            .ok_or_else(|| EvalError::Bits(format!("{} / {what}", self.layer)))?;
        share.xor_assign(&theirs);
        Ok(share)
    }

    /// Open words of masked bits, the padding of planes included: it is masked as all else.
    pub(crate) fn open_masked_planes(
        &mut self,
        what: &str,
        mut share: Vec<u64>,
    ) -> Result<Vec<u64>, EvalError> {
        let mut payload = Vec::new();
        pack(Ring::R64, &share, &mut payload);
        let step = self.send(what, payload, 64 * share.len() as u64)?;
        self.stats.rounds += 1;
        let theirs = self.channel.recv(&step, 8 * share.len())?;
        let theirs = unpack(Ring::R64, &theirs, share.len())?;
        share.iter_mut().zip(theirs).for_each(|(a, b)| *a ^= b);
        Ok(share)
    }

    fn send(&mut self, what: &str, payload: Vec<u8>, bits: u64) -> Result<Step, EvalError> {
        self.step += 1;
        let name = format!("{} / {what}", self.layer);
        self.openings.push(Opening { step: self.step, what: name.clone(), bits, kind: OpeningKind::Masked });
        self.stats.sent_bytes += payload.len() as u64;
        let step = Step { id: self.step, name: name.into() };
        self.channel.send(&step, payload)?;
        Ok(step)
    }
}
