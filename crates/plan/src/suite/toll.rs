//! Prices of no family: what tests of the plan's own rules go by, where any family's would do.

use crate::Plan;
use crate::cost::{Cost, Operation, PerParty, Prices, Security};
use crate::ir::{Op, Type};
use crate::ops;
use crate::target::{Refusal, Target};

/// Every gate is a round in which all bits of its result are sent; what compares takes keys in proportion to the bits
/// compared, and truncations to the bits dropped. So fewer and shorter gates are cheaper, as in every family.
#[derive(Clone, Copy, Debug, Default)]
pub struct Toll;

fn bytes(elements: u64, bits: u32) -> u64 {
    (elements * u64::from(bits)).div_ceil(8)
}

fn opened(result: &Type) -> Cost {
    let sent = bytes(result.len() as u64, result.bits);
    Cost { wire_bytes: PerParty::alike(sent), rounds: 1, ..Cost::default() }
}

fn compared(elements: u64, bits: u32, result: &Type) -> Cost {
    let keys = elements * 16 * (2 + u64::from(bits.max(7) - 7));
    let aes = elements * (1 + u64::from(bits.max(7) - 7));
    Cost { comparisons: elements, aes, key_bytes: PerParty::alike(keys), ..opened(result) }
}

impl Prices for Toll {
    fn protocol(&self) -> &'static str {
        "toll"
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    /// What every family has, against whomever: malicious parties have no sums of waves.
    fn has(&self, op: &Op) -> bool {
        !op.is_waves()
    }

    fn operation(&self, operation: &Operation<'_>) -> Cost {
        let (result, xs) = (operation.result, operation.types());
        let n = result.len() as u64;
        let from = xs.first().map_or(result.bits, |x| x.bits);
        let inner = || xs[0].shape.last().map_or(1, |&k| k as u64);
        match operation.op {
            Op::Input { .. } | Op::Weight { .. } => {
                Cost { client_bytes: bytes(n, result.bits), rounds: 1, ..Cost::default() }
            }
            Op::State { .. } | Op::Public { .. } | Op::Dropout { .. } | ops!(local) => Cost::default(),
            Op::Linear | Op::MatMul => Cost { macs: n * inner(), ..opened(result) },
            Op::Conv2d { geometry } => Cost { macs: geometry.macs(), ..opened(result) },
            Op::Mul => Cost { macs: n * xs.len() as u64 / 2, ..opened(result) },
            Op::Select => Cost { macs: n, ..opened(result) },
            Op::Scale | Op::Choose | Op::ChooseEvery | Op::Dither { .. } | ops!(table) => opened(result),
            Op::Truncate { shift, .. } => compared(n, *shift, result),
            Op::Relu | Op::Extend | Op::Max | Op::IsNegative | Op::Equal => compared(n, from, result),
            Op::MaxPool2d { .. } | Op::Argmax { .. } => compared(xs[0].len() as u64, from, result),
        }
    }

    fn output(&self, ty: &Type) -> Cost {
        Cost { client_bytes: bytes(ty.len() as u64, ty.bits), rounds: 1, ..Cost::default() }
    }
}

impl Target for Toll {
    fn refusals(&self, _plan: &Plan) -> Vec<Refusal> {
        Vec::new()
    }
}
