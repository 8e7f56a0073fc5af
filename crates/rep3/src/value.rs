//! What a party holds of a node's value: two components, of single bits packed.

use crate::planes::{elements, to_planes};
use crate::{Planes, Share};
use privet_kernels::Device;
use privet_ring::Ring;

/// A party's share of a node's value. What has one bit an element is always packed, 64 elements to a word: a bit of every
/// activation is kept from a step's forward to its backward pass.
#[derive(Clone)]
pub(crate) enum Value {
    /// Of a ring of two bits or more.
    Elements(Share),
    /// Of a ring of one bit: one plane.
    Bits(Planes),
}

impl From<Share> for Value {
    /// An element a word, of any ring: [`Value::of`] packs bits.
    fn from(share: Share) -> Value {
        Value::Elements(share)
    }
}

impl From<Planes> for Value {
    /// One plane.
    fn from(bits: Planes) -> Value {
        Value::Bits(bits)
    }
}

impl Value {
    /// A share of elements of `ring` as values are held.
    pub fn of(device: &dyn Device, ring: Ring, share: impl Into<Value>) -> Value {
        match share.into() {
            Value::Elements(share) if ring.bits() == 1 => {
                let plane = |component: &[u64]| to_planes(device, component, &[0]);
                Value::Bits(Planes::new(share.len(), 1, plane(&share.own), plane(&share.next)))
            }
            held @ (Value::Elements(_) | Value::Bits(_)) => held,
        }
    }

    /// One element a word. Packed bits are unpacked.
    pub fn elements(&self) -> Share {
        match self {
            Value::Elements(share) => share.clone(),
            Value::Bits(bits) => Share::new(elements(&bits.own, 0..bits.n), elements(&bits.next, 0..bits.n)),
        }
    }

    /// The packed bits of a value of one bit; none of another.
    pub fn bits(&self) -> Option<&Planes> {
        match self {
            Value::Bits(bits) => Some(bits),
            Value::Elements(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PartyId;
    use crate::testing::{open, share};
    use privet_kernels::cpu;

    #[test]
    fn bits_are_packed_and_unpacked() {
        let device = cpu(1);
        for n in [0, 1, 63, 64, 65, 200] {
            let x: Vec<u64> = (0..n).map(|i| (i % 3 == 0) as u64).collect();
            let shares = PartyId::ALL.map(|id| {
                let share = share(id, Ring::new(1), &x);
                let value = Value::of(device.as_ref(), Ring::new(1), share.clone());
                assert_eq!(value.bits().map(|bits| bits.own.len()), Some((n as usize).div_ceil(64)));
                let back = value.elements();
                assert!(back.own == share.own && back.next == share.next);
                back
            });
            assert_eq!(open(Ring::new(1), shares.each_ref()), x);
        }
        assert!(Value::of(device.as_ref(), Ring::new(2), Share::default()).bits().is_none());
    }
}
