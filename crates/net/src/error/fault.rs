//! Who can mend an error, and where it happened.

use super::NetError;
use crate::Step;

/// Whose turn it is to act on a [`NetError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The peer broke the protocol, gave up, or died: look at the peer's log.
    Peer,
    /// Both sides work, but not with each other: different versions, plans, sessions.
    Incompatible,
    /// Something on this machine is set up wrong.
    Configuration,
    /// Nobody answers, or the connection is lost.
    Network,
}

impl NetError {
    /// Whose turn it is to act.
    pub fn fault(&self) -> Fault {
        use NetError::*;
        match self {
            Desync { .. }
            | Length { .. }
            | TooLong { .. }
            | BadFrame { .. }
            | BadRecord { .. }
            | BadHello { .. }
            | Aborted { .. }
            | Closed { .. }
            | Ended { .. }
            | Stalled { .. }
            | Stuck { .. }
            | Slow { .. }
            | TooMany { .. } => Fault::Peer,
            ProtocolVersion { .. }
            | PrivetVersion { .. }
            | PlanMismatch { .. }
            | TermsMismatch { .. }
            | PurposeMismatch { .. }
            | WrongRole { .. }
            | TlsVersion { .. }
            | KeyExchange { .. }
            | NotTls { .. } => Fault::Incompatible,
            WrongCertificate { .. }
            | CertificateRefused { .. }
            | CertificateDates { .. }
            | NoCertificate { .. }
            | Identity { .. }
            | Setting { .. }
            | PortInUse { .. }
            | Address { .. }
            | ClosedHere { .. } => Fault::Configuration,
            Silent { .. } | Refused { .. } | Timeout { .. } | Crowded { .. } | Io { .. } => Fault::Network,
        }
    }

    /// The error as seen by a caller at `step`: a lost or damaged connection is reported with the step it interrupts.
    pub(crate) fn at(mut self, at: &Step) -> Self {
        if let Self::BadFrame { step, .. }
        | Self::Closed { step, .. }
        | Self::Ended { step, .. }
        | Self::Silent { step, .. }
        | Self::Stuck { step, .. }
        | Self::Slow { step, .. }
        | Self::Stalled { step, .. } = &mut self
        {
            *step = at.to_string();
        }
        self
    }
}
