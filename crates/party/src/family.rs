//! Where the name of a protocol family becomes what its crate says of plans; nothing else above the protocols asks
//! which family it is.

use crate::config::Protocol;
use privet_family::Forecast;

/// Prices, openings and remarks of a family.
pub fn forecast(protocol: Protocol) -> Box<dyn Forecast> {
    match protocol {
        Protocol::Fss => Box::new(privet_fss::Fss),
    }
}
