//! A corrupt party that changes what it sends: attacks on the messages of an honest run.

use crate::fault::Action;
use crate::record::Sent;
use privet_prg::Prg;
use privet_ring::Ring;

/// Changes of messages of one party, numbered in the order in which it sends them over all its links.
#[derive(Clone, Debug)]
pub struct Attack {
    /// The corrupt party.
    pub by: usize,
    /// For failures.
    pub what: String,
    /// The number of a message and what happens to it.
    pub changes: Vec<(usize, Action)>,
}

impl Attack {
    /// The attack that makes the same difference, bit by bit, to the messages `to` as this one to the messages `from`.
    pub fn shifted(&self, from: &[Sent], to: &[Sent]) -> Attack {
        let mut attack = self.clone();
        for (number, change) in &mut attack.changes {
            if let Action::Replace(bytes) = change {
                let words = from[*number].bytes.iter().zip(&to[*number].bytes);
                bytes.iter_mut().zip(words).for_each(|(byte, (from, to))| *byte ^= from ^ to);
            }
        }
        attack
    }
}

/// Kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The first bit is inverted.
    FlipFirst,
    /// The last bit is inverted.
    FlipLast,
    /// Any bit is inverted.
    FlipAny,
    /// A number is added to a word.
    Add,
    /// An earlier message of the same length is sent in its place.
    Replay,
    /// The message of another instance is sent in its place.
    OtherInstance,
    /// It is changed elsewhere than the message to another party at the same step.
    OtherToEach,
    /// It is sent after the next on its link.
    Reorder,
    /// It is sent twice.
    Twice,
    /// Some bytes of its end are not sent.
    Truncate,
    /// Some bytes are sent after its end.
    Lengthen,
    /// Random bytes of its length are sent in its place.
    Random,
    /// Zeros are sent in its place.
    Zero,
    /// The link is cut in its place.
    Sever,
    /// It is not sent, and its sender goes on.
    Omit,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 15] = [
        Kind::FlipFirst,
        Kind::FlipLast,
        Kind::FlipAny,
        Kind::Add,
        Kind::Replay,
        Kind::OtherInstance,
        Kind::OtherToEach,
        Kind::Reorder,
        Kind::Twice,
        Kind::Truncate,
        Kind::Lengthen,
        Kind::Random,
        Kind::Zero,
        Kind::Sever,
        Kind::Omit,
    ];
}

/// A number below `n`, for choices of a test.
pub fn below(random: &mut Prg, n: usize) -> usize {
    (random.elements(Ring::R64, 1)[0] % n as u64) as usize
}

fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

/// A word of up to 64 bits of the message, changed by adding `delta`: for elements that fill words one of them, for packed
/// ones some neighbours.
fn added(bytes: &[u8], word: usize, delta: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let words = bytes.len().div_ceil(8);
    let end = bytes.len().min(8 * (word % words) + 8);
    let at = &mut bytes[8 * (word % words)..end];
    let mut value = [0; 8];
    value[..at.len()].copy_from_slice(at);
    let value = u64::from_le_bytes(value).wrapping_add(delta).to_le_bytes();
    at.copy_from_slice(&value[..at.len()]);
    bytes
}

/// The messages that one party sent in an honest run, and in one of another instance: other keys and inputs.
pub struct Target<'a> {
    /// The corrupt party.
    pub by: usize,
    /// Of the run that is attacked.
    pub sent: &'a [Sent],
    /// Of the other instance.
    pub other: &'a [Sent],
}

impl Target<'_> {
    /// The change of message `number`; none where the kind does not apply to it.
    pub fn attack(&self, kind: Kind, number: usize, random: &mut Prg) -> Option<Attack> {
        let Sent { step, to, bytes } = &self.sent[number];
        let bits = 8 * bytes.len();
        let change = match kind {
            Kind::FlipFirst => Action::Replace(flipped(bytes, 0)),
            Kind::FlipLast => Action::Replace(flipped(bytes, bits - 1)),
            Kind::FlipAny => Action::Replace(flipped(bytes, below(random, bits))),
            Kind::Add => {
                let word = below(random, bytes.len());
                let delta = random.elements(Ring::R64, 1)[0] >> below(random, 64) | 1;
                Action::Replace(added(bytes, word, delta))
            }
            Kind::Replay => {
                let fits = |sent: &&Sent| sent.bytes.len() == bytes.len() && sent.bytes != *bytes;
                let earlier: Vec<_> = self.sent[..number].iter().filter(fits).collect();
                if earlier.is_empty() {
                    return None;
                }
                Action::Replace(earlier[below(random, earlier.len())].bytes.clone())
            }
            Kind::OtherInstance => Action::Replace(self.other[number].bytes.clone()),
            Kind::OtherToEach => {
                // What goes to the other neighbour at this step is changed elsewhere.
                let pair = |(_, sent): &(usize, &Sent)| sent.step.id == step.id && sent.to != *to;
                let (second, theirs) = self.sent.iter().enumerate().skip(number).find(pair)?;
                let changes = [(number, bytes), (second, &theirs.bytes)].map(|(number, bytes)| {
                    (number, Action::Replace(flipped(bytes, below(random, 8 * bytes.len()))))
                });
                let what = format!("{kind:?} of step {step}");
                return Some(Attack { by: self.by, what, changes: changes.into() });
            }
            Kind::Reorder => Action::Reorder,
            Kind::Twice => Action::Duplicate,
            Kind::Truncate if bytes.len() == 1 => return None,
            Kind::Truncate => {
                Action::Replace(bytes[..bytes.len() - 1 - below(random, bytes.len() - 1)].to_vec())
            }
            Kind::Lengthen => {
                let mut longer = bytes.clone();
                longer.resize(bytes.len() + 1 + below(random, 20), 0);
                Action::Replace(longer)
            }
            Kind::Random => {
                let mut other = vec![0; bytes.len()];
                random.fill_bytes(&mut other);
                Action::Replace(other)
            }
            Kind::Zero => Action::Replace(vec![0; bytes.len()]),
            Kind::Sever => Action::Kill,
            Kind::Omit => Action::Drop,
        };
        let what =
            format!("{kind:?} of message {number} (to party {to}, step {step}, {} bytes)", bytes.len());
        Some(Attack { by: self.by, what, changes: vec![(number, change)] })
    }

    /// Between one and three changes of random kinds at random places.
    pub fn any(&self, kinds: &[Kind], random: &mut Prg) -> Attack {
        let many = 1 + below(random, 6).saturating_sub(3);
        let mut attack = Attack { by: self.by, what: String::new(), changes: vec![] };
        while attack.changes.len() < many {
            let (kind, number) = (kinds[below(random, kinds.len())], below(random, self.sent.len()));
            if let Some(one) = self.attack(kind, number, random) {
                attack.what = format!("{} {};", attack.what, one.what);
                attack.changes.extend(one.changes);
            }
        }
        attack
    }
}
