//! Rings Z_2^k, fixed-point numbers, packing and geometry: the mathematics without parties.
//!
//! Every ring element is stored in a `u64`; only its low `k` bits count. See [`Ring`].

mod adder;
mod bits;
mod fixed;
mod geometry;
mod groups;
mod masks;
mod pack;
mod ring;
mod tensor;

pub use adder::Adder;
pub use bits::BitVec;
pub use fixed::{FixedError, FixedPoint};
pub use geometry::{Conv2d, Pool2d};
pub use masks::{PLACES, mask_at, mask_of, masks_of};
pub use pack::{PackError, element, pack, packed_len, unpack};
pub use ring::Ring;
pub use tensor::{Tensor, TensorError, transposed};
