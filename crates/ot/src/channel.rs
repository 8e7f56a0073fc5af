//! The protocols over a channel, both directions at once: each party is sender of one and receiver of the other.

use crate::base::{self, Label, POINT_BYTES, POINTS_BYTES};
use crate::delta::Delta;
use crate::error::{Malformed, OtError};
use crate::pool::{ReceiverPool, SenderPool, Source, public_seeds};
use crate::softspoken::{self, SETUP_BYTES};
use privet_net::{Channel, Step};
use privet_prg::Seed;

/// Bytes of a party's part of the session's public seeds.
const NONCE_BYTES: usize = 16;
/// Chunks of the extension to a message. AGREEMENT; it bounds what lies in buffers.
const CHUNKS: usize = 16;
/// Messages of the extension that a party sends before it waits for one. They do not follow from each other, so links with a long
/// delay carry them together.
const AHEAD: usize = 8;

/// Bytes that [`Pair::start`] sends each way.
pub const START_BYTES: usize = NONCE_BYTES + POINTS_BYTES + POINT_BYTES + SETUP_BYTES;

/// Transfers that this party's receiver has and its sender lacks still: [`Pair::end`] takes it.
#[must_use]
pub struct Begun {
    chunks: usize,
}

/// Both directions between two parties, for a session.
pub struct Pair {
    /// Transfers in which this party is the sender.
    pub sender: SenderPool,
    /// Transfers in which the peer is the sender.
    pub receiver: ReceiverPool,
    source: Source,
}

impl Pair {
    /// Base OTs and the extension's trees, both ways: two rounds, [`START_BYTES`] each way. `secret` is this party's own
    /// fresh seed, used for nothing else.
    pub fn start(
        channel: &mut dyn Channel,
        step: &Step,
        source: Source,
        secret: &Seed,
    ) -> Result<Pair, OtError> {
        let mut prg = secret.stream();
        let mut nonce = [0; NONCE_BYTES];
        prg.fill_bytes(&mut nonce);
        let delta = Delta::draw(&mut prg);
        let mine = Label(&nonce);

        // Whoever is the sender of the transfers is the receiver of their base OTs.
        let (chooser, elements) = base::Receiver::start(mine, delta.block(), &mut prg);
        let (offerer, element) = base::Sender::start(&mut prg);
        let message = [&nonce[..], &elements, &element].concat();
        let reply = channel.exchange(step, message, NONCE_BYTES + POINTS_BYTES + POINT_BYTES)?;
        let (other, reply) = reply.split_at(NONCE_BYTES);
        let (elements, element) = reply.split_at(POINTS_BYTES);
        let chosen = chooser.finish(mine, element).map_err(|e| wrong(channel, e))?;
        let pairs = offerer.finish(Label(other), elements).map_err(|e| wrong(channel, e))?;

        let (out, back) = (public(&nonce, other), public(other, &nonce));
        let (out, back) = (public_seeds(&out), public_seeds(&back));
        let width = source.width();
        let (receiver, trees) = softspoken::Receiver::start(width, &back.0, &pairs, &mut prg);
        let trees = channel.exchange(step, trees, SETUP_BYTES)?;
        let sender = softspoken::Sender::start(width, &out.0, &delta, &chosen, &trees);
        let sender = sender.map_err(|e| wrong(channel, e))?;
        Ok(Pair {
            sender: SenderPool::new(source, out, delta, sender, prg),
            receiver: ReceiverPool::new(source, back, receiver),
            source,
        })
    }

    /// All traffic until `send` transfers can be taken from the sender and `receive` from the receiver. The peer calls it
    /// with the numbers exchanged.
    pub fn prepare(
        &mut self,
        channel: &mut dyn Channel,
        step: &Step,
        send: usize,
        receive: usize,
    ) -> Result<(), OtError> {
        let (mut out, mut back) = (self.sender.demand(send), self.receiver.demand(receive));
        while out.chunks.max(back.chunks) > 0 {
            let (mine, theirs) = (back.chunks.min(AHEAD * CHUNKS), out.chunks.min(AHEAD * CHUNKS));
            self.tell(channel, step, mine)?;
            self.hear(channel, step, theirs)?;
            (out.chunks, back.chunks) = (out.chunks - theirs, back.chunks - mine);
        }
        self.rounds(channel, step, out.rounds, back.rounds)
    }

    /// As [`Pair::prepare`], but afterwards `receive` transfers can be taken from the receiver alone. [`Pair::end`] gives the others; what the
    /// caller sends in between reaches the peer together with what this sends.
    pub fn begin(
        &mut self,
        channel: &mut dyn Channel,
        step: &Step,
        send: usize,
        receive: usize,
    ) -> Result<Begun, OtError> {
        if let Source::Ferret(_) = self.source {
            self.prepare(channel, step, send, receive)?; // a receiver waits for the sender's message
        }
        let (out, back) = (self.sender.demand(send), self.receiver.demand(receive));
        self.tell(channel, step, back.chunks)?;
        Ok(Begun { chunks: out.chunks })
    }

    /// The end of what was begun, in the same step.
    pub fn end(&mut self, channel: &mut dyn Channel, step: &Step, begun: Begun) -> Result<(), OtError> {
        self.hear(channel, step, begun.chunks)
    }

    /// The receiver's messages of the extension.
    fn tell(&mut self, channel: &mut dyn Channel, step: &Step, chunks: usize) -> Result<(), OtError> {
        for at in (0..chunks).step_by(CHUNKS) {
            channel.send(step, self.receiver.extend(CHUNKS.min(chunks - at)))?;
        }
        Ok(())
    }

    /// The same of the peer.
    fn hear(&mut self, channel: &mut dyn Channel, step: &Step, chunks: usize) -> Result<(), OtError> {
        let bytes = self.source.width().chunk_bytes();
        for at in (0..chunks).step_by(CHUNKS) {
            let message = channel.recv(step, bytes * CHUNKS.min(chunks - at))?;
            self.sender.extend(&message).map_err(|e| wrong(channel, e))?;
        }
        Ok(())
    }

    /// Rounds of Ferret, both ways.
    fn rounds(
        &mut self,
        channel: &mut dyn Channel,
        step: &Step,
        send: usize,
        receive: usize,
    ) -> Result<(), OtError> {
        let Source::Ferret(parameters) = self.source else { return Ok(()) };
        let (mut out, mut back) = (send, receive);
        while out.max(back) > 0 {
            let (mine, theirs) = (out.min(1), back.min(1));
            let message = if mine == 1 { self.sender.round(parameters) } else { Vec::new() };
            let reply = both(channel, step, message, parameters.message_bytes() * theirs)?;
            if theirs == 1 {
                self.receiver.round(parameters, &reply).map_err(|e| wrong(channel, e))?;
            }
            (out, back) = (out - mine, back - theirs);
        }
        Ok(())
    }
}

/// Sends what there is to send and waits for what is to come, either of which may be nothing.
fn both(channel: &mut dyn Channel, step: &Step, message: Vec<u8>, len: usize) -> Result<Vec<u8>, OtError> {
    if !message.is_empty() {
        channel.send(step, message)?;
    }
    if len == 0 { Ok(Vec::new()) } else { Ok(channel.recv(step, len)?) }
}

/// The public seed of the direction whose sender drew the first nonce.
fn public(sender: &[u8], receiver: &[u8]) -> Seed {
    let mut hash = blake3::Hasher::new_derive_key("privet OT, public seed of a direction");
    hash.update(sender).update(receiver);
    let mut seed = [0; 16];
    hash.finalize_xof().fill(&mut seed);
    Seed::from_bytes(seed)
}

/// Tells the peer, and says whose message it was.
fn wrong(channel: &mut dyn Channel, what: Malformed) -> OtError {
    channel.abort("a message of the oblivious transfer was wrong");
    OtError::Message { peer: channel.peer().to_owned(), what }
}
