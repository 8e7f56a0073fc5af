//! Layers without polynomials: what each tile holds of the operand is a *window*, and a layer is a plain product of all windows
//! with the weights.
//!
//! Where nothing but operands stands in polynomials, the outputs of their products are those of the plain product. So whoever
//! knows the operand's values needs no transforms.

use super::Layout;
use privet_kernels::LinearShape;
use zeroize::Zeroizing;

/// A packing whose tiles are windows of a plain product.
pub trait Windowed: Layout {
    /// The shape of products side by side, and their number. Their operands are all windows, tile by tile.
    fn products(&self) -> (LinearShape, usize);
    /// The products' weights, of those in the layout's order.
    fn product_weights(&self, w: &[u64]) -> Zeroizing<Vec<u64>>;
    /// Where coefficient 0 of operand polynomial `number` stands among the windows, and the others behind it. None where
    /// windows are the operand as it is.
    fn window(&self, number: usize) -> Option<usize>;
    /// For each output its place among the products' outputs. None where they are the same.
    fn output_places(&self) -> Option<Vec<u32>>;
    /// Coefficients of all operand polynomials where operands stand, nearly: some of these may be read by no product.
    fn held(&self) -> usize;

    /// Elements of all windows.
    fn windows_len(&self) -> usize {
        let (shape, count) = self.products();
        count * shape.input_len()
    }

    /// Outputs of all products.
    fn products_len(&self) -> usize {
        let (shape, count) = self.products();
        count * shape.output_len()
    }
}
