//! A bit times a value: the second half of ReLU, with a bit that is there already.

use super::in_blocks_of;
use super::times::bit_times;
use crate::context::Party;
use crate::gate::{Gate, Held};
use crate::moves::And;
use crate::price::{Moves, Setting};
use crate::value::Value;
use crate::{Planes, RunError, Share};
use privet_plan::cost::Operation;
use privet_ring::Ring;

/// x where the bit is 1, else 0. Two rounds.
pub(crate) fn eval(cx: &mut Party, ring: Ring, bit: &Planes, x: &Share) -> Result<Share, RunError> {
    let [y] = in_blocks_of(cx, [x], |cx, block, [x]| bit_times(cx, &bit.range_of(block), [(ring, x)]))?;
    Ok(y)
}

/// A bit where another one is 1, else 0: an AND. One round.
pub(crate) fn both(cx: &mut Party, bit: &Planes, x: &Planes) -> Result<Planes, RunError> {
    let (mut own, mut next) = (Vec::with_capacity(x.own.len()), Vec::with_capacity(x.own.len()));
    for block in cx.limits.blocks(x.n) {
        if block.start > 0 {
            cx.verify_if_large()?;
        }
        let [x, y] = [x, bit].map(|bits| bits.range_of(block.clone()).all());
        for found in cx.and("chosen bit", &[And { x, y, plus: None }])? {
            own.extend_from_slice(&found.own);
            next.extend_from_slice(&found.next);
        }
    }
    Ok(Planes::new(x.n, 1, own, next))
}

/// [`privet_plan::ir::Op::Choose`].
pub(crate) struct Choose;

impl Gate for Choose {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        let bit = x.bits(0).ok_or_else(|| x.missing("bit to choose by"))?;
        match x.bits(1) {
            Some(of) => Ok(both(cx, bit, of)?.into()),
            None => Ok(eval(cx, x.to(), bit, &x.share(1))?.into()),
        }
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        setting.choose(of.elements(), of.result_bits())
    }
}

/// [`privet_plan::ir::Op::ChooseEvery`]: all bits first, one after the other.
pub(crate) struct ChooseEvery;

impl Gate for ChooseEvery {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        let last = x.plan.nodes[x.id].inputs.len() - 1;
        let bit = |i: usize| x.bits(i).ok_or_else(|| x.missing("bit to choose by"));
        let mut every = both(cx, bit(0)?, bit(1)?)?;
        for i in 2..last {
            every = both(cx, &every, bit(i)?)?;
        }
        match x.bits(last) {
            Some(of) => Ok(both(cx, &every, of)?.into()),
            None => Ok(eval(cx, x.to(), &every, &x.share(last))?.into()),
        }
    }

    fn price(&self, setting: &Setting, of: &Operation<'_>) -> Moves {
        let ands = (2..of.operands.len()).map(|_| setting.choose(of.elements(), 1));
        ands.chain([setting.choose(of.elements(), of.result_bits())]).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{edges, share, value};
    use crate::value::Value;

    #[test]
    fn bits_by_bits() {
        let one = Ring::new(1);
        for n in [0, 1, 64, 65, 300] {
            let bits = |of: fn(u64) -> u64| (0..n as u64).map(|i| of(i) % 2).collect::<Vec<u64>>();
            let (b, x) = (bits(|i| i / 3 + i / 7), bits(|i| i / 2));
            let y = value(one, |cx| {
                let planes =
                    |v: &[u64]| Value::of(cx.device, one, share(cx.id, one, v)).bits().cloned().unwrap();
                let (b, x) = (planes(&b), planes(&x));
                Value::from(both(cx, &b, &x).unwrap()).elements()
            });
            let expected: Vec<u64> = x.iter().zip(&b).map(|(x, b)| x & b).collect();
            assert_eq!(y, expected, "{n}");
        }
    }

    #[test]
    fn every_bit_with_the_edges_of_every_ring() {
        for bits in [1, 2, 5, 40, 64] {
            let ring = Ring::new(bits);
            for n in [0, 1, 64, 65, 300] {
                let x = edges(ring, n);
                let b: Vec<u64> = (0..n as u64).map(|i| (i / 3 + i / 7) % 2).collect();
                let y = value(ring, |cx| {
                    let one = Ring::new(1);
                    let bit = Value::of(cx.device, one, share(cx.id, one, &b));
                    eval(cx, ring, bit.bits().unwrap(), &share(cx.id, ring, &x)).unwrap()
                });
                let expected: Vec<u64> = x.iter().zip(&b).map(|(x, b)| x * b).collect();
                assert_eq!(y, expected, "{n} of {ring}");
            }
        }
    }
}
