//! Both directions of a pair of parties, over channels: what the transfers are, what they cost, and who learns what.

use privet_net::Step;
use privet_ot::channel::START_BYTES;
use privet_ot::params::{B10, B11};
use privet_ot::softspoken::CHUNK;
use privet_ot::{MaskedBits, Pair, ReceiverPads, SenderPads, Short, Source, Width};
use privet_prg::Seed;
use privet_ring::{BitVec, Ring};
use privet_testkit::{Mesh, record};

fn step() -> Step {
    Step::new(3, "session / oblivious transfers")
}

fn secret(byte: u8) -> Seed {
    Seed::from_bytes([byte; 16])
}

/// Both parties' pairs, of given randomness, prepared for these numbers of party 0 as sender and as receiver.
fn pairs(mesh: Mesh, source: Source, secrets: [u8; 2], numbers: [usize; 2]) -> Vec<Pair> {
    let [send, receive] = numbers;
    let given = [(secrets[0], send, receive), (secrets[1], receive, send)];
    mesh.run_with(given, |links, (byte, send, receive)| {
        let channel = links.to(1 - links.me());
        let mut pair = Pair::start(channel, &step(), source, &secret(byte)).unwrap();
        pair.prepare(channel, &step(), send, receive).unwrap();
        assert!(pair.sender.available() >= send && pair.receiver.available() >= receive);
        pair
    })
}

type Words = Vec<u64>;

fn zero_and_one(pads: SenderPads) -> [Words; 2] {
    pads.strings.map(|mut s| s.words(Ring::R64).to_vec())
}

fn chosen(mut pads: ReceiverPads) -> (BitVec, Words) {
    let words = pads.strings.words(Ring::R64).to_vec();
    (BitVec::from_words(words.len(), pads.choices.to_vec()), words)
}

fn assert_transfers([zero, one]: &[Words; 2], (choices, words): &(BitVec, Words)) {
    assert!(zero.len() == words.len() && one.len() == words.len());
    for (i, word) in words.iter().enumerate() {
        let (mine, other) = if choices.get(i) == 1 { (one[i], zero[i]) } else { (zero[i], one[i]) };
        assert!(*word == mine && *word != other, "transfer {i}");
    }
    let ones: u32 = choices.words().iter().map(|w| w.count_ones()).sum();
    let n = words.len() as i64;
    assert!((2 * ones as i64 - n).pow(2) <= 49 * n, "{ones} of {n} choices are one");
}

/// Takes `parts` of both directions from both parties.
fn take_all(pairs: &mut [Pair], parts: &[usize]) -> Vec<[Words; 2]> {
    let [a, b] = pairs else { panic!("two parties") };
    let mut all = Vec::new();
    for n in parts {
        for (from, to) in [(&mut a.sender, &mut b.receiver), (&mut b.sender, &mut a.receiver)] {
            let strings = zero_and_one(from.take(*n).unwrap().into_pads());
            assert_transfers(&strings, &chosen(to.take(*n).unwrap().into_pads()));
            all.push(strings);
        }
    }
    all
}

#[test]
fn softspoken_of_every_width_both_ways_at_sizes_around_a_chunk() {
    for width in Width::ALL {
        let parts = [0, 1, 63, 64, CHUNK - 128, CHUNK, CHUNK + 1];
        let n: usize = parts.iter().sum();
        let mut pairs = pairs(Mesh::new(2), Source::SoftSpoken(width), [1, 2], [n, n]);
        take_all(&mut pairs, &parts);
    }
}

#[test]
fn ferret_both_ways_over_two_rounds() {
    let n = B10.usable() + 1000;
    let mut pairs = pairs(Mesh::new(2), Source::Ferret(B10), [1, 2], [n, n]);
    assert_eq!(pairs[0].sender.available(), 2 * B10.usable());
    take_all(&mut pairs, &[5, 1 << 16, n - 5 - (1 << 16)]);
}

#[test]
fn one_direction_alone_and_unequal_directions() {
    for numbers in [[100, 0], [0, 100], [3 * CHUNK, 10]] {
        let mut pairs = pairs(Mesh::new(2), Source::SoftSpoken(Width::Four), [1, 2], numbers);
        let short = pairs[0].sender.take(numbers[0].next_multiple_of(CHUNK) + 1).map(|_| ()).unwrap_err();
        assert_eq!(short.available, numbers[0].next_multiple_of(CHUNK));
        let (mut a, b) = (pairs.remove(0), pairs.remove(0));
        let (mut sender, mut receiver) = (b.sender, b.receiver);
        let strings = zero_and_one(a.sender.take(numbers[0]).unwrap().into_pads());
        assert_transfers(&strings, &chosen(receiver.take(numbers[0]).unwrap().into_pads()));
        let strings = zero_and_one(sender.take(numbers[1]).unwrap().into_pads());
        assert_transfers(&strings, &chosen(a.receiver.take(numbers[1]).unwrap().into_pads()));
    }
}

#[test]
fn nothing_is_given_that_was_not_prepared() {
    let mut pairs = pairs(Mesh::new(2), Source::Ferret(B10), [1, 2], [0, 0]);
    let short = pairs[0].receiver.take(1).map(|_| ()).unwrap_err();
    assert_eq!(short, Short { wanted: 1, available: 0 });
}

/// Silent means the same bytes at another time: all at once beforehand, or whenever a part is needed.
#[test]
fn prepaid_and_interleaved_give_the_same_transfers_from_the_same_bytes() {
    let sources = [(Source::SoftSpoken(Width::Eight), CHUNK), (Source::Ferret(B10), B10.usable())];
    for (source, most) in sources {
        let run = |prepaid: bool| {
            let mut mesh = Mesh::new(2);
            let log = mesh.record();
            let strings = mesh.run(|links| {
                let mine = secret(links.me() as u8);
                let channel = links.to(1 - links.me());
                let mut pair = Pair::start(channel, &step(), source, &mine).unwrap();
                let mut digest = blake3::Hasher::new();
                let parts = [10, most - 10, 77];
                if prepaid {
                    pair.prepare(channel, &step(), most + 77, most + 77).unwrap();
                }
                let before = channel.meter().total().sent;
                for n in parts {
                    if !prepaid {
                        pair.prepare(channel, &step(), n, n).unwrap();
                    }
                    for words in zero_and_one(pair.sender.take(n).unwrap().into_pads()) {
                        for word in words {
                            digest.update(&word.to_le_bytes());
                        }
                    }
                    for word in chosen(pair.receiver.take(n).unwrap().into_pads()).1 {
                        digest.update(&word.to_le_bytes());
                    }
                }
                let silent = channel.meter().total().sent == before;
                assert_eq!(silent, prepaid, "bytes are sent by prepare alone");
                digest.finalize()
            });
            let bytes: Vec<Vec<u8>> =
                log.all().iter().map(|sent| sent.iter().flat_map(|s| s.bytes.clone()).collect()).collect();
            (strings, bytes)
        };
        assert!(run(true) == run(false), "{source:?}");
    }
}

/// Bytes are what docs/ot.md says.
#[test]
fn bytes_and_rounds_are_the_declared_ones() {
    let reserve = B11.reserve().div_ceil(CHUNK) * Width::Eight.chunk_bytes();
    let cases = [
        (Source::SoftSpoken(Width::Two), CHUNK, 63 * CHUNK / 8),
        (Source::SoftSpoken(Width::Four), 2 * CHUNK, 31 * 2 * CHUNK / 8),
        (Source::SoftSpoken(Width::Eight), 20 * CHUNK, 15 * 20 * CHUNK / 8),
        (Source::Ferret(B11), 1, reserve + B11.message_bytes()),
    ];
    for (source, n, bytes) in cases {
        let mut mesh = Mesh::new(2);
        let log = mesh.record();
        pairs(mesh, source, [1, 2], [n, n]);
        for party in 0..2 {
            assert_eq!(record::bytes(&log.of(party)), (START_BYTES + bytes) as u64, "{source:?}");
        }
    }
    assert!(8 * B11.message_bytes() * 100 / B11.usable() < 75);
}

/// With one party's randomness fixed and the other's redrawn, what the party sees changes everywhere and says nothing.
#[test]
fn messages_are_redrawn_with_their_senders_randomness() {
    for source in [Source::SoftSpoken(Width::Four), Source::Ferret(B10)] {
        let seen = |other: u8| {
            let mut mesh = Mesh::new(2);
            let log = mesh.record();
            pairs(mesh, source, [1, other], [100, 100]);
            log.of(1).into_iter().map(|s| s.bytes).collect::<Vec<_>>()
        };
        let (a, b) = (seen(2), seen(3));
        assert_eq!(a.len(), b.len());
        for (i, (a, b)) in a.iter().zip(&b).enumerate() {
            let ones: u32 = a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum();
            let bits = 8 * a.len() as i64;
            // Compressed elements have two fixed bits in 256.
            assert!(
                (2 * ones as i64 - bits).abs() < bits / 100 + 8 * bits.isqrt(),
                "message {i}: {ones} of {bits}"
            );
        }
    }
}

/// Party 0's own sums of trees, with the base OTs of party 1 fixed, hide its seeds: equal trees never give equal words.
#[test]
fn two_sessions_of_one_party_have_nothing_in_common() {
    let strings = |secrets| {
        let mut pairs = pairs(Mesh::new(2), Source::SoftSpoken(Width::Two), secrets, [64, 64]);
        take_all(&mut pairs, &[64])
    };
    let (a, b) = (strings([1, 2]), strings([1, 3]));
    for (a, b) in a.iter().flatten().flatten().zip(b.iter().flatten().flatten()) {
        assert_ne!(a, b);
    }
}

#[test]
fn chosen_strings_of_wanted_bits() {
    let mut pairs = pairs(Mesh::new(2), Source::SoftSpoken(Width::Four), [1, 2], [1000, 0]);
    let receiver = pairs[1].receiver.take(1000).unwrap();
    let wanted = vec![0x0f0f_0f0f_0f0f_0f0f; 16];
    let (mine, masked) = receiver.choose(&wanted);
    let masked = MaskedBits::from_bytes(1000, &masked.to_bytes()).unwrap();
    let [zero, one] = zero_and_one(pairs[0].sender.take(1000).unwrap().into_chosen(&masked));
    let mine = mine.into_strings().words(Ring::R64);
    for i in 0..1000 {
        assert_eq!(mine[i], if wanted[i / 64] >> (i % 64) & 1 == 1 { one[i] } else { zero[i] });
    }
}

#[test]
fn wrong_elements_end_the_session_with_their_name() {
    let mesh = Mesh::patient(2, std::time::Duration::from_secs(5));
    let ends = mesh.run(|links| {
        let channel = links.to(1 - links.me());
        if channel.peer() == "party 1" {
            return Pair::start(channel, &step(), Source::Ferret(B10), &secret(1))
                .map(|_| ())
                .unwrap_err()
                .to_string();
        }
        let wrong = vec![0xff; 16 + 8192 + 32];
        drop(channel.exchange(&step(), wrong, 16 + 8192 + 32));
        channel.recv(&step(), 1).map(|_| ()).unwrap_err().to_string()
    });
    assert!(
        ends[0].contains("party 1 sent a wrong message") && ends[0].contains("ristretto255"),
        "{}",
        ends[0]
    );
    assert!(ends[1].contains("gave up"), "{}", ends[1]);
}
