//! How much a party takes on at a time: where an operation is cut into blocks, and when what was stated is verified.
//!
//! This is the one place that decides. Gates and prices both ask it, so that what a run is declared to cost is what it costs.

use crate::price::proofs::{batch_bytes, by_element, product_bytes, tagged_bytes};
use crate::{Rep3, Security};
use privet_family::Products;
use std::ops::Range;

/// The same at all parties.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Elements that a gate takes at a time.
    pub block: usize,
    /// Bytes of statements from which on they are worth a verification, between two blocks and after every node.
    pub worth: u64,
    /// Bytes of statements above which nothing else is stated before they are verified. Those of a verification that is under way count.
    pub statements: u64,
    /// Elements of a layer with tags, of its first operand and its results, from which on they are combined ahead of the verification.
    pub ahead: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { block: Rep3::BLOCK, worth: 192 << 20, statements: 512 << 20, ahead: 1 << 15 }
    }
}

/// What is verified when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verified {
    /// Nothing until more is stated.
    Later,
    /// What is stated, in the rounds of what the protocol does next. What is under way comes to its end before.
    Beside,
    /// All before anything else.
    Now,
}

impl Limits {
    /// The elements of every block of n; one block where there is no element.
    pub fn blocks(&self, n: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let block = self.block;
        (0..n.max(1)).step_by(block).map(move |start| start..n.min(start.saturating_add(block)))
    }

    /// The units ([`Products::units`]) of every part that products are cut into where their statements alone are more than is
    /// remembered: each states as much as that at most, but one unit at least. A second operand without tags that all parts have is stated
    /// with each; units that state as much stay together, so that what is stated in all is not more than twice as much as in one part.
    /// All in one part where nothing is proved, or where there is no unit.
    pub fn parts(
        &self,
        security: Security,
        products: &Products,
        tagged: bool,
    ) -> impl Iterator<Item = Range<usize>> + use<> {
        let (units, stated) = (products.units(), product_statements(products, tagged));
        let each = match security {
            Security::Malicious if stated > self.part() => {
                let common = match products.count {
                    1 if !tagged => product_bytes(0, products.weight_len(), 0),
                    _ => 0,
                };
                let unit = (stated - common).div_ceil(units.max(1) as u64);
                (self.part().saturating_sub(common).max(common) / unit.max(1)).max(1) as usize
            }
            Security::Malicious | Security::SemiHonest => units.max(1),
        };
        (0..units.max(1)).step_by(each).map(move |start| start..units.min(start.saturating_add(each)))
    }

    /// Bytes that a part states at most: as much as another part may that is under way.
    fn part(&self) -> u64 {
        self.statements / 2
    }

    /// The same for what makes so many elements of each.
    pub fn over(self, values: usize) -> Limits {
        // blocks end where words of bits do
        Limits { block: (self.block / values).next_multiple_of(64).max(64), ..self }
    }

    /// The same while tags of weights are made: what is stated of a layer's weights is its share, which is let go once that is verified.
    pub fn preparing(self) -> Limits {
        Limits { statements: self.statements.min(64 << 20), ..self }
    }

    /// Whether results of a layer with tags, or a part of them, are combined as soon as its messages are in: where rows are combined at all, and not
    /// each multiplied with the tag, and where there are enough of them to be worth a seed.
    pub fn ahead(&self, products: &Products, few_rows: bool) -> bool {
        !few_rows && products.input_len() + products.output_len() >= self.ahead
    }

    /// What is done about so many bytes of statements, beside those of a verification that is `under_way`. One at a time is: another waits
    /// for it as long as there is room.
    pub fn verified(&self, bytes: u64, under_way: u64) -> Verified {
        if bytes > self.statements {
            Verified::Now
        } else if bytes + under_way > self.statements || under_way == 0 && bytes > self.worth {
            Verified::Beside
        } else {
            Verified::Later
        }
    }
}

/// Bytes of what is stated about products, as operands or element by element.
fn product_statements(products: &Products, tagged: bool) -> u64 {
    match by_element(products.shape) {
        _ if tagged => tagged_bytes(products.input_len(), products.output_len()),
        Some(depth) => 3 * batch_bytes(products.output_len(), depth),
        None => product_bytes(products.input_len(), products.weight_len(), products.output_len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_kernels::LinearShape;

    #[test]
    fn parts_are_all_units_in_order_and_state_no_more_than_the_limit() {
        let product = |m, k, n, count| Products { shape: LinearShape::MatMul { m, k, n }, count };
        for (products, statements, least) in [
            (product(100, 3, 5, 1), 16 * (3 * 5 + 8 * 10), 10),
            (product(100, 3, 5, 1), 1, 100),
            (product(100, 3, 5, 1), u64::MAX, 1),
            (product(3, 4, 5, 100), 16 * 47 * 7, 15),
            (product(2, 4, 4, 100), 3 * 8 * 8 * 9 * 25, 4),
            (product(0, 4, 5, 1), 0, 1),
        ] {
            let limits = Limits { block: 64, worth: 0, statements: statements.saturating_mul(2), ahead: 0 };
            let parts: Vec<_> = limits.parts(Security::Malicious, &products, false).collect();
            assert_eq!(parts.len(), least, "{statements} bytes at a time");
            assert!((parts[0].start, parts[parts.len() - 1].end) == (0, products.units()));
            assert!(parts.windows(2).all(|p| p[0].end == p[1].start));
            let stated = |part: &Range<usize>| product_statements(&products.with_units(part.len()), false);
            assert!(parts.iter().all(|part| part.len() <= 1 || stated(part) <= statements));
            assert_eq!(limits.parts(Security::SemiHonest, &products, false).count(), 1);
        }
    }

    /// Rows of words looked up in a large table: the table is not stated anew with every row.
    #[test]
    fn a_large_second_operand_is_stated_a_few_times_at_most() {
        for (m, k, n) in
            [(128, 30_522, 384), (1, 30_522, 384), (512, 1_000, 2_000), (4096, 500, 900), (7, 64, 9000)]
        {
            let products = Products { shape: LinearShape::MatMul { m, k, n }, count: 1 };
            let whole = product_statements(&products, false);
            for statements in [1, whole / 3, whole / 2, 192 << 20] {
                let limits = Limits { block: 64, worth: 0, statements: 2 * statements, ahead: 0 };
                let parts = limits.parts(Security::Malicious, &products, false);
                let stated: Vec<u64> =
                    parts.map(|part| product_statements(&products.with_units(part.len()), false)).collect();
                let common = product_bytes(0, k * n, 0);
                assert!(
                    stated.iter().all(|&bytes| bytes <= statements.max(2 * common)),
                    "{m} rows, {statements}"
                );
                // the last part may be a short one
                let all = stated.iter().sum::<u64>();
                assert!(
                    2 * common <= statements || all <= 2 * whole + common,
                    "{m} rows, {statements}: {all} of {whole}"
                );
            }
        }
    }

    #[test]
    fn blocks_are_all_elements_in_order() {
        for (n, block) in [(0, 64), (1, 64), (64, 64), (65, 64), (1000, 128), (7, usize::MAX)] {
            let blocks: Vec<_> = Limits { block, worth: 0, statements: 0, ahead: 0 }.blocks(n).collect();
            assert_eq!(blocks.len(), n.div_ceil(block).max(1), "{n} in blocks of {block}");
            assert!(blocks.iter().all(|b| b.len() <= block));
            assert!((blocks[0].start, blocks[blocks.len() - 1].end) == (0, n));
            assert!(blocks.windows(2).all(|b| b[0].end == b[1].start && b[0].len() == block));
        }
    }
}
