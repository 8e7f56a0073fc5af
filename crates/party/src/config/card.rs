use super::{Address, Place};
use privet_net::Fingerprint;
use std::str::FromStr;

/// What operators send each other, in one line: `party:0@hospital.example:7701#FINGERPRINT`, `client:alice#FINGERPRINT`.
///
/// Nothing in it is secret, but it must arrive unchanged: whoever can alter a card can take that place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Whose card it is.
    pub place: Place,
    /// Where others reach it; clients have none.
    pub address: Option<Address>,
    /// Its certificate.
    pub fingerprint: Fingerprint,
}

impl std::fmt::Display for Card {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.address {
            Some(address) => write!(f, "{}@{address}#{}", self.place, self.fingerprint),
            None => write!(f, "{}#{}", self.place, self.fingerprint),
        }
    }
}

impl FromStr for Card {
    type Err = String;

    fn from_str(s: &str) -> Result<Card, String> {
        let (who, fingerprint) = s.trim().split_once('#').ok_or("a card ends with `#FINGERPRINT`")?;
        let fingerprint =
            fingerprint.parse().map_err(|_| "what follows `#` is not a fingerprint".to_string())?;
        let (place, address) = match who.split_once('@') {
            Some((place, address)) => (place.parse()?, Some(address.parse()?)),
            None => (who.parse()?, None),
        };
        match (&place, &address) {
            (Place::Client(_), Some(_)) => Err("a client's card has no address".into()),
            (Place::Party(_) | Place::Dealer, None) => Err(format!("the card of {place} needs `@host:port`")),
            _ => Ok(Card { place, address, fingerprint }),
        }
    }
}
