/// One of the three parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartyId(u8);

impl PartyId {
    /// All three, in order.
    pub const ALL: [PartyId; 3] = [PartyId(0), PartyId(1), PartyId(2)];

    /// Party `i`; `None` unless it is below 3.
    pub fn new(i: u8) -> Option<PartyId> {
        (i < 3).then_some(PartyId(i))
    }

    /// Its number.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The party after it, modulo 3: the one that holds this party's second component as its first.
    pub fn next(self) -> PartyId {
        PartyId((self.0 + 1) % 3)
    }

    /// The party before it, modulo 3: the one that holds this party's first component as its second.
    pub fn prev(self) -> PartyId {
        PartyId((self.0 + 2) % 3)
    }
}

impl std::fmt::Display for PartyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "party {}", self.0)
    }
}
