//! Certificate fingerprints: what peers are pinned by.

use std::fmt;
use std::str::FromStr;

use subtle::ConstantTimeEq;

use crate::NetError;

/// SHA-256 of a certificate's DER bytes. Public; printed as 64 hexadecimal digits in groups.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a certificate in DER.
    pub fn of(der: &[u8]) -> Self {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, der);
        let mut out = [0; 32];
        out.copy_from_slice(digest.as_ref());
        Self(out)
    }

    /// Reads 64 hexadecimal digits, with or without `sha256:`, colons or spaces, in either case.
    pub fn parse(text: &str) -> Result<Self, NetError> {
        let refuse = || NetError::Setting {
            what: "the fingerprint",
            value: crate::frame::cut(text, 120).to_owned(),
            expected: "64 hexadecimal digits, as `privet certs` prints them",
        };
        let text = text.trim();
        let digits = text.strip_prefix("sha256:").or_else(|| text.strip_prefix("SHA256:")).unwrap_or(text);
        let mut out = [0u8; 32];
        let mut count = 0;
        for c in digits.chars().filter(|c| !matches!(c, ':' | ' ')) {
            let digit = c.to_digit(16).ok_or_else(refuse)? as u8;
            let byte = out.get_mut(count / 2).ok_or_else(refuse)?;
            *byte = *byte << 4 | digit;
            count += 1;
        }
        if count == 64 { Ok(Self(out)) } else { Err(refuse()) }
    }

    /// Equality in constant time.
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// The first 16 hexadecimal digits, for tables.
    pub fn short(&self) -> String {
        hex(&self.0[..8])
    }
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = NetError;
    fn from_str(text: &str) -> Result<Self, NetError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms_are_read_back() {
        let fp = Fingerprint::of(b"certificate");
        let plain = fp.to_string();
        let colons =
            plain.as_bytes().chunks(2).map(|c| std::str::from_utf8(c).unwrap()).collect::<Vec<_>>().join(":");
        for text in [plain.clone(), plain.to_uppercase(), format!("sha256:{plain}"), format!(" {colons}\n")] {
            assert_eq!(Fingerprint::parse(&text).unwrap(), fp, "{text}");
        }
        assert!(fp.matches(&Fingerprint::of(b"certificate")));
        assert!(!fp.matches(&Fingerprint::of(b"Certificate")));
        assert_eq!(
            Fingerprint::of(b"").to_string(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn bad_text_is_refused() {
        let good = Fingerprint::of(b"x").to_string();
        for text in ["", "sha256:", &good[1..], &format!("{good}0"), &format!("{}g", &good[1..]), "ü"] {
            assert!(Fingerprint::parse(text).is_err(), "{text}");
        }
    }
}
