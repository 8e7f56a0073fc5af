//! What parties send each other in a run: summands of masked values.

use privet_family::keys::KeyError;
use privet_family::{NodeStats, Opening, OpeningKind};
use privet_net::{Channel, NetError, Step};
use privet_ring::{Adder, BitVec, PackError, Ring, pack, unpack};
use std::collections::{BTreeMap, VecDeque};
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
    /// A party sent bits past the end of a bit vector: the step and who.
    #[error("step `{0}`: {1}'s bits are not well formed; it runs another version or is broken")]
    Bits(String, String),
    /// An operand that the caller did not give.
    #[error("{0}")]
    Missing(String),
}

/// A value of which all openings were begun: it is here, or summands of it are on their way.
pub enum Opened {
    /// It is here.
    Here(Vec<u64>),
    /// It follows from an opening that has not been waited for.
    Sent(Sent),
}

/// An opening of which this party's summand is on its way, and what is made of it.
pub struct Sent {
    step: u32,
    then: Box<dyn FnOnce(Vec<u64>) -> Vec<u64>>,
}

impl Opened {
    /// The value that `then` makes of this one.
    pub fn then(self, then: impl FnOnce(Vec<u64>) -> Vec<u64> + 'static) -> Opened {
        match self {
            Opened::Here(value) => Opened::Here(then(value)),
            Opened::Sent(Sent { step, then: before }) => {
                Opened::Sent(Sent { step, then: Box::new(|opened| then(before(opened))) })
            }
        }
    }
}

/// A summand that was sent, where those of the other parties have not been received.
struct Awaited {
    step: Step,
    ring: Ring,
    share: Vec<u64>,
}

/// Most bytes of a party's summands on their way over a connection, so that two parties that send never fill both directions (a
/// connection holds 1 GiB of what was not sent). What is sent next waits, and takes a round of its own. AGREEMENT.
const MOST_ON_THE_WAY: usize = 256 << 20;

/// One party's connections to all others in a run, with an account of what is opened over them.
///
/// Whoever opens vouches for the mask: uniform, fresh for this wire and this record, with a summand that the receivers do not
/// know. Then what is opened is uniform whatever the value is.
pub struct Exchange<'a> {
    peers: Vec<&'a mut dyn Channel>,
    step: u32,
    layer: Arc<str>,
    /// What the node that is computed has cost so far. Its rounds are those of its openings that shared none with an earlier one.
    pub stats: NodeStats,
    openings: Vec<Opening>,
    /// In the order in which all parties sent.
    awaited: VecDeque<Awaited>,
    /// What was opened on the way to something else, by step.
    arrived: BTreeMap<u32, Vec<u64>>,
    /// Bytes of what is awaited, and the most there may be.
    on_the_way: usize,
    most: usize,
    /// Whether something was sent since this party waited last: what is sent next takes no round more.
    sending: bool,
}

impl<'a> Exchange<'a> {
    /// Over a channel to every other party, in the order of their numbers.
    pub fn new(peers: Vec<&'a mut dyn Channel>) -> Exchange<'a> {
        Exchange {
            peers,
            step: 0,
            layer: "".into(),
            stats: NodeStats::default(),
            openings: Vec::new(),
            awaited: VecDeque::new(),
            arrived: BTreeMap::new(),
            on_the_way: 0,
            most: MOST_ON_THE_WAY,
            sending: false,
        }
    }

    /// The same with so many bytes on their way at most; at all parties the same.
    pub fn holding(self, most: usize) -> Exchange<'a> {
        Exchange { most, ..self }
    }

    /// How many parties there are.
    pub fn parties(&self) -> usize {
        self.peers.len() + 1
    }

    /// The next steps belong to this layer of the model, which names them in errors and the audit.
    pub fn enter(&mut self, layer: &str) {
        self.layer = layer.into();
    }

    /// What has been opened so far.
    pub fn openings(&self) -> &[Opening] {
        &self.openings
    }

    /// Begin to open a masked value: every party sends its summand of `x + mask` to all others. [`Exchange::receive`] waits for theirs.
    pub fn open_masked(&mut self, what: &str, ring: Ring, share: Vec<u64>) -> Result<Opened, EvalError> {
        let mut payload = Vec::new();
        pack(ring, &share, &mut payload);
        let step = self.send(what, payload, share.len() as u64 * u64::from(ring.bits()))?;
        let id = step.id;
        self.on_the_way += ring.packed_bytes(share.len());
        self.awaited.push_back(Awaited { step, ring, share });
        Ok(Opened::Sent(Sent { step: id, then: Box::new(|opened| opened) }))
    }

    /// What was opened: the sum of all parties' summands. Whatever was sent before is received with it.
    pub fn receive(&mut self, value: Opened) -> Result<Vec<u64>, EvalError> {
        let Sent { step, then } = match value {
            Opened::Here(value) => return Ok(value),
            Opened::Sent(sent) => sent,
        };
        if !self.arrived.contains_key(&step) {
            self.receive_all()?;
        }
        let opened = self.arrived.remove(&step);
        Ok(then(opened.unwrap_or_else(|| unreachable!("every opening is received once"))))
    }

    /// Wait for everything that is on its way.
    pub fn receive_all(&mut self) -> Result<(), EvalError> {
        (self.sending, self.on_the_way) = (false, 0);
        while let Some(Awaited { step, ring, mut share }) = self.awaited.pop_front() {
            for peer in &mut self.peers {
                let len = ring.packed_bytes(share.len());
                let mut sums = Adder::new(ring, &mut share);
                peer.recv_pieces(&step, len, &mut |piece| sums.feed(piece))?;
                sums.end()?;
            }
            self.arrived.insert(step.id, share);
        }
        Ok(())
    }

    /// Open masked bits, and wait for them: every party sends its XOR share of `bits ^ mask`.
    pub fn open_masked_bits(&mut self, what: &str, mut share: BitVec) -> Result<BitVec, EvalError> {
        let n = share.len();
        let step = self.send(what, share.to_bytes(), n as u64)?;
        self.receive_all()?;
        for peer in &mut self.peers {
            let theirs = peer.recv(&step, n.div_ceil(8))?;
            let theirs = BitVec::from_bytes(n, &theirs)
                .ok_or_else(|| EvalError::Bits(format!("{} / {what}", self.layer), peer.peer().into()))?;
            share.xor_assign(&theirs);
        }
        Ok(share)
    }

    /// Open words of masked bits, and wait for them: the padding of planes included: it is masked as all else.
    pub fn open_masked_planes(&mut self, what: &str, mut share: Vec<u64>) -> Result<Vec<u64>, EvalError> {
        let mut payload = Vec::new();
        pack(Ring::R64, &share, &mut payload);
        let step = self.send(what, payload, 64 * share.len() as u64)?;
        self.receive_all()?;
        for peer in &mut self.peers {
            let theirs = peer.recv(&step, 8 * share.len())?;
            let theirs = unpack(Ring::R64, &theirs, share.len())?;
            share.iter_mut().zip(theirs).for_each(|(a, b)| *a ^= b);
        }
        Ok(share)
    }

    /// The same message to every other party.
    fn send(&mut self, what: &str, payload: Vec<u8>, bits: u64) -> Result<Step, EvalError> {
        if self.on_the_way > 0 && self.on_the_way + payload.len() > self.most {
            self.receive_all()?;
        }
        self.step += 1;
        self.stats.rounds += u64::from(!std::mem::replace(&mut self.sending, true));
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
