use crate::{PartyId, Security};
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
    /// A proof that does not hold. What a verifier says about an honest prover's can make it fail as well, so both are
    /// suspects; of two honest parties' errors only the corrupt one is in both.
    #[error(
        "the messages of {prover} before step {step} (layer {layer}), checked together with {verifier}, do not follow the \
         protocol: the job ends, nothing was revealed; one of these two or a link to it is at fault, the one that the \
         log of the other names as well; then start a new session"
    )]
    Dishonest {
        /// Whose messages.
        prover: PartyId,
        /// Who checked them as well.
        verifier: PartyId,
        /// The step at which this was found out.
        step: u32,
        /// The layer.
        layer: String,
    },
    /// Products with the session's weights that are not what their tags say. Any party but this one may have changed one, so both are suspects; of two
    /// honest parties' errors only the corrupt one is in both.
    #[error(
        "products with shared weights before step {step} (layer {layer}) are not what the weights' tags say: the job ends, nothing was \
         revealed; {before}, {after} or a link to one of them is at fault, the one that the log of the other names as well; then \
         start a new session"
    )]
    Products {
        /// One of both.
        before: PartyId,
        /// The other.
        after: PartyId,
        /// The step at which this was found out.
        step: u32,
        /// The layer.
        layer: String,
    },
    /// A session in which a run ended while somebody may have learnt something of its weights' keys.
    #[error(
        "a run of this session ended during its verification, and weights' tags serve no longer: start a new session"
    )]
    Spent,
    /// Two verifiers that did not send the same challenge.
    #[error(
        "{before} and {after} sent different challenges before step {step} (layer {layer}): one of them, or a link, does not \
         follow the protocol; the job ends, nothing was revealed"
    )]
    Challenge {
        /// One verifier.
        before: PartyId,
        /// The other.
        after: PartyId,
        /// The step at which this was found out.
        step: u32,
        /// The layer.
        layer: String,
    },
    /// A prover that says that it was told something else than both verifiers drew.
    #[error(
        "{prover} was told other coefficients or challenges by {verifier} before step {step} (layer {layer}) than both verifiers \
         drew, or says so: one of them, or a link, does not follow the protocol; the job ends, nothing was revealed"
    )]
    Report {
        /// Who was told it.
        prover: PartyId,
        /// Who told it.
        verifier: PartyId,
        /// The step at which this was found out.
        step: u32,
        /// The layer.
        layer: String,
    },
    /// Two parties that did not send the same share of the coins' key.
    #[error(
        "{before} and {after} sent different shares of the run's coins at step {step} (layer {layer}): one of them, or a link, \
         does not follow the protocol; the job ends, nothing was revealed"
    )]
    Coins {
        /// One holder of the share.
        before: PartyId,
        /// The other.
        after: PartyId,
        /// The step at which this was found out.
        step: u32,
        /// The layer.
        layer: String,
    },
    /// A party whose own checks failed, or that says so.
    #[error(
        "{peer} refused to go on at step {step} (layer {layer}): a check failed there; the job ends, nothing was revealed"
    )]
    Refused {
        /// Who refused.
        peer: PartyId,
        /// The step.
        step: u32,
        /// The layer.
        layer: String,
    },
    /// An operand that the caller did not give.
    #[error("{0}")]
    Missing(String),
    /// The copies of a shared component differ between its two holders.
    #[error(
        "step `{step}`: this party and {peer} were given different copies of what both should hold; the owner of an \
         input or {peer} does not follow the protocol"
    )]
    Inconsistent {
        /// What was compared.
        step: String,
        /// The other holder.
        peer: String,
    },
    /// Parties that do not take each other for the same.
    #[error(
        "step `{step}`: this party's deployment file says security = \"{mode}\", and {peer}'s does not: nothing is computed; make the \
         files of all parties alike and restart them"
    )]
    Mode {
        /// What was compared.
        step: String,
        /// The neighbour.
        peer: PartyId,
        /// This party's.
        mode: Security,
    },
    /// A neighbour did not keep to its commitment, or saw other contributions to the common key.
    #[error(
        "step {step}: the common key does not agree with {peer}'s; one of the other parties does not follow the \
         protocol, end the session and compare the versions on all sides"
    )]
    Agreement {
        /// What was compared.
        step: String,
        /// The neighbour.
        peer: String,
    },
}
