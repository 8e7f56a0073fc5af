//! The content of a heartbeat.

/// What a heartbeat says about its sender.
#[derive(Clone, Copy)]
pub(super) struct Pulse {
    /// The protocol waits for the peer, and nothing is on its way to it.
    pub waiting: bool,
    /// Data frames sent so far.
    pub sent: u64,
    /// Data frames received so far.
    pub received: u64,
    /// Turns of whoever serves the peer, where the connection shows them.
    pub turns: u64,
}

impl Pulse {
    pub fn encode(self) -> [u8; 25] {
        let mut out = [0; 25];
        out[0] = self.waiting.into();
        out[1..9].copy_from_slice(&self.sent.to_le_bytes());
        out[9..17].copy_from_slice(&self.received.to_le_bytes());
        out[17..].copy_from_slice(&self.turns.to_le_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (waiting, rest) = bytes.split_first()?;
        let (words, []) = rest.as_chunks::<8>() else { return None };
        let &[sent, received, turns] = words else { return None };
        let [sent, received, turns] = [sent, received, turns].map(u64::from_le_bytes);
        Some(Self { waiting: *waiting == 1, sent, received, turns })
    }
}
