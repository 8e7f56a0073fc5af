//! n parties in one process, each in a thread.

use crate::attack::Attack;
use crate::fault::{Action, Dying, Faulty, Script, When};
use crate::hook::{Hook, Hooked};
use crate::record::Log;
use crate::watch::Watch;
use privet_net::Channel;
use privet_net::mem::{self, MemOptions};
use std::any::Any;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a party of [`Mesh::new`] waits for a message.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a run may take, where a test does not say.
const BOUND: Duration = Duration::from_secs(600);

/// Parties 0 to n - 1, each pair joined by an in-memory connection with two ends.
///
/// Hands are put on an end one over the other: the last is the first to see what the party sends.
pub struct Mesh {
    parties: Vec<Links>,
    bound: Duration,
    /// What the run is called when it exceeds its bound.
    what: String,
    /// Whether a party that waits for nothing fails the test; or is told, as its program may expect.
    silence_fails: bool,
}

impl Mesh {
    /// Sound links. Where a party waits a minute for a message that never comes, the run panics and names all who wait.
    pub fn new(parties: usize) -> Mesh {
        Mesh::hasty(parties, PATIENCE)
    }

    /// As [`Mesh::new`], with another time than a minute.
    pub fn hasty(parties: usize, patience: Duration) -> Mesh {
        Mesh { silence_fails: true, ..Mesh::patient(parties, patience) }
    }

    /// Sound links. A party that waits this long for a message gets [`privet_net::NetError::Silent`].
    pub fn patient(parties: usize, patience: Duration) -> Mesh {
        let named = |me: usize, _| MemOptions { patience, ..MemOptions::named(format!("party {me}")) };
        Mesh::with(parties, named)
    }

    /// As [`Mesh::patient`], with options of each end: of the first party's, towards the second.
    pub fn with(parties: usize, mut options: impl FnMut(usize, usize) -> MemOptions) -> Mesh {
        let none = |me| Links { me, ends: (0..parties).map(|_| None).collect() };
        let mut all: Vec<Links> = (0..parties).map(none).collect();
        for a in 0..parties {
            for b in a + 1..parties {
                let (at_a, at_b) = mem::pair_with(options(a, b), options(b, a));
                all[a].ends[b] = Some(Box::new(at_a));
                all[b].ends[a] = Some(Box::new(at_b));
            }
        }
        Mesh { parties: all, bound: BOUND, what: "the run".into(), silence_fails: false }
    }

    /// The longest that [`Mesh::run`] may take. Then it prints what every party does and ends the process, as nothing
    /// else ends a thread. `what` is the run's name there.
    pub fn bound(mut self, bound: Duration, what: impl Into<String>) -> Mesh {
        (self.bound, self.what) = (bound, what.into());
        self
    }

    /// The end of `from` towards `to`.
    ///
    /// # Panics
    /// Where there is none.
    pub fn end(&mut self, from: usize, to: usize) -> &mut dyn Channel {
        self.parties[from].to(to)
    }

    /// Puts a hook on the end of `from` towards `to`.
    pub fn hook(&mut self, from: usize, to: usize, hook: impl Hook + 'static) {
        self.wrap(from, to, |link| Box::new(Hooked::on(link, hook)));
    }

    /// Faults in what `from` sends to `to`; messages are counted on this link alone.
    pub fn fault(&mut self, from: usize, to: usize, faults: impl IntoIterator<Item = (When, Action)>) {
        self.wrap(from, to, |link| Box::new(Faulty::new(link, faults)));
    }

    /// Faults in whatever a party sends; messages are counted over all its links together. Gives the script.
    pub fn corrupt(&mut self, party: usize, faults: impl IntoIterator<Item = (When, Action)>) -> Script {
        let script = Script::new(faults);
        for to in self.peers(party) {
            self.wrap(party, to, |link| Box::new(Faulty::under(link, &script)));
        }
        script
    }

    /// A corrupt party's attack.
    pub fn attack(&mut self, attack: &Attack) -> Script {
        let changes = attack.changes.iter().cloned();
        self.corrupt(attack.by, changes.map(|(number, action)| (When::Message(number as u64), action)))
    }

    /// The party is killed in place of the first message that it would send at step `step` or later, on whichever link.
    pub fn dies(&mut self, party: usize, step: u32) {
        let dying = Dying { at: step, dead: Default::default() };
        for to in self.peers(party) {
            self.hook(party, to, dying.clone());
        }
    }

    /// Records what every party sends, as it is before the hands that were put on its ends earlier.
    pub fn record(&mut self) -> Log {
        let log = Log::new(self.parties.len());
        for from in 0..self.parties.len() {
            for to in self.peers(from) {
                self.hook(from, to, log.recorder(from, to));
            }
        }
        log
    }

    /// Every party's links, for a test that plays the parties itself.
    pub fn into_links(self) -> Vec<Links> {
        self.parties
    }

    /// Runs the program at every party, each in a thread; results in the order of the parties. A party's links are
    /// dropped when its program ends.
    ///
    /// # Panics
    /// Where a program does, naming the party, the first first; and in a mesh of [`Mesh::new`] where a message that a
    /// party waits for never comes, naming who waits for whom and where.
    #[track_caller]
    pub fn run<T: Send>(self, program: impl Fn(&mut Links) -> T + Sync) -> Vec<T> {
        let given = vec![(); self.parties.len()];
        self.run_with(given, |links, ()| program(links))
    }

    /// As [`Mesh::run`], with something of its own for every party.
    #[track_caller]
    pub fn run_with<G: Send, T: Send>(
        mut self,
        given: impl IntoIterator<Item = G>,
        program: impl Fn(&mut Links, G) -> T + Sync,
    ) -> Vec<T> {
        let watch = Watch::new(self.parties.len());
        for me in 0..self.parties.len() {
            for peer in self.peers(me) {
                self.hook(me, peer, watch.watcher(me, peer));
            }
        }
        let mut given = given.into_iter();
        let n = self.parties.len();
        let work: Vec<(Links, G)> = self.parties.into_iter().zip(given.by_ref()).collect();
        assert!(work.len() == n && given.next().is_none(), "one thing for every party");
        let panics = Mutex::new(Vec::new());
        let results: Vec<Option<T>> = std::thread::scope(|scope| {
            let (ended, ends) = mpsc::channel();
            let threads: Vec<_> = work
                .into_iter()
                .map(|(mut links, given)| {
                    let (program, panics, watch, ended) = (&program, &panics, watch.clone(), ended.clone());
                    let me = links.me;
                    let party = move || {
                        let result = catch_unwind(AssertUnwindSafe(|| program(&mut links, given)));
                        // Before its links go: what the others then run into comes second.
                        let result = result.map_err(|panic| push(panics, me, panic.as_ref())).ok();
                        drop(links);
                        watch.done(me);
                        let _ = ended.send(());
                        result
                    };
                    let thread = std::thread::Builder::new().name(format!("party {me}"));
                    thread.spawn_scoped(scope, party).expect("a thread")
                })
                .collect();
            wait(n, &ends, self.bound, &self.what, &watch);
            threads.into_iter().map(|thread| thread.join().expect("what panics is caught")).collect()
        });
        let mut failures = panics.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let (true, Some(doing)) = (self.silence_fails, watch.silent()) {
            failures.insert(0, format!("nothing came any more: {doing}"));
        }
        assert!(failures.is_empty(), "{}", failures.join("; then "));
        results.into_iter().map(|result| result.expect("a party that did not panic has a result")).collect()
    }

    fn peers(&self, me: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.parties.len()).filter(move |peer| *peer != me)
    }

    fn wrap(&mut self, from: usize, to: usize, hand: impl FnOnce(Box<dyn Channel>) -> Box<dyn Channel>) {
        let end = &mut self.parties[from].ends[to];
        *end = Some(hand(end.take().unwrap_or_else(|| panic!("party {from} has no link to party {to}"))));
    }
}

fn push(panics: &Mutex<Vec<String>>, me: usize, panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("of no words");
    panics.lock().unwrap_or_else(PoisonError::into_inner).push(format!("party {me} panicked: {text}"));
}

/// Until all threads have ended.
fn wait(n: usize, ends: &mpsc::Receiver<()>, bound: Duration, what: &str, watch: &Watch) {
    let last = Instant::now() + bound;
    for _ in 0..n {
        let left = last.saturating_duration_since(Instant::now());
        if ends.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
            // past the test's capture of what is printed, which is lost with the process
            let _ = write!(std::io::stderr(), "\n{what} did not end within {bound:?}: {watch}\n");
            std::process::abort();
        }
    }
}

/// One party's ends.
pub struct Links {
    me: usize,
    ends: Vec<Option<Box<dyn Channel>>>,
}

impl Links {
    /// The party whose they are.
    pub fn me(&self) -> usize {
        self.me
    }

    /// How many parties there are.
    pub fn parties(&self) -> usize {
        self.ends.len()
    }

    /// The end towards `peer`.
    ///
    /// # Panics
    /// Where there is none: `peer` is the party itself, or nobody.
    pub fn to(&mut self, peer: usize) -> &mut dyn Channel {
        match self.ends.get_mut(peer) {
            Some(Some(end)) => end.as_mut(),
            _ => panic!("party {} has no link to party {peer}", self.me),
        }
    }

    /// The ends towards two different peers.
    ///
    /// # Panics
    /// Where there are none.
    pub fn both(&mut self, peers: [usize; 2]) -> [&mut dyn Channel; 2] {
        let me = self.me;
        let ends = self.ends.get_disjoint_mut(peers).ok();
        let ends = ends.map(|ends| ends.map(Option::as_mut));
        let Some([Some(a), Some(b)]) = ends else { panic!("party {me} has no links to parties {peers:?}") };
        [a.as_mut(), b.as_mut()]
    }

    /// All ends, with the peers' numbers.
    pub fn others(&mut self) -> impl Iterator<Item = (usize, &mut dyn Channel)> {
        let ends = self.ends.iter_mut().enumerate();
        ends.filter_map(|(peer, end)| end.as_mut().map(|end| (peer, end.as_mut() as &mut dyn Channel)))
    }
}
