//! Parties in threads: 2, 3 and 5 of them; how they panic, wait for ever, die and never end.

use privet_net::{NetError, Step};
use privet_prg::Seed;
use privet_ring::Ring;
use privet_testkit::{Action, Links, Mesh, When, record};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;

const RING: Ring = Ring::R64;

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn add(a: &[u64], b: &[u64]) -> Vec<u64> {
    a.iter().zip(b).map(|(a, b)| a.wrapping_add(*b)).collect()
}

/// Additive shares of `values` for n parties.
fn shared(values: &[u64], n: usize) -> Vec<Vec<u64>> {
    let mut prg = Seed::random().stream();
    let mut shares: Vec<Vec<u64>> = (1..n).map(|_| prg.elements(RING, values.len())).collect();
    let sum = shares.iter().fold(vec![0; values.len()], |sum, share| add(&sum, share));
    shares.push(values.iter().zip(sum).map(|(x, sum)| x.wrapping_sub(sum)).collect());
    shares
}

/// A sum of two secrets, opened to all: every party sends its share of the sum to every other.
fn opened(links: &mut Links, share: &[u64]) -> Result<Vec<u64>, NetError> {
    let step = Step::new(1, "sum / open");
    let mut sum = share.to_vec();
    for (_, link) in links.others() {
        link.send(&step, bytes(share))?;
    }
    for (_, link) in links.others() {
        sum = add(&sum, &words(&link.recv(&step, 8 * share.len())?));
    }
    Ok(sum)
}

fn shares_add_up(n: usize) {
    let (x, y) = (vec![3, u64::MAX, 1 << 63], vec![4, 1, 1 << 63]);
    let given = shared(&x, n).into_iter().zip(shared(&y, n)).map(|(x, y)| add(&x, &y));
    let mut mesh = Mesh::new(n);
    let log = mesh.record();
    let sums = mesh.run_with(given.collect::<Vec<_>>(), |links, sum| {
        assert_eq!(links.parties(), n);
        opened(links, &sum).unwrap()
    });
    assert_eq!(sums, vec![vec![7, 0, 0]; n], "{n} parties");
    let sent = log.all();
    for (me, sent) in sent.iter().enumerate() {
        let to: Vec<usize> = sent.iter().map(|sent| sent.to).collect();
        assert_eq!(to, (0..n).filter(|peer| *peer != me).collect::<Vec<_>>());
        assert_eq!(record::bytes(sent), 24 * (n as u64 - 1));
    }
    assert_eq!(record::rounds(sent.iter().flatten()), 1);
}

#[test]
fn additive_shares_of_two_three_and_five_parties_add_up() {
    [2, 3, 5].into_iter().for_each(shares_add_up);
}

/// The harness is of use only where one message decides what comes out.
#[test]
fn a_share_changed_on_one_link_changes_the_sum_there_and_nowhere_else() {
    for n in [2, 3, 5] {
        let mut mesh = Mesh::new(n);
        mesh.fault(n - 1, 0, [(When::Step(1), Action::FlipBit(0))]);
        let given = shared(&[40], n);
        let sums = mesh.run_with(given, |links, share| opened(links, &share).unwrap()[0]);
        assert!(sums[0] == 39 || sums[0] == 41, "{sums:?}");
        assert!(sums[1..].iter().all(|sum| *sum == 40), "{sums:?}");
    }
}

fn failure<T: Send>(mesh: Mesh, program: impl Fn(&mut Links) -> T + Sync) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| drop(mesh.run(program)))).expect_err("the run must fail");
    panic.downcast_ref::<String>().expect("words").clone()
}

#[test]
fn a_panic_names_its_party_before_those_it_drags_along() {
    let text = failure(Mesh::new(3), |links| {
        let step = Step::new(1, "x");
        match links.me() {
            2 => panic!("no such gate"),
            _ => links.to(2).recv(&step, 1).unwrap(),
        }
    });
    assert!(text.starts_with("party 2 panicked: no such gate; then party "), "{text}");
    assert!(text.contains("party 0 panicked") && text.contains("party 1 panicked"), "{text}");
}

#[test]
fn parties_that_wait_for_each_other_are_named_with_their_steps() {
    let mesh = Mesh::hasty(3, Duration::from_secs(2));
    let text = failure(mesh, |links| {
        let step = Step::new(4, "relu / open");
        match links.me() {
            2 => vec![],
            me => links.to(1 - me).recv(&step, 1).unwrap_or_default(),
        }
    });
    let [a, b] = ["0 waits for party 1", "1 waits for party 0"]
        .map(|who| format!("party {who} at step 4 (relu / open)"));
    assert_eq!(text, format!("nothing came any more: {a}; {b}; party 2 is done"));
}

/// Where a test says how long parties wait, silence is for their programs to notice.
#[test]
fn silence_is_an_error_of_the_channel_where_it_is_expected() {
    let results = Mesh::patient(2, Duration::from_millis(100)).run(|links| {
        let peer = 1 - links.me();
        links.to(peer).recv(&Step::new(1, "x"), 1)
    });
    assert!(results.iter().any(|result| matches!(result, Err(NetError::Silent { .. }))), "{results:?}");
}

#[test]
fn a_party_that_dies_is_cut_off_from_all_and_says_nothing() {
    let mut mesh = Mesh::patient(3, Duration::from_secs(20));
    mesh.dies(1, 2);
    let log = mesh.record();
    let results = mesh.run(|links| {
        for id in 1..4 {
            let step = Step::new(id, format!("s{id}"));
            for (_, link) in links.others() {
                link.send(&step, vec![0]).inspect_err(|_| link.abort("I gave up"))?;
            }
            for (_, link) in links.others() {
                link.recv(&step, 1)?;
            }
        }
        Ok::<_, NetError>(())
    });
    assert!(results[1].is_err());
    // what it would have sent at step 2 got nowhere
    assert_eq!(log.of(1).iter().map(|sent| sent.step.id).collect::<Vec<_>>(), [1, 1, 2]);
    let closed = |e: &NetError| matches!(e, NetError::Closed { peer, .. } if peer == "party 1");
    let others = [&results[0], &results[2]].map(|result| result.as_ref().unwrap_err());
    assert!(others.iter().any(|e| closed(e)), "{others:?}");
    assert!(
        others.iter().all(|e| !e.to_string().contains("I gave up") || !e.to_string().contains("party 1"))
    );
}

#[test]
fn a_run_that_does_not_end_says_what_every_party_does() {
    const INSIDE: &str = "PRIVET_TESTKIT_HANGS";
    if std::env::var_os(INSIDE).is_some() {
        Mesh::new(2).bound(Duration::from_millis(300), "a maximum").run(|links| match links.me() {
            0 => drop(links.to(1).recv(&Step::new(9, "max / open"), 1)),
            _ => std::thread::sleep(Duration::from_secs(600)),
        });
        return;
    }
    let name = "a_run_that_does_not_end_says_what_every_party_does";
    let mut again = Command::new(std::env::current_exe().unwrap());
    let output = again.args(["--exact", name]).env(INSIDE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("a maximum did not end within 300ms"), "{text}");
    assert!(text.contains("party 0 waits for party 1 at step 9 (max / open)"), "{text}");
    assert!(text.contains("party 1 works and has sent nothing yet"), "{text}");
}

#[test]
fn ends_are_those_of_two_different_others() {
    let mut links = Mesh::new(3).into_links();
    let [a, b] = links[1].both([2, 0]);
    assert_eq!((a.peer(), b.peer()), ("party 2", "party 0"));
    for peers in [[0, 0], [0, 1], [0, 3]] {
        let both = catch_unwind(AssertUnwindSafe(|| links[1].both(peers).len()));
        assert!(both.is_err(), "{peers:?}");
    }
    assert!(catch_unwind(AssertUnwindSafe(|| links[1].to(1).peer().to_owned())).is_err());
}
