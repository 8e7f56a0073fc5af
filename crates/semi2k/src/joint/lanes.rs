//! Programs of several nodes that share messages: each waits for its peers' answers where the others do, so that together they
//! take as many rounds as the longest of them, and not as all of them.
//!
//! Every program has a lane, which is a thread. A *cycle* is what [`super::peers::Peers::rows`] is for one program: transfers, masked
//! choices, answers. In each stage of it every lane has one turn, in order: it puts its part behind the others', or takes its part of
//! what came. Whoever has the last turn talks to the peers. So messages, and transfers that go into them, are in an order that
//! follows from the plan alone, whatever threads do.
//!
//! SECURITY. Nothing is sent that each program by itself would not send, and each has transfers of its own. They do not read each
//! other's answers. So it is one of the orders in which programs that do not know of each other may run.

use super::peers::{Exchanged, Peer, Rows, split};
use crate::PrepareError;
use privet_net::Step;
use privet_ot::{Begun, MaskedBits};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

const ELSEWHERE: &str = "the preparation of another node failed";

/// Whether a lane ended because another one failed.
pub(super) fn ended_elsewhere(error: &PrepareError) -> bool {
    matches!(error, PrepareError::Failed(why) if why == ELSEWHERE)
}

/// What a cycle does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Lanes say how many transfers they need, or that they are done.
    Transfers,
    /// Masked choices, and messages of programs that have no rows now.
    Choices,
    /// Answers.
    Answers,
    /// What came is taken.
    End,
}

/// Lanes, while their programs run.
pub(super) struct Lanes<'a> {
    state: Mutex<State<'a>>,
    changed: Condvar,
    numbers: Vec<usize>,
}

struct State<'a> {
    peers: Vec<Peer<'a>>,
    talks: Vec<Talk>,
    /// The next step.
    next: u32,
    stage: Stage,
    /// Whose turn it is.
    turn: usize,
    /// Lanes whose programs are not done.
    live: Vec<bool>,
    /// A program or the way to a peer failed: all end.
    failed: bool,
}

/// A cycle's messages with a peer.
#[derive(Default)]
struct Talk {
    send: usize,
    receive: usize,
    begun: Option<Begun>,
    message: Vec<u8>,
    due: usize,
    came: Vec<u8>,
    read: usize,
}

/// One program's way to its peers.
#[derive(Clone, Copy)]
pub(super) struct Lane<'s, 'a> {
    lanes: &'s Lanes<'a>,
    number: usize,
}

impl<'a> Lanes<'a> {
    /// So many, with these peers, from this step on.
    pub fn new(lanes: usize, peers: Vec<Peer<'a>>, next: u32) -> Lanes<'a> {
        let talks = peers.iter().map(|_| Talk::default()).collect();
        let numbers = peers.iter().map(|peer| peer.number).collect();
        let (stage, live) = (Stage::Transfers, vec![true; lanes]);
        let state = State { peers, talks, next, stage, turn: 0, live, failed: false };
        Lanes { state: Mutex::new(state), changed: Condvar::new(), numbers }
    }

    /// A lane, which has one program.
    pub fn lane(&self, number: usize) -> Lane<'_, 'a> {
        Lane { lanes: self, number }
    }

    /// The step that comes next, when all is done.
    pub fn next_step(&self) -> u32 {
        self.state().next
    }

    /// All lanes end.
    fn fail(&self) {
        self.state().failed = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State<'a>> {
        // whoever panicked has said so, and `failed` ends all others
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State<'_> {
    /// The turn goes on; behind the last lane, the stage ends.
    fn pass(&mut self) -> Result<(), PrepareError> {
        let next = (self.turn + 1..self.live.len()).find(|lane| self.live[*lane]);
        if let Some(next) = next {
            self.turn = next;
            return Ok(());
        }
        let Some(first) = self.live.iter().position(|live| *live) else { return Ok(()) };
        self.turn = first;
        self.stage = match self.stage {
            Stage::Transfers => {
                self.begin()?;
                Stage::Choices
            }
            Stage::Choices => {
                self.talk()?;
                Stage::Answers
            }
            Stage::Answers => {
                self.talk()?;
                Stage::End
            }
            Stage::End => {
                self.next += 2;
                Stage::Transfers
            }
        };
        Ok(())
    }

    fn steps(&self) -> [Step; 2] {
        [Step::new(self.next, "shared / transfers"), Step::new(self.next + 1, "shared")]
    }

    /// Transfers for all lanes.
    fn begin(&mut self) -> Result<(), PrepareError> {
        let [before, _] = self.steps();
        for (peer, talk) in self.peers.iter_mut().zip(&mut self.talks) {
            let Talk { send, receive, .. } = std::mem::take(talk);
            talk.begun = Some(peer.pair.begin(peer.channel, &before, send, receive)?);
        }
        Ok(())
    }

    /// All lanes' parts to every peer, and theirs from each; the end of the transfers, where they have begun.
    fn talk(&mut self) -> Result<(), PrepareError> {
        let [before, step] = self.steps();
        for (peer, talk) in self.peers.iter_mut().zip(&mut self.talks) {
            let message = std::mem::take(&mut talk.message);
            if !message.is_empty() {
                peer.channel.send(&step, message)?;
            }
        }
        for (peer, talk) in self.peers.iter_mut().zip(&mut self.talks) {
            if let Some(begun) = talk.begun.take() {
                peer.pair.end(peer.channel, &before, begun)?;
            }
            let due = std::mem::take(&mut talk.due);
            talk.came = if due == 0 { Vec::new() } else { peer.channel.recv(&step, due)? };
            talk.read = 0;
        }
        Ok(())
    }
}

impl Talk {
    /// The next bytes of what came.
    fn take(&mut self, n: usize) -> Vec<u8> {
        let part = self.came[self.read..self.read + n].to_vec();
        self.read += n;
        part
    }
}

impl<'s, 'a> Lane<'s, 'a> {
    /// Parties.
    pub fn parties(&self) -> usize {
        self.lanes.numbers.len() + 1
    }

    /// This lane's turn in a stage, with each peer; then it is the next one's.
    fn turn<T>(
        &self,
        stage: Stage,
        mut with: impl FnMut(usize, &mut Peer<'_>, &mut Talk) -> Result<T, PrepareError>,
    ) -> Result<Vec<T>, PrepareError> {
        let mut state = self.wait(stage)?;
        let State { peers, talks, .. } = &mut *state;
        let each = peers.iter_mut().zip(talks).enumerate();
        let done: Result<Vec<T>, _> = each.map(|(i, (peer, talk))| with(i, peer, talk)).collect();
        let passed = done.and_then(|done| state.pass().map(|()| done));
        state.failed |= passed.is_err();
        drop(state);
        self.lanes.changed.notify_all();
        passed
    }

    fn wait(&self, stage: Stage) -> Result<MutexGuard<'s, State<'a>>, PrepareError> {
        let waits =
            |state: &mut State<'_>| !state.failed && (state.turn, state.stage) != (self.number, stage);
        let state = self.lanes.changed.wait_while(self.lanes.state(), waits);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        match state.failed {
            true => Err(PrepareError::Failed(ELSEWHERE.into())),
            false => Ok(state),
        }
    }

    /// As [`super::peers::Peers::rows`].
    pub fn rows<'r>(&self, rows: impl Fn(usize) -> Rows<'r>) -> Result<Vec<Exchanged>, PrepareError> {
        let all: Vec<Rows<'r>> = self.lanes.numbers.iter().map(|peer| rows(*peer)).collect();
        self.turn(Stage::Transfers, |i, _, talk| {
            let [send, receive] = all[i].transfers();
            (talk.send, talk.receive) = (talk.send + send, talk.receive + receive);
            Ok(())
        })?;
        let waiting = self.turn(Stage::Choices, |i, peer, talk| {
            talk.due += all[i].transfers()[0] / 8;
            let chosen = all[i].take.iter().map(|row| {
                let cots = peer.pair.receiver.take(row.n)?;
                Ok(row.choose(cots, &mut talk.message))
            });
            chosen.collect::<Result<Vec<_>, PrepareError>>()
        })?;
        let given = self.turn(Stage::Answers, |i, peer, talk| {
            let masked = talk.take(all[i].transfers()[0] / 8);
            talk.due += all[i].answer_bytes();
            let mut masked = masked.as_slice();
            let answered = all[i].give.iter().map(|row| {
                let choices = MaskedBits::from_bytes(row.n, split(&mut masked, row.n / 8));
                let choices = choices.map_err(|what| peer.wrong(what))?;
                Ok(row.answer(peer.pair.sender.take(row.n)?, &choices, &mut talk.message))
            });
            answered.collect::<Result<Vec<_>, PrepareError>>()
        })?;
        let answers = self.turn(Stage::End, |i, _, talk| Ok(talk.take(all[i].answer_bytes())))?;
        let each = all.iter().zip(waiting).zip(given).zip(answers).zip(&self.lanes.numbers);
        Ok(each
            .map(|((((rows, waiting), given), answer), peer)| {
                let (mut answer, take) = (answer.as_slice(), rows.take.iter().zip(waiting));
                let taken =
                    take.map(|(row, waiting)| waiting.finish(split(&mut answer, row.load.bytes(row.n))));
                Exchanged { peer: *peer, given, taken: taken.collect() }
            })
            .collect())
    }

    /// As [`super::peers::Peers::pass`]: in a cycle's first message.
    pub fn pass(
        &self,
        message: &[u8],
        to: impl Fn(usize) -> bool,
        due: impl Fn(usize) -> usize,
    ) -> Result<Vec<Vec<u8>>, PrepareError> {
        self.turn(Stage::Transfers, |_, _, _| Ok(()))?;
        self.turn(Stage::Choices, |_, peer, talk| {
            if to(peer.number) {
                talk.message.extend_from_slice(message);
            }
            talk.due += due(peer.number);
            Ok(())
        })?;
        let came = self.turn(Stage::Answers, |_, peer, talk| Ok(talk.take(due(peer.number))))?;
        self.turn(Stage::End, |_, _, _| Ok(()))?;
        Ok(came)
    }

    /// Runs the lane's program; then the others go on without it, or end where it failed.
    pub fn run<T>(self, program: impl FnOnce() -> Result<T, PrepareError>) -> Result<T, PrepareError> {
        /// Ends all lanes where a program panics.
        struct Unless<'s, 'a>(&'s Lanes<'a>, bool);
        impl Drop for Unless<'_, '_> {
            fn drop(&mut self) {
                if !self.1 {
                    self.0.fail();
                }
            }
        }
        let mut unless = Unless(self.lanes, false);
        let made = program()?;
        let mut state = self.wait(Stage::Transfers)?;
        state.live[self.number] = false;
        state.pass()?;
        drop(state);
        unless.1 = true;
        self.lanes.changed.notify_all();
        Ok(made)
    }
}
