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

/// A wire of the masked circuit: a node's value (`sub` 0) or one inside its gate.
///
/// Seeds are derived by wire, so every wire of a record has its own masks and tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wire(u64);

impl Wire {
    const SUB_BITS: u32 = 16;

    /// The value of node `node`.
    pub const fn node(node: usize) -> Wire {
        Wire((node as u64) << Self::SUB_BITS)
    }

    /// Wire `sub` inside this node's gate; `sub` below 2^16, 0 being the value itself.
    pub const fn inner(self, sub: usize) -> Wire {
        assert!(sub < 1 << Self::SUB_BITS);
        Wire(((self.0 >> Self::SUB_BITS) << Self::SUB_BITS) | sub as u64)
    }

    /// The evaluator (0 or 1) whose share of frame `frame` of what is dealt for this wire is expanded from its seed, while
    /// the other one is sent its share. A wire deals several parts: table words (0), planes of a comparison (1 and on). Nodes
    /// begin in turn, and so do parts, so that what fits in one frame loads both streams as well.
    pub(crate) const fn expander(self, part: usize, frame: usize) -> usize {
        (((self.0 >> Self::SUB_BITS) as usize) ^ part ^ frame) & 1
    }

    /// The index that seeds are derived with.
    pub const fn index(self) -> u64 {
        self.0
    }
}
