//! Tables of `deployment.toml` that have a family's name: its parameters. Which there are, the family says ([`Parameter`]).

use super::Protocol;
use privet_family::{Parameter, Parameters, Values};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, de};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// A file's families' tables, in its order, and everything else.
pub(super) struct Sifted<T> {
    pub tables: Vec<(Protocol, Parameters)>,
    pub rest: T,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Sifted<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(File(PhantomData))
    }
}

struct File<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for File<T> {
    type Value = Sifted<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Sifted<T>, A::Error> {
        let mut tables = Vec::new();
        let rest = T::deserialize(MapAccessDeserializer::new(Rest { map, tables: &mut tables }))?;
        Ok(Sifted { tables, rest })
    }
}

/// A file's map without the families' tables, which it takes in as they come.
struct Rest<'a, A> {
    map: A,
    tables: &'a mut Vec<(Protocol, Parameters)>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Rest<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, mut seed: K) -> Result<Option<K::Value>, A::Error> {
        loop {
            match self.map.next_key_seed(Key(seed))? {
                None => return Ok(None),
                Some(Found::Other(key)) => return Ok(Some(key)),
                Some(Found::Family(protocol, unused)) => {
                    self.tables.push((protocol, self.map.next_value_seed(Table(protocol))?));
                    seed = unused;
                }
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// A key, and whose it is. What a seed refuses is refused here, so that the error has the key's line.
struct Key<K>(K);

enum Found<K, V> {
    Family(Protocol, K),
    Other(V),
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for Key<K> {
    type Value = Found<K, K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let key = Cow::<str>::deserialize(deserializer)?;
        match key.parse() {
            Ok(protocol) => Ok(Found::Family(protocol, self.0)),
            Err(_) => self.0.deserialize(key.into_deserializer()).map(Found::Other),
        }
    }
}

/// A family's table.
struct Table(Protocol);

impl<'de> DeserializeSeed<'de> for Table {
    type Value = Parameters;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Parameters, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Table {
    type Value = Parameters;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a table of {}'s parameters", self.0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parameters, A::Error> {
        let mut parameters = Parameters::default();
        while let Some(parameter) = map.next_key_seed(Name(self.0))? {
            map.next_value_seed(Value(self.0, parameter, &mut parameters))?;
        }
        Ok(parameters)
    }
}

/// A parameter's name.
struct Name(Protocol);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = &'static Parameter;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static Parameter, D::Error> {
        let key = Cow::<str>::deserialize(deserializer)?;
        let all = self.0.facts().parameters;
        all.iter().find(|p| p.name == key).ok_or_else(|| {
            let names: Vec<String> = all.iter().map(|p| format!("`{}`", p.name)).collect();
            let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            de::Error::custom(format!("{} has no parameter `{}`; it has {has}", self.0, key.escape_debug()))
        })
    }
}

/// A parameter's value, for the set of all.
struct Value<'a>(Protocol, &'static Parameter, &'a mut Parameters);

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let Value(protocol, parameter, parameters) = self;
        let value = match parameter.values {
            Values::Number { .. } => Some(u64::deserialize(deserializer)?),
            Values::Words(_) => parameter.word(&Cow::<str>::deserialize(deserializer)?),
        };
        if value.is_some_and(|value| parameters.set(parameter, value)) {
            return Ok(());
        }
        let (name, advice, range) = (parameter.name, parameter.advice, parameter.range_text());
        Err(D::Error::custom(format!("`{protocol}.{name}` is out of range: give {range}; {advice}")))
    }
}
