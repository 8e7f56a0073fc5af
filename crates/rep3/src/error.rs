use privet_net::NetError;
use privet_ring::PackError;
use thiserror::Error;

/// Why a run ended early. Nothing was revealed.
#[derive(Debug, Error)]
pub enum RunError {
    /// Another party or the way to it.
    #[error("{0}")]
    Net(#[from] NetError),
    /// A message that does not hold what was announced.
    #[error("step `{step}`, from {peer}: {source}")]
    Pack {
        /// Layer and what was exchanged.
        step: String,
        /// The sender.
        peer: String,
        /// Why.
        source: PackError,
    },
    /// An operand that the caller did not give.
    #[error("{0}")]
    Missing(String),
}
