//! The parties' own preprocessing, without anybody who helps: by oblivious transfer among all pairs of them, and by
//! homomorphic encryption.
//!
//! | file | what it is |
//! |---|---|
//! | `row` | transfers with chosen choices that carry words and bits: what everything else is made of |
//! | `peers` | rows with all peers at once |
//! | `lanes` | programs of several nodes that share messages |
//! | `walk` | the walk over a plan at a party, small nodes in lanes |
//! | `chain` | bits to words, with products of pairs of bits |
//! | `masks` | masks of bits, words of bits |
//! | `party` | a party that prepares a record |
//! | `session` | what it keeps from record to record |
//! | `distance` | the source of transfers that suits the way between parties |
//! | `unrolled` | products of small matrices by those of elements |
//! | `transfers` | all of it, on shares as gates' programs see them |
//! | `cost` | what these cost |
//! | `and`, `times`, `multiply` | products of bits, of bits and words, of words |
//! | `encryption` | what a session of encryption has, and how its messages are summed up |
//! | `linear` | matrix products and convolutions by encryption |
//! | `layers` | the layers of a plan, each with its weights' masks prepared once; the cheaper way for every product |
//! | `elements` | products of many words by encryption, one by one |

mod and;
mod bits;
mod chain;
pub mod cost;
pub(crate) mod distance;
mod elements;
mod encryption;
mod lanes;
mod layers;
mod linear;
mod masks;
mod multiply;
mod party;
mod peers;
mod row;
mod session;
mod times;
mod transfers;
mod unrolled;
pub(crate) mod walk;

pub use elements::elements_cost;
pub use encryption::Encryption;
pub use layers::Layers;
pub(crate) use layers::too_wide;
pub use linear::{Layer, Task};
pub use party::{Joint, Linear, Own};
pub use peers::Peer;
pub use session::{Begun, JointSession};
pub use transfers::Transfers;
pub use walk::prepare_together;

use crate::PrepareError;
use privet_ot::{OtError, Short};

impl From<OtError> for PrepareError {
    fn from(error: OtError) -> PrepareError {
        if let OtError::Net(error) = error {
            PrepareError::Net(error)
        } else {
            PrepareError::Failed(error.to_string())
        }
    }
}

impl From<Short> for PrepareError {
    fn from(error: Short) -> PrepareError {
        PrepareError::Failed(error.to_string())
    }
}
