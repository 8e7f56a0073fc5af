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
}

impl Pulse {
    pub fn encode(self) -> [u8; 17] {
        let mut out = [0; 17];
        out[0] = self.waiting.into();
        out[1..9].copy_from_slice(&self.sent.to_le_bytes());
        out[9..].copy_from_slice(&self.received.to_le_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (waiting, rest) = bytes.split_first()?;
        let (sent, received) = rest.split_first_chunk::<8>()?;
        let received: &[u8; 8] = received.try_into().ok()?;
        let (sent, received) = (u64::from_le_bytes(*sent), u64::from_le_bytes(*received));
        Some(Self { waiting: *waiting == 1, sent, received })
    }
}
