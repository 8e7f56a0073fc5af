//! What every protocol family shares: what it says of plans before they run ([`Forecast`]), the account of a run, how long
//! values last, the bilinear nodes as products on a device, and words that are wiped when dropped. Nothing here knows how a family shares.

mod account;
mod dropout;
mod facts;
mod forecast;
pub mod keys;
mod masks;
mod openings;
mod parameters;
#[deny(clippy::wildcard_enum_match_arm)]
mod products;
mod secret;
mod states;
mod uses;
mod wire;

pub use account::{NodeStats, Opening, OpeningKind};
pub use dropout::{dropout_coins, keep};
pub use facts::{Dealing, Facts, Holder, RoleRule};
pub use forecast::Forecast;
pub use masks::{MaskCache, MaskFrom};
pub use openings::{Class, OpeningList, PlannedOpening, When};
pub use parameters::{Chosen, Parameter, Parameters, Values};
pub use products::{Prepared, Products, spread_bias};
pub use secret::{Secret, Wipe};
pub use states::{States, expand_state, share_state};
pub use uses::{is_static, last_use};
pub use wire::Wire;
