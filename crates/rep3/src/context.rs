use crate::keys::{Keys, Streams, rounding_coins};
use crate::proof::Transcript;
use crate::{PartyId, RunError, Security, Share};
use privet_family::NodeStats;
use privet_kernels::Device;
use privet_net::{Channel, Step};
use privet_plan::ir::ValueId;
use privet_ring::{Ring, pack, unpack};
use std::sync::Arc;

/// What goes to, or came from, each neighbour at one step.
#[derive(Debug, Default)]
pub struct Messages {
    /// The party before.
    pub prev: Vec<u8>,
    /// The party after.
    pub next: Vec<u8>,
}

/// One party's side of one use of the session's keys: a run, or the sharing of weights.
pub struct Party<'a> {
    pub(crate) id: PartyId,
    /// What is still to be proved; absent where every party is trusted to follow the protocol.
    pub(crate) transcript: Option<Transcript>,
    pub(crate) device: &'a dyn Device,
    keys: Keys,
    draws: u64,
    prev: &'a mut dyn Channel,
    next: &'a mut dyn Channel,
    step: u32,
    node: ValueId,
    layer: Arc<str>,
    pub(crate) stats: NodeStats,
}

impl<'a> Party<'a> {
    /// `keys` are of this use alone ([`Keys::derive`]); `prev` and `next` lead to the parties before and after.
    pub fn new(
        id: PartyId,
        security: Security,
        device: &'a dyn Device,
        keys: Keys,
        prev: &'a mut dyn Channel,
        next: &'a mut dyn Channel,
    ) -> Party<'a> {
        let stats = NodeStats::default();
        let transcript = (security == Security::Malicious).then(Transcript::default);
        Party {
            id,
            transcript,
            device,
            keys,
            draws: 0,
            prev,
            next,
            step: 0,
            node: 0,
            layer: "".into(),
            stats,
        }
    }

    /// Name the node that the next steps belong to, and its layer, for errors.
    pub fn enter(&mut self, node: ValueId, layer: &str) {
        self.node = node;
        self.layer = layer.into();
    }

    /// The coins of stochastic rounding at the node at hand, `n` of `shift` bits, alike at all parties
    /// ([`rounding_coins`]).
    pub(crate) fn coins(&self, shift: u32, n: usize) -> Vec<u64> {
        rounding_coins(&self.keys.common, self.node, shift, n)
    }

    /// Streams that no earlier draw of this use has touched. Every party must draw at the same points of the
    /// protocol, whether or not it needs what it draws.
    pub(crate) fn draw(&mut self) -> Streams {
        self.draws += 1;
        self.keys.streams(self.draws)
    }

    /// One round: send to both neighbours, then receive `prev` and `next` bytes from them. A length of 0 stands for
    /// no message at all.
    pub(crate) fn talk(
        &mut self,
        what: &str,
        out: Messages,
        (prev, next): (usize, usize),
    ) -> Result<Messages, RunError> {
        self.step += 1;
        self.stats.rounds += 1;
        self.stats.sent_bytes += (out.prev.len() + out.next.len()) as u64;
        let step = Step::new(self.step, format!("{} / {what}", self.layer));
        for (channel, payload) in [(&mut *self.prev, out.prev), (&mut *self.next, out.next)] {
            if !payload.is_empty() {
                channel.send(&step, payload)?;
            }
        }
        let hear =
            |channel: &mut dyn Channel, len| if len == 0 { Ok(vec![]) } else { channel.recv(&step, len) };
        Ok(Messages { prev: hear(&mut *self.prev, prev)?, next: hear(&mut *self.next, next)? })
    }

    /// Read `n` elements that a neighbour sent at step `what`.
    pub(crate) fn unpack(
        &self,
        what: &str,
        ring: Ring,
        bytes: &[u8],
        n: usize,
        from: PartyId,
    ) -> Result<Vec<u64>, RunError> {
        unpack(ring, bytes, n).map_err(|source| RunError::Pack {
            step: format!("{} / {what}", self.layer),
            peer: from.to_string(),
            source,
        })
    }

    /// Reshare: the parties' `summand`s add up to a value; make them replicated shares of it. One round, k bits an
    /// element from every party.
    ///
    /// Masked by the zero share `F_i - F_(i+1)` (Araki et al., CCS 2016, protocol 2.3): the receiver, the party
    /// before, does not know key i + 1, so what it gets is uniform to it.
    pub(crate) fn reshare(
        &mut self,
        what: &str,
        ring: Ring,
        mut summand: Vec<u64>,
    ) -> Result<Share, RunError> {
        let n = summand.len();
        let mut streams = self.draw();
        let (own, next) = (streams.own.elements(ring, n), streams.next.elements(ring, n));
        for ((z, a), b) in summand.iter_mut().zip(own).zip(next) {
            *z = ring.wrap(z.wrapping_add(a).wrapping_sub(b));
        }
        let mut payload = Vec::new();
        pack(ring, &summand, &mut payload);
        let len = payload.len();
        let got = self.talk(what, Messages { prev: payload, next: vec![] }, (0, len))?;
        let next = self.unpack(what, ring, &got.next, n, self.id.next())?;
        Ok(Share::new(summand, next))
    }
}
