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

    /// The node whose wire it is.
    pub const fn of_node(self) -> usize {
        (self.0 >> Self::SUB_BITS) as usize
    }

    /// The index that seeds are derived with.
    pub const fn index(self) -> u64 {
        self.0
    }
}
