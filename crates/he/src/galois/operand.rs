//! An operand encrypted, and its masks' digits.

use super::keys::digits;
use super::{DEGREE, Galois, GaloisLayout, Public, Secret, SwitchKeys, operand_plain};
use crate::context::{Coeff, Points};
use crate::encode;
use crate::mutation;
use crate::pointwise;
use crate::sample::Small;
use crate::wire::{self, WireError};
use privet_prg::{Prg, Seed, Wiped};

/// An encrypted operand's polynomial, ready to be switched: P times its body modulo q, and its mask's digits modulo q P.
pub(super) struct Ready {
    pub body: Points,
    pub digits: Vec<Points>,
}

impl Galois {
    /// The operand's message. `prg` is the encryptor's own.
    ///
    /// Panics where the number of values is another.
    pub fn encrypt(&self, secret: &mut Secret, layout: &GaloisLayout, x: &[u64], prg: &mut Prg) -> Vec<u8> {
        assert_eq!(x.len(), layout.shape.groups * layout.shape.m * layout.shape.k, "number of values");
        let (first, plain) = (secret.operands, operand_plain(layout.ring, layout.width));
        secret.operands += layout.operands() as u64;
        let seeds: Vec<Seed> = (0..layout.operands()).map(|_| prg.seed()).collect();
        let q = &self.context;
        let bodies = q.each(seeds.len(), |i| {
            let mut prg = seeds[i].stream();
            let packed = Small::new(layout.pack(i, x));
            let mut body = q.points(encode::message(q, plain, &packed, &mut prg));
            let a = self.operand_mask(secret.encryptor, first + i as u64);
            q.add(&mut body.words, &q.product(&a, &secret.operand).words, true);
            body
        });
        wire::put_polynomials(&bodies)
    }

    fn operand_mask(&self, encryptor: u64, number: u64) -> Points {
        let number = if mutation::active("galois-operands-alike") { 0 } else { number };
        self.context.uniform(&self.publics(Public::Operands, encryptor), number)
    }

    /// The other side's operand, from exactly [`GaloisLayout::operand_bytes`] bytes.
    pub(super) fn ready(
        &self,
        keys: &mut SwitchKeys,
        layout: &GaloisLayout,
        bytes: &[u8],
    ) -> Result<Vec<Ready>, WireError> {
        let bodies = wire::polynomials(&self.context, layout.operands(), bytes)?;
        let first = keys.operands;
        keys.operands += bodies.len() as u64;
        Ok(self.context.each(bodies.len(), |i| {
            let body = self.times_special(&bodies[i]);
            let mask = self.operand_mask(keys.encryptor, first + i as u64);
            let mask = self.context.coefficients(mask);
            Ready { body, digits: self.digits(&mask) }
        }))
    }

    /// A mask modulo q as sums of digits: what it is modulo each prime, nearest to 0, modulo all primes of q P.
    pub(super) fn digits(&self, mask: &Coeff) -> Vec<Points> {
        let (q, wide) = (&self.context, &self.wide);
        let digit = |j: usize| {
            let m = q.modulus(j);
            let half = m.p() >> 1;
            // from [-half, half] to [0, 2 half]
            let mut shifted = Wiped::zeros(DEGREE);
            let own = [(&mask.words[q.range(j)], m.factor(1))];
            pointwise::combine(q.path(), m, &own, half, &mut shifted);
            let digit = wide.combine(DEGREE, |m| {
                let half = m.reduce(u128::from(half));
                (vec![(&shifted[..], m.factor(1))], m.reduce(u128::from(m.p() - half)))
            });
            wide.points(digit)
        };
        (0..digits()).map(digit).collect()
    }
}
