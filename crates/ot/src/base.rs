//! Base OTs: Masny and Rindal, *Endemic Oblivious Transfer* (CCS 2019, eprint 2019/706), the Diffie-Hellman instance
//! over ristretto255. One message each way, in any order; both strings and choices come out as seeds and bits.
//!
//! Receiver with choice c: `r_(1-c)` uniform, `r_c = a G - H(i, c, r_(1-c))`; sends `r_0, r_1`.
//! Sender: sends `B = b G`; seed j is `KDF(i, b (r_j + H(i, j, r_(1-j))))`. Receiver: `KDF(i, a B)`.

use crate::delta::mask;
use crate::error::{Malformed, exact};
use crate::mutation;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use privet_prg::{Prg, Seed};
use zeroize::{Zeroize, Zeroizing};

/// Base OTs of a direction: one a bit of Delta. SECURITY.
pub const BASE: usize = 128;
/// Bytes of the receiver's message.
pub const POINTS_BYTES: usize = BASE * 64;
/// Bytes of the sender's message.
pub const POINT_BYTES: usize = 32;

const POINTS: &str = "base OT, the receiver's elements";
const POINT: &str = "base OT, the sender's element";

/// The session's name, which every hash takes in: equal for both parties and direction.
#[derive(Clone, Copy)]
pub struct Label<'a>(pub &'a [u8]);

/// The receiver between its message and the sender's.
pub struct Receiver {
    secrets: Vec<Scalar>,
}

/// The sender before the receiver's message has come.
pub struct Sender {
    secret: Scalar,
    element: CompressedRistretto,
}

/// What the receiver of [`BASE`] transfers gets: seed i is the sender's at bit i of its choices.
pub type Chosen = Vec<Seed>;
/// What the sender gets: pairs of seeds.
pub type Pairs = Vec<[Seed; 2]>;

impl Receiver {
    /// Draws everything, for these choices. Gives the message.
    pub fn start(label: Label, choices: u128, prg: &mut Prg) -> (Receiver, Vec<u8>) {
        let mut message = Vec::with_capacity(POINTS_BYTES);
        let mut secrets = Vec::with_capacity(BASE);
        for i in 0..BASE {
            let choice = mask((choices >> i) as u64) as u8;
            let a = scalar(prg);
            let other = RistrettoPoint::from_uniform_bytes(&uniform(prg)).compress();
            let other =
                if mutation::active("base-choice-open") { CompressedRistretto([0; 32]) } else { other };
            let own = RistrettoPoint::mul_base(&a) - hashed(label, i, choice & 1, &other);
            let (own, other) = (own.compress(), other);
            let pick = |x: &[u8; 32], y: &[u8; 32]| -> [u8; 32] {
                std::array::from_fn(|j| (x[j] & !choice) | (y[j] & choice))
            };
            message.extend(pick(own.as_bytes(), other.as_bytes()));
            message.extend(pick(other.as_bytes(), own.as_bytes()));
            secrets.push(a);
        }
        (Receiver { secrets }, message)
    }

    /// The chosen seeds, from the sender's message.
    pub fn finish(mut self, label: Label, message: &[u8]) -> Result<Chosen, Malformed> {
        let element = element(POINT, 0, exact(POINT, message, POINT_BYTES)?)?;
        let seeds = self.secrets.iter().enumerate().map(|(i, a)| key(label, i, &(a * element))).collect();
        self.secrets.zeroize();
        Ok(seeds)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.secrets.zeroize();
    }
}

impl Sender {
    /// Draws the sender's secret. Gives the message.
    pub fn start(prg: &mut Prg) -> (Sender, Vec<u8>) {
        let secret = scalar(prg);
        let element = RistrettoPoint::mul_base(&secret).compress();
        (Sender { secret, element }, element.to_bytes().to_vec())
    }

    /// All pairs of seeds, from the receiver's message.
    pub fn finish(self, label: Label, message: &[u8]) -> Result<Pairs, Malformed> {
        let elements = exact(POINTS, message, POINTS_BYTES)?.as_chunks::<32>().0;
        debug_assert_eq!(self.element, RistrettoPoint::mul_base(&self.secret).compress());
        let pair = |(i, r): (usize, &[[u8; 32]; 2])| -> Result<[Seed; 2], Malformed> {
            let seed = |j: usize| -> Result<Seed, Malformed> {
                let other = CompressedRistretto(r[1 - j]);
                let sum = element(POINTS, 2 * i + j, &r[j])? + hashed(label, i, j as u8, &other);
                Ok(key(label, i, &(self.secret * sum)))
            };
            Ok([seed(0)?, seed(1)?])
        };
        elements.as_chunks::<2>().0.iter().enumerate().map(pair).collect()
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

fn element(step: &'static str, index: usize, bytes: &[u8]) -> Result<RistrettoPoint, Malformed> {
    let point = CompressedRistretto::from_slice(bytes).ok().and_then(|c| c.decompress());
    point.filter(|p| !p.is_identity()).ok_or(Malformed::Element { step, index })
}

fn uniform(prg: &mut Prg) -> Zeroizing<[u8; 64]> {
    let mut bytes = Zeroizing::new([0; 64]);
    prg.fill_bytes(&mut *bytes);
    bytes
}

fn scalar(prg: &mut Prg) -> Scalar {
    Scalar::from_bytes_mod_order_wide(&uniform(prg))
}

/// H into the group, for transfer `i` and string `j`, of the other element.
fn hashed(label: Label, i: usize, j: u8, other: &CompressedRistretto) -> RistrettoPoint {
    let mut hash = blake3::Hasher::new_derive_key("privet base OT, element of ristretto255");
    hash.update(&(label.0.len() as u64).to_le_bytes()).update(label.0);
    hash.update(&(i as u64).to_le_bytes()).update(&[j]).update(other.as_bytes());
    let mut wide = [0; 64];
    hash.finalize_xof().fill(&mut wide);
    RistrettoPoint::from_uniform_bytes(&wide)
}

/// The seed of transfer `i`, from the Diffie-Hellman element.
fn key(label: Label, i: usize, shared: &RistrettoPoint) -> Seed {
    let mut hash = blake3::Hasher::new_derive_key("privet base OT, seed");
    hash.update(&(label.0.len() as u64).to_le_bytes()).update(label.0);
    hash.update(&(i as u64).to_le_bytes()).update(shared.compress().as_bytes());
    let mut seed = Zeroizing::new([0; 16]);
    hash.finalize_xof().fill(&mut *seed);
    Seed::from_bytes(*seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: Label = Label(b"a session");

    fn prg(i: u8) -> Prg {
        Seed::from_bytes([i; 16]).stream()
    }

    /// The protocol, as it reads in the paper.
    #[test]
    fn receiver_gets_the_chosen_seeds() {
        let choices = 0x0123_4567_89ab_cdef_8421_ffff_0000_a5a5;
        let (receiver, elements) = Receiver::start(LABEL, choices, &mut prg(1));
        let (sender, element) = Sender::start(&mut prg(2));
        let chosen = receiver.finish(LABEL, &element).unwrap();
        let pairs = sender.finish(LABEL, &elements).unwrap();
        for (i, (seed, pair)) in chosen.iter().zip(&pairs).enumerate() {
            let choice = (choices >> i & 1) as usize;
            assert!(*seed == pair[choice] && *seed != pair[1 - choice], "transfer {i}");
            assert!(chosen[..i].iter().all(|other| other != seed));
        }
    }

    #[test]
    fn another_session_gives_other_seeds() {
        let (receiver, elements) = Receiver::start(LABEL, 5, &mut prg(1));
        let (sender, element) = Sender::start(&mut prg(2));
        let chosen = receiver.finish(Label(b"another"), &element).unwrap();
        let pairs = sender.finish(LABEL, &elements).unwrap();
        assert!(chosen.iter().zip(&pairs).all(|(seed, pair)| seed != &pair[0] && seed != &pair[1]));
    }

    /// The receiver's message says nothing of its choices: each element of a pair is uniform on its own, so no element
    /// repeats or is neutral, whichever is chosen.
    #[test]
    fn elements_do_not_tell_the_choice() {
        for choices in [0, u128::MAX] {
            let (_, message) = Receiver::start(LABEL, choices, &mut prg(3));
            let mut elements: Vec<_> = message.as_chunks::<32>().0.to_vec();
            elements.sort();
            elements.dedup();
            assert_eq!(elements.len(), 2 * BASE);
            assert!(elements.iter().all(|e| e.iter().any(|b| *b != 0)));
        }
    }

    #[test]
    fn malformed_messages_are_named() {
        let (receiver, elements) = Receiver::start(LABEL, 5, &mut prg(1));
        let error =
            |message: &[u8]| Sender::start(&mut prg(2)).0.finish(LABEL, message).map(|_| ()).unwrap_err();
        assert_eq!(
            error(&elements[1..]),
            Malformed::Length { step: POINTS, expected: POINTS_BYTES, found: POINTS_BYTES - 1 }
        );
        for wrong in [[0xff; 32], [0; 32]] {
            let mut bad = elements.clone();
            bad[32 * 7..32 * 8].copy_from_slice(&wrong);
            assert_eq!(error(&bad), Malformed::Element { step: POINTS, index: 7 });
        }
        let refused = receiver.finish(LABEL, &[0xff; 32]).map(|_| ()).unwrap_err();
        assert_eq!(refused, Malformed::Element { step: POINT, index: 0 });
    }
}
