//! Bytes of every party, so that those of the busiest one are known of sums as well.

use serde::{Serialize, Serializer};
use std::iter::Sum;
use std::ops::{AddAssign, SubAssign};

/// Bytes that each party sends, or that are stored for it. Parties differ in families of two and of three alone. In JSON it is
/// the number of the party with most.
///
/// Sums are party by party: where one party sends more at one node, and another one at the next, neither sends both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerParty([u64; 3]);

impl PerParty {
    /// As many of every party, however many parties there are.
    pub const fn alike(bytes: u64) -> PerParty {
        PerParty([bytes; 3])
    }

    /// With each of two parties in the other's place.
    pub fn exchanged(self) -> PerParty {
        let [first, second, _] = self.0;
        PerParty::from([second, first])
    }

    /// Of the party with most.
    pub fn most(self) -> u64 {
        let [a, b, c] = self.0;
        a.max(b).max(c)
    }

    /// Of the party with least.
    pub fn least(self) -> u64 {
        let [a, b, c] = self.0;
        a.min(b).min(c)
    }
}

/// Of two parties.
impl From<[u64; 2]> for PerParty {
    fn from([first, second]: [u64; 2]) -> PerParty {
        PerParty([first, second, second])
    }
}

/// Of three.
impl From<[u64; 3]> for PerParty {
    fn from(each: [u64; 3]) -> PerParty {
        PerParty(each)
    }
}

impl AddAssign for PerParty {
    fn add_assign(&mut self, other: PerParty) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, bytes)| *sum += bytes);
    }
}

impl Sum for PerParty {
    fn sum<I: Iterator<Item = PerParty>>(all: I) -> PerParty {
        let mut sum = PerParty::default();
        all.for_each(|bytes| sum += bytes);
        sum
    }
}

/// Of what is in the sum.
impl SubAssign for PerParty {
    fn sub_assign(&mut self, other: PerParty) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, bytes)| *sum -= bytes);
    }
}

impl Serialize for PerParty {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.most())
    }
}
