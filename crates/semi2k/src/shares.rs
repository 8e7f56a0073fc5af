//! Shares as preprocessing sees them: of words (they add up) and of bits (their XOR), for every party held here.
//!
//! A party holds its own share, a helper those of all parties. What is written over [`Words`] and [`Bits`] does not see the
//! difference: each operation here is local, share by share, and only party 0 adds what is public.

use privet_family::Secret;
use privet_ring::Ring;
use std::ops::Range;

/// The parties whose shares are held in one place: one party's own, or all at a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seats {
    first: usize,
    count: usize,
}

impl Seats {
    /// One party's.
    pub const fn one(party: usize) -> Seats {
        Seats { first: party, count: 1 }
    }

    /// All of n parties'.
    pub const fn all(n: usize) -> Seats {
        Seats { first: 0, count: n }
    }

    /// The parties' numbers, in the order of their shares.
    pub fn parties(self) -> Range<usize> {
        self.first..self.first + self.count
    }

    /// How many shares of everything are held.
    pub const fn len(self) -> usize {
        self.count
    }

    /// Never.
    pub const fn is_empty(self) -> bool {
        self.count == 0
    }

    /// Whether the share at this place is party 0's, who alone adds what is public.
    pub const fn leads(self, place: usize) -> bool {
        self.first + place == 0
    }
}

/// Additive shares of ring elements, reduced; zeroed when dropped.
#[derive(Clone, Debug)]
pub struct Words {
    seats: Seats,
    ring: Ring,
    shares: Vec<Secret>,
}

impl Words {
    /// From one share for every seat, each reduced to the ring.
    ///
    /// # Panics
    /// Where shares are missing, or are not equally long.
    pub fn new(seats: Seats, ring: Ring, shares: Vec<Secret>) -> Words {
        assert_eq!(shares.len(), seats.len(), "one share a seat");
        assert!(shares.windows(2).all(|pair| pair[0].len() == pair[1].len()), "equal lengths");
        Words { seats, ring, shares }
    }

    /// Shares of zeros that are all zero.
    pub fn zeros(seats: Seats, ring: Ring, n: usize) -> Words {
        Words::public(seats, ring, &vec![0; n])
    }

    /// Public elements: party 0's share is the value, the others' are zero.
    pub fn public(seats: Seats, ring: Ring, value: &[u64]) -> Words {
        let share = |place| match seats.leads(place) {
            true => value.iter().map(|v| ring.wrap(*v)).collect(),
            false => Secret::new(vec![0; value.len()]),
        };
        Words { seats, ring, shares: (0..seats.len()).map(share).collect() }
    }

    /// Who is held.
    pub fn seats(&self) -> Seats {
        self.seats
    }

    /// The ring.
    pub fn ring(&self) -> Ring {
        self.ring
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.shares[0].len()
    }

    /// True when there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shares, seat by seat.
    pub fn shares(&self) -> &[Secret] {
        &self.shares
    }

    /// The one share that a party holds.
    ///
    /// # Panics
    /// At a helper.
    pub fn own(&self) -> &Secret {
        assert_eq!(self.shares.len(), 1, "a party's");
        &self.shares[0]
    }

    /// A map of every share by itself, into `ring`; it must be linear, so that results are shares of the map of the value.
    pub fn map(&self, ring: Ring, f: impl Fn(&[u64]) -> Vec<u64>) -> Words {
        let shares = self.shares.iter().map(|share| {
            let mut share = Secret::new(f(share));
            share.iter_mut().for_each(|s| *s = ring.wrap(*s));
            share
        });
        Words::new(self.seats, ring, shares.collect())
    }

    /// A linear map of several operands' shares, party by party.
    pub fn map_all(operands: &[&Words], ring: Ring, f: impl Fn(&[&[u64]]) -> Vec<u64>) -> Words {
        let seats = operands[0].seats;
        let share = |place: usize| {
            let shares: Vec<&[u64]> = operands.iter().map(|x| x.shares[place].as_slice()).collect();
            let mut share = Secret::new(f(&shares));
            share.iter_mut().for_each(|s| *s = ring.wrap(*s));
            share
        };
        Words::new(seats, ring, (0..seats.len()).map(share).collect())
    }

    fn zip(&self, other: &Words, f: impl Fn(u64, u64) -> u64) -> Words {
        assert_eq!((self.seats, self.len()), (other.seats, other.len()), "operands of one kind");
        let each = |x: &[&[u64]]| x[0].iter().zip(x[1]).map(|(a, b)| f(*a, *b)).collect();
        Words::map_all(&[self, other], self.ring, each)
    }

    /// The sum, in this one's ring, which must not be the larger one.
    pub fn add(&self, other: &Words) -> Words {
        assert!(self.ring.bits() <= other.ring.bits());
        self.zip(other, u64::wrapping_add)
    }

    /// The difference, in this one's ring, which must not be the larger one.
    pub fn sub(&self, other: &Words) -> Words {
        assert!(self.ring.bits() <= other.ring.bits());
        self.zip(other, u64::wrapping_sub)
    }

    /// Times a public number.
    pub fn times(&self, factor: u64) -> Words {
        self.map(self.ring, |x| x.iter().map(|x| x.wrapping_mul(factor)).collect())
    }

    /// The same modulo a ring that is not larger.
    pub fn reduced(&self, ring: Ring) -> Words {
        assert!(ring.bits() <= self.ring.bits());
        self.map(ring, <[u64]>::to_vec)
    }

    /// `2^shift x` in a ring of at most `shift` more bits.
    pub fn up(&self, shift: u32, ring: Ring) -> Words {
        assert!(ring.bits() <= self.ring.bits() + shift);
        self.map(ring, |x| x.iter().map(|x| x.checked_shl(shift).unwrap_or(0)).collect())
    }

    /// Every share without its `shift` low bits: no map of the value, but the mask of a truncation is one of the shares.
    pub fn truncated(&self, shift: u32, ring: Ring) -> Words {
        self.map(ring, |x| x.iter().map(|x| x >> shift).collect())
    }

    /// Elements `range`.
    pub fn slice(&self, range: Range<usize>) -> Words {
        self.map(self.ring, |x| x[range.clone()].to_vec())
    }
}

/// XOR shares of bits in words of 64, padding included: its bits are as any others. Zeroed when dropped.
#[derive(Clone, Debug)]
pub struct Bits {
    seats: Seats,
    shares: Vec<Secret>,
}

impl Bits {
    /// From one share for every seat.
    ///
    /// # Panics
    /// Where shares are missing, or are not equally long.
    pub fn new(seats: Seats, shares: Vec<Secret>) -> Bits {
        assert_eq!(shares.len(), seats.len(), "one share a seat");
        assert!(shares.windows(2).all(|pair| pair[0].len() == pair[1].len()), "equal lengths");
        Bits { seats, shares }
    }

    /// Who is held.
    pub fn seats(&self) -> Seats {
        self.seats
    }

    /// Words of 64 bits.
    pub fn words(&self) -> usize {
        self.shares[0].len()
    }

    /// The shares, seat by seat.
    pub fn shares(&self) -> &[Secret] {
        &self.shares
    }

    /// The one share that a party holds.
    ///
    /// # Panics
    /// At a helper.
    pub fn own(&self) -> &Secret {
        assert_eq!(self.shares.len(), 1, "a party's");
        &self.shares[0]
    }

    /// A map of every share by itself; it must be linear over bits.
    pub fn map(&self, f: impl Fn(&[u64]) -> Vec<u64>) -> Bits {
        Bits::new(self.seats, self.shares.iter().map(|share| Secret::new(f(share))).collect())
    }

    /// Bit by bit.
    pub fn xor(&self, other: &Bits) -> Bits {
        assert_eq!((self.seats, self.words()), (other.seats, other.words()), "operands of one kind");
        let pairs = self.shares.iter().zip(&other.shares);
        let sum = |(a, b): (&Secret, &Secret)| a.iter().zip(b.iter()).map(|(a, b)| a ^ b).collect();
        Bits::new(self.seats, pairs.map(sum).collect())
    }

    /// The other bits.
    pub fn not(&self) -> Bits {
        let mut out = self.clone();
        for (place, share) in out.shares.iter_mut().enumerate() {
            if self.seats.leads(place) {
                share.iter_mut().for_each(|w| *w = !*w);
            }
        }
        out
    }

    /// One behind the other.
    pub fn concat(parts: &[&Bits]) -> Bits {
        let seats = parts[0].seats;
        let share = |place: usize| {
            Secret::new(
                parts.iter().flat_map(|part| part.shares[place].iter().copied()).collect::<Vec<u64>>(),
            )
        };
        Bits::new(seats, (0..seats.len()).map(share).collect())
    }

    /// Words `range`.
    pub fn slice(&self, range: Range<usize>) -> Bits {
        self.map(|x| x[range.clone()].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(ring: Ring, shares: [&[u64]; 3]) -> Words {
        Words::new(Seats::all(3), ring, shares.iter().map(|s| Secret::new(s.to_vec())).collect())
    }

    fn sum(x: &Words) -> Vec<u64> {
        let ring = x.ring();
        (0..x.len())
            .map(|i| ring.wrap(x.shares().iter().fold(0, |sum: u64, s| sum.wrapping_add(s[i]))))
            .collect()
    }

    #[test]
    fn local_maps_are_maps_of_the_value() {
        let ring = Ring::new(8);
        let (x, y) =
            (words(ring, [&[200, 1], &[100, 2], &[3, 4]]), words(ring, [&[9, 0], &[0, 250], &[1, 1]]));
        assert_eq!(sum(&x), [47, 7]);
        assert_eq!(sum(&x.add(&y)), [57, 2]);
        assert_eq!(sum(&x.sub(&y)), [37, 12]);
        assert_eq!(sum(&x.times(3)), [141, 21]);
        assert_eq!(sum(&x.reduced(Ring::new(4))), [15, 7]);
        assert_eq!(sum(&x.up(4, Ring::new(12))), [47 << 4, 7 << 4]);
        assert_eq!(sum(&x.add(&Words::public(Seats::all(3), ring, &[1, 255]))), [48, 6]);
        assert_eq!(sum(&x.slice(1..2)), [7]);
        assert_eq!(x.truncated(2, Ring::new(6)).shares()[0].as_slice(), [50, 0]);
    }

    #[test]
    fn bits_are_flipped_once() {
        let shares = |v: [u64; 2]| Secret::new(v.to_vec());
        let x = Bits::new(Seats::all(2), vec![shares([5, 0]), shares([6, 1])]);
        let value = |x: &Bits| x.shares()[0].iter().zip(x.shares()[1].iter()).map(|(a, b)| a ^ b).collect();
        let value = |x: &Bits| -> Vec<u64> { value(x) };
        assert_eq!(value(&x.not()), [!3, !1]);
        assert_eq!(value(&x.xor(&x.not())), [u64::MAX; 2]);
        assert_eq!(value(&Bits::concat(&[&x, &x])), [3, 1, 3, 1]);
        assert_eq!(value(&x.slice(1..2)), [1]);
        let at_1 = Bits::new(Seats::one(1), vec![shares([6, 1])]);
        assert_eq!(at_1.not().own().as_slice(), [6, 1], "party 0 flips");
    }
}
