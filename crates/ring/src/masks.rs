//! Bits as words that choose: all ones for a 1, else 0. Nothing is compared, as a comparison may become a branch.

/// A bit in each place of a word.
pub const PLACES: [u64; 64] = {
    let mut places = [1; 64];
    let mut e = 1;
    while e < 64 {
        places[e] = places[e - 1] << 1;
        e += 1;
    }
    places
};

/// [`mask_of`], by that bit alone. Few processors shift words of a vector by amounts of their own.
#[inline(always)]
pub fn mask_at(word: u64, place: u64) -> u64 {
    // 0 where the bit is 1, and only 0 has a sign when 1 is taken off
    let lacks = !word & place;
    (lacks.wrapping_sub(1).cast_signed() >> 63).cast_unsigned()
}

/// Bit e of a word in every place.
#[inline(always)]
pub fn mask_of(word: u64, e: usize) -> u64 {
    (word >> e & 1).wrapping_neg()
}

/// Of every bit of a word.
#[inline(always)]
pub fn masks_of(word: u64) -> [u64; 64] {
    PLACES.map(|place| mask_at(word, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_the_bits() {
        for word in [0, 1, 1 << 63, u64::MAX, 0x9e37_79b9_7f4a_7c15] {
            for (e, mask) in masks_of(word).into_iter().enumerate() {
                assert_eq!(mask, if word >> e & 1 == 1 { u64::MAX } else { 0 }, "bit {e} of {word:x}");
                assert_eq!((mask_at(word, PLACES[e]), mask_of(word, e)), (mask, mask));
            }
        }
    }
}
