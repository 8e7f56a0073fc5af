//! The channel over frames: step, length and order checks, the same for memory, TLS and plain TCP.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::frame::{Frame, FrameError};
use crate::{Channel, Meter, NetError, Step};

/// Alters outgoing frames, for tests: gets the raw bytes of one frame (header, payload, step name) and returns what is
/// sent in its place, so that it can drop, change, repeat or reorder frames.
pub type FrameFilter = Box<dyn FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send>;

/// A message on its way out.
pub struct Message {
    pub step: Step,
    pub payload: Vec<u8>,
    /// The phase its bytes are counted under.
    pub phase: usize,
    /// When the protocol handed it over.
    pub queued: Instant,
}

/// What carries frames between two parties, in order, until it fails for good.
pub trait Link: Send {
    /// Queues a message.
    fn push(&mut self, message: Message) -> Result<(), NetError>;
    /// When a message of `bytes` that is under way now must be through; never where there is no patience to lose.
    fn whole_due(&self, bytes: u64) -> Option<Instant>;
    /// Waits for the next data frame, no longer than until `whole`.
    fn next(&mut self, whole: Option<Instant>) -> Result<Frame, NetError>;
    /// Returns a payload buffer for reuse.
    fn recycle(&mut self, buffer: Vec<u8>);
    /// A buffer of a message that was sent, if one is there.
    fn spare(&mut self) -> Vec<u8>;
    /// Tells the peer `reason`, closes, and answers every later call with `error`.
    fn abort(&mut self, reason: &str, error: NetError);
    /// Closes without a word.
    fn sever(&mut self, error: NetError);
}

/// Who talks to whom, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    pub me: String,
    pub peer: String,
    /// Where the peer is, for example `10.0.0.2:7000`.
    pub address: String,
}

impl Names {
    pub fn bad_frame(&self, error: FrameError) -> NetError {
        let step = "(none yet)".into();
        NetError::BadFrame { peer: self.peer.clone(), step, error }
    }

    pub fn closed(&self) -> NetError {
        let step = "(none yet)".into();
        NetError::Closed { peer: self.peer.clone(), address: self.address.clone(), step }
    }

    pub fn ended(&self) -> NetError {
        let step = "(none yet)".into();
        NetError::Ended { peer: self.peer.clone(), address: self.address.clone(), step }
    }

    fn closed_here(&self, reason: &str) -> NetError {
        NetError::ClosedHere { peer: self.peer.clone(), reason: reason.to_owned() }
    }
}

enum Expect {
    Exactly(usize),
    UpTo(usize),
}

/// A [`Channel`] over a carrier of frames; made by [`crate::mem`] and [`crate::tcp`].
pub struct Framed<L> {
    pub(crate) link: L,
    pub(crate) names: Arc<Names>,
    pub(crate) meter: Arc<Meter>,
}

impl<L> fmt::Debug for Framed<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Names { me, peer, address } = &*self.names;
        write!(f, "channel of {me} to {peer} ({address})")
    }
}

impl<L: Link> Framed<L> {
    fn receive(&mut self, step: &Step, expect: Expect) -> Result<Vec<u8>, NetError> {
        let start = Instant::now();
        let message = self.assemble(step, &expect)?;
        self.meter.received(message.len(), start.elapsed());
        Ok(message)
    }

    /// Puts a message together from its frames. Memory grows with what has arrived, never with what is announced
    /// beyond the caller's own bound.
    fn assemble(&mut self, step: &Step, expect: &Expect) -> Result<Vec<u8>, NetError> {
        let first = self.first(step, expect)?;
        if first.payload.len() as u64 == first.header.total {
            return Ok(first.payload);
        }
        let mut message = match expect {
            Expect::Exactly(len) => Vec::with_capacity(*len),
            Expect::UpTo(_) => Vec::new(),
        };
        self.pieces(step, first, &mut |piece| message.extend_from_slice(piece))?;
        Ok(message)
    }

    /// The first frame of a message that is what is expected.
    fn first(&mut self, step: &Step, expect: &Expect) -> Result<Frame, NetError> {
        let first = self.next(step, None)?;
        if let Err(error) = self.check_first(&first, step, expect) {
            return Err(self.give_up(error.at(step)));
        }
        Ok(first)
    }

    /// Hands over what the frames of a message hold, the first one's and those that follow it.
    fn pieces(&mut self, step: &Step, first: Frame, each: &mut dyn FnMut(&[u8])) -> Result<(), NetError> {
        let mut left = first.header.total;
        // One for all that is still to come: a peer cannot stretch a message by sending it in drops.
        let whole = self.link.whole_due(left);
        let mut frame = first;
        loop {
            each(&frame.payload);
            left -= frame.payload.len() as u64;
            self.link.recycle(frame.payload);
            if left == 0 {
                return Ok(());
            }
            frame = self.next(step, whole)?;
            // The decoder has seen to it that it continues a message of this length, and by how much.
            if frame.header.step != step.id {
                let error = self.names.bad_frame(FrameError::Interleaved);
                return Err(self.give_up(error.at(step)));
            }
        }
    }

    fn next(&mut self, step: &Step, whole: Option<Instant>) -> Result<Frame, NetError> {
        self.link.next(whole).map_err(|e| self.lost_patience(e.at(step)))
    }

    /// Other errors end the connection by themselves.
    fn lost_patience(&mut self, error: NetError) -> NetError {
        if matches!(error, NetError::Stuck { .. } | NetError::Slow { .. }) {
            self.give_up(error)
        } else {
            error
        }
    }

    fn check_first(&self, frame: &Frame, step: &Step, expect: &Expect) -> Result<(), NetError> {
        let head = &frame.header;
        let peer = || self.names.peer.clone();
        if head.step != step.id {
            let peer_step = format!("{} ({})", head.step, frame.name);
            let (me, my_step) = (self.names.me.clone(), step.to_string());
            return Err(NetError::Desync { peer: peer(), peer_step, me, my_step });
        }
        match *expect {
            Expect::Exactly(len) if head.total != len as u64 => {
                let (expected, found) = (len as u64, head.total);
                Err(NetError::Length { peer: peer(), step: step.to_string(), expected, found })
            }
            Expect::UpTo(max) if head.total > max as u64 => {
                let (max, found) = (max as u64, head.total);
                Err(NetError::TooLong { peer: peer(), step: step.to_string(), max, found })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn give_up(&mut self, error: NetError) -> NetError {
        self.link.abort(&error.to_string(), error.clone());
        error
    }
}

impl<L: Link> Channel for Framed<L> {
    fn send(&mut self, step: &Step, payload: Vec<u8>) -> Result<(), NetError> {
        let phase = self.meter.sent(payload.len());
        let message = Message { step: step.clone(), payload, phase, queued: Instant::now() };
        self.link.push(message).map_err(|e| self.lost_patience(e.at(step)))
    }

    fn recv(&mut self, step: &Step, len: usize) -> Result<Vec<u8>, NetError> {
        self.receive(step, Expect::Exactly(len))
    }

    fn recv_up_to(&mut self, step: &Step, max: usize) -> Result<Vec<u8>, NetError> {
        self.receive(step, Expect::UpTo(max))
    }

    fn recv_pieces(&mut self, step: &Step, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), NetError> {
        let (start, mut used) = (Instant::now(), Duration::ZERO);
        let first = self.first(step, &Expect::Exactly(len))?;
        self.pieces(step, first, &mut |piece| {
            let start = Instant::now();
            each(piece);
            used += start.elapsed();
        })?;
        self.meter.received(len, start.elapsed().saturating_sub(used));
        Ok(())
    }

    fn spare(&mut self) -> Vec<u8> {
        self.link.spare()
    }

    fn peer(&self) -> &str {
        &self.names.peer
    }

    fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }

    fn abort(&mut self, reason: &str) {
        let error = self.names.closed_here(reason);
        self.link.abort(reason, error);
    }

    fn sever(&mut self) {
        let error = self.names.closed_here("severed");
        self.link.sever(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Header, Kind};
    use std::collections::VecDeque;

    /// Frames that came, and why it was given up.
    #[derive(Default)]
    struct Script {
        frames: VecDeque<Frame>,
        gave_up: Option<NetError>,
    }

    impl Link for Script {
        fn push(&mut self, _: Message) -> Result<(), NetError> {
            Ok(())
        }

        fn whole_due(&self, _: u64) -> Option<Instant> {
            None
        }

        fn next(&mut self, _: Option<Instant>) -> Result<Frame, NetError> {
            Ok(self.frames.pop_front().expect("no more is waited for"))
        }

        fn recycle(&mut self, _: Vec<u8>) {}

        fn spare(&mut self) -> Vec<u8> {
            Vec::new()
        }

        fn abort(&mut self, _: &str, error: NetError) {
            self.gave_up = Some(error);
        }

        fn sever(&mut self, _: NetError) {}
    }

    /// A message in three frames, of these steps.
    fn message(steps: [u32; 3]) -> Framed<Script> {
        let parts: [&[u8]; 3] = [&[1, 2, 3], &[4, 5], &[6]];
        let frame = |(i, (step, part)): (usize, (u32, &[u8]))| {
            let (len, total) = (part.len() as u32, 6);
            let header = Header {
                kind: Kind::Data,
                first: i == 0,
                summed: false,
                name_len: 0,
                step,
                len,
                seq: i as u64,
                total,
            };
            Frame { header, name: String::new(), payload: part.to_vec() }
        };
        let frames = steps.into_iter().zip(parts).enumerate().map(frame).collect();
        let names = Names { me: "a".into(), peer: "b".into(), address: "here".into() };
        Framed {
            link: Script { frames, gave_up: None },
            names: Arc::new(names),
            meter: Arc::new(Meter::default()),
        }
    }

    /// What `recv` gives, and what `recv_pieces` does, put together.
    fn received(steps: [u32; 3]) -> [(Result<Vec<u8>, NetError>, bool); 2] {
        let step = Step::new(7, "open");
        let [mut whole, mut pieces] = [message(steps), message(steps)];
        let mut bytes = Vec::new();
        let one = whole.recv(&step, 6);
        let each = pieces.recv_pieces(&step, 6, &mut |piece| bytes.extend_from_slice(piece));
        let each = each.map(|()| bytes);
        [(one, whole.link.gave_up.is_some()), (each, pieces.link.gave_up.is_some())]
    }

    #[test]
    fn pieces_are_the_message() {
        for (result, gave_up) in received([7, 7, 7]) {
            assert_eq!((result.ok(), gave_up), (Some(vec![1, 2, 3, 4, 5, 6]), false));
        }
    }

    /// A peer that mixes the frames of two messages is at fault, and learns so.
    #[test]
    fn frames_of_another_step_end_the_connection() {
        for steps in [[7, 8, 7], [7, 7, 8]] {
            for (result, gave_up) in received(steps) {
                let refused =
                    matches!(result, Err(NetError::BadFrame { error: FrameError::Interleaved, .. }));
                assert!(refused && gave_up, "{steps:?}");
            }
        }
        for (result, gave_up) in received([8, 8, 8]) {
            assert!(matches!(result, Err(NetError::Desync { .. })) && gave_up);
        }
    }
}
