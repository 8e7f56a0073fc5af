//! Names of public things, as events have them. Each is made by a parser that knows what such a name looks like: a number, a
//! list of numbers or another text does not get through.

use crate::config::{Address, Place};
use std::fmt::{self, Display, Formatter};
use std::path::Path;

/// Longest name of a plan, a role, a tensor or a layer that is shown whole.
const MAX_NAME: usize = 80;
/// Longest text of a peer that is shown whole.
const MAX_TOLD: usize = 400;
/// Digits in a row, decimal or hexadecimal, that a peer's text may have: the short name of a session has so many.
const MAX_DIGITS: usize = 12;

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(String);

        impl Display for $name {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

words! {
    /// The name of a plan, a layer, a role or a tensor: begins with a letter, so that no number passes for one.
    Name;
    /// A step of a channel, as errors of the network have it: a number, and the name of what is exchanged.
    StepName;
    /// Whom a connection leads to: a place of the deployment, or an address.
    Peer;
    /// A term of the greeting, or its value: what all nodes' deployment files say alike.
    Term;
    /// What a peer said when it gave up. It came over the network as words for people, so it is none of this node's
    /// secrets. It is cut, and long numbers in it are not shown.
    Told;
    /// Which file of a key store: session and number, or the file's public name; never the path.
    KeyFile;
}

/// `text` if all its characters are allowed and it is not too long.
fn checked(text: &str, allowed: impl Fn(char) -> bool) -> Option<&str> {
    (!text.is_empty() && text.len() <= MAX_NAME && text.chars().all(allowed)).then_some(text)
}

impl Name {
    /// Something else than a name becomes `(unnamed)`.
    pub fn of(text: &str) -> Name {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.-:/ ".contains(c);
        let name =
            checked(text, plain).filter(|t| t.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
        Name(name.unwrap_or("(unnamed)").into())
    }
}

impl StepName {
    /// From `NUMBER (NAME)`; of something else nothing is shown.
    pub fn of(text: &str) -> StepName {
        let parts = text.strip_suffix(')').and_then(|t| t.split_once(" ("));
        let parts = parts.and_then(|(n, name)| Some((n.parse::<u32>().ok()?, name)));
        StepName(parts.map_or("(no step)".into(), |(n, name)| format!("{n} ({})", Name::of(name))))
    }
}

impl Peer {
    /// From the name that a connection has for its other end.
    pub fn of(text: &str) -> Peer {
        let place = || text.parse::<Place>().ok().map(|p| p.to_string());
        let address = || text.parse::<Address>().ok().map(|a| a.to_string());
        // `party 1`, as errors of a protocol have it.
        let party =
            || text.strip_prefix("party ").and_then(|n| n.parse::<u8>().ok()).map(|n| format!("party {n}"));
        Peer(place().or_else(party).or_else(address).unwrap_or_else(|| "a peer".into()))
    }
}

impl From<&Place> for Peer {
    fn from(place: &Place) -> Peer {
        Peer(place.to_string())
    }
}

impl Term {
    /// Something else than a term becomes `(other)`.
    pub fn of(text: &str) -> Term {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.-: ".contains(c);
        Term(checked(text, plain).unwrap_or("(other)").into())
    }
}

impl Told {
    /// What a peer said, or what the system's resolver or TLS library said of a peer.
    pub fn of(text: &str) -> Told {
        let mut shown = String::new();
        let printable = text.chars().take(MAX_TOLD).map(|c| if c.is_control() { ' ' } else { c });
        let mut run = String::new();
        for c in printable.chain([' ']) {
            if c.is_ascii_hexdigit() {
                run.push(c);
                continue;
            }
            shown.push_str(if run.len() > MAX_DIGITS { "..." } else { &run });
            run.clear();
            shown.push(c);
        }
        Told(shown.trim_end().into())
    }
}

impl KeyFile {
    /// A file below a store or a folder of checkpoints, by the end of its path: the name of its session or training, and its
    /// own.
    pub fn of(path: impl AsRef<Path>) -> KeyFile {
        let part = |p: Option<&std::ffi::OsStr>| p.and_then(|p| p.to_str()).unwrap_or_default().to_owned();
        let (folder, file) =
            (part(path.as_ref().parent().and_then(Path::file_name)), part(path.as_ref().file_name()));
        // A random name has a letter (but for one in three million), which no number has.
        let is_id = |t: &str| {
            let hex = t.bytes().all(|b| b.is_ascii_hexdigit());
            t.len() == 32 && hex && t.bytes().any(|b| b.is_ascii_alphabetic())
        };
        let is_file = file == "journal"
            || file == "session.key"
            || file.rsplit_once('.').is_some_and(|(n, kind)| {
                n.parse::<u64>().is_ok() && ["keys", "part", "checkpoint"].contains(&kind)
            });
        KeyFile(match (is_id(&folder), is_id(&file), is_file) {
            (true, _, true) => format!("{folder}/{file}"),
            (_, true, _) => file,
            (false, _, true) => file,
            _ => "a file".into(),
        })
    }

    /// What a store calls a record or a session: its kind and its name.
    pub fn named(what: &str) -> KeyFile {
        let shape = |t: &str| {
            let (kind, name) = t.rsplit_once(' ')?;
            let (session, index) = name.split_once('/').unwrap_or((name, "0"));
            let known =
                ["record", "session", "an unfinished record", "an unfinished session"].contains(&kind);
            let named = [12, 32].contains(&session.len()) && session.bytes().all(|b| b.is_ascii_hexdigit());
            (known && named && index.parse::<u64>().is_ok()).then(|| t.to_owned())
        };
        KeyFile(shape(what).unwrap_or_else(|| "a record or session".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever text gets to a parser of names: no number, and nothing long, gets out.
        #[test]
        fn no_value_passes_for_a_name(word: u64, float in any::<f64>(), bytes in prop::collection::vec(any::<u8>(), 16..40)) {
            let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            let list = format!("{bytes:?}");
            for secret in [word.to_string(), format!("-{word}"), float.to_string(), format!("[{word}, {word}]"), list.clone()] {
                prop_assert_eq!(Name::of(&secret).to_string(), "(unnamed)");
                prop_assert_eq!(StepName::of(&secret).to_string(), "(no step)");
                prop_assert_eq!(Peer::of(&secret).to_string(), "a peer");
                prop_assert_eq!(KeyFile::of(&secret).to_string(), "a file");
                prop_assert_eq!(KeyFile::named(&secret).to_string(), "a record or session");
            }
            let told = Told::of(&format!("it is {hex}, you see")).to_string();
            prop_assert!(!told.contains(&hex[..13]));
            prop_assert!(!Told::of(&(u64::MAX - (word >> 1)).to_string()).to_string().contains("18"));
            prop_assert!(Told::of(&"words ".repeat(1000)).to_string().len() <= MAX_TOLD);
        }
    }

    #[test]
    fn names_of_public_things_are_shown() {
        assert_eq!(Name::of("conv1.relu / open").to_string(), "conv1.relu / open");
        assert_eq!(StepName::of("12 (session / keys)").to_string(), "12 (session / keys)");
        assert_eq!(Peer::of("party:1").to_string(), "party:1");
        assert_eq!(Peer::of("127.0.0.1:7701").to_string(), "127.0.0.1:7701");
        let session = "0123456789abcdef0123456789abcdef";
        assert_eq!(
            KeyFile::of(format!("/secret/place/{session}/5.keys")).to_string(),
            format!("{session}/5.keys")
        );
        assert_eq!(KeyFile::of("/home/alice/model.safetensors").to_string(), "a file");
        assert_eq!(KeyFile::named(&format!("record {session}/6")).to_string(), format!("record {session}/6"));
        assert_eq!(Told::of("no room for\n3 of 12 records").to_string(), "no room for 3 of 12 records");
    }
}
