//! Transfers over loopback TCP with mutual TLS, both directions at once, as parties run them.

use privet_net::{Hello, Identity, Listener, Options, Pin, Protection, Step, TcpChannel, Terms, dial};
use privet_ot::params::B10;
use privet_ot::{Pair, Source, Width};
use privet_prg::Seed;
use privet_ring::Ring;
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Party 0's and party 1's channel.
fn connect() -> [TcpChannel; 2] {
    let made = ["party 0", "party 1"].map(|name| {
        let identity = Identity::generate(name).unwrap();
        let pin = Pin::new(name, identity.fingerprint());
        (Protection::Tls(identity), pin)
    });
    let [(tls0, pin0), (tls1, pin1)] = made;
    let hello = |role: &str| Hello::new(role, [9; 32], "prepare", Terms::new([]));
    let listener = Listener::bind("127.0.0.1:0", tls0, vec![pin1]).unwrap();
    let address = listener.local_address().unwrap();
    let dialer = thread::spawn(move || {
        dial(&address, &tls1, &pin0, &hello("party 1"), Options::default(), PATIENCE).unwrap().0
    });
    let accepted = listener.accept_as(&hello("party 0"), Options::default(), PATIENCE).unwrap().0;
    [accepted, dialer.join().unwrap()]
}

#[test]
fn transfers_over_tls() {
    let n = B10.usable() + 1000;
    for source in [Source::SoftSpoken(Width::Two), Source::Ferret(B10)] {
        let step = Step::new(1, "session / oblivious transfers");
        let party = |mut channel: TcpChannel| {
            let step = step.clone();
            move || {
                let mut pair = Pair::start(&mut channel, &step, source, &Seed::random()).unwrap();
                pair.prepare(&mut channel, &step, n, n).unwrap();
                pair
            }
        };
        let [a, b] = connect().map(|channel| thread::spawn(party(channel)));
        let (mut a, mut b) = (a.join().unwrap(), b.join().unwrap());
        for (from, to) in [(&mut a.sender, &mut b.receiver), (&mut b.sender, &mut a.receiver)] {
            let strings = from.take(n).unwrap().into_pads().strings.map(|mut s| s.words(Ring::R64));
            let mut pads = to.take(n).unwrap().into_pads();
            let (choices, mine) = (&pads.choices, pads.strings.words(Ring::R64));
            for (i, word) in mine.iter().enumerate() {
                let choice = (choices[i / 64] >> (i % 64) & 1) as usize;
                assert!(*word == strings[choice][i] && *word != strings[1 - choice][i], "{source:?}, {i}");
            }
        }
    }
}
