//! Attacks on the messages of an honest run.

use super::Sent;
use super::cheat::{Attack, Change};
use privet_prg::Prg;
use privet_rep3::PartyId;
use privet_ring::Ring;

/// Kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    FlipFirst,
    FlipLast,
    FlipAny,
    Add,
    Replay,
    OtherInstance,
    OtherToEach,
    Reorder,
    Twice,
    Truncate,
    Lengthen,
    Random,
    Zero,
    Sever,
    Omit,
}

impl Kind {
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

fn below(random: &mut Prg, n: usize) -> usize {
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
    pub by: PartyId,
    pub sent: &'a [Sent],
    pub other: &'a [Sent],
}

impl Target<'_> {
    /// The change of message `number`; none where the kind does not apply to it.
    pub fn attack(&self, kind: Kind, number: usize, random: &mut Prg) -> Option<Attack> {
        let Sent { step, to, bytes } = &self.sent[number];
        let bits = 8 * bytes.len();
        let change = match kind {
            Kind::FlipFirst => Change::Replace(flipped(bytes, 0)),
            Kind::FlipLast => Change::Replace(flipped(bytes, bits - 1)),
            Kind::FlipAny => Change::Replace(flipped(bytes, below(random, bits))),
            Kind::Add => {
                let word = below(random, bytes.len());
                let delta = random.elements(Ring::R64, 1)[0] >> below(random, 64) | 1;
                Change::Replace(added(bytes, word, delta))
            }
            Kind::Replay => {
                let fits = |sent: &&Sent| sent.bytes.len() == bytes.len() && sent.bytes != *bytes;
                let earlier: Vec<_> = self.sent[..number].iter().filter(fits).collect();
                if earlier.is_empty() {
                    return None;
                }
                Change::Replace(earlier[below(random, earlier.len())].bytes.clone())
            }
            Kind::OtherInstance => Change::Replace(self.other[number].bytes.clone()),
            Kind::OtherToEach => {
                // What goes to the other neighbour at this step is changed elsewhere.
                let pair = |(_, sent): &(usize, &Sent)| sent.step.id == step.id && sent.to != *to;
                let (second, theirs) = self.sent.iter().enumerate().skip(number).find(pair)?;
                let changes = [(number, bytes), (second, &theirs.bytes)].map(|(number, bytes)| {
                    (number, Change::Replace(flipped(bytes, below(random, 8 * bytes.len()))))
                });
                let what = format!("{kind:?} of step {step}");
                return Some(Attack { by: self.by, what, changes: changes.into() });
            }
            Kind::Reorder => Change::AfterNext,
            Kind::Twice => Change::Twice,
            Kind::Truncate if bytes.len() == 1 => return None,
            Kind::Truncate => {
                Change::Replace(bytes[..bytes.len() - 1 - below(random, bytes.len() - 1)].to_vec())
            }
            Kind::Lengthen => {
                let mut longer = bytes.clone();
                longer.resize(bytes.len() + 1 + below(random, 20), 0);
                Change::Replace(longer)
            }
            Kind::Random => {
                let mut other = vec![0; bytes.len()];
                random.fill_bytes(&mut other);
                Change::Replace(other)
            }
            Kind::Zero => Change::Replace(vec![0; bytes.len()]),
            Kind::Sever => Change::Sever,
            Kind::Omit => Change::Omit,
        };
        let what = format!("{kind:?} of message {number} (to {to}, step {step}, {} bytes)", bytes.len());
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
