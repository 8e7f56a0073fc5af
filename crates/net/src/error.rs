//! Everything that can go wrong between parties, sorted by whose fault it is.

mod fault;

pub use fault::Fault;

use thiserror::Error;

use crate::Fingerprint;
use crate::frame::FrameError;

/// A failed network operation. Messages name the cause and the remedy; they hold nothing secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NetError {
    // The peer misbehaved, gave up or died.
    /// The parties are at different steps of the plan.
    #[error(
        "{peer} is at step {peer_step}, {me} at step {my_step}: the parties ran apart; \
         compare the versions and the plan on both sides and report this as a bug if they are equal"
    )]
    Desync {
        /// The peer's name.
        peer: String,
        /// The peer's step, with the peer's name for it.
        peer_step: String,
        /// This party's name.
        me: String,
        /// This party's step.
        my_step: String,
    },
    /// A message with another length than the step prescribes.
    #[error(
        "step {step}: {peer} sent a message of {found} bytes where {expected} were expected; \
         compare the versions and the plan on both sides"
    )]
    Length {
        /// The peer's name.
        peer: String,
        /// The step.
        step: String,
        /// Bytes expected.
        expected: u64,
        /// Bytes announced by the peer.
        found: u64,
    },
    /// A control message above its bound.
    #[error("step {step}: {peer} sent a message of {found} bytes, at most {max} are allowed here")]
    TooLong {
        /// The peer's name.
        peer: String,
        /// The step.
        step: String,
        /// Bytes allowed.
        max: u64,
        /// Bytes announced by the peer.
        found: u64,
    },
    /// A frame that is damaged, repeated, lost or malformed.
    #[error(
        "bad frame from {peer} at step {step}: {error}; run again, and if it repeats check the memory and the network \
         equipment between the hosts"
    )]
    BadFrame {
        /// The peer's name.
        peer: String,
        /// The step this party was at.
        step: String,
        /// What is wrong with it.
        error: FrameError,
    },
    /// TLS refused what came over the wire.
    #[error(
        "the encrypted connection to {peer} broke: {what}; the bytes were damaged or tampered with on the way"
    )]
    BadRecord {
        /// The peer's name.
        peer: String,
        /// The TLS library's reason.
        what: String,
    },
    /// The peer sent something else than its greeting.
    #[error("{peer} did not greet like a privet party: {what}; is another program listening there?")]
    BadHello {
        /// The peer's name or address.
        peer: String,
        /// What is wrong with it.
        what: String,
    },
    /// The peer gave up and said why.
    #[error("{peer} gave up: {reason}")]
    Aborted {
        /// The peer's name.
        peer: String,
        /// The peer's reason.
        reason: String,
    },
    /// The connection ended without a word.
    #[error(
        "{peer} ({address}) closed the connection at step {step}: its process ended or was killed; look at its log"
    )]
    Closed {
        /// The peer's name.
        peer: String,
        /// Where it was.
        address: String,
        /// The step this party was at.
        step: String,
    },
    /// The peer finished properly while this party still expected something.
    #[error(
        "{peer} ({address}) ended the session while this party was at step {step}; \
         compare the plan and the job on both sides, and look at its log"
    )]
    Ended {
        /// The peer's name.
        peer: String,
        /// Where it was.
        address: String,
        /// The step this party was at.
        step: String,
    },
    /// No sign of life.
    #[error(
        "nothing came from {peer} ({address}) for {seconds} s, not even a heartbeat, at step {step}: \
         its host or the network in between is down, or its process is stopped"
    )]
    Silent {
        /// The peer's name.
        peer: String,
        /// Where it was.
        address: String,
        /// The step this party was at.
        step: String,
        /// How long nothing came.
        seconds: u64,
    },
    /// Alive, but no further.
    #[error(
        "step {step}: {peer} is alive, but this party waited for it in vain for {seconds} s: look at its log for what \
         keeps it, and raise `timeouts.step` if its work takes that long"
    )]
    Stuck {
        /// The peer's name.
        peer: String,
        /// The step this party was at.
        step: String,
        /// How long it waited.
        seconds: u64,
    },
    /// Further, but too slowly.
    #[error(
        "step {step}: a message to or from {peer} moves slower than {kib_per_s} KiB/s: look at the network between the \
         hosts, and raise `timeouts.step` if it is that slow"
    )]
    Slow {
        /// The peer's name.
        peer: String,
        /// The step this party was at.
        step: String,
        /// The lowest rate allowed, in KiB a second.
        kib_per_s: u64,
    },
    /// Both parties wait for each other.
    #[error(
        "{peer} and this party wait for each other (this party at step {step}): \
         the plans disagree about who sends; report this as a bug"
    )]
    Stalled {
        /// The peer's name.
        peer: String,
        /// The step this party was at.
        step: String,
    },

    // The parties do not fit together.
    /// Different wire protocols.
    #[error(
        "{peer} speaks wire protocol {theirs}, this party {ours}: install the same privet version on both sides"
    )]
    ProtocolVersion {
        /// The peer's name.
        peer: String,
        /// This party's protocol.
        ours: u32,
        /// The peer's protocol.
        theirs: u32,
    },
    /// Different releases.
    #[error("{peer} runs privet {theirs}, this party runs {ours}: install the same version on both sides")]
    PrivetVersion {
        /// The peer's name.
        peer: String,
        /// This party's version.
        ours: String,
        /// The peer's version.
        theirs: String,
    },
    /// Different plans.
    #[error(
        "{peer} has plan {theirs}, this party has plan {ours}: give every party the same compiled plan file"
    )]
    PlanMismatch {
        /// The peer's name.
        peer: String,
        /// Start of this party's plan hash.
        ours: String,
        /// Start of the peer's plan hash.
        theirs: String,
    },
    /// Different deployments.
    #[error(
        "the deployment files differ: {term} is `{ours}` here and `{theirs}` at {peer}; give every node the same \
         deployment.toml"
    )]
    TermsMismatch {
        /// The peer's name.
        peer: String,
        /// The first term that differs.
        term: String,
        /// Its value here.
        ours: String,
        /// The peer's value.
        theirs: String,
    },
    /// Different ideas of what the connection is for.
    #[error(
        "{peer} connects for `{theirs}`, this party for `{ours}`: the jobs differ, or an address points to the wrong port"
    )]
    PurposeMismatch {
        /// The peer's name.
        peer: String,
        /// This party's purpose.
        ours: String,
        /// The peer's purpose.
        theirs: String,
    },
    /// The peer says it is somebody else than its certificate.
    #[error(
        "the peer calls itself `{claimed}`, but its certificate is pinned for `{pinned}`: correct the role or the pins"
    )]
    WrongRole {
        /// The role in its greeting.
        claimed: String,
        /// The names pinned for its certificate.
        pinned: String,
    },
    /// No common TLS version or cipher.
    #[error(
        "{peer} and this party have no TLS version or key exchange in common: privet speaks TLS 1.3 with X25519MLKEM768 \
         only; install the same version on both sides, or is it no privet party? ({what})"
    )]
    TlsVersion {
        /// The peer's address.
        peer: String,
        /// The TLS library's reason.
        what: String,
    },
    /// A peer that cannot exchange keys safely from future quantum computers.
    #[error(
        "{peer} does not offer the key exchange X25519MLKEM768, which privet requires: install the same version on both \
         sides; is it a privet party? ({what})"
    )]
    KeyExchange {
        /// The peer's address.
        peer: String,
        /// The TLS library's reason.
        what: String,
    },
    /// One side wants TLS, the other does not.
    #[error(
        "{peer} does not speak TLS here ({what}): is it another program, or was one side started with --insecure?"
    )]
    NotTls {
        /// The peer's address.
        peer: String,
        /// What came instead.
        what: String,
    },

    // Configuration on one of the sides.
    /// The peer's certificate is not the pinned one.
    #[error(
        "{peer} showed a certificate with fingerprint {found}, expected {expected}: if its certificate was renewed, \
         compare the new fingerprint with its operator by another way and pin it here; otherwise somebody is in between"
    )]
    WrongCertificate {
        /// The peer's name or address.
        peer: String,
        /// The pinned fingerprints.
        expected: String,
        /// The fingerprint of what came.
        found: Fingerprint,
    },
    /// The peer does not know this party's certificate.
    #[error(
        "{peer} refused this party's certificate (fingerprint {ours}): {what}; \
         ask its operator to pin this fingerprint, and check the certificate's dates with `privet doctor`"
    )]
    CertificateRefused {
        /// The peer's name or address.
        peer: String,
        /// This party's fingerprint.
        ours: Fingerprint,
        /// The TLS alert.
        what: String,
    },
    /// The peer's certificate is expired or not valid yet.
    #[error(
        "the certificate of {peer} is valid from {from} to {until} only: renew it with `privet certs`, \
         or correct the clock of the host that is wrong"
    )]
    CertificateDates {
        /// The peer's name or address.
        peer: String,
        /// First day.
        from: String,
        /// Last day.
        until: String,
    },
    /// The peer sent no certificate.
    #[error("{peer} showed no certificate: every party needs one, make it with `privet certs`")]
    NoCertificate {
        /// The peer's address.
        peer: String,
    },
    /// A certificate or key file that cannot be used.
    #[error("{path}: {what}; make a new identity with `privet certs` or correct the path")]
    Identity {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// A setting that does not parse.
    #[error("{what} `{value}` is not understood: {expected}")]
    Setting {
        /// Which setting.
        what: &'static str,
        /// Its value.
        value: String,
        /// What would be.
        expected: &'static str,
    },
    /// Somebody else listens there.
    #[error(
        "cannot listen on {address}: the port is in use; stop the other process (`ss -ltnp` lists it) or choose another port"
    )]
    PortInUse {
        /// The address.
        address: String,
    },
    /// An address that cannot be used here.
    #[error("cannot use the address {address}: {what}; write it as host:port")]
    Address {
        /// The address.
        address: String,
        /// Why not.
        what: String,
    },

    // The network.
    /// The host answers, nobody listens.
    #[error(
        "nobody listens at {address} (tried for {seconds} s): start the peer there, or correct the address or the firewall"
    )]
    Refused {
        /// The address.
        address: String,
        /// How long it was tried.
        seconds: u64,
    },
    /// No connection, or no greeting, in time.
    #[error(
        "timed out after {seconds} s while {doing}: is the peer running, and is the port open in the firewall?"
    )]
    Timeout {
        /// What was waited for.
        doing: String,
        /// For how long.
        seconds: u64,
    },
    /// More callers at once than are taken in.
    #[error(
        "{peer} was turned away before it had authenticated: {callers} callers were at it at once, and of the address \
         with the most it was the oldest; let only the deployment's addresses through the firewall"
    )]
    Crowded {
        /// The caller's address.
        peer: String,
        /// How many may be at it at once.
        callers: u64,
    },
    /// More connections of one place than it may have.
    #[error(
        "{peer} has {most} connections to this party already, the most it may have: end some of its processes, or wait \
         until they are through"
    )]
    TooMany {
        /// The place.
        peer: String,
        /// How many it may have.
        most: u64,
    },
    /// Another failure of the operating system's network.
    #[error("network error while {doing}: {what}")]
    Io {
        /// What was tried.
        doing: String,
        /// The system's reason.
        what: String,
    },
    /// The channel was closed by this party earlier.
    #[error("this party closed its channel to {peer} earlier: {reason}")]
    ClosedHere {
        /// The peer's name.
        peer: String,
        /// Why.
        reason: String,
    },
}
