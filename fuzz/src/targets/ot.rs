//! Messages of oblivious transfer.

use super::Fields;
use crate::Target;
use privet_net::{Channel, Step, mem};
use privet_ot::base::{self, BASE, Label};
use privet_ot::softspoken::{self, CHUNK};
use privet_ot::{Delta, MaskedBits, Pair, Source, Width};
use privet_prg::Seed;
use std::sync::LazyLock;

/// Every message by itself: of any length, and of the right length with any bytes.
pub const MESSAGES: Target = Target { name: "ot-messages", run: messages, seeds: message_seeds, words: &[] };

/// So many bytes, the input over and over.
fn stretched(data: &[u8], len: usize) -> Vec<u8> {
    data.iter().copied().chain(std::iter::once(0)).cycle().take(len).collect()
}

fn messages(data: &[u8]) {
    let mut fields = Fields(data);
    let (kind, exact, n) = (fields.byte(), fields.byte() & 1 == 0, usize::from(fields.byte()) * 7);
    let bytes = |len: usize| if exact { stretched(fields.0, len) } else { fields.0.to_vec() };
    let (label, width) = (Label(b"fuzz"), Width::Four);
    match kind % 4 {
        0 => {
            let b = bytes(n.div_ceil(8));
            if let Ok(masked) = MaskedBits::from_bytes(n, &b) {
                assert_eq!(masked.to_bytes(), b);
            }
        }
        1 => {
            let (sender, _) = base::Sender::start(&mut seed(1).stream());
            if let Ok(pairs) = sender.finish(label, &bytes(base::POINTS_BYTES)) {
                assert_eq!(pairs.len(), BASE);
            }
        }
        2 => {
            let (receiver, _) = base::Receiver::start(label, 5, &mut seed(1).stream());
            if let Ok(chosen) = receiver.finish(label, &bytes(base::POINT_BYTES)) {
                assert_eq!(chosen.len(), BASE);
            }
        }
        _ => {
            let delta = Delta::draw(&mut seed(2).stream());
            let chosen = vec![seed(3); BASE];
            let setup = bytes(softspoken::SETUP_BYTES);
            let Ok(mut sender) = softspoken::Sender::start(width, &seed(4), &delta, &chosen, &setup) else {
                return;
            };
            let mut out = vec![0; CHUNK];
            if sender.extend(&bytes(width.chunk_bytes()), &mut out).is_ok() {
                assert!(out.iter().all(|q| q & 1 == 0), "the lowest bit is the choice's");
            }
        }
    }
}

fn message_seeds() -> Vec<Vec<u8>> {
    (0..4u8).flat_map(|kind| [vec![kind, 0, 9, 1, 2, 3], vec![kind, 1, 1, 7], vec![kind, 0, 64]]).collect()
}

/// A session with a peer whose messages are an honest one's but for some bytes: what lies behind the checks of elements.
pub const SESSION: Target = Target { name: "ot-session", run: session, seeds: session_seeds, words: &[] };

const SOURCE: Source = Source::SoftSpoken(Width::Four);

fn seed(byte: u8) -> Seed {
    Seed::from_bytes([byte; 16])
}

fn step() -> Step {
    Step::new(1, "fuzz")
}

/// Both parties' seeds are fixed, so an honest peer's messages are always the same.
static HONEST: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let (mut a, mut b) = mem::pair();
    let (mut forward, mut back) = mem::pair();
    let lengths = [START, SETUP, CHUNKS];
    std::thread::scope(|scope| {
        scope.spawn(|| run(&mut a).expect("honest"));
        scope.spawn(|| peer(&mut back).expect("honest"));
        let mut pass = |len| {
            let theirs = forward.recv(&step(), len).expect("honest");
            let ours = b.exchange(&step(), theirs.clone(), len).expect("honest");
            forward.send(&step(), ours).expect("honest");
            theirs
        };
        lengths.map(&mut pass).to_vec()
    })
});

const START: usize = 16 + base::POINTS_BYTES + base::POINT_BYTES;
const SETUP: usize = softspoken::SETUP_BYTES;
const CHUNKS: usize = Width::Four.chunk_bytes();

fn with(channel: &mut dyn Channel, secret: u8) -> Result<Pair, privet_ot::OtError> {
    let mut pair = Pair::start(channel, &step(), SOURCE, &seed(secret))?;
    pair.prepare(channel, &step(), CHUNK, CHUNK)?;
    Ok(pair)
}

fn run(channel: &mut dyn Channel) -> Result<Pair, privet_ot::OtError> {
    with(channel, 1)
}

fn peer(channel: &mut dyn Channel) -> Result<Pair, privet_ot::OtError> {
    with(channel, 2)
}

fn session(data: &[u8]) {
    let mut fields = Fields(data);
    let mut messages = HONEST.clone();
    while !fields.0.is_empty() {
        let ([message, low, high], by) = (fields.bytes(), fields.byte());
        let message = &mut messages[usize::from(message) % 3];
        let at = usize::from(u16::from_le_bytes([low, high])) % message.len();
        message[at] ^= by;
    }
    let changed = messages != *HONEST;
    let (mut channel, mut attacker) = mem::pair();
    for message in messages {
        attacker.send(&step(), message).expect("in memory");
    }
    match run(&mut channel) {
        // whoever deviates may spoil what is transferred, and nothing else
        Ok(mut pair) => {
            let pads = pair.sender.take(CHUNK).expect("prepared").into_pads();
            assert_eq!(pads.strings[0].len(), CHUNK);
        }
        Err(error) => assert!(changed, "an honest peer is refused: {error}"),
    }
}

fn session_seeds() -> Vec<Vec<u8>> {
    vec![
        vec![],
        vec![0, 20, 0, 1],
        vec![0, 0x10, 0x20, 0x80],
        vec![1, 3, 0, 255],
        vec![2, 9, 1, 4, 2, 10, 1, 4],
    ]
}
