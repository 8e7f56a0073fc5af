//! Local operations: on each component by itself, public constants on component 0 alone.

use crate::gate::{Gate, Held};
use crate::price::{Moves, Setting};
use crate::value::Value;
use crate::{Party, PartyId, Planes, RunError, Share};
use privet_family::Secret;
use privet_kernels::wide;
use privet_plan::cost::Operation;
use privet_plan::ir::{Node, Op, Plan, ValueId};
use privet_plan::{Affine, apply_local, apply_local_in_place, ops};
use privet_ring::Ring;
use std::sync::Arc;

/// Party `id`'s share of a local operation's value.
pub(crate) fn apply(id: PartyId, plan: &Plan, node: &Node, value: impl Fn(ValueId) -> Share) -> Share {
    let operands: Vec<Share> = node.inputs.iter().map(|&v| value(v)).collect();
    let component = |holder: PartyId, pick: fn(&Share) -> &Arc<Secret>| {
        let first = holder.index() == 0;
        if keeps(&node.op, first) {
            return pick(&operands[0]).clone();
        }
        if matches!(node.op, Op::Approximates { .. }) {
            return pick(&operands[1]).clone();
        }
        let types: Vec<_> = node.inputs.iter().map(|&v| &plan.nodes[v].ty).collect();
        let operands: Vec<&[u64]> = operands.iter().map(|x| pick(x).as_slice()).collect();
        let affine = if first { Affine::Full } else { Affine::Linear };
        Arc::new(apply_local(&node.op, &types, &node.ty, &operands, affine).into())
    };
    Share { own: component(id, |x| &x.own), next: component(id.next(), |x| &x.next) }
}

/// Whether an operation leaves a component's words as they are: `first` says that it is component 0, to which constants are added.
fn keeps(op: &Op, first: bool) -> bool {
    matches!(op, Op::Reshape | Op::Rescale) || (matches!(op, Op::AddConst { .. }) && !first)
}

/// [`apply`] of an elementwise operation to a value that nothing reads later: in its memory, unless somebody else holds that, as a statement
/// does that is still to be proved. `y` is the second operand, if there is one.
pub(crate) fn over(id: PartyId, plan: &Plan, node: &Node, x: Share, y: Option<&Share>) -> Share {
    let types: Vec<_> = node.inputs.iter().map(|&v| &plan.nodes[v].ty).collect();
    let component = |holder: PartyId, mut x: Arc<Secret>, y: Option<&Arc<Secret>>| {
        let first = holder.index() == 0;
        if keeps(&node.op, first) {
            return x;
        }
        let (affine, y) = (if first { Affine::Full } else { Affine::Linear }, y.map(|y| y.as_slice()));
        if let Some(words) = Arc::get_mut(&mut x) {
            apply_local_in_place(&node.op, &types, &node.ty, words, y, affine);
            return x;
        }
        let operands: Vec<&[u64]> = std::iter::once(x.as_slice()).chain(y).collect();
        Arc::new(apply_local(&node.op, &types, &node.ty, &operands, affine).into())
    };
    Share {
        own: component(id, x.own, y.map(|y| &y.own)),
        next: component(id.next(), x.next, y.map(|y| &y.next)),
    }
}

/// `x - y`.
pub(crate) fn difference(ring: Ring, x: &Share, y: &Share) -> Share {
    zip(x, y, |a, b| ring.wrap(a.wrapping_sub(b)))
}

/// `x + y`.
pub(crate) fn sum(ring: Ring, x: &Share, y: &Share) -> Share {
    zip(x, y, |a, b| ring.wrap(a.wrapping_add(b)))
}

/// x plus public constants, one an element.
pub(crate) fn plus_public(id: PartyId, ring: Ring, x: &Share, constant: impl Fn(usize) -> u64) -> Share {
    let component = |holder: PartyId, x: &Arc<Secret>| match holder.index() {
        0 => Arc::new(wide!({
            x.iter().enumerate().map(|(i, x)| ring.wrap(x.wrapping_add(constant(i)))).collect::<Secret>()
        })),
        _ => x.clone(),
    };
    Share { own: component(id, &x.own), next: component(id.next(), &x.next) }
}

/// x times a number that everybody knows.
pub(crate) fn scaled(ring: Ring, x: &Share, factor: u64) -> Share {
    let each = |x: &[u64]| wide!(x.iter().map(|x| ring.wrap(x.wrapping_mul(factor))).collect());
    Share::new(each(&x.own), each(&x.next))
}

/// x where a public coin is below `keep`, else 0: every component is kept or cleared.
pub(crate) fn kept(x: &Share, coins: &[u64], keep: u32) -> Share {
    let each = |x: &[u64]| {
        let kept = |(&x, &coin): (&u64, &u64)| if coin < u64::from(keep) { x } else { 0 };
        x.iter().zip(coins).map(kept).collect()
    };
    Share::new(each(&x.own), each(&x.next))
}

fn zip(x: &Share, y: &Share, f: impl Fn(u64, u64) -> u64) -> Share {
    let each = |x: &[u64], y: &[u64]| wide!(x.iter().zip(y).map(|(&a, &b)| f(a, b)).collect());
    Share::new(each(&x.own, &y.own), each(&x.next, &y.next))
}

/// Truncate-reduce by `shift` within one unit in the last place, from `from` to `shift` bits less.
///
/// The floors of three summands add up to the floor of their sum less the carries c, 0 to 2 of them, out of the low
/// bits; where the sum wraps around 2^k, the floors wrap around the smaller ring by as much. One more makes that the
/// floor plus 1 - c. Nothing is sent, so there is nothing to prove.
pub(crate) fn truncate_within_one(id: PartyId, from: Ring, shift: u32, x: &Share) -> Share {
    let to = Ring::new(from.bits() - shift);
    let component = |holder: PartyId, x: &[u64]| {
        let one = (holder.index() == 0) as u64;
        wide!(x.iter().map(|x| to.wrap((x >> shift).wrapping_add(one))).collect())
    };
    Share::new(component(id, &x.own), component(id.next(), &x.next))
}

/// A local operation on packed bits, 64 elements at a time: none for operations that move elements, which are unpacked.
/// Modulo 2, adding is subtracting and a number is its negation.
fn on_bits(id: PartyId, op: &Op, operands: &[&Planes]) -> Option<Planes> {
    let x = *operands.first()?;
    Some(match op {
        Op::Add | Op::Sub => x.all().xor(&operands.get(1)?.all()).plane(x.n),
        Op::AddConst { value } if value % 2 != 0 => x.not(id),
        Op::AddConst { .. } | Op::Neg | Op::Reshape | Op::Rescale | Op::Reduce => x.clone(),
        Op::MulConst { .. } | Op::Mix { .. } | Op::ShiftUp { .. } | Op::Approximates { .. } => return None,
        Op::SumPool2d { .. } | Op::AdaptiveSumPool2d | Op::Sum { .. } | Op::Expand => return None,
        Op::Permute { .. } | Op::Slice { .. } | Op::Concat { .. } | Op::Reverse { .. } => return None,
        Op::Pad { .. } | ops!(source) | ops!(gate) => return None,
    })
}

/// Every operation of [`privet_plan::apply_local`]. Nothing is sent and nothing stated.
pub(crate) struct Local<'a>(pub &'a Op);

impl Gate for Local<'_> {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        if x.to().bits() == 1 {
            let operands: Option<Vec<_>> = (0..x.node().inputs.len()).map(|i| x.bits(i)).collect();
            if let Some(bits) = operands.and_then(|operands| on_bits(cx.id, self.0, &operands)) {
                return Ok(bits.into());
            }
        }
        Ok(apply(cx.id, x.plan, x.node(), |v| x.share_of(v)).into())
    }

    fn price(&self, _: &Setting, _: &Operation<'_>) -> Moves {
        Moves::default()
    }
}

/// [`privet_plan::ir::Op::Scale`]: each party multiplies what it holds.
pub(crate) struct Scale;

impl Gate for Scale {
    fn eval(&self, _: &mut Party, x: &Held) -> Result<Value, RunError> {
        Ok(scaled(x.to(), &x.share(0), x.public(1)?).into())
    }

    fn price(&self, _: &Setting, _: &Operation<'_>) -> Moves {
        Moves::default()
    }
}

/// [`privet_plan::ir::Op::Dropout`], by coins that all parties have.
pub(crate) struct Dropout {
    pub stream: u32,
    pub keep: u32,
}

impl Gate for Dropout {
    fn eval(&self, cx: &mut Party, x: &Held) -> Result<Value, RunError> {
        let coins = cx.dropout(self.stream, x.node().ty.len())?;
        Ok(kept(&x.share(0), &coins, self.keep).into())
    }

    fn price(&self, _: &Setting, _: &Operation<'_>) -> Moves {
        Moves::default()
    }

    fn draws_coins(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_plan::ir::{PLAN_VERSION, Type};

    /// In memory of its own or in its operand's an operation has the same value, and what somebody else holds stays as it is.
    #[test]
    fn only_what_nobody_else_holds_is_overwritten() {
        let ops = [
            Op::Add,
            Op::Sub,
            Op::Neg,
            Op::AddConst { value: -9 },
            Op::MulConst { value: 77 },
            Op::Reduce,
            Op::Rescale,
            Op::ShiftUp { shift: 5 },
        ];
        for (op, id) in ops.iter().flat_map(|op| PartyId::ALL.map(|id| (op, id))) {
            let of = |op: Op, inputs: &[usize], bits| Node {
                op,
                inputs: inputs.to_vec(),
                ty: Type { shape: vec![4], bits, frac: 0 },
                layer: String::new(),
                form: None,
            };
            let source = || Op::Input { name: String::new(), owner: String::new(), limit: 1.0 };
            let inputs = if matches!(op, Op::Add | Op::Sub) { vec![0, 1] } else { vec![0] };
            let bits = if matches!(op, Op::Reduce) { 9 } else { 40 };
            let node = of(op.clone(), &inputs, bits);
            let nodes = vec![of(source(), &[], 40), of(source(), &[], 40), node.clone()];
            let (version, name) = (PLAN_VERSION, String::new());
            let plan = Plan { version, name, batch: 1, nodes, outputs: vec![], updates: vec![] };
            let operand = |seed: u64| {
                let words = |i: u64| (0..4).map(|e| (seed + i * 1_000_003 + e) * 7919).collect::<Vec<u64>>();
                Share::new(words(1), words(2))
            };
            let (x, y) = (operand(5), operand(11));
            let expected = apply(id, &plan, &node, |v| if v == 0 { x.clone() } else { y.clone() });
            let y = (inputs.len() > 1).then_some(&y);
            let held = over(id, &plan, &node, x.clone(), y);
            assert!(x.own == operand(5).own && x.next == operand(5).next, "{op:?} changed what is held");
            let alone = over(id, &plan, &node, operand(5), y);
            for made in [held, alone] {
                assert!(made.own == expected.own && made.next == expected.next, "{op:?} at {id}");
            }
        }
    }
}
