//! Identities: a self-signed certificate and its key, without a certificate authority.
//!
//! Peers pin each other's [`Fingerprint`], so a certificate vouches for nothing but its own key; its dates
//! bound how long a stolen key is of use.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use time::OffsetDateTime;
use zeroize::Zeroizing;

use crate::{Fingerprint, NetError};

/// Days a new certificate is valid.
pub const DEFAULT_DAYS: u32 = 397;
/// Largest certificate or key file read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// What a certificate says, for `doctor` and `certs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateInfo {
    /// Common name of the subject, without control characters.
    pub name: String,
    /// What peers pin.
    pub fingerprint: Fingerprint,
    /// Start of validity, seconds since 1970.
    pub not_before: i64,
    /// End of validity, seconds since 1970.
    pub not_after: i64,
}

impl CertificateInfo {
    /// Reads a certificate in DER. The error is a few words, without the file.
    pub fn from_der(der: &[u8]) -> Result<Self, &'static str> {
        let (rest, cert) =
            x509_parser::parse_x509_certificate(der).map_err(|_| "it is no X.509 certificate")?;
        if !rest.is_empty() {
            return Err("there are bytes after the certificate");
        }
        let name = cert.subject().iter_common_name().next().and_then(|n| n.as_str().ok()).unwrap_or("");
        Ok(Self {
            name: crate::frame::printable(crate::frame::cut(name, 64).as_bytes()),
            fingerprint: Fingerprint::of(der),
            not_before: cert.validity().not_before.timestamp(),
            not_after: cert.validity().not_after.timestamp(),
        })
    }

    /// Reads a certificate file in PEM.
    pub fn from_pem_file(path: &Path) -> Result<Self, NetError> {
        let pem = read(path)?;
        let der = CertificateDer::from_pem_slice(&pem)
            .map_err(|e| bad(path, &format!("no PEM certificate: {e}")))?;
        Self::from_der(&der).map_err(|what| bad(path, what))
    }

    /// Whether the certificate is valid at `now`, seconds since 1970.
    pub fn is_valid_at(&self, now: i64) -> bool {
        (self.not_before..=self.not_after).contains(&now)
    }

    /// Whole days until it expires; negative after that.
    pub fn days_left(&self) -> i64 {
        (self.not_after - unix_now()).div_euclid(86_400)
    }

    /// First and last day, as `2026-01-31`.
    pub fn days(&self) -> (String, String) {
        (day(self.not_before), day(self.not_after))
    }
}

fn day(seconds: i64) -> String {
    OffsetDateTime::from_unix_timestamp(seconds).map_or_else(|_| "?".into(), |t| t.date().to_string())
}

fn unix_now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs() as i64
}

/// A party's certificate and private key. The key is never printed.
#[derive(Clone)]
pub struct Identity {
    info: CertificateInfo,
    certified: Arc<CertifiedKey>,
    cert_pem: String,
    key_pem: Arc<Zeroizing<String>>,
}

impl Identity {
    /// A new P-256 key with a self-signed certificate for `name`, valid from now for [`DEFAULT_DAYS`].
    pub fn generate(name: &str) -> Result<Self, NetError> {
        Self::generate_days(name, DEFAULT_DAYS.into())
    }

    /// Like [`Identity::generate`], valid for another number of days; ended that many days ago where it is
    /// negative.
    pub fn generate_days(name: &str, days: i64) -> Result<Self, NetError> {
        let now = OffsetDateTime::now_utc();
        let until = now + time::Duration::days(days);
        let from = now - time::Duration::minutes(5); // hosts' clocks differ a little
        Self::generate_for(name, from.min(until - time::Duration::days(1)), until)
    }

    /// Like [`Identity::generate`], with other dates.
    pub fn generate_for(name: &str, from: OffsetDateTime, until: OffsetDateTime) -> Result<Self, NetError> {
        let failed = |e: rcgen::Error| bad(Path::new(name), &format!("cannot make a certificate: {e}"));
        let mut params = CertificateParams::new(Vec::new()).map_err(failed)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        (params.not_before, params.not_after) = (from, until);
        let key = KeyPair::generate().map_err(failed)?;
        let cert = params.self_signed(&key).map_err(failed)?;
        Self::from_pem(cert.pem(), Zeroizing::new(key.serialize_pem()), Path::new(name), Path::new(name))
    }

    /// Reads certificate and key files; refuses a key file that others can read.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, NetError> {
        let cert_pem = String::from_utf8(read(cert)?).map_err(|_| bad(cert, "it is no PEM file"))?;
        let mode = fs::metadata(key).map_err(|e| bad(key, &e.to_string()))?.permissions().mode();
        if mode & 0o077 != 0 {
            let what = format!(
                "the private key can be read by others (mode {:04o}); run `chmod 600` on it",
                mode & 0o7777
            );
            return Err(bad(key, &what));
        }
        let bytes = Zeroizing::new(read(key)?);
        let key_pem = std::str::from_utf8(&bytes).map_err(|_| bad(key, "it is no PEM file"))?;
        Self::from_pem(cert_pem, Zeroizing::new(key_pem.to_owned()), cert, key)
    }

    fn from_pem(
        cert_pem: String,
        key_pem: Zeroizing<String>,
        cert: &Path,
        key: &Path,
    ) -> Result<Self, NetError> {
        let der = CertificateDer::from_pem_slice(cert_pem.as_bytes())
            .map_err(|e| bad(cert, &format!("no PEM certificate: {e}")))?;
        let info = CertificateInfo::from_der(&der).map_err(|what| bad(cert, what))?;
        // The parser's own message is left out: it could quote the file.
        let secret =
            PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).map_err(|_| bad(key, "no PEM private key"))?;
        let certified =
            CertifiedKey::from_der(vec![der], secret, &crate::tcp::provider()).map_err(|e| match e {
                rustls::Error::InconsistentKeys(_) => {
                    bad(key, "the private key does not belong to the certificate")
                }
                _ => bad(key, "the private key cannot be used for TLS 1.3"),
            })?;
        Ok(Self { info, certified: Arc::new(certified), cert_pem, key_pem: Arc::new(key_pem) })
    }

    /// Writes both files, the key with mode 0600. Existing files are replaced only where `replace` is set, and
    /// then in one step each, so that a crash leaves the old or the new file.
    pub fn write(&self, cert: &Path, key: &Path, replace: bool) -> Result<(), NetError> {
        write_file(key, self.key_pem.as_bytes(), 0o600, replace)?;
        write_file(cert, self.cert_pem.as_bytes(), 0o644, replace)
    }

    /// What peers pin.
    pub fn fingerprint(&self) -> Fingerprint {
        self.info.fingerprint
    }

    /// What the certificate says.
    pub fn info(&self) -> &CertificateInfo {
        &self.info
    }

    /// The certificate, public.
    pub fn cert_pem(&self) -> &str {
        &self.cert_pem
    }

    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        self.certified.clone()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("info", &self.info).finish_non_exhaustive()
    }
}

fn bad(path: &Path, what: &str) -> NetError {
    NetError::Identity { path: path.display().to_string(), what: what.to_owned() }
}

fn read(path: &Path) -> Result<Vec<u8>, NetError> {
    let failed = |e: std::io::Error| bad(path, &e.to_string());
    if fs::metadata(path).map_err(failed)?.len() > MAX_FILE {
        return Err(bad(path, "it is too large for a certificate or key"));
    }
    fs::read(path).map_err(failed)
}

fn write_file(path: &Path, content: &[u8], mode: u32, replace: bool) -> Result<(), NetError> {
    if !replace && path.exists() {
        return Err(bad(path, "it exists already and is kept"));
    }
    let failed = |e: std::io::Error| bad(path, &e.to_string());
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = Path::new(&part);
    match fs::remove_file(part) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(part).map_err(failed)?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(part, path).map_err(failed)
}
