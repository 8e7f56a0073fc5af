//! What a run costs and opens, node by node: what every family accounts for.

use serde::{Deserialize, Serialize};

/// What one node cost one party (or, at a dealer, the larger of the parties' streams).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeStats {
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Bytes of key frames.
    pub key_bytes: u64,
    /// Payload bytes sent to the other parties, all of them together.
    pub sent_bytes: u64,
    /// Rounds: points at which the parties wait for each other's messages.
    pub rounds: u64,
    /// Comparison keys walked.
    pub comparisons: u64,
    /// AES calls of comparison walks.
    pub aes_calls: u64,
    /// Ring multiplications of linear layers, all products of a party together.
    pub macs: u64,
}

impl NodeStats {
    /// Field by field, the larger of two parties' figures.
    pub fn larger(&self, o: &NodeStats) -> NodeStats {
        NodeStats {
            seconds: self.seconds.max(o.seconds),
            key_bytes: self.key_bytes.max(o.key_bytes),
            sent_bytes: self.sent_bytes.max(o.sent_bytes),
            rounds: self.rounds.max(o.rounds),
            comparisons: self.comparisons.max(o.comparisons),
            aes_calls: self.aes_calls.max(o.aes_calls),
            macs: self.macs.max(o.macs),
        }
    }

    /// Add another node's figures.
    pub fn add(&mut self, o: &NodeStats) {
        self.seconds += o.seconds;
        self.key_bytes += o.key_bytes;
        self.sent_bytes += o.sent_bytes;
        self.rounds += o.rounds;
        self.comparisons += o.comparisons;
        self.aes_calls += o.aes_calls;
        self.macs += o.macs;
    }
}

/// Why a value became public to somebody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpeningKind {
    /// Uniform because of a mask that nobody but the dealer knows: reveals nothing.
    Masked,
    /// An output, to the receiver named.
    Revealed {
        /// The role that learns it.
        to: String,
    },
}

/// One opening, for the audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// Step id.
    pub step: u32,
    /// Step name: layer and what is opened.
    pub what: String,
    /// Bits opened.
    pub bits: u64,
    /// Masked or revealed.
    pub kind: OpeningKind,
}
