//! Which party has a role for which elements, so that all send the same amount.

use crate::PartyId;
use std::ops::Range;

/// A vector in three parts, cut at multiples of 64 elements; party j has the role for part j.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    n: usize,
    /// Words of a bit plane at which the parts begin and end.
    cuts: [usize; 4],
}

/// Something for each part, named by what this party is in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Roles<T> {
    /// The part that this party deals.
    pub mine: T,
    /// The part that the party before deals. This one holds the second dealt component, and what the dealer does not know.
    pub before: T,
    /// The part that the party after deals. This one holds what the dealer does not know, and the first dealt component.
    pub after: T,
}

/// What a party is in one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Mine,
    Before,
    After,
}

impl Parts {
    /// The parts of a vector of `n` elements.
    pub fn of(n: usize) -> Parts {
        let words = n.div_ceil(64);
        Parts { n, cuts: std::array::from_fn(|j| (words * j).div_ceil(3)) }
    }

    /// Elements of all parts.
    pub fn len(&self) -> usize {
        self.n
    }

    /// The elements of every part, as party `id` sees them.
    pub fn elements(&self, id: PartyId) -> Roles<Range<usize>> {
        let element = |word: usize| (64 * word).min(self.n);
        self.words(id).map(|w| element(w.start)..element(w.end))
    }

    /// The words of every part in a bit plane, as party `id` sees them.
    pub fn words(&self, id: PartyId) -> Roles<Range<usize>> {
        let part = |j: PartyId| self.cuts[j.index()]..self.cuts[j.index() + 1];
        Roles { mine: part(id), before: part(id.prev()), after: part(id.next()) }
    }
}

impl<T> Roles<T> {
    pub fn map<U>(self, f: impl Fn(T) -> U) -> Roles<U> {
        Roles { mine: f(self.mine), before: f(self.before), after: f(self.after) }
    }

    /// The same where the party after the dealer is in the dealer's place.
    pub fn turned(self) -> Roles<T> {
        Roles { mine: self.before, before: self.after, after: self.mine }
    }
}

impl Role {
    /// What party `id` is in part `j`.
    pub fn of(id: PartyId, j: PartyId) -> Role {
        match (id.index() + 3 - j.index()) % 3 {
            0 => Role::Mine,
            1 => Role::Before,
            _ => Role::After,
        }
    }
}

#[test]
fn parts_cover_a_vector() {
    for n in [0, 1, 64, 65, 128, 129, 1000, 12345] {
        let parts = Parts::of(n);
        let [a, b, c] = PartyId::ALL.map(|id| parts.elements(id).mine);
        assert_eq!((a.start, a.end, b.end, c.end), (0, b.start, c.start, n));
        assert!(b.start.is_multiple_of(64) || b.start == n);
        assert!(a.len() + 64 >= b.len() && b.len() + 64 >= c.len() && c.len() + 128 > a.len());
        for id in PartyId::ALL {
            assert_eq!(parts.elements(id).before, parts.elements(id.prev()).mine);
            assert_eq!(parts.elements(id).after, parts.elements(id.next()).mine);
        }
    }
}
