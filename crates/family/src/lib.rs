//! What every protocol family shares when it runs a plan: the account of a run, how long values last, and the
//! bilinear nodes as products on a device. Nothing here knows a secret from a share.

mod account;
mod forecast;
mod openings;
mod products;
mod uses;

pub use account::{NodeStats, Opening, OpeningKind};
pub use forecast::Forecast;
pub use openings::{Class, OpeningList, PlannedOpening, When};
pub use products::{Prepared, Products, spread_bias};
pub use uses::{is_static, last_use};
