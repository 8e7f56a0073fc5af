use crate::keys::{Keys, OUTPUT, Streams, dropout_coins, joined, rounding_coins};
use crate::limits::Limits;
use crate::proof::{Transcript, UnderWay};
use crate::{PartyId, RunError, Security, Share, Wiping, mutation};
use privet_family::NodeStats;
use privet_kernels::Device;
use privet_net::{Channel, Step};
use privet_plan::ir::ValueId;
use privet_prg::{Domain, Prg, Seed};
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

/// What is to come from each neighbour at a step, of whose messages this party has sent its own.
pub(crate) struct Awaited {
    step: Step,
    /// Bytes from the party before, and from the party after.
    lens: (usize, usize),
}

/// One party's side of one use of the session's keys: a run, or the sharing of weights.
pub struct Party<'a> {
    pub(crate) id: PartyId,
    /// What is still to be proved; absent where every party is trusted to follow the protocol.
    pub(crate) transcript: Option<Transcript>,
    /// What is being proved while the protocol goes on.
    pub(crate) under_way: Vec<UnderWay>,
    /// Verifications that have opened a difference of tags and did not come to their end yet: had somebody cheated, that one would know something
    /// of the keys by now.
    pub(crate) opened_tags: usize,
    /// What the last verification left.
    pub(crate) wiping: Wiping,
    pub(crate) device: &'a dyn Device,
    keys: Keys,
    /// Of the run's coins, once the parties have completed it ([`Party::toss`]).
    pub(crate) coin_key: Option<Seed>,
    draws: u64,
    prev: &'a mut dyn Channel,
    next: &'a mut dyn Channel,
    step: u32,
    node: ValueId,
    layer: Arc<str>,
    pub(crate) stats: NodeStats,
    /// What verifications cost so far, which `stats` does not count.
    pub(crate) checks: NodeStats,
    /// The same at all parties.
    pub(crate) limits: Limits,
    /// How this party cheats.
    #[cfg(test)]
    pub(crate) adapt: Option<crate::proof::Adapt>,
    /// The most bytes of statements that it remembered at a time.
    #[cfg(test)]
    pub(crate) most_remembered: u64,
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
            under_way: vec![],
            opened_tags: 0,
            wiping: Wiping::default(),
            device,
            keys,
            coin_key: None,
            draws: 0,
            prev,
            next,
            step: 0,
            node: 0,
            layer: "".into(),
            stats,
            checks: NodeStats::default(),
            limits: Limits::default(),
            #[cfg(test)]
            adapt: None,
            #[cfg(test)]
            most_remembered: 0,
        }
    }

    /// Verify beside the protocol from so few bytes of statements on, at all parties alike: what large plans do, with small ones. For tests.
    #[doc(hidden)]
    pub fn verify_from(&mut self, bytes: u64) {
        self.limits.worth = bytes;
    }

    /// Combine results of layers with tags ahead of the verification from so few elements on, likewise. For tests.
    #[doc(hidden)]
    pub fn combine_ahead_from(&mut self, elements: usize) {
        self.limits.ahead = elements;
    }

    /// Which party this is.
    pub fn id(&self) -> PartyId {
        self.id
    }

    /// Name the node that the next steps belong to, and its layer, for errors.
    pub fn enter(&mut self, node: ValueId, layer: &str) {
        self.node = node;
        self.layer = layer.into();
    }

    /// Complete the key of this run's coins: one round, 16 bytes to each neighbour. Only after the holders of the inputs'
    /// components have compared them ([`Party::compare`]): until an honest neighbour sends its share, a party knows nothing of
    /// the coins, and by then the inputs are fixed.
    ///
    /// Each party lacks one share, which both others have and send, so neither can send another than the right one unnoticed.
    pub fn toss(&mut self) -> Result<(), RunError> {
        let [own, next] = self.keys.coin_shares();
        // The party before lacks what this one has with the party after, and the other way round.
        let out = Messages { prev: next.expose().to_vec(), next: own.expose().to_vec() };
        let got = self.talk("coins", out, (Seed::BYTES, Seed::BYTES))?;
        if got.prev != got.next && !mutation::active("coins-not-compared") {
            let (step, layer) = self.place();
            let error = RunError::Coins { before: self.id.prev(), after: self.id.next(), step, layer };
            self.abort(&error.to_string());
            return Err(error);
        }
        let lacked = Seed::from_bytes(got.next.try_into().expect("as many bytes as asked for"));
        self.coin_key = Some(match mutation::active("coins-of-the-common-key") {
            true => self.keys.common.clone(),
            false => joined([&own, &next, &lacked]),
        });
        Ok(())
    }

    fn coin_key(&self) -> Result<&Seed, RunError> {
        let untossed = || RunError::Missing(format!("node {} draws coins that were not tossed", self.node));
        self.coin_key.as_ref().ok_or_else(untossed)
    }

    /// The coins of stochastic rounding at the node at hand, `n` of `shift` bits, alike at all parties
    /// ([`rounding_coins`]).
    pub(crate) fn coins(&self, shift: u32, n: usize) -> Result<Vec<u64>, RunError> {
        Ok(rounding_coins(self.coin_key()?, self.node, shift, n))
    }

    /// The coins of a dropout ([`dropout_coins`]).
    pub(crate) fn dropout(&self, stream: u32, n: usize) -> Result<Vec<u64>, RunError> {
        Ok(dropout_coins(self.coin_key()?, stream, n))
    }

    /// Keys of coins at the node at hand that the party after, and the party before, do not know ([`Keys::hidden`]).
    pub(crate) fn hidden_keys(&self, number: u64) -> [Seed; 2] {
        self.keys.hidden(self.node, number)
    }

    /// What all parties add to the components of output `i` of this use.
    pub(crate) fn output_masks(&self, i: usize) -> Prg {
        self.keys.common.derive(Domain::Common, OUTPUT | i as u64).stream()
    }

    /// The last step and its layer, for errors.
    pub(crate) fn place(&self) -> (u32, String) {
        (self.step, self.layer.to_string())
    }

    /// Tell both neighbours why this party gives up, and close both links. `reason` must be public.
    pub(crate) fn abort(&mut self, reason: &str) {
        self.prev.abort(reason);
        self.next.abort(reason);
    }

    /// Streams that no earlier draw of this use has touched. Every party must draw at the same points of the
    /// protocol, whether or not it needs what it draws.
    pub(crate) fn draw(&mut self) -> Streams {
        if !mutation::active("masks-repeat") {
            self.draws += 1;
        }
        self.keys.streams(self.draws)
    }

    /// One round: send to both neighbours, then receive `prev` and `next` bytes from them. A length of 0 stands for
    /// no message at all. Between the two a verification that is under way goes on: what was sent for it in the round before is there by now. Halves
    /// of seeds go with the messages where results wait for coefficients.
    pub(crate) fn talk(
        &mut self,
        what: &str,
        mut out: Messages,
        mut lens: (usize, usize),
    ) -> Result<Messages, RunError> {
        self.heed_refusal()?;
        self.stats.rounds += 1;
        let ahead = self.tell_ahead(&mut out, &mut lens);
        let awaited = self.tell(what, out, lens)?;
        self.go_on_verifying()?;
        let mut got = self.hear(&awaited)?;
        if let Some(told) = ahead {
            self.heard_ahead(told, &mut got);
        }
        Ok(got)
    }

    /// Send to both neighbours; `prev` and `next` bytes are to come from them at the same step.
    pub(crate) fn tell(
        &mut self,
        what: &str,
        out: Messages,
        lens: (usize, usize),
    ) -> Result<Awaited, RunError> {
        self.step += 1;
        self.stats.sent_bytes += (out.prev.len() + out.next.len()) as u64;
        let step = Step::new(self.step, self.step_name(what));
        for (channel, payload) in [(&mut *self.prev, out.prev), (&mut *self.next, out.next)] {
            if !payload.is_empty() {
                channel.send(&step, payload)?;
            }
        }
        Ok(Awaited { step, lens })
    }

    /// Receive what is awaited. Messages come in the order in which they were sent.
    pub(crate) fn hear(
        &mut self,
        Awaited { step, lens: (prev, next) }: &Awaited,
    ) -> Result<Messages, RunError> {
        let hear =
            |channel: &mut dyn Channel, len| if len == 0 { Ok(vec![]) } else { channel.recv(step, len) };
        Ok(Messages { prev: hear(&mut *self.prev, *prev)?, next: hear(&mut *self.next, *next)? })
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
            step: self.step_name(what),
            peer: from.to_string(),
            source,
        })
    }

    /// A step's name as errors show it.
    pub(crate) fn step_name(&self, what: &str) -> String {
        format!("{} / {what}", self.layer)
    }

    /// Reshare: the parties' `summand`s add up to a value; make them replicated shares of it. One round, k bits an
    /// element from every party.
    ///
    /// Masked by the zero share `F_i - F_(i+1)` (Araki et al., CCS 2016, protocol 2.3): the receiver, the party
    /// before, does not know key i + 1, so what it gets is uniform to it. If messages are to be proved, the masks come
    /// with it.
    pub(crate) fn reshare(
        &mut self,
        what: &str,
        ring: Ring,
        summand: Vec<u64>,
    ) -> Result<(Share, Option<ReshareMasks>), RunError> {
        let mut masks = self.transcript.as_ref().map(|_| ReshareMasks::of(summand.len()));
        let share = self.reshare_with(what, ring, summand, masks.as_mut())?;
        Ok((share, masks))
    }

    /// [`Party::reshare`], where nothing is stated about its messages, or `masks` are wanted for that.
    pub(crate) fn reshare_with(
        &mut self,
        what: &str,
        ring: Ring,
        mut summand: Vec<u64>,
        mut masks: Option<&mut ReshareMasks>,
    ) -> Result<Share, RunError> {
        let n = summand.len();
        let mut streams = self.draw();
        add_zero_share(ring, &mut streams, &mut summand, masks.as_deref_mut());
        let mut payload = Vec::new();
        pack(ring, &summand, &mut payload);
        let len = payload.len();
        let got = self.talk(what, Messages { prev: payload, next: vec![] }, (0, len))?;
        let next = self.unpack(what, ring, &got.next, n, self.id.next())?;
        if let Some(masks) = masks {
            masks.before.iter_mut().zip(&next).for_each(|(f, z)| *f = f.wrapping_sub(*z));
        }
        Ok(Share::new(summand, next))
    }
}

/// What the statements about a reshare are made of beside products (docs/rep3.md, section 6), of k low bits.
pub(crate) struct ReshareMasks {
    /// `F - z` of the message of the party after this one, to which this one is the party before.
    pub before: Vec<u64>,
    /// `-F` of the key that the party before this one adds the negation of.
    pub after: Vec<u64>,
}

impl ReshareMasks {
    /// Room for those of `n` elements.
    fn of(n: usize) -> ReshareMasks {
        ReshareMasks { before: Vec::with_capacity(n), after: Vec::with_capacity(n) }
    }
}

/// Add `F_i - F_(i+1)` to a summand, in pieces that stay in the first-level cache; `F_(i+1)` and `-F_i` are appended to `masks`.
fn add_zero_share(
    ring: Ring,
    streams: &mut Streams,
    summand: &mut [u64],
    mut masks: Option<&mut ReshareMasks>,
) {
    const PIECE: usize = 1024;
    let (mut own, mut next) = ([0; PIECE], [0; PIECE]);
    for piece in summand.chunks_mut(PIECE) {
        let (own, next) = (&mut own[..piece.len()], &mut next[..piece.len()]);
        streams.own.fill(ring, own);
        streams.next.fill(ring, next);
        mutation::mask("reshare-unmasked", [&mut *own, &mut *next]);
        for (z, (a, b)) in piece.iter_mut().zip(own.iter().zip(&*next)) {
            *z = ring.wrap(z.wrapping_add(*a).wrapping_sub(*b));
        }
        if let Some(masks) = &mut masks {
            masks.before.extend_from_slice(next);
            masks.after.extend(own.iter().map(|a| a.wrapping_neg()));
        }
    }
}
