//! How far a word is reduced is part of its type.

/// Words below `B p` for the modulus p of their [`crate::field::Field`], in a register `V` of any width.
///
/// The number is an upper bound that the butterflies rely on: forgetting to reduce does not compile. It is made by
/// [`crate::field::Field`] alone, whose methods state the argument for each bound.
#[derive(Clone, Copy)]
pub(crate) struct Below<V, const B: u8>(V);

impl<V: Copy, const B: u8> Below<V, B> {
    /// Claims the bound: for the field's methods and for what is read back from memory that a kernel wrote.
    #[inline(always)]
    pub(crate) fn claim(v: V) -> Below<V, B> {
        Below(v)
    }

    /// The words.
    #[inline(always)]
    pub(crate) fn words(self) -> V {
        self.0
    }
}

/// A fixed factor below p and `floor(factor 2^52 / p)` (Shoup's quotient).
#[derive(Clone, Copy)]
pub(crate) struct Factor<V> {
    pub(crate) value: V,
    pub(crate) quotient: V,
}
