//! What two nodes must agree on before they talk: a list of named values, compared term by term, so that the first
//! difference can be named.

use std::fmt::Write;

use crate::frame::printable;

/// Largest name or value of a term, in bytes.
pub const MAX_TERM_TEXT: usize = 96;
/// Bytes that the listed terms may take in a greeting, together.
const MAX_LISTED: usize = 3600;
/// What is said to differ where no listed term does.
const UNLISTED: &str = "a term that is too many to list";

/// Terms in an order that is the same at all nodes.
///
/// The digest covers all of them. The list holds as many, from the first on, as a greeting has room for: it only says in
/// words what the digest finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    digest: [u8; 16],
    listed: Vec<(String, String)>,
}

/// The first term that two nodes do not agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The term.
    pub term: String,
    /// Its value here.
    pub ours: String,
    /// Its value at the peer.
    pub theirs: String,
}

impl Terms {
    /// The terms of this node, each with its name.
    pub fn new(terms: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut hash = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
        let (mut listed, mut size, mut open) = (Vec::new(), 0, true);
        for (name, value) in terms {
            for text in [&name, &value] {
                hash.update(&(text.len() as u64).to_le_bytes());
                hash.update(text.as_bytes());
            }
            size += 2 + name.len() + value.len();
            // Only a beginning of the list, so that two lists are compared in step.
            open &= size <= MAX_LISTED && name.len().max(value.len()) <= MAX_TERM_TEXT;
            if open {
                listed.push((name, value));
            }
        }
        let mut digest = [0; 16];
        digest.copy_from_slice(&hash.finish().as_ref()[..16]);
        Self { digest, listed }
    }

    /// The first difference between this node's terms and a peer's.
    pub fn difference(&self, theirs: &Self) -> Option<Difference> {
        if self == theirs {
            return None;
        }
        let pairs = self.listed.iter().zip(&theirs.listed);
        let alike = pairs.take_while(|(a, b)| a == b).count();
        let (here, there) = (self.listed.get(alike), theirs.listed.get(alike));
        let listed = |list: &[(String, String)], name: &str| list.iter().any(|(n, _)| n == name);
        let lacking = || "not there".to_owned();
        let (term, ours, theirs) = match (here, there) {
            (Some((name, ours)), Some((other, theirs))) if name == other => {
                (name.clone(), ours.clone(), theirs.clone())
            }
            // One side has a term more at this place: the one whose name the other's list does not have.
            (Some((name, ours)), _) if !listed(&theirs.listed, name) => {
                (name.clone(), ours.clone(), lacking())
            }
            (_, Some((name, theirs))) => (name.clone(), lacking(), theirs.clone()),
            _ => (UNLISTED.to_owned(), short(&self.digest), short(&theirs.digest)),
        };
        Some(Difference { term, ours, theirs })
    }

    pub(crate) fn digest(&self) -> &[u8; 16] {
        &self.digest
    }

    /// The listed terms: two texts each, with a length byte before each.
    pub(crate) fn encode_list(&self, out: &mut Vec<u8>) {
        for text in self.listed.iter().flat_map(|(name, value)| [name, value]) {
            out.push(text.len() as u8);
            out.extend_from_slice(text.as_bytes());
        }
    }

    /// Reads what [`Terms::encode_list`] wrote, all of `bytes`.
    pub(crate) fn decode(digest: [u8; 16], mut bytes: &[u8]) -> Result<Self, &'static str> {
        let text = |from: &mut &[u8]| -> Result<String, &'static str> {
            let (len, rest) = from.split_first().ok_or("its greeting is cut short")?;
            let (text, rest) = rest.split_at_checked((*len).into()).ok_or("its greeting is cut short")?;
            if text.len() > MAX_TERM_TEXT || std::str::from_utf8(text).is_err() {
                return Err("its greeting has a bad term");
            }
            *from = rest;
            Ok(printable(text))
        };
        if bytes.len() > MAX_LISTED {
            return Err("its greeting has too many terms");
        }
        let mut listed = Vec::new();
        while !bytes.is_empty() {
            listed.push((text(&mut bytes)?, text(&mut bytes)?));
        }
        Ok(Self { digest, listed })
    }
}

fn short(digest: &[u8]) -> String {
    digest.iter().take(6).fold(String::new(), |mut text, b| {
        let _ = write!(text, "{b:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(list: &[(&str, &str)]) -> Terms {
        Terms::new(list.iter().map(|&(n, v)| (n.to_owned(), v.to_owned())))
    }

    fn differ(ours: &[(&str, &str)], theirs: &[(&str, &str)]) -> [String; 3] {
        let Difference { term, ours, theirs } = terms(ours).difference(&terms(theirs)).unwrap();
        [term, ours, theirs]
    }

    #[test]
    fn the_first_difference_is_named_with_both_values() {
        let base = [("protocol", "rep3"), ("security", "malicious"), ("role a", "x")];
        assert_eq!(terms(&base).difference(&terms(&base)), None);
        let weaker = [("protocol", "rep3"), ("security", "semi-honest"), ("role a", "y")];
        assert_eq!(differ(&base, &weaker), ["security", "malicious", "semi-honest"]);
        assert_eq!(differ(&weaker, &base), ["security", "semi-honest", "malicious"]);
        let more = [base[0], base[1], ("role A", "z"), base[2]];
        assert_eq!(differ(&base, &more), ["role A", "not there", "z"]);
        assert_eq!(differ(&more, &base), ["role A", "z", "not there"]);
        assert_eq!(differ(&base, &base[..2]), ["role a", "x", "not there"]);
        assert_eq!(differ(&base[..2], &base), ["role a", "not there", "x"]);
        let swapped = [base[1], base[0], base[2]];
        assert_ne!(terms(&base).difference(&terms(&swapped)), None);
    }

    #[test]
    fn what_does_not_fit_into_the_list_is_in_the_digest() {
        let long = "v".repeat(MAX_TERM_TEXT + 1);
        let [_, ours, theirs] = differ(&[("a", &long)], &[("a", &format!("{long}w"))]);
        assert_ne!(ours, theirs);
        let many = |last: &str| {
            let terms = (0..2000).map(|i| (format!("role {i}"), "somebody".to_owned()));
            Terms::new(terms.chain([("last".to_owned(), last.to_owned())]))
        };
        let difference = many("x").difference(&many("y")).unwrap();
        assert_eq!(difference.term, UNLISTED);
        assert_eq!(many("x").difference(&many("x")), None);
        // Texts run into each other in no way that two lists share.
        assert_ne!(terms(&[("ab", "c")]), terms(&[("a", "bc")]));
    }
}
