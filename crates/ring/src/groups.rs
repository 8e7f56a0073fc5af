//! Packed elements eight at a time: eight of k bits take k bytes. Each k has its own loop, in which all places and shifts are constants.

use crate::Ring;

/// Elements of a group.
pub(crate) const GROUP: usize = 8;
/// Bytes that reading a group looks at: where elements are short, more than it has.
const WINDOW: usize = 8 * GROUP;

/// `$call` with the ring's bits as the constant `BITS`.
macro_rules! with_bits {
    ($ring:expr, $function:ident($($argument:expr),*)) => {
        with_bits!(@ $ring, $function($($argument),*),
            1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
            33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64)
    };
    (@ $ring:expr, $function:ident $arguments:tt, $($bits:literal)*) => {
        match $ring.bits() {
            $($bits => with_bits!(@call $function, $bits, $arguments),)*
            _ => unreachable!("a ring has 1 to 64 bits"),
        }
    };
    (@call $function:ident, $bits:literal, ($($argument:expr),*)) => { $function::<$bits, _>($($argument),*) };
}

/// `each` gets the groups at the start of `bytes`, at most `most` and as many as can be read whole; says how many these were.
pub(crate) fn read(ring: Ring, bytes: &[u8], most: usize, each: impl FnMut([u64; GROUP])) -> usize {
    with_bits!(ring, read_groups(bytes, most, each))
}

fn read_groups<const BITS: usize, F: FnMut([u64; GROUP])>(bytes: &[u8], most: usize, mut each: F) -> usize {
    let (mut rest, mut groups) = (bytes, 0);
    while groups < most
        && let Some(window) = rest.first_chunk()
    {
        each(group::<BITS>(window));
        (rest, groups) = (&rest[BITS..], groups + 1);
    }
    groups
}

#[inline(always)]
fn group<const BITS: usize>(window: &[u8; WINDOW]) -> [u64; GROUP] {
    std::array::from_fn(|i| {
        let (first, shift) = (i * BITS / 8, i * BITS % 8);
        let word = window[first..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word) >> shift);
        let above = if shift + BITS > 64 { u64::from(window[first + 8]) << (64 - shift) } else { 0 };
        (word | above) & (u64::MAX >> (64 - BITS))
    })
}

/// Append groups to `out`; what lies above the ring's bits is left out.
pub(crate) fn write(ring: Ring, groups: &[[u64; GROUP]], out: &mut Vec<u8>) {
    with_bits!(ring, write_groups(groups.iter(), out))
}

fn write_groups<'a, const BITS: usize, I: Iterator<Item = &'a [u64; GROUP]>>(groups: I, out: &mut Vec<u8>) {
    for values in groups {
        let bytes = packed::<BITS>(values).map(u64::to_le_bytes);
        out.extend_from_slice(&bytes.as_flattened()[..BITS]);
    }
}

#[inline(always)]
fn packed<const BITS: usize>(values: &[u64; GROUP]) -> [u64; GROUP] {
    let mut words = [0; GROUP];
    for (i, value) in values.iter().enumerate() {
        let (value, word, shift) = (value & (u64::MAX >> (64 - BITS)), i * BITS / 64, i * BITS % 64);
        words[word] |= value << shift;
        if shift + BITS > 64 {
            words[word + 1] |= value >> (64 - shift);
        }
    }
    words
}
