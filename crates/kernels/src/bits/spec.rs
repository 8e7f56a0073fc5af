//! The plain definition.

/// Bit l of `values[e]` becomes bit `e % 64` of word `e / 64` of plane `places[l]`; a plane has
/// `values.len().div_ceil(64)` words. Bits past `places.len()` are left out, and the padding of a plane's last word is zero.
/// Planes that no place names keep what they hold.
pub fn planes(values: &[u64], places: &[usize], out: &mut [u64]) {
    let words = values.len().div_ceil(64);
    for (l, &place) in places.iter().enumerate() {
        let plane = &mut out[place * words..(place + 1) * words];
        plane.fill(0);
        for (e, v) in values.iter().enumerate() {
            plane[e / 64] |= (v >> l & 1) << (e % 64);
        }
    }
}
