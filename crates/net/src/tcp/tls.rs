//! TLS 1.3 with peers authenticated by pinned certificates instead of an authority.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::UnbufferedClientConnection;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::UnbufferedServerConnection;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error,
    PeerIncompatible, ServerConfig, SignatureScheme,
};

use super::Pin;
use super::handshake::Side;
use crate::certs::CertificateInfo;
use crate::{Fingerprint, Identity, NetError};

/// The cryptography used: AES-128-GCM first, since it is the fastest and strong enough for a session.
///
/// Keys are exchanged by X25519 and ML-KEM-768 together (draft-ietf-tls-ecdhe-mlkem; ML-KEM: FIPS 203) and by nothing
/// else: what is recorded today stays secret as long as either of the two holds. A peer that offers less is refused, so
/// nobody in between can talk the two sides down.
pub(crate) fn provider() -> CryptoProvider {
    use aws_lc_rs::cipher_suite::{TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384};
    let cipher_suites = vec![TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384];
    let kx_groups = vec![aws_lc_rs::kx_group::X25519MLKEM768];
    CryptoProvider { cipher_suites, kx_groups, ..aws_lc_rs::default_provider() }
}

/// Fills the pool of the randomness that handshakes take, which takes a process some 20 ms once: a listener does so before anybody
/// calls, so that the first caller need not wait for it.
pub(super) fn warm_up() {
    // Without it the first handshake does it, or says why not.
    let _ = provider().secure_random.fill(&mut [0; 32]);
}

/// The client side of a connection to a peer with one of the pinned certificates.
pub(super) fn client(identity: &Identity, verifier: &Arc<PinnedPeers>) -> Result<Side, Error> {
    UnbufferedClientConnection::new(client_config(identity, verifier)?, server_name()?).map(Side::Client)
}

/// The server side of a connection from a peer with one of the pinned certificates.
pub(super) fn server(identity: &Identity, verifier: &Arc<PinnedPeers>) -> Result<Side, Error> {
    UnbufferedServerConnection::new(server_config(identity, verifier)?).map(Side::Server)
}

fn client_config(identity: &Identity, verifier: &Arc<PinnedPeers>) -> Result<Arc<ClientConfig>, Error> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier.clone())
        .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity.certified())));
    config.enable_sni = false;
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

/// It plays no part: the certificate itself is pinned.
fn server_name() -> Result<ServerName<'static>, Error> {
    ServerName::try_from("privet").map_err(|_| Error::General("server name".into()))
}

pub(super) fn server_config(
    identity: &Identity,
    verifier: &Arc<PinnedPeers>,
) -> Result<Arc<ServerConfig>, Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier.clone())
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(identity.certified())));
    config.send_tls13_tickets = 0;
    config.ignore_client_order = true;
    Ok(Arc::new(config))
}

/// Accepts exactly the pinned certificates, while their dates hold; remembers what it saw.
#[derive(Debug)]
pub(super) struct PinnedPeers {
    pins: Vec<Pin>,
    algorithms: WebPkiSupportedAlgorithms,
    verdict: Mutex<Option<Verdict>>,
}

#[derive(Clone, Debug)]
enum Verdict {
    Accepted(Fingerprint),
    Unknown(Fingerprint),
    Dates(String, String),
}

impl PinnedPeers {
    pub fn new(pins: &[Pin]) -> Arc<Self> {
        let algorithms = provider().signature_verification_algorithms;
        Arc::new(Self { pins: pins.to_vec(), algorithms, verdict: Mutex::new(None) })
    }

    fn judge(&self, certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
        let info = CertificateInfo::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
        let found = info.fingerprint;
        // Every pin is compared, without an early exit.
        let known =
            self.pins.iter().filter_map(|p| p.fingerprint).fold(false, |any, f| f.matches(&found) | any);
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let (verdict, result) = if !known {
            (Verdict::Unknown(found), Err(CertificateError::ApplicationVerificationFailure.into()))
        } else if !info.is_valid_at(now) {
            let (from, until) = info.days();
            (Verdict::Dates(from, until), Err(CertificateError::Expired.into()))
        } else {
            (Verdict::Accepted(found), Ok(()))
        };
        *self.verdict.lock().unwrap_or_else(PoisonError::into_inner) = Some(verdict);
        result
    }

    fn verdict(&self) -> Option<Verdict> {
        self.verdict.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The certificate that was accepted.
    pub fn accepted(&self) -> Option<Fingerprint> {
        match self.verdict() {
            Some(Verdict::Accepted(found)) => Some(found),
            Some(Verdict::Unknown(_) | Verdict::Dates(..)) | None => None,
        }
    }

    /// The names pinned for the certificate that was accepted.
    pub fn names(&self) -> Vec<&str> {
        let Some(found) = self.accepted() else { return Vec::new() };
        self.pins.iter().filter(|p| p.fingerprint == Some(found)).map(|p| p.name.as_str()).collect()
    }

    fn expected(&self) -> String {
        let list: Vec<String> =
            (self.pins.iter()).filter_map(|p| p.fingerprint.map(|f| format!("{f} ({})", p.name))).collect();
        if list.is_empty() { "none (no fingerprint is pinned)".into() } else { list.join(" or ") }
    }

    /// What a failed handshake means to the operator. `peer` is a name or an address.
    pub fn explain(&self, error: &Error, peer: &str, ours: Fingerprint) -> NetError {
        let peer = peer.to_owned();
        let what = error.to_string();
        match error {
            Error::InvalidCertificate(_) => match self.verdict() {
                Some(Verdict::Unknown(found)) => {
                    NetError::WrongCertificate { peer, expected: self.expected(), found }
                }
                Some(Verdict::Dates(from, until)) => NetError::CertificateDates { peer, from, until },
                _ => NetError::BadRecord { peer, what },
            },
            Error::NoCertificatesPresented => NetError::NoCertificate { peer },
            Error::AlertReceived(alert) if is_refusal(*alert) => {
                NetError::CertificateRefused { peer, ours, what }
            }
            Error::AlertReceived(AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure)
            | Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon)
            | Error::PeerIncompatible(PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig)
            | Error::PeerIncompatible(PeerIncompatible::SupportedVersionsExtensionRequired)
            | Error::PeerIncompatible(PeerIncompatible::Tls12NotOfferedOrEnabled)
            | Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered)
            | Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13) => {
                NetError::TlsVersion { peer, what }
            }
            Error::PeerIncompatible(PeerIncompatible::NoKxGroupsInCommon) => {
                NetError::KeyExchange { peer, what }
            }
            Error::InvalidMessage(_) => NetError::NotTls { peer, what },
            _ => NetError::BadRecord { peer, what },
        }
    }
}

fn is_refusal(alert: AlertDescription) -> bool {
    use AlertDescription::*;
    matches!(
        alert,
        AccessDenied
            | BadCertificate
            | CertificateUnknown
            | CertificateExpired
            | CertificateRevoked
            | UnknownCA
            | UnsupportedCertificate
            | CertificateRequired
    )
}

/// The TLS error inside an I/O error, if there is one.
pub(super) fn tls_error(error: &io::Error) -> Option<&Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<Error>())
}

/// A TLS error as an I/O error.
pub(super) fn io_error(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl ServerCertVerifier for PinnedPeers {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.judge(end_entity, now).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for PinnedPeers {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.judge(end_entity, now).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{
        CipherSuite, ClientConnection, HandshakeKind, NamedGroup, ProtocolVersion, ServerConnection,
    };

    #[test]
    fn both_sides_agree_on_the_hybrid_key_exchange() {
        let [a, b] = ["a", "b"].map(|name| Identity::generate(name).unwrap());
        let know = |id: &Identity| PinnedPeers::new(&[Pin::new("peer", id.fingerprint())]);
        let config = client_config(&a, &know(&b)).unwrap();
        let mut caller = ClientConnection::new(config, server_name().unwrap()).unwrap();
        let mut called = ServerConnection::new(server_config(&b, &know(&a)).unwrap()).unwrap();
        while caller.is_handshaking() || called.is_handshaking() {
            let mut wire = Vec::new();
            while caller.wants_write() {
                caller.write_tls(&mut wire).unwrap();
            }
            let mut rest = &wire[..];
            while !rest.is_empty() {
                called.read_tls(&mut rest).unwrap();
                called.process_new_packets().unwrap();
            }
            wire.clear();
            while called.wants_write() {
                called.write_tls(&mut wire).unwrap();
            }
            let mut rest = &wire[..];
            while !rest.is_empty() {
                caller.read_tls(&mut rest).unwrap();
                caller.process_new_packets().unwrap();
            }
        }
        let group = caller.negotiated_key_exchange_group().unwrap().name();
        assert_eq!(group, NamedGroup::X25519MLKEM768);
        assert_eq!(called.negotiated_key_exchange_group().unwrap().name(), group);
        let suite = caller.negotiated_cipher_suite().unwrap().suite();
        assert_eq!(suite, CipherSuite::TLS13_AES_128_GCM_SHA256);
        assert_eq!(caller.protocol_version(), Some(ProtocolVersion::TLSv1_3));
        // Without another round for a key share: the client guesses right at once.
        assert_eq!(called.handshake_kind(), Some(HandshakeKind::Full));
    }
}
