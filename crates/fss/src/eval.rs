use crate::keys::{KeyError, KeySource};
use crate::wire::{PartyId, Wire, bit_mask_share, mask_share};
use privet_family::{NodeStats, Opening, OpeningKind};
use privet_kernels::Device;
use privet_net::{Channel, NetError, Step};
use privet_prg::{Domain, Prg, Seed, TreeHash};
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

/// One evaluator's side of one record.
pub struct Eval<'a> {
    pub(crate) party: PartyId,
    pub(crate) device: &'a dyn Device,
    pub(crate) hash: &'a TreeHash,
    seed: Seed,
    source: &'a mut dyn KeySource,
    channel: &'a mut dyn Channel,
    step: u32,
    layer: Arc<str>,
    pub(crate) stats: NodeStats,
    openings: Vec<Opening>,
}

impl<'a> Eval<'a> {
    /// Evaluate with this record's `seed` and key stream, against the other evaluator on `channel`.
    pub fn new(
        party: PartyId,
        device: &'a dyn Device,
        hash: &'a TreeHash,
        seed: Seed,
        source: &'a mut dyn KeySource,
        channel: &'a mut dyn Channel,
    ) -> Eval<'a> {
        Eval {
            party,
            device,
            hash,
            seed,
            source,
            channel,
            step: 0,
            layer: "".into(),
            stats: NodeStats::default(),
            openings: Vec::new(),
        }
    }

    /// Name the layer that the next steps belong to, for errors and the audit.
    pub fn enter(&mut self, layer: &str) {
        self.layer = layer.into();
    }

    /// What has been opened so far.
    pub fn openings(&self) -> &[Opening] {
        &self.openings
    }

    /// True at evaluator 0, which adds public constants to its share.
    pub(crate) fn leads(&self) -> bool {
        self.party == PartyId::P0
    }

    /// The next `len` bytes of keys.
    pub(crate) fn take(&mut self, len: usize) -> Result<&[u8], KeyError> {
        self.stats.key_bytes += len as u64;
        self.source.take(len)
    }

    /// This evaluator's share of the fresh mask of `wire`.
    pub(crate) fn mask_share(&self, wire: Wire, ring: Ring, n: usize) -> Vec<u64> {
        mask_share(&self.seed, wire, ring, n)
    }

    pub(crate) fn bit_mask_share(&self, wire: Wire, n: usize) -> BitVec {
        bit_mask_share(&self.seed, wire, n)
    }

    pub(crate) fn table_stream(&self, wire: Wire) -> Prg {
        self.seed.derive(Domain::Table, wire.index()).stream()
    }

    /// Open a masked value: exchange shares of `y + r` and add. Masked: `r` is uniform in the ring, fresh
    /// for this wire, and neither evaluator knows it, so what is opened is uniform whatever `y` is.
    pub(crate) fn open_masked(
        &mut self,
        what: &str,
        ring: Ring,
        mut share: Vec<u64>,
    ) -> Result<Vec<u64>, EvalError> {
        let n = share.len();
        let mut payload = Vec::new();
        pack(ring, &share, &mut payload);
        let theirs = self.exchange(what, payload, ring.packed_bytes(n), n as u64 * ring.bits() as u64)?;
        for (a, b) in share.iter_mut().zip(unpack(ring, &theirs, n)?) {
            *a = ring.wrap(a.wrapping_add(b));
        }
        Ok(share)
    }

    /// Open masked bits: exchange XOR shares of `c ^ m`, with `m` uniform and known to neither evaluator.
    pub(crate) fn open_masked_bits(&mut self, what: &str, mut share: BitVec) -> Result<BitVec, EvalError> {
        let n = share.len();
        let theirs = self.exchange(what, share.to_bytes(), n.div_ceil(8), n as u64)?;
        let theirs = BitVec::from_bytes(n, &theirs)
            .ok_or_else(|| EvalError::Bits(format!("{} / {what}", self.layer)))?;
        share.xor_assign(&theirs);
        Ok(share)
    }

    fn exchange(
        &mut self,
        what: &str,
        payload: Vec<u8>,
        len: usize,
        bits: u64,
    ) -> Result<Vec<u8>, EvalError> {
        self.step += 1;
        let name = format!("{} / {what}", self.layer);
        self.openings.push(Opening { step: self.step, what: name.clone(), bits, kind: OpeningKind::Masked });
        self.stats.sent_bytes += payload.len() as u64;
        self.stats.rounds += 1;
        let step = Step { id: self.step, name: name.into() };
        Ok(self.channel.exchange(&step, payload, len)?)
    }
}
