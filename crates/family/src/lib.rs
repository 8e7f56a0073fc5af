//! What every protocol family shares: what it says of plans before they run ([`Forecast`]), the account of a run, how long
//! values last, and the bilinear nodes as products on a device. Nothing here knows a secret from a share.

mod account;
mod facts;
mod forecast;
mod openings;
mod parameters;
#[deny(clippy::wildcard_enum_match_arm)]
mod products;
mod uses;

pub use account::{NodeStats, Opening, OpeningKind};
pub use facts::{Facts, Holder, RoleRule};
pub use forecast::Forecast;
pub use openings::{Class, OpeningList, PlannedOpening, When};
pub use parameters::{Chosen, Parameter, Parameters};
pub use products::{Prepared, Products, spread_bias};
pub use uses::{is_static, last_use};
