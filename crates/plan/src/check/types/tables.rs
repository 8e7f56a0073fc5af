//! Operations that read public tables at secret places.

use super::rule::{Checked, ensure, same_shapes, shape_is};
use crate::ir::Type;
use crate::tables::Exponential;
use crate::waves::Waves;

/// Most bits of what a table is read at.
const MOST_INDEX: u32 = 12;
/// Most tables read at once.
const MOST_TABLES: usize = 16;
/// Most bits below the index of a piece: the square of t stays below 2^63.
const MOST_SHIFT: u32 = 31;

pub(super) fn piecewise([x]: [&Type; 1], y: &Type, shift: u32, pieces: usize) -> Checked {
    let index = x.bits.saturating_sub(shift);
    ensure((1..=MOST_INDEX).contains(&index) && pieces == 1 << index && shift <= MOST_SHIFT, || {
        format!("{pieces} pieces and {shift} bits below for {} bits", x.bits)
    })?;
    same_shapes(&[x], y)
}

/// A row of the result for each table.
pub(super) fn lookup([x]: [&Type; 1], y: &Type, tables: &[Vec<i64>]) -> Checked {
    let fits = |table: &Vec<i64>| x.bits <= MOST_INDEX && table.len() == 1 << x.bits;
    ensure((1..=MOST_TABLES).contains(&tables.len()) && tables.iter().all(fits), || {
        format!("tables of another length than 2^{}, none, or too many", x.bits)
    })?;
    shape_is(y, &[&[tables.len()], &x.shape[..]].concat())
}

pub(super) fn exponential([x]: [&Type; 1], y: &Type, first: u32, rows: &[(i32, u32)], scale: u32) -> Checked {
    Exponential::new(x, first, rows, scale).map(drop)?;
    shape_is(y, &[&[rows.len()], &x.shape[..]].concat())
}

pub(super) fn waves([x]: [&Type; 1], y: &Type, step: u32, digits: u32, waves: &[[i64; 2]]) -> Checked {
    Waves::new(x.bits, step, digits, waves).map(drop)?;
    same_shapes(&[x], y)
}
