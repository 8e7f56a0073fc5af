//! Where the name of a protocol family becomes what its crate says of plans; nothing else above the protocols asks
//! which family it is.

use crate::config::{Protocol, Security};
use privet_family::Forecast;

/// Prices, openings and remarks of a family; none where its crate does not state them.
pub fn forecast(protocol: Protocol, _: Security) -> Option<Box<dyn Forecast>> {
    match protocol {
        Protocol::Fss => Some(Box::new(privet_fss::Fss)),
        Protocol::Rep3 => None,
    }
}
