use super::*;
use crate::session::family::dealing::messages::OpenReply;
use crate::session::family::fss::keys::SessionKeys;
use crate::store::format::{Header, RecordWriter};
use crate::store::{Fresh, SessionId, hex, pending_record, write_session};
use privet_fss::keys::{KeyError, KeySink};
use privet_kernels::cpu;
use privet_net::mem::{self, MemChannel};
use privet_plan::suite::{cases, training_cases};
use privet_testkit::fault::{Action, Faulty, When};
use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

const PLAN: &str = r#"{"version":1,"name":"tiny","batch":2,"nodes":[
{"op":{"kind":"input","name":"x","owner":"data_owner","limit":8.0},"inputs":[],"ty":{"shape":[2,3],"bits":64,"frac":12},"layer":""},
{"op":{"kind":"weight","name":"fc.weight","owner":"model_owner"},"inputs":[],"ty":{"shape":[4,3],"bits":64,"frac":12},"layer":"fc"},
{"op":{"kind":"linear"},"inputs":[0,1],"ty":{"shape":[2,4],"bits":64,"frac":24},"layer":"fc"},
{"op":{"kind":"truncate","shift":12,"rounding":"floor"},"inputs":[2],"ty":{"shape":[2,4],"bits":52,"frac":12},"layer":"fc"},
{"op":{"kind":"relu"},"inputs":[3],"ty":{"shape":[2,4],"bits":64,"frac":12},"layer":"relu"}],
"outputs":[{"value":4,"name":"logits","to":"receiver"}]}"#;
const LINEAR: usize = 2;
const RELU: usize = 4;

fn plan() -> Arc<Plan> {
    Arc::new(Plan::from_json(PLAN.as_bytes()).unwrap())
}

fn session(master: &Seed, threads: usize) -> DealerSession {
    DealerSession::from_master(2, plan(), cpu(threads), master.clone())
}

/// A frame of a record: the node it belongs to, whether the other party has one at the same place, and the
/// party and number that name it.
struct Place {
    node: usize,
    paired: bool,
    party: usize,
    frame: u64,
    bits: usize,
}

struct Survey<'a> {
    node: &'a Cell<usize>,
    counts: [u64; 2],
    places: Vec<Place>,
}

impl KeySink for Survey<'_> {
    fn put(&mut self, frames: [&mut Vec<u8>; 2]) -> Result<(), KeyError> {
        let paired = frames.iter().all(|f| !f.is_empty());
        for (party, bytes) in frames.iter().enumerate().filter(|(_, f)| !f.is_empty()) {
            let (node, frame, bits) = (self.node.get(), self.counts[party], 8 * bytes.len());
            self.places.push(Place { node, paired, party, frame, bits });
            self.counts[party] += 1;
        }
        Ok(())
    }
}

/// Every frame of a record of the plan.
fn places(session: &DealerSession) -> Vec<Place> {
    let node = Cell::new(0);
    let mut survey = Survey { node: &node, counts: [0; 2], places: Vec::new() };
    session.frames(0, &mut survey, &mut |v| node.set(v + 1)).unwrap();
    survey.places
}

/// What a cheating dealer changes in record 1 or in a session file; the files' checksums are right.
enum Cheat {
    Nothing,
    Frame { party: usize, frame: u64, bit: usize },
    SessionSeed { party: usize },
    RecordSeed { party: usize },
}

struct Cheating<'a> {
    writers: [RecordWriter<&'a mut dyn Write>; 2],
    counts: [u64; 2],
    flip: Option<(usize, u64, usize)>,
}

impl KeySink for Cheating<'_> {
    fn put(&mut self, frames: [&mut Vec<u8>; 2]) -> Result<(), KeyError> {
        for (party, bytes) in frames.iter().enumerate().filter(|(_, f)| !f.is_empty()) {
            let mut bytes = bytes.to_vec();
            if let Some((p, frame, bit)) = self.flip
                && (p, frame) == (party, self.counts[party])
            {
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            self.writers[party].frame(&bytes)?;
            self.counts[party] += 1;
        }
        Ok(())
    }
}

fn flipped(seed: &Seed) -> Seed {
    let mut bytes = *seed.expose();
    bytes[5] ^= 4;
    Seed::from_bytes(bytes)
}

/// Two records in two stores, as a dealer writes that cheats in the second.
fn deal(stores: [&Path; 2], dealt: &DealerSession, cheat: &Cheat) {
    for (party, (file, store)) in dealt.files().into_iter().zip(stores).enumerate() {
        let keys = SessionKeys::of_file(&file).unwrap();
        let seed = match cheat {
            Cheat::SessionSeed { party: p } if *p == party => flipped(&keys.seed),
            _ => keys.seed.clone(),
        };
        write_session(store, &SessionKeys { seed, ..keys }.file(1)).unwrap();
    }
    for index in [0, 1] {
        let mut files = stores.map(|s| pending_record(s, &dealt.session, index).unwrap());
        let [f0, f1] = &mut files;
        let sinks: [&mut dyn Write; 2] = [f0, f1];
        let mut party = 0;
        let writers = sinks.map(|sink| {
            let Header { id, set, seed } = dealt.headers(index).swap_remove(party);
            let seed = match cheat {
                Cheat::RecordSeed { party: p } if index == 1 && *p == party => flipped(&seed),
                _ => seed,
            };
            party += 1;
            RecordWriter::new(sink, &Header { id, set, seed }).unwrap()
        });
        let flip = match *cheat {
            Cheat::Frame { party, frame, bit } if index == 1 => Some((party, frame, bit)),
            _ => None,
        };
        let mut sink = Cheating { writers, counts: [0; 2], flip };
        dealt.frames(index, &mut sink, &mut |_| {}).unwrap();
        for writer in sink.writers {
            writer.finish().unwrap();
        }
        files.into_iter().for_each(|f| f.commit().unwrap());
    }
}

/// What both parties find when the session is opened.
fn found(cheat: &Cheat) -> [Option<String>; 2] {
    let (d0, d1) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let master = Seed::random();
    let dealt = session(&master, 1);
    deal([d0.path(), d1.path()], &dealt, cheat);
    [(0, d0), (1, d1)].map(|(party, dir)| {
        match compare(dir.path(), &dealt.session, &session(&master, 2), party, 2, &mut || {}) {
            Ok(()) => None,
            Err(CheckError::Wrong { at, .. }) => Some(at),
            Err(other) => panic!("{other}"),
        }
    })
}

#[track_caller]
fn caught(cheat: &Cheat, victim: usize, at: &str) {
    let found = found(cheat);
    assert_eq!(found[victim].as_deref(), Some(at));
    assert_eq!(found[1 - victim], None, "the other party was given the right keys");
}

#[test]
fn an_honest_dealer_passes_and_a_session_has_one_master() {
    assert_eq!(found(&Cheat::Nothing), [None, None]);
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dealt = session(&Seed::random(), 1);
    deal([dir.path(), other.path()], &dealt, &Cheat::Nothing);
    let another = session(&Seed::random(), 1);
    let error = compare(dir.path(), &dealt.session, &another, 0, 2, &mut || {}).unwrap_err().to_string();
    assert!(error.contains("dealer's keys are wrong") && error.contains("name"), "{error}");
}

#[test]
fn one_flipped_bit_anywhere_is_caught() {
    let all = places(&session(&Seed::random(), 1));
    let comparisons: Vec<&Place> = all.iter().filter(|p| p.node == RELU && p.paired).collect();
    let tables: Vec<&Place> = all.iter().filter(|p| p.node == RELU && !p.paired).collect();
    let corrections: Vec<&Place> = all.iter().filter(|p| p.node == LINEAR).collect();
    for of_kind in [&comparisons, &tables, &corrections] {
        let place = of_kind.first().expect("the plan has such keys");
        let (party, frame) = (place.party, place.frame);
        // The middle of a comparison key is correction words, whatever the layout.
        for bit in [0, place.bits / 2, place.bits - 1] {
            caught(&Cheat::Frame { party, frame, bit }, party, &format!("record 1, frame {frame}"));
        }
    }
    for party in [0, 1] {
        caught(&Cheat::SessionSeed { party }, party, "seed and hash keys");
        caught(&Cheat::RecordSeed { party }, party, "record 1, header");
    }
}

#[test]
fn cut_off_and_overlong_records_are_caught() {
    for longer in [false, true] {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let master = Seed::random();
        let dealt = session(&master, 1);
        deal([dir.path(), other.path()], &dealt, &Cheat::Nothing);
        let path = dir.path().join(hex(&dealt.session)).join("0.keys");
        let file = File::options().write(true).open(path).unwrap();
        let len = file.metadata().unwrap().len();
        file.set_len(if longer { len + 1 } else { len - 1 }).unwrap();
        let error = compare(dir.path(), &dealt.session, &dealt, 0, 2, &mut || {}).unwrap_err();
        assert!(matches!(error, CheckError::Wrong { ref at, .. } if at == "record 0, end"), "{error}");
    }
}

#[test]
fn dealing_again_gives_the_same_bytes_with_any_number_of_threads() {
    for case in cases().into_iter().chain(training_cases()) {
        let (d0, d1) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (master, plan) = (Seed::random(), Arc::new(case.plan));
        let make = |threads| DealerSession::from_master(2, plan.clone(), cpu(threads), master.clone());
        let dealt = make(1);
        dealt.deal_to_stores(&[d0.path(), d1.path()], &[0], &mut |_| {}).unwrap();
        for (party, dir) in [(0, &d0), (1, &d1)] {
            compare(dir.path(), &dealt.session, &make(3), party, 1, &mut || {})
                .unwrap_or_else(|e| panic!("{}: {e}", case.name));
        }
    }
}

/// A deal with one check and two runs over memory, the dealer's `n`-th session (from 0) dealt from the master that
/// `lie(n, master)` gives, and faults on what the dealer sends to party 1 and what party 1 sends to party 0.
struct CheckedDeal {
    stores: [(tempfile::TempDir, Store); 2],
    /// The sessions' names in the order they were dealt.
    names: Vec<[u8; 16]>,
    results: [Result<(Id, u64), CheckError>; 2],
}

type Faults = Vec<(When, Action)>;

/// Channels on which whoever waits for the other party waits in `recv`.
struct InMemory {
    dealer: MemChannel,
    peer: Faulty<MemChannel>,
}

impl Company for InMemory {
    fn dealer(&mut self) -> &mut dyn Channel {
        &mut self.dealer
    }
    fn peer(&mut self) -> Result<&mut dyn Channel, CheckError> {
        Ok(&mut self.peer)
    }
    fn progress(&self) -> Progress {
        Progress::new(crate::session::testing::job_events())
    }
    fn worked(&mut self) {}
    fn both_done(&mut self) -> Result<(), NetError> {
        Ok(())
    }
}

fn whole_deal(
    lie: impl Fn(usize, Seed) -> Seed + Sync,
    dealer_faults: Faults,
    peer_faults: Faults,
) -> CheckedDeal {
    let request = DealRequest { deal: Id::fresh(), plan: String::new(), session: None, runs: 2, checks: 1 };
    let ((d0, to_d0), (d1, to_d1), (p0, p1)) = (mem::pair(), mem::pair(), mem::pair());
    let names = Mutex::new(Vec::new());
    let make = |master: Seed| {
        let n = names.lock().unwrap().len();
        let dealt = session(&lie(n, master), 1);
        names.lock().unwrap().push(dealt.session);
        dealt
    };
    let fetch = |party: u8, dealer: MemChannel, peer: Faulty<MemChannel>| {
        let dir = tempfile::tempdir().unwrap();
        let store = Mutex::new(Store::open(dir.path()).unwrap());
        let (plan, device) = (plan(), cpu(1));
        let checker = Checker { party, plan: &plan, device: &device };
        let result = checker.fetch(&mut InMemory { dealer, peer }, &store, &request);
        ((dir, store.into_inner().unwrap()), result)
    };
    let (a, b) = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut channels = [Faulty::new(d0, []), Faulty::new(d1, dealer_faults)];
            for channel in &mut channels {
                let asked: DealRequest = hear(channel, Talk::Deal).unwrap();
                assert_eq!(asked, request);
            }
            // Ends early where the parties give up.
            let _ = open::deal(&mut channels, &request, &make, &mut |_| {});
        });
        let a = scope.spawn(|| fetch(0, to_d0, Faulty::new(p0, [])));
        let b = scope.spawn(|| fetch(1, to_d1, Faulty::new(p1, peer_faults)));
        (a.join().unwrap(), b.join().unwrap())
    });
    let names = names.into_inner().unwrap();
    CheckedDeal { stores: [a.0, b.0], names, results: [a.1, b.1] }
}

impl CheckedDeal {
    /// No session of the deal can be begun by anyone, now or after a restart; no file is left.
    fn all_burnt(&mut self) {
        let hash = plan().hash();
        for (party, (dir, store)) in self.stores.iter_mut().enumerate() {
            assert_eq!(store.fresh_sessions(&hash).unwrap(), []);
            for name in &self.names {
                assert!(store.knows(name));
                assert!(
                    store
                        .begin_session(&SessionId { session: *name, party: party as u8, plan: hash }, 0)
                        .is_err()
                );
            }
            assert!(!dir.path().join("checking").exists());
        }
    }

    /// Both parties hold the same one of the two sessions, and the other is burnt.
    fn accepted(&mut self) -> usize {
        let hash = plan().hash();
        let kept: Vec<Id> = self.results.iter().map(|r| r.as_ref().unwrap().0).collect();
        assert_eq!(kept[0], kept[1]);
        for (party, (dir, store)) in self.stores.iter_mut().enumerate() {
            let fresh = Fresh { session: kept[0].0, checks: 1, records: vec![0, 1] };
            assert_eq!(store.fresh_sessions(&hash).unwrap(), [fresh]);
            assert!(self.names.iter().all(|name| store.knows(name)));
            assert!(!dir.path().join("checking").exists());
            store
                .begin_session(&SessionId { session: kept[0].0, party: party as u8, plan: hash }, 1)
                .unwrap();
        }
        self.names.iter().position(|n| *n == kept[0].0).unwrap()
    }
}

#[test]
fn honest_deals_are_accepted_and_either_session_is_kept() {
    let mut kept = [0; 2];
    for _ in 0..24 {
        kept[whole_deal(|_, m| m, vec![], vec![]).accepted()] += 1;
    }
    assert!(kept.iter().all(|&n| n > 0), "{kept:?}");
}

#[test]
fn a_dealer_that_cheats_one_party_in_one_session_is_caught_unless_it_is_kept() {
    let mut outcomes = [0; 2];
    for _ in 0..24 {
        // To a party: the reply, the session file, then the first record as one message.
        let fault = (When::Message(2), Action::FlipBit(8 * 300));
        let mut deal = whole_deal(|_, m| m, vec![fault], vec![]);
        match &deal.results {
            [Ok(_), Ok(_)] => assert_eq!(deal.accepted(), 0),
            [Err(CheckError::Peer(told)), Err(e @ CheckError::Wrong { at, .. })] => {
                assert!(at.starts_with("record 0, frame"), "{at}");
                assert_eq!(told, &e.to_string());
            }
            other => panic!("{other:?}"),
        }
        outcomes[deal.results[0].is_ok() as usize] += 1;
        if deal.results[0].is_err() {
            deal.all_burnt();
        }
    }
    assert!(outcomes.iter().all(|&n| n > 0), "{outcomes:?}");
}

#[test]
fn a_dealer_that_opens_another_seed_is_caught() {
    let mut deal = whole_deal(|n, m| if n < 2 { flipped(&m) } else { m }, vec![], vec![]);
    for result in &deal.results {
        let error = result.as_ref().unwrap_err();
        assert!(matches!(error, CheckError::Wrong { at, .. } if at == "name"), "{error}");
    }
    deal.names.truncate(2);
    deal.all_burnt();
}

#[test]
fn a_session_that_is_dealt_twice_in_one_deal_is_refused() {
    // Opening one would open the other, which is kept.
    let mut deal = whole_deal(|_, _| Seed::from_bytes([9; 16]), vec![], vec![]);
    for result in &deal.results {
        let error = result.as_ref().unwrap_err();
        assert!(matches!(error, CheckError::Fetch(FetchError::Store(StoreError::Known { .. }))), "{error}");
    }
    deal.all_burnt();
}

#[test]
fn parties_with_different_sessions_or_a_bad_coin_accept_nothing() {
    let digest = vec![(When::Step(Talk::Digest as u32), Action::FlipBit(3))];
    let mut deal = whole_deal(|_, m| m, vec![], digest);
    assert!(matches!(deal.results[0], Err(CheckError::Disagree)), "{:?}", deal.results[0]);
    deal.all_burnt();
    let coin = vec![(When::Step(Talk::Coin as u32), Action::FlipBit(3))];
    let mut deal = whole_deal(|_, m| m, vec![], coin);
    assert!(matches!(deal.results[0], Err(CheckError::Coin)), "{:?}", deal.results[0]);
    deal.all_burnt();
}

#[test]
fn the_dealer_opens_nothing_unless_both_name_the_same_session() {
    let request = DealRequest { deal: Id::fresh(), plan: String::new(), session: None, runs: 0, checks: 1 };
    let ((d0, mut a), (d1, mut b)) = (mem::pair(), mem::pair());
    let dealer = std::thread::spawn(move || {
        let make = |master: Seed| session(&master, 1);
        open::deal(&mut [d0, d1], &request, &make, &mut |_| {}).unwrap().is_none()
    });
    for (keep, channel) in [&mut a, &mut b].into_iter().enumerate() {
        say(channel, Talk::Open, &OpenRequest { keep: keep as u64 }).unwrap();
    }
    for channel in [&mut a, &mut b] {
        for _ in 0..2 {
            channel.recv_up_to(&Talk::Deal.step(), 4096).unwrap();
            channel.recv_up_to(&Talk::Keys.step(), 4096).unwrap();
        }
        assert!(matches!(hear(channel, Talk::Open).unwrap(), OpenReply::Refused { .. }));
    }
    assert!(dealer.join().unwrap(), "no session is kept");
}

#[test]
fn a_deal_into_an_open_session_is_never_checked() {
    let request =
        |session, checks| DealRequest { deal: Id::fresh(), plan: String::new(), session, runs: 1, checks };
    assert_eq!(open::refusal(&request(None, 3)), None);
    assert_eq!(open::refusal(&request(Some(Id::fresh()), 0)), None);
    assert!(open::refusal(&request(Some(Id::fresh()), 1)).is_some());
    assert!(open::refusal(&request(None, MAX_CHECKS + 1)).is_some());
}
