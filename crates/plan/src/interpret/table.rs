//! The operations that read tables, on cleartext.

use super::truncate::Coins;
use crate::element::Element;
use crate::ir::{Op, Type, ValueId};
use crate::ops;
use crate::tables::{Exponential, Pieces};
use crate::waves::Waves;
use privet_ring::Ring;

/// The value of a table's operation of a checked plan. Real numbers go through their integers: what such an operation stands
/// for as a function is said by the [`Op::Approximates`] that follows.
pub(super) fn apply<E: Element>(
    id: ValueId,
    op: &Op,
    from: &Type,
    to: &Type,
    x: &[E],
    coins: &mut dyn Coins,
) -> Vec<E> {
    let (ring, out) = (Ring::new(from.bits), Ring::new(to.bits));
    let x: Vec<u64> = x.iter().map(|x| x.to_ring(ring, from.frac)).collect();
    let mut drawn = |bits: u32| {
        let coins = if bits == 0 { None } else { coins.draw(id, x.len(), bits) };
        let mut coins = coins.filter(|d| d.len() == x.len()).unwrap_or_else(|| vec![0; x.len()]);
        coins.iter_mut().for_each(|d| *d &= (1 << bits) - 1);
        coins
    };
    let y: Vec<u64> = match op {
        Op::Piecewise { shift, pieces } => {
            let pieces = Pieces { shift: *shift, pieces };
            x.iter().zip(drawn(*shift)).map(|(&x, d)| pieces.at(x, d)).collect()
        }
        Op::Lookup { tables } => {
            tables.iter().flat_map(|t| x.iter().map(|&x| t[x as usize] as u64)).collect()
        }
        Op::Exponential { first, rows, scale } => {
            let e = Exponential::new(from, *first, rows, *scale).expect("plans are checked");
            let drawn = drawn(from.frac);
            let row = |row: usize| x.iter().zip(&drawn).map(move |(&x, &d)| (row, x, d));
            (0..rows.len()).flat_map(row).map(|(row, x, d)| e.at(row, x, d)).collect()
        }
        Op::Waves { step, digits, waves } => {
            let w = Waves::new(from.bits, *step, *digits, waves).expect("plans are checked");
            x.iter().zip(drawn(from.bits)).map(|(&x, d)| w.at(x, d)).collect()
        }
        ops!(source) | ops!(local) | ops!(bilinear) | ops!(public) | ops!(rounding) | ops!(comparison) => {
            unreachable!("{op:?} reads no table")
        }
    };
    y.into_iter().map(|y| E::from_ring(out, to.frac, y)).collect()
}
