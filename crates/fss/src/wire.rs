pub use privet_family::Wire;

/// One of the two evaluators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartyId {
    /// Evaluator 0.
    P0,
    /// Evaluator 1.
    P1,
}

impl PartyId {
    /// Both, in order.
    pub const BOTH: [PartyId; 2] = [PartyId::P0, PartyId::P1];

    /// 0 or 1.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The other one.
    pub const fn peer(self) -> PartyId {
        match self {
            PartyId::P0 => PartyId::P1,
            PartyId::P1 => PartyId::P0,
        }
    }

    /// From 0 or 1.
    pub const fn from_index(i: u8) -> Option<PartyId> {
        match i {
            0 => Some(PartyId::P0),
            1 => Some(PartyId::P1),
            _ => None,
        }
    }
}

/// Who expands what is dealt for a wire.
pub(crate) trait Turns {
    /// The evaluator (0 or 1) whose share of frame `frame` of what is dealt for this wire is expanded from its seed, while
    /// the other one is sent its share. A wire deals several parts: table words (0), planes of a comparison (1 and on). Nodes
    /// begin in turn, and so do parts, so that what fits in one frame loads both streams as well.
    fn expander(self, part: usize, frame: usize) -> usize;
}

impl Turns for Wire {
    fn expander(self, part: usize, frame: usize) -> usize {
        (self.of_node() ^ part ^ frame) & 1
    }
}
