//! Errors of connections.

use crate::events::{Bytes, Count, Name, Peer, Reason, Secs, StepName, Term, Told, Why, reason};
use crate::session::control::TalkError;
use privet_net::NetError;
use std::time::Duration;

fn secs(n: u64) -> Secs {
    Secs::of(Duration::from_secs(n))
}

impl Why for NetError {
    fn why(&self) -> Reason {
        match self {
            NetError::Desync { peer, peer_step, my_step, .. } => reason!(
                "net.desync",
                "{peer} is at step {theirs}, this node at step {ours}: compare the versions and the plan on both sides",
                peer = Peer::of(peer),
                theirs = StepName::of(peer_step),
                ours = StepName::of(my_step),
            ),
            NetError::Length { peer, step, expected, found } => reason!(
                "net.length",
                "step {step}: {peer} sent a message of {found} where {expected} were expected",
                step = StepName::of(step),
                peer = Peer::of(peer),
                found = Bytes::of(*found),
                expected = Bytes::of(*expected),
            ),
            NetError::TooLong { peer, step, max, found } => reason!(
                "net.too_long",
                "step {step}: {peer} sent a message of {found}, at most {max} are allowed",
                step = StepName::of(step),
                peer = Peer::of(peer),
                found = Bytes::of(*found),
                max = Bytes::of(*max),
            ),
            NetError::BadFrame { peer, step, .. } => reason!(
                "net.bad_frame",
                "a frame from {peer} at step {step} is damaged, repeated or lost: run again, and if it repeats check the \
                 network between the hosts",
                peer = Peer::of(peer),
                step = StepName::of(step),
            ),
            NetError::BadRecord { peer, what } => reason!(
                "net.bad_record",
                "the encrypted connection to {peer} broke ({what}): the bytes were damaged or tampered with on the way",
                peer = Peer::of(peer),
                what = Told::of(what),
            ),
            NetError::BadHello { peer, what } => reason!(
                "net.bad_hello",
                "{peer} did not greet like a privet party ({what})",
                peer = Peer::of(peer),
                what = Told::of(what),
            ),
            NetError::Aborted { peer, reason } => {
                reason!(
                    "net.aborted",
                    "{peer} gave up: {said}",
                    peer = Peer::of(peer),
                    said = Told::of(reason)
                )
            }
            NetError::Closed { peer, address, step } => reason!(
                "net.closed",
                "{peer} ({address}) closed the connection at step {step}: its process ended or was killed; look at its log",
                peer = Peer::of(peer),
                address = Peer::of(address),
                step = StepName::of(step),
            ),
            NetError::Ended { peer, address, step } => reason!(
                "net.ended",
                "{peer} ({address}) ended the session while this node was at step {step}: look at its log",
                peer = Peer::of(peer),
                address = Peer::of(address),
                step = StepName::of(step),
            ),
            NetError::Silent { peer, address, step, seconds } => reason!(
                "net.silent",
                "nothing came from {peer} ({address}) for {seconds} at step {step}, not even a heartbeat: its host, the network \
                 in between or its process stands still",
                peer = Peer::of(peer),
                address = Peer::of(address),
                seconds = secs(*seconds),
                step = StepName::of(step),
            ),
            NetError::Stuck { peer, step, seconds } => reason!(
                "net.stuck",
                "step {step}: {peer} is alive, but this party waited for it in vain for {seconds}: look at its log, and raise \
                 `timeouts.step` if its work takes that long",
                step = StepName::of(step),
                peer = Peer::of(peer),
                seconds = secs(*seconds),
            ),
            NetError::Slow { peer, step, kib_per_s } => reason!(
                "net.slow",
                "step {step}: a message to or from {peer} moves slower than {rate} KiB/s: look at the network between the hosts",
                step = StepName::of(step),
                peer = Peer::of(peer),
                rate = Count::of(*kib_per_s),
            ),
            NetError::Stalled { peer, step } => reason!(
                "net.stalled",
                "{peer} and this node wait for each other at step {step}: report this as a bug",
                peer = Peer::of(peer),
                step = StepName::of(step),
            ),
            NetError::ProtocolVersion { peer, ours, theirs } => reason!(
                "net.wire_version",
                "{peer} speaks wire protocol {theirs}, this node {ours}: install the same version on both sides",
                peer = Peer::of(peer),
                theirs = Count::of(u64::from(*theirs)),
                ours = Count::of(u64::from(*ours)),
            ),
            NetError::PrivetVersion { peer, ours, theirs } => reason!(
                "net.version",
                "{peer} runs privet {theirs}, this node {ours}: install the same version on both sides",
                peer = Peer::of(peer),
                theirs = Term::of(theirs),
                ours = Term::of(ours),
            ),
            NetError::PlanMismatch { peer, ours, theirs } => reason!(
                "net.plan",
                "{peer} has plan {theirs}, this node has plan {ours}: give every node the same plan file",
                peer = Peer::of(peer),
                theirs = Term::of(theirs),
                ours = Term::of(ours),
            ),
            NetError::TermsMismatch { peer, term, ours, theirs } => reason!(
                "net.terms",
                "the deployment files differ: {term} is `{ours}` here and `{theirs}` at {peer}; give every node the same \
                 deployment.toml",
                term = Term::of(term),
                ours = Term::of(ours),
                theirs = Term::of(theirs),
                peer = Peer::of(peer),
            ),
            NetError::PurposeMismatch { peer, ours, theirs } => reason!(
                "net.purpose",
                "{peer} connects for `{theirs}`, this node for `{ours}`: an address points to the wrong port",
                peer = Peer::of(peer),
                theirs = Name::of(theirs),
                ours = Name::of(ours),
            ),
            NetError::WrongRole { claimed, pinned } => reason!(
                "net.wrong_role",
                "the peer calls itself `{claimed}`, but its certificate is pinned for `{pinned}`: correct the role or the pins",
                claimed = Peer::of(claimed),
                pinned = Term::of(pinned),
            ),
            NetError::TlsVersion { peer, .. } => reason!(
                "net.tls_version",
                "{peer} and this node have no TLS version or key exchange in common: is it no privet party?",
                peer = Peer::of(peer),
            ),
            NetError::KeyExchange { peer, .. } => reason!(
                "net.key_exchange",
                "{peer} does not offer the key exchange X25519MLKEM768, which privet requires",
                peer = Peer::of(peer),
            ),
            NetError::NotTls { peer, .. } => reason!(
                "net.not_tls",
                "{peer} does not speak TLS here: is it another program, or was one side started with `insecure`?",
                peer = Peer::of(peer),
            ),
            NetError::WrongCertificate { peer, found, .. } => reason!(
                "net.wrong_certificate",
                "{peer} showed a certificate with fingerprint {found}, which is not pinned here: if it was renewed, compare it \
                 with its operator by another way and pin it; otherwise somebody is in between",
                peer = Peer::of(peer),
                found = *found,
            ),
            NetError::CertificateRefused { peer, ours, .. } => reason!(
                "net.certificate_refused",
                "{peer} refused this node's certificate (fingerprint {ours}): ask its operator to pin it",
                peer = Peer::of(peer),
                ours = *ours,
            ),
            NetError::CertificateDates { peer, from, until } => reason!(
                "net.certificate_dates",
                "the certificate of {peer} is valid from {from} to {until} only: renew it, or correct the clock that is wrong",
                peer = Peer::of(peer),
                from = Term::of(from),
                until = Term::of(until),
            ),
            NetError::NoCertificate { peer } => {
                reason!("net.no_certificate", "{peer} showed no certificate", peer = Peer::of(peer))
            }
            NetError::Identity { .. } => {
                reason!("net.identity", "this node's certificate or key cannot be used: see `privet doctor`")
            }
            NetError::Setting { .. } => {
                reason!("net.setting", "a setting is not understood: see `privet doctor`")
            }
            NetError::PortInUse { address } => {
                reason!("net.port_in_use", "the port of {address} is in use", address = Peer::of(address))
            }
            NetError::Address { .. } => {
                reason!("net.address", "an address cannot be used: see `privet doctor`")
            }
            NetError::Refused { address, seconds } => reason!(
                "net.refused",
                "nobody listens at {address} (tried for {seconds}): start the peer there, or correct the address or the firewall",
                address = Peer::of(address),
                seconds = secs(*seconds),
            ),
            NetError::Timeout { doing, seconds } => reason!(
                "net.timeout",
                "timed out after {seconds} while {doing}: is the peer running, and is the port open in the firewall?",
                seconds = secs(*seconds),
                doing = Told::of(doing),
            ),
            NetError::Crowded { peer, callers } => reason!(
                "net.crowded",
                "{peer} was turned away before it had authenticated: {callers} callers were at it at once",
                peer = Peer::of(peer),
                callers = Count::of(*callers),
            ),
            NetError::TooMany { peer, most } => reason!(
                "net.too_many",
                "{peer} has {most} connections to this node already, the most it may have",
                peer = Peer::of(peer),
                most = Count::of(*most),
            ),
            NetError::Io { doing, what } => reason!(
                "net.io",
                "network error while {doing}: {what}",
                doing = Told::of(doing),
                what = Told::of(what),
            ),
            NetError::ClosedHere { peer, reason } => reason!(
                "net.closed_here",
                "this node closed its connection to {peer} earlier: {said}",
                peer = Peer::of(peer),
                said = Told::of(reason),
            ),
            // The crate may add kinds; of those nothing is said.
            _ => reason!("net.other", "the network failed"),
        }
    }
}

impl Why for TalkError {
    fn why(&self) -> Reason {
        match self {
            TalkError::Net(e) => e.why(),
            TalkError::Garbled { peer, what, .. } => reason!(
                "talk.garbled",
                "{peer} sent a {what} that cannot be read: it runs another version or is broken",
                peer = Peer::of(peer),
                what = Name::of(what),
            ),
        }
    }
}
