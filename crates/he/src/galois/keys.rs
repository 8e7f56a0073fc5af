//! The encryptor's keys, and what lets the multiplier switch from one to the next while it turns.
//!
//! Operands are encrypted under s, turned ones under s', answers under s''. A [`Hop`] has keys for eight automorphisms. Key t of the first hop
//! encrypts `P s` under s' turned back by t, once for each prime that a mask's digits are modulo: `b + a turn^-1(s') = P s [j] + e`
//! modulo q P, where `s [j]` is s modulo p_j and 0 modulo all other primes. So a polynomial is switched first and turned then, and its digits
//! are made once for all t. The second hop leads from s' to s'' likewise.

use super::turn;
use super::{DEGREE, Galois, HOP, Public, set, wide_set};
use crate::context::{Context, Points};
use crate::mutation;
use crate::pointwise;
use crate::sample::{self, OFFSET, Small};
use crate::wire::{self, WireError};
use privet_prg::{Prg, Seed, Wiped};

/// One side's keys as an encryptor, ternary and fresh; wiped on drop, never printed.
pub struct Secret {
    /// 0 or 1: whose public polynomials these are.
    pub(super) encryptor: u64,
    /// s modulo q.
    pub(super) operand: Points,
    /// s'' modulo q.
    pub(super) answer: Points,
    /// Operands encrypted so far: each takes public polynomials of its own.
    pub(super) operands: u64,
}

/// What the multiplier needs of the encryptor, once for all products: pseudo-random to it.
pub struct SwitchKeys {
    pub(super) encryptor: u64,
    /// From s to s', and from s' to s''.
    pub(super) hops: [Hop; 2],
    /// An encryption of 0 under s'', modulo q, times P.
    pub(super) zero: [Points; 2],
    /// Operands read so far.
    pub(super) operands: u64,
}

/// `(b, a)` of each of eight automorphisms, of each digit, modulo q P.
pub(super) struct Hop {
    number: usize,
    keys: Vec<[Points; 2]>,
}

impl Hop {
    /// Keys of an automorphism's digits.
    pub fn of(&self, t: usize) -> &[[Points; 2]] {
        &self.keys[t * digits()..][..digits()]
    }

    #[cfg(test)]
    pub fn keys(&self) -> &[[Points; 2]] {
        &self.keys
    }

    /// The automorphism of key t.
    pub fn turn(&self, t: usize) -> usize {
        turn::of_hop(self.number, t)
    }
}

/// Digits of a mask.
pub(super) fn digits() -> usize {
    set().primes.len()
}

/// Polynomials of a hop's bodies.
fn bodies() -> usize {
    HOP * digits()
}

impl Galois {
    /// Fresh keys of an encryptor, 0 or 1, and their message. `prg` is the encryptor's own.
    pub fn keys(&self, encryptor: u64, prg: &mut Prg) -> (Secret, Vec<u8>) {
        assert!(encryptor < 2, "two sides");
        let secrets = [(); 3].map(|()| sample::ternary(prg, DEGREE));
        let hops = [0, 1].map(|hop| self.hop(encryptor, hop, [&secrets[hop], &secrets[hop + 1]], prg));
        let q = &self.context;
        let [operand, _, answer] = secrets.map(|s| q.points(q.small(&s)));
        let zero = hide(q, &self.zero_mask(encryptor), &answer, prg);
        let mut message = Vec::with_capacity(Galois::key_bytes());
        hops.iter().for_each(|hop| message.extend(wire::put_polynomials(hop)));
        message.extend(wire::put_polynomials(&[zero]));
        (Secret { encryptor, operand, answer, operands: 0 }, message)
    }

    /// Bodies of a hop from one key to the next.
    fn hop(&self, encryptor: u64, hop: usize, keys: [&Small; 2], prg: &mut Prg) -> Vec<Points> {
        let wide = &self.wide;
        let [from, to] = keys.map(|s| wide.points(wide.small(s)));
        let public = self.publics(Public::Keys, encryptor);
        let seeds: Vec<Seed> = (0..HOP).map(|_| prg.seed()).collect();
        let bodies = wide.each(HOP, |t| {
            let mut prg = seeds[t].stream();
            let mut back = wide.zero();
            turn::values(turn::inverse(turn::of_hop(hop, t)), &to.words, &mut back.words);
            let key = |digit: usize| {
                let mut body = hide(wide, &wide.uniform(&public, number(hop, t, digit)), &back, &mut prg);
                add_special(wide, digit, &from, &mut body);
                body
            };
            (0..digits()).map(key).collect::<Vec<_>>()
        });
        bodies.into_iter().flatten().collect()
    }

    /// Bytes of an encryptor's keys.
    pub fn key_bytes() -> usize {
        2 * bodies() * wire::poly_bytes(wide_set(), None) + wire::poly_bytes(set(), None)
    }

    /// Values that making keys transforms.
    pub fn key_values() -> usize {
        (2 * bodies() + 4) * wide_set().primes.len() * DEGREE
    }

    /// The other side's keys, from exactly [`Galois::key_bytes`] bytes.
    ///
    /// # Errors
    /// Another number of bytes, or words that are not below their primes.
    pub fn read_keys(&self, encryptor: u64, bytes: &[u8]) -> Result<SwitchKeys, WireError> {
        let (expected, found) = (Galois::key_bytes(), bytes.len());
        if found != expected {
            return Err(WireError::Length { expected, found });
        }
        let each = bodies() * wire::poly_bytes(wide_set(), None);
        let ((first, second), zero) = (bytes[..2 * each].split_at(each), &bytes[2 * each..]);
        let public = self.publics(Public::Keys, encryptor);
        let hop = |hop: usize, bytes: &[u8]| -> Result<Hop, WireError> {
            let read = wire::polynomials(&self.wide, bodies(), bytes)?;
            let mask = |t: usize, digit: usize| self.wide.uniform(&public, number(hop, t, digit));
            let masks = (0..HOP).flat_map(|t| (0..digits()).map(move |digit| mask(t, digit)));
            Ok(Hop { number: hop, keys: read.into_iter().zip(masks).map(|(b, a)| [b, a]).collect() })
        };
        let hops = [hop(0, first)?, hop(1, second)?];
        let zero = wire::polynomials(&self.context, 1, zero)?.remove(0);
        let zero = [zero, self.zero_mask(encryptor)].map(|zero| self.times_special(&zero));
        Ok(SwitchKeys { encryptor, hops, zero, operands: 0 })
    }

    fn zero_mask(&self, encryptor: u64) -> Points {
        self.context.uniform(&self.publics(Public::Zero, encryptor), 0)
    }

    /// `P v` modulo q.
    pub(super) fn times_special(&self, v: &Points) -> Points {
        let q = &self.context;
        let mut out = q.zero();
        for prime in q.primes() {
            let (m, range) = (q.modulus(prime), q.range(prime));
            let special = m.factor(m.reduce(u128::from(special())));
            let terms = [(&v.words[range.clone()], special)];
            pointwise::combine(q.path(), m, &terms, 0, &mut out.words[range]);
        }
        out
    }
}

/// P.
pub(super) fn special() -> u64 {
    *wide_set().primes.last().expect("it has primes")
}

fn number(hop: usize, t: usize, digit: usize) -> u64 {
    if mutation::active("galois-publics-repeat") { 0 } else { ((hop * HOP + t) * digits() + digit) as u64 }
}

/// `e - a s` as values.
fn hide(context: &Context, a: &Points, s: &Points, prg: &mut Prg) -> Points {
    let mut errors = sample::errors(prg, DEGREE);
    mutation::constant("galois-key-without-error", &mut errors, OFFSET);
    let mut body = context.points(context.small(&errors));
    context.add(&mut body.words, &context.product(a, s).words, true);
    body
}

/// `b += P s` modulo one prime.
fn add_special(wide: &Context, digit: usize, s: &Points, b: &mut Points) {
    let (m, range) = (wide.modulus(digit), wide.range(digit));
    let special = m.reduce(u128::from(special()));
    let mut sum = Wiped::zeros(DEGREE);
    let terms = [(&s.words[range.clone()], m.factor(special)), (&b.words[range.clone()], m.factor(1))];
    pointwise::combine(wide.path(), m, &terms, 0, &mut sum);
    b.words[range].copy_from_slice(&sum);
}
