//! The other parties of a job, and rows exchanged with all of them: both directions at once, two messages each way.

use super::lanes::{Lane, Lanes};
use super::row::{Give, ROWS, Shares, Take};
use crate::PrepareError;
use privet_net::{Channel, Step};
use privet_ot::{Malformed, MaskedBits, OtError, Pair};
use std::panic::resume_unwind;
use std::thread::ScopedJoinHandle;

/// A peer of a job: its number, the channel to it, and the session's transfers with it.
pub struct Peer<'a> {
    /// Its number among the parties.
    pub number: usize,
    /// The channel to it, which nothing else uses meanwhile.
    pub channel: &'a mut dyn Channel,
    /// The transfers with it, of this session.
    pub pair: &'a mut Pair,
}

/// All other parties, by number.
pub(super) struct Peers<'a> {
    /// This party.
    pub me: usize,
    /// Whole rows of an exchange at most, each way.
    pub room: usize,
    way: Way<'a>,
}

/// A lane has messages with others, who decide about steps together.
const NOT_ALONE: &str = "a program in a lane has no steps of its own";

enum Way<'a> {
    /// Messages of one program, and the step that comes next.
    Own { peers: Vec<Peer<'a>>, next: u32 },
    /// Those of several together.
    Shared(Lane<'a, 'a>),
}

/// What is exchanged with one peer.
#[derive(Default)]
pub(super) struct Rows<'a> {
    pub give: Vec<Give<'a>>,
    pub take: Vec<Take<'a>>,
}

impl Rows<'_> {
    /// Transfers in which this party is the sender, and the others.
    pub fn transfers(&self) -> [usize; 2] {
        [self.give.iter().map(|row| row.n).sum(), self.take.iter().map(|row| row.n).sum()]
    }

    /// Bytes of the peer's answers.
    pub fn answer_bytes(&self) -> usize {
        self.take.iter().map(|row| row.load.bytes(row.n)).sum()
    }
}

/// The shares of what was given to a peer and of what was taken from it, row by row.
pub(super) struct Exchanged {
    pub peer: usize,
    pub given: Vec<Shares>,
    pub taken: Vec<Shares>,
}

impl<'a> Peers<'a> {
    /// All peers of party `me`; the first step has this number at all parties.
    ///
    /// # Panics
    /// Where they are not all parties but `me`, by number.
    pub fn new(me: usize, peers: Vec<Peer<'a>>, first: u32) -> Peers<'a> {
        let others = (0..peers.len() + 1).filter(|party| *party != me);
        assert!(peers.iter().map(|peer| peer.number).eq(others), "all other parties, by number");
        Peers { me, room: ROWS, way: Way::Own { peers, next: first } }
    }

    /// In a lane.
    pub fn shared(me: usize, room: usize, lane: Lane<'a, 'a>) -> Peers<'a> {
        Peers { me, room, way: Way::Shared(lane) }
    }

    /// Lanes to the same peers, for so many programs, until [`Peers::go_on`].
    ///
    /// # Panics
    /// In a lane.
    pub fn lanes(&mut self, count: usize) -> Lanes<'_> {
        let (peers, next) = self.own();
        Lanes::new(count, peers, next)
    }

    /// The same for one program, until [`Peers::go_on`].
    ///
    /// # Panics
    /// In a lane.
    pub fn again(&mut self) -> Peers<'_> {
        let (me, room) = (self.me, self.room);
        let (peers, next) = self.own();
        Peers { me, room, way: Way::Own { peers, next } }
    }

    fn own(&mut self) -> (Vec<Peer<'_>>, u32) {
        let Way::Own { peers, next } = &mut self.way else { panic!("{NOT_ALONE}") };
        let mut all = Vec::with_capacity(peers.len());
        for Peer { number, channel, pair } in peers {
            all.push(Peer { number: *number, channel: &mut **channel, pair });
        }
        (all, *next)
    }

    /// The step that comes next.
    ///
    /// # Panics
    /// In a lane.
    pub fn next_step(&mut self) -> u32 {
        *self.step()
    }

    /// From this step on.
    ///
    /// # Panics
    /// In a lane.
    pub fn go_on(&mut self, step: u32) {
        *self.step() = step;
    }

    fn step(&mut self) -> &mut u32 {
        let Way::Own { next, .. } = &mut self.way else { panic!("{NOT_ALONE}") };
        next
    }

    /// Parties.
    pub fn parties(&self) -> usize {
        match &self.way {
            Way::Own { peers, .. } => peers.len() + 1,
            Way::Shared(lane) => lane.parties(),
        }
    }

    /// Two steps: transfers as they are needed, and rows with every peer that has any. Peers do so with the same rows, seen from their side.
    pub fn rows<'r>(
        &mut self,
        what: &str,
        rows: impl Fn(usize) -> Rows<'r> + Sync,
    ) -> Result<Vec<Exchanged>, PrepareError> {
        let next = match &mut self.way {
            Way::Own { next, .. } => next,
            Way::Shared(lane) => return lane.rows(rows),
        };
        let before = Step::new(*next, format!("{what} / transfers"));
        *next += 1;
        self.each(what, |peer, step| peer.exchange([&before, step], &rows(peer.number)))
    }

    /// One step: a message to every peer, and one of the same length from each, in the order of peers.
    pub fn tell(&mut self, what: &str, message: &[u8]) -> Result<Vec<Vec<u8>>, PrepareError> {
        self.pass(what, message, |_| true, |_| message.len())
    }

    /// One step: a message to each of some peers, and as many bytes from each as are due, in the order of peers.
    pub fn pass(
        &mut self,
        what: &str,
        message: &[u8],
        to: impl Fn(usize) -> bool + Sync,
        due: impl Fn(usize) -> usize + Sync,
    ) -> Result<Vec<Vec<u8>>, PrepareError> {
        if let Way::Shared(lane) = &self.way {
            return lane.pass(message, to, due);
        }
        let out = |peer| if to(peer) { message.to_vec() } else { Vec::new() };
        self.each(what, |peer, step| peer.swap(step, out(peer.number), due(peer.number)))
    }

    /// With every peer at once, each on a thread of its own where there are several: then no order of the parties' talks can
    /// lock them up, and what is computed for one is on its way while the next is computed.
    pub fn each<T: Send>(
        &mut self,
        what: &str,
        talk: impl Fn(&mut Peer<'_>, &Step) -> Result<T, PrepareError> + Sync,
    ) -> Result<Vec<T>, PrepareError> {
        let Way::Own { peers, next } = &mut self.way else {
            return Err(PrepareError::Failed(format!("`{what}` shares no messages with others")));
        };
        let step = Step::new(*next, what);
        *next += 1;
        let (talk, step) = (&talk, &step);
        if let [peer] = peers.as_mut_slice() {
            return Ok(vec![talk(peer, step)?]);
        }
        std::thread::scope(|scope| {
            let talks: Vec<_> = peers.iter_mut().map(|peer| scope.spawn(move || talk(peer, step))).collect();
            let end =
                |talk: ScopedJoinHandle<'_, _>| talk.join().unwrap_or_else(|panic| resume_unwind(panic));
            let ends: Vec<Result<T, PrepareError>> = talks.into_iter().map(end).collect();
            ends.into_iter().collect()
        })
    }
}

impl Peer<'_> {
    /// The transfers of a step, and then the rows.
    fn exchange(&mut self, steps: [&Step; 2], rows: &Rows<'_>) -> Result<Exchanged, PrepareError> {
        let Rows { give, take } = rows;
        let [send, receive] = rows.transfers();
        let [before, step] = steps;
        // one message: the transfers' extension, and the choices that it lets this party make
        let begun = self.pair.begin(self.channel, before, send, receive)?;
        let mut message = Vec::with_capacity(receive / 8);
        let mut waiting = Vec::with_capacity(take.len());
        for row in take {
            waiting.push(row.choose(self.pair.receiver.take(row.n)?, &mut message));
        }
        if !message.is_empty() {
            self.channel.send(step, message)?;
        }
        self.pair.end(self.channel, before, begun)?;
        let masked = self.swap(step, Vec::new(), send / 8)?;

        let mut masked = masked.as_slice();
        let mut message = Vec::with_capacity(give.iter().map(|row| row.load.bytes(row.n)).sum());
        let mut given = Vec::with_capacity(give.len());
        for row in give {
            let choices = MaskedBits::from_bytes(row.n, split(&mut masked, row.n / 8));
            let choices = choices.map_err(|what| self.wrong(what))?;
            given.push(row.answer(self.pair.sender.take(row.n)?, &choices, &mut message));
        }
        let answer = self.swap(step, message, rows.answer_bytes())?;

        let mut answer = answer.as_slice();
        let taken = take.iter().zip(waiting);
        let taken = taken.map(|(row, waiting)| waiting.finish(split(&mut answer, row.load.bytes(row.n))));
        Ok(Exchanged { peer: self.number, given, taken: taken.collect() })
    }

    /// Sends what there is to send and waits for what is to come, either of which may be nothing.
    fn swap(&mut self, step: &Step, message: Vec<u8>, len: usize) -> Result<Vec<u8>, PrepareError> {
        if !message.is_empty() {
            self.channel.send(step, message)?;
        }
        if len == 0 { Ok(Vec::new()) } else { Ok(self.channel.recv(step, len)?) }
    }

    /// Tells the peer, and says whose message it was.
    pub(super) fn wrong(&mut self, what: Malformed) -> PrepareError {
        self.channel.abort("a message of the preprocessing was wrong");
        OtError::Message { peer: self.channel.peer().to_owned(), what }.into()
    }
}

/// The first `n` bytes, which are taken off.
pub(super) fn split<'a>(bytes: &mut &'a [u8], n: usize) -> &'a [u8] {
    let (head, tail) = bytes.split_at(n);
    *bytes = tail;
    head
}
