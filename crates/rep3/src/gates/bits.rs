//! Bits turned into numbers. A bit that is shared modulo 2 has two summands as well, `u = c_j ^ c_(j+1)` known to the dealer of
//! a part and `v = c_(j+2)` known to the two others: dealing u and one split make numbers of them.

use crate::context::Party;
use crate::moves::{Chosen, Deal, Select};
use crate::parts::Parts;
use crate::planes::elements;
use crate::proof::Algebra;
use crate::{Planes, RunError, Share};
use privet_ring::Ring;

/// A plane as elements 0 and 1 of `to`: `u + v - 2uv`. Two rounds, none for a ring of one bit.
pub(crate) fn to_ring(cx: &mut Party, to: Ring, bit: &Planes) -> Result<Share, RunError> {
    let n = bit.n;
    if to.bits() == 1 {
        return Ok(Share::new(elements(&bit.own, 0..n), elements(&bit.next, 0..n)));
    }
    let (algebra, parts) = (Algebra::Ring(to), Parts::of(n));
    let words = parts.elements(cx.id).map(|part| part.len());
    let (bit, v) = bit.summands(cx, &parts);
    let [u] = cx.deal("bit", [Deal { algebra, values: bit.values.clone(), words, masks: None }])?;
    bit.claim(cx, to, &u);
    let chosen = vec![Chosen { number: u.clone(), weight: 2u64.wrapping_neg(), bit: v.clone() }];
    let [mut number] = cx.select("bit", [Select { ring: to, chosen, turned: None, words }])?;
    number.add_dealt(&u);
    number.add_known_times(&v, 1);
    Ok(number.join(cx.id, &parts))
}
