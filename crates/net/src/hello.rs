//! What peers compare before the first step.

use crate::fingerprint::hex;
use crate::frame::{cut, printable};
use crate::terms::Difference;
use crate::{NetError, Terms};

/// Number of the wire protocol that this build speaks; raised with every incompatible change.
pub const PROTOCOL_VERSION: u32 = 8;
/// Largest encoded greeting, in bytes.
pub const MAX_HELLO: usize = 4096;

// The first two bytes of a connection tell a greeting's length from a TLS record; see `Line::hear`.
const _: () = assert!(MAX_HELLO < 0x1403);

const MAGIC: &[u8; 8] = b"privetHi";
const MAX_TEXT: usize = 64;

/// A party's greeting: who it is and what it is about to run. Sent right after the TLS handshake.
///
/// Both sides compare; both get the same typed error when something differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// [`PROTOCOL_VERSION`] of the sender.
    pub protocol_version: u32,
    /// Release of the sender.
    pub privet_version: String,
    /// The sender's name in the deployment, for example `party 1` or `dealer`; at most 64 bytes.
    pub role: String,
    /// Hash of the plan.
    pub plan_hash: [u8; 32],
    /// What the connection is for, for example `online` or `keys`; at most 64 bytes.
    pub purpose: String,
    /// What the sender's deployment says that must be the same everywhere.
    pub terms: Terms,
}

impl Hello {
    /// A greeting of this build.
    pub fn new(role: &str, plan_hash: [u8; 32], purpose: &str, terms: Terms) -> Self {
        Self {
            protocol_version: PROTOCOL_VERSION,
            privet_version: env!("CARGO_PKG_VERSION").into(),
            role: role.into(),
            plan_hash,
            purpose: purpose.into(),
            terms,
        }
    }

    /// Magic, version, digest of the terms, plan hash, three texts with a length byte each, then the listed terms.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&self.protocol_version.to_le_bytes());
        out.extend_from_slice(self.terms.digest());
        out.extend_from_slice(&self.plan_hash);
        for text in [&self.privet_version, &self.role, &self.purpose] {
            let text = cut(text, MAX_TEXT);
            out.push(text.len() as u8);
            out.extend_from_slice(text.as_bytes());
        }
        self.terms.encode_list(&mut out);
        out
    }

    /// Reads what [`Hello::encode`] wrote. The error is a few words, without the peer.
    ///
    /// A greeting of another protocol version is read as far as the fields both have, so that the difference can be
    /// named; bytes after them are allowed only then.
    pub fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let mut rest = bytes;
        let mut take = |n: usize| -> Result<&[u8], &'static str> {
            let (head, tail) = rest.split_at_checked(n).ok_or("its greeting is cut short")?;
            rest = tail;
            Ok(head)
        };
        if bytes.len() > MAX_HELLO {
            return Err("its greeting is too long");
        }
        if take(MAGIC.len())? != MAGIC {
            return Err("its greeting has another form");
        }
        let mut version = [0; 4];
        version.copy_from_slice(take(4)?);
        let (mut digest, mut plan_hash) = ([0; 16], [0; 32]);
        digest.copy_from_slice(take(16)?);
        plan_hash.copy_from_slice(take(32)?);
        let mut text = || -> Result<String, &'static str> {
            let len = usize::from(take(1)?[0]);
            let bytes = take(len)?;
            if len > MAX_TEXT || std::str::from_utf8(bytes).is_err() {
                return Err("its greeting has a bad text");
            }
            Ok(printable(bytes))
        };
        let (privet_version, role, purpose) = (text()?, text()?, text()?);
        let protocol_version = u32::from_le_bytes(version);
        let terms = match protocol_version == PROTOCOL_VERSION {
            true => Terms::decode(digest, rest)?,
            false => Terms::default(),
        };
        Ok(Self { protocol_version, privet_version, role, plan_hash, purpose, terms })
    }

    /// Refuses a peer that runs something else.
    pub fn check(&self, theirs: &Self) -> Result<(), NetError> {
        let peer = theirs.role.clone();
        if self.protocol_version != theirs.protocol_version {
            let (ours, theirs) = (self.protocol_version, theirs.protocol_version);
            return Err(NetError::ProtocolVersion { peer, ours, theirs });
        }
        if self.privet_version != theirs.privet_version {
            let (ours, theirs) = (self.privet_version.clone(), theirs.privet_version.clone());
            return Err(NetError::PrivetVersion { peer, ours, theirs });
        }
        if self.plan_hash != theirs.plan_hash {
            let (ours, theirs) = (hex(&self.plan_hash[..6]), hex(&theirs.plan_hash[..6]));
            return Err(NetError::PlanMismatch { peer, ours, theirs });
        }
        if let Some(Difference { term, ours, theirs }) = self.terms.difference(&theirs.terms) {
            return Err(NetError::TermsMismatch { peer, term, ours, theirs });
        }
        if self.purpose != theirs.purpose {
            let (ours, theirs) = (self.purpose.clone(), theirs.purpose.clone());
            return Err(NetError::PurposeMismatch { peer, ours, theirs });
        }
        Ok(())
    }
}
