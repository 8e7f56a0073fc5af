//! Who plays which role.

use super::Place;
use privet_plan::lower::{DATA_OWNER, MODEL_OWNER, RECEIVER};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;

/// Who knows the labels, where that is not the data owner.
pub const LABEL_OWNER: &str = "label_owner";

/// Most roles of a deployment.
const MAX_ROLES: usize = 1024;

/// The roles that plans name, each with its place; the file may also write `-` for `_`.
///
/// Every deployment has a `data_owner`, who shares inputs, a `model_owner`, who shares weights and the first values of
/// states, and a `receiver`, who learns outputs. There may be a [`LABEL_OWNER`] as well, and several of a kind,
/// numbered from 2: `"data_owner.2" = "client:clinic"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles {
    places: BTreeMap<String, Place>,
}

impl Roles {
    /// The three roles that every deployment has.
    pub fn new(data_owner: Place, model_owner: Place, receiver: Place) -> Roles {
        let places = [(DATA_OWNER, data_owner), (MODEL_OWNER, model_owner), (RECEIVER, receiver)];
        Roles { places: places.into_iter().map(|(role, place)| (role.to_owned(), place)).collect() }
    }

    /// With one role more, or another place for one. An error says which roles there are.
    pub fn with(mut self, role: &str, place: Place) -> Result<Roles, String> {
        self.places.insert(role_name(role)?, place);
        Ok(self)
    }

    /// The role's place, by the name that plans use; `None` for a role that does not exist.
    pub fn get(&self, role: &str) -> Option<&Place> {
        self.places.get(role)
    }

    /// Every role, by the name that plans use, with its place.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Place)> {
        self.places.iter().map(|(role, place)| (role.as_str(), place))
    }

    /// The roles of a place.
    pub fn of(&self, place: &Place) -> Vec<&str> {
        self.all().filter(|(_, p)| *p == place).map(|(role, _)| role).collect()
    }

    /// Who owns the model.
    pub fn model_owner(&self) -> &Place {
        // Both ways to make roles see to it that it is there.
        &self.places[MODEL_OWNER]
    }
}

/// The name that plans use of a role as a file spells it.
fn role_name(text: &str) -> Result<String, String> {
    let name = text.replace('-', "_");
    let (kind, number) = name.split_once('.').map_or((&*name, None), |(kind, number)| (kind, Some(number)));
    let known = [DATA_OWNER, LABEL_OWNER, MODEL_OWNER, RECEIVER].contains(&kind);
    // One spelling a number: no sign, no leading zero.
    let numbered = |n: &str| n.parse::<u32>().is_ok_and(|i| i >= 2 && i.to_string() == n);
    if known && number.is_none_or(numbered) {
        return Ok(name);
    }
    let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    Err(format!(
        "unknown role `{shown}`; there are {DATA_OWNER}, {LABEL_OWNER}, {MODEL_OWNER} and {RECEIVER}, and further ones \
         numbered from 2, such as \"{DATA_OWNER}.2\""
    ))
}

impl<'de> Deserialize<'de> for Roles {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Roles, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = Roles;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a table of roles")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Roles, A::Error> {
                let mut places = BTreeMap::new();
                while let Some((RoleName(role), place)) = map.next_entry::<RoleName, Place>()? {
                    if places.len() == MAX_ROLES {
                        return Err(A::Error::custom(format!("more than {MAX_ROLES} roles")));
                    }
                    if places.insert(role.clone(), place).is_some() {
                        return Err(A::Error::custom(format!("role `{role}` is given twice")));
                    }
                }
                for role in [DATA_OWNER, MODEL_OWNER, RECEIVER] {
                    if !places.contains_key(role) {
                        return Err(A::Error::missing_field(role));
                    }
                }
                Ok(Roles { places })
            }
        }
        de.deserialize_map(Table)
    }
}

struct RoleName(String);

impl<'de> Deserialize<'de> for RoleName {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<RoleName, D::Error> {
        role_name(&String::deserialize(de)?).map(RoleName).map_err(D::Error::custom)
    }
}
