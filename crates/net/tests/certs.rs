//! Identities on disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use privet_net::certs::CertificateInfo;
use privet_net::{Fingerprint, Identity, NetError};

#[test]
fn an_identity_survives_the_disk_and_its_key_is_private() {
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (dir.path().join("party0.crt"), dir.path().join("party0.key"));
    let identity = Identity::generate("party 0").unwrap();
    identity.write(&cert, &key, false).unwrap();
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let loaded = Identity::load(&cert, &key).unwrap();
    assert_eq!(loaded.info(), identity.info());
    let info = CertificateInfo::from_pem_file(&cert).unwrap();
    assert_eq!((info.name.as_str(), info.fingerprint), ("party 0", identity.fingerprint()));
    assert!((390..=397).contains(&info.days_left()), "{}", info.days_left());

    let other = Identity::generate("party 0").unwrap();
    assert!(
        matches!(other.write(&cert, &key, false), Err(NetError::Identity { .. })),
        "nothing is overwritten"
    );
    other.write(&cert, &key, true).unwrap();
    assert_eq!(Identity::load(&cert, &key).unwrap().fingerprint(), other.fingerprint());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no other file is left");
}

#[test]
fn bad_files_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (dir.path().join("c"), dir.path().join("k"));
    let refused = |expected: &str| {
        let error = Identity::load(&cert, &key).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused("/c: No such file");
    let identity = Identity::generate("a").unwrap();
    identity.write(&cert, &key, false).unwrap();

    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    refused("can be read by others (mode 0640)");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();

    let key_pem = fs::read_to_string(&key).unwrap();
    let foreign = (dir.path().join("c2"), dir.path().join("k2"));
    Identity::generate("a").unwrap().write(&foreign.0, &foreign.1, false).unwrap();
    fs::copy(&foreign.1, &key).unwrap();
    refused("does not belong to the certificate");

    for bad in ["", "secret-looking text", &key_pem[..key_pem.len() / 2]] {
        fs::write(&key, bad).unwrap();
        refused("no PEM private key");
    }
    fs::write(&key, &key_pem).unwrap();
    fs::write(&cert, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    refused("no X.509 certificate");
    fs::write(&cert, [0xff; 10]).unwrap();
    refused("no PEM");
}

#[test]
fn the_private_key_is_not_printed() {
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (dir.path().join("c"), dir.path().join("k"));
    let identity = Identity::generate("a").unwrap();
    identity.write(&cert, &key, false).unwrap();
    let secret = fs::read_to_string(&key).unwrap();
    let printed = format!("{identity:?} {identity:#?}");
    for line in secret.lines().filter(|l| !l.starts_with('-')) {
        assert!(!printed.contains(&line[..line.len().min(12)]), "{line}");
    }
    assert!(printed.contains(&identity.fingerprint().to_string()));
    assert_ne!(identity.fingerprint(), Fingerprint::of(b""));
}
