//! Where the name of a protocol family becomes what its crate says of plans; nothing else above the protocols asks
//! which family it is.

use crate::config::{Protocol, Security};
use privet_family::Forecast;

/// Prices, openings and remarks of a family.
pub fn forecast(protocol: Protocol, security: Security) -> Box<dyn Forecast> {
    match protocol {
        Protocol::Fss => Box::new(privet_fss::Fss),
        Protocol::Rep3 => Box::new(privet_rep3::Rep3::new(security)),
    }
}
