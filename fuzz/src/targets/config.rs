//! Configuration files and the cards that operators exchange.

use crate::Target;
use privet_party::config::{Address, Bytes, Card, Place, parse_deployment, parse_node};

const WORDS: &[&str] = &[
    "[parties.0]",
    "[parties.1]",
    "[parties.2]",
    "[parties.255]",
    "protocol = ",
    "security = ",
    "\"rep3\"",
    "\"semi2k\"",
    "[semi2k]",
    "helper = ",
    "\"none\"",
    "\"malicious\"",
    "\"semi-honest\"",
    "[dealer]",
    "[clients.a]",
    "[roles]",
    "[timeouts]",
    "fingerprint = ",
    "address = ",
    "\"party:0\"",
    "\"dealer\"",
    "\"client:a\"",
    "\"[::1]:1\"",
    "me = ",
    "disk_budget = ",
    "\"9 TiB\"",
    "threads = ",
    "step = ",
    "\n",
    "18446744073709551615",
    "-1",
    "{",
    "}",
    "[[",
    "\"\"\"",
];

/// `deployment.toml`.
pub const DEPLOYMENT: Target =
    Target { name: "deployment", run: deployment, seeds: deployment_seeds, words: WORDS };

fn deployment(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match parse_deployment(text) {
        Err(e) => drop(e.to_string()),
        Ok(found) => {
            for place in found.places() {
                let fingerprint = found.fingerprint(&place).expect("every place has a certificate");
                assert_eq!(found.place_of(fingerprint), Some(place));
            }
            assert!(found.roles.all().all(|(_, place)| found.fingerprint(place).is_some()));
        }
    }
}

fn deployment_seeds() -> Vec<Vec<u8>> {
    let print = |digit: &str| digit.repeat(64);
    let (a, b, c, d) = (print("a"), print("b"), print("c"), print("d"));
    vec![
        format!(
            "name = \"demo\"\nprotocol = \"fss\"\nplan = \"plan.json\"\n\
             [parties.0]\naddress = \"127.0.0.1:7701\"\nfingerprint = \"{a}\"\n\
             [parties.1]\naddress = \"127.0.0.1:7702\"\nfingerprint = \"{b}\"\n\
             [dealer]\naddress = \"[::1]:7703\"\nfingerprint = \"{c}\"\n\
             [clients.alice]\nfingerprint = \"{d}\"\n\
             [roles]\ndata_owner = \"client:alice\"\nmodel_owner = \"party:0\"\nreceiver = \"client:alice\"\n\
             [timeouts]\nconnect = 30\nstep = 300\nheartbeat = 5\n[fss]\nmin_checks = 4\n"
        )
        .into_bytes(),
        format!(
            "name = \"three\"\nprotocol = \"rep3\"\nsecurity = \"semi-honest\"\nplan = \"plan.json\"\n\
             [parties.0]\naddress = \"127.0.0.1:7701\"\nfingerprint = \"{a}\"\n\
             [parties.1]\naddress = \"127.0.0.1:7702\"\nfingerprint = \"{b}\"\n\
             [parties.2]\naddress = \"127.0.0.1:7703\"\nfingerprint = \"{c}\"\n\
             [clients.alice]\nfingerprint = \"{d}\"\n\
             [roles]\ndata_owner = \"client:alice\"\nmodel_owner = \"party:2\"\nreceiver = \"client:alice\"\n"
        )
        .into_bytes(),
        format!(
            "name = \"helped\"\nprotocol = \"semi2k\"\nplan = \"plan.json\"\n\
             [parties.0]\naddress = \"127.0.0.1:7701\"\nfingerprint = \"{a}\"\n\
             [parties.1]\naddress = \"127.0.0.1:7702\"\nfingerprint = \"{b}\"\n\
             [dealer]\naddress = \"[::1]:7703\"\nfingerprint = \"{c}\"\n\
             [clients.alice]\nfingerprint = \"{d}\"\n\
             [roles]\ndata_owner = \"client:alice\"\nmodel_owner = \"party:0\"\nreceiver = \"client:alice\"\n\
             [semi2k]\nhelper = \"dealer\"\n"
        )
        .into_bytes(),
    ]
}

/// `node.toml`.
pub const NODE: Target = Target { name: "node", run: node, seeds: node_seeds, words: WORDS };

fn node(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match parse_node(text) {
        Err(e) => drop(e.to_string()),
        Ok(found) => assert!(found.thread_count() >= 1),
    }
}

fn node_seeds() -> Vec<Vec<u8>> {
    vec![
        b"me = \"party:0\"\ndeployment = \"deployment.toml\"\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n\
          store = \"store\"\nlisten = \"0.0.0.0:7701\"\nweights = \"w.safetensors\"\nthreads = 2\ninsecure = false\n\
          disk_budget = \"50 GB\"\n"
            .to_vec(),
        b"me = \"party:1\"\ndeployment = \"d\"\ncertificate = \"c\"\nkey = \"k\"\ninsecure = \"i-accept-no-encryption\"\n"
            .to_vec(),
    ]
}

/// Cards, places, addresses and sizes: text that is written back as it was read.
pub const CARD: Target = Target { name: "card", run: card, seeds: card_seeds, words: WORDS };

fn card(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(found) = text.parse::<Card>() {
        assert_eq!(found.to_string().parse(), Ok(found));
    }
    if let Ok(found) = text.parse::<Place>() {
        assert_eq!(found.to_string().parse(), Ok(found));
    }
    if let Ok(found) = text.parse::<Address>() {
        assert_eq!(found.to_string().parse(), Ok(found));
    }
    let _ = text.parse::<Bytes>();
}

fn card_seeds() -> Vec<Vec<u8>> {
    let print = "0a".repeat(32);
    [
        format!("party:0@node.example:7701#{print}"),
        format!("client:alice#{print}"),
        "[::1]:7701".into(),
        "50 GiB".into(),
    ]
    .map(String::into_bytes)
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_valid() {
        let text = |s: &[u8]| String::from_utf8(s.to_vec()).unwrap();
        assert!(deployment_seeds().iter().all(|s| parse_deployment(&text(s)).is_ok()));
        assert!(node_seeds().iter().all(|s| parse_node(&text(s)).is_ok()));
    }
}
