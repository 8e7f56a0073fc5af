use crate::mutation;
use crate::preprocess::BitsAt;
use crate::seeds::{PartySeed, Public};
use crate::shares::{Seats, Words};
use privet_family::keys::{KeyError, KeySource};
use privet_family::{NodeStats, Opening, OpeningKind, Secret, Wire};
use privet_kernels::Device;
use privet_net::{Channel, NetError, Step};
use privet_plan::Form;
use privet_plan::ir::Node;
use privet_ring::{BitVec, PackError, Ring, pack, unpack};
use std::sync::Arc;
use thiserror::Error;

/// Why a run ended early. Nothing was revealed.
#[derive(Debug, Error)]
pub enum EvalError {
    /// Another party or the way to it.
    #[error("{0}")]
    Net(#[from] NetError),
    /// The record.
    #[error("{0}")]
    Keys(#[from] KeyError),
    /// An opening that does not hold what was announced.
    #[error("{0}")]
    Pack(#[from] PackError),
    /// A party sent bits past the end of a bit vector.
    #[error("step `{0}`: {1}'s bits are not well formed; it runs another version or is broken")]
    Bits(String, String),
    /// An operand that the caller did not give.
    #[error("{0}")]
    Missing(String),
}

/// An opening of which this party's share is on its way.
pub(crate) struct Sent {
    step: Step,
    ring: Ring,
    share: Vec<u64>,
}

/// One party's side of one record's run.
pub struct Eval<'a> {
    pub(crate) device: &'a dyn Device,
    /// How the node that is evaluated compares.
    pub(crate) form: Option<Form>,
    seed: PartySeed,
    public: Public,
    source: &'a mut dyn KeySource,
    peers: Vec<&'a mut dyn Channel>,
    step: u32,
    layer: Arc<str>,
    pub(crate) stats: NodeStats,
    openings: Vec<Opening>,
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
        Eval {
            device,
            form: None,
            seed,
            public,
            source,
            peers,
            step: 0,
            layer: "".into(),
            stats: NodeStats::default(),
            openings: Vec::new(),
        }
    }

    /// The next steps belong to this node: its layer names them in errors and the audit, and its form is how it compares.
    pub(crate) fn enter(&mut self, node: &Node) {
        self.layer = node.layer.as_str().into();
        self.form = node.form;
    }

    /// What has been opened so far.
    pub fn openings(&self) -> &[Opening] {
        &self.openings
    }

    /// How many parties there are.
    pub(crate) fn parties(&self) -> usize {
        self.peers.len() + 1
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
        self.stats.key_bytes += ring.packed_bytes(n) as u64;
        crate::record::elements(self.source, ring, n)
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

    /// Open a masked value: every party sends its share of `y + lambda` to all others, and all add. Masked: lambda has a summand of
    /// every party, uniform in the ring and fresh for this wire, so what is opened is uniform whatever `y` is, also for
    /// n - 1 parties together.
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
        for peer in &mut self.peers {
            let theirs = peer.recv(&step, ring.packed_bytes(share.len()))?;
            let theirs = unpack(ring, &theirs, share.len())?;
            for (a, b) in share.iter_mut().zip(theirs) {
                *a = a.wrapping_add(b);
            }
        }
        share.iter_mut().for_each(|a| *a = ring.wrap(*a));
        Ok(share)
    }

    /// Open two masked values in one round.
    pub(crate) fn open_both(
        &mut self,
        values: [(&str, Ring, Vec<u64>); 2],
    ) -> Result<[Vec<u64>; 2], EvalError> {
        let [(first, first_ring, a), (second, second_ring, b)] = values;
        let a = self.send_masked(first, first_ring, a)?;
        let b = self.send_masked(second, second_ring, b)?;
        self.stats.rounds += 1;
        Ok([self.receive_masked(a)?, self.receive_masked(b)?])
    }

    /// Open masked bits: XOR shares of `c ^ m`, m having a uniform bit of every party.
    pub(crate) fn open_masked_bits(&mut self, what: &str, mut share: BitVec) -> Result<BitVec, EvalError> {
        let n = share.len();
        let step = self.send(what, share.to_bytes(), n as u64)?;
        self.stats.rounds += 1;
        for peer in &mut self.peers {
            let theirs = peer.recv(&step, n.div_ceil(8))?;
            let theirs = BitVec::from_bytes(n, &theirs)
                .ok_or_else(|| EvalError::Bits(format!("{} / {what}", self.layer), peer.peer().into()))?;
            share.xor_assign(&theirs);
        }
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
        for peer in &mut self.peers {
            let theirs = peer.recv(&step, 8 * share.len())?;
            let theirs = unpack(Ring::R64, &theirs, share.len())?;
            share.iter_mut().zip(theirs).for_each(|(a, b)| *a ^= b);
        }
        Ok(share)
    }

    /// The same message to every other party.
    fn send(&mut self, what: &str, payload: Vec<u8>, bits: u64) -> Result<Step, EvalError> {
        self.step += 1;
        let name = format!("{} / {what}", self.layer);
        self.openings.push(Opening { step: self.step, what: name.clone(), bits, kind: OpeningKind::Masked });
        self.stats.sent_bytes += payload.len() as u64 * self.peers.len() as u64;
        let step = Step { id: self.step, name: name.into() };
        let Some((last, others)) = self.peers.split_last_mut() else { return Ok(step) };
        for peer in others {
            peer.send(&step, payload.clone())?;
        }
        last.send(&step, payload)?;
        Ok(step)
    }
}
