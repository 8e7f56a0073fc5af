//! The key schedule of FIPS 197, section 5.2, as kernels take it.

use zeroize::{Zeroize, ZeroizeOnDrop};

/// Round keys of AES-128, four words each, bytes from the lowest one. Halves of words of the rounds 1 to 9 are swapped:
/// kernels add them before they turn a word by 16 bits. Wiped when dropped, never printed.
#[repr(C)]
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Schedule([u32; 44]);

/// Four products in GF(2^8), byte by byte, without a branch or a place in memory that depends on a byte: keys of streams are
/// secret.
fn product(mut a: u32, b: u32) -> u32 {
    let ones = |v: u32| (v & 0x01010101) * 0xff;
    let mut sum = 0;
    for i in 0..8 {
        sum ^= ones(b >> i) & a;
        a = (a & 0x7f7f7f7f) << 1 ^ (ones(a >> 7) & 0x1b1b1b1b);
    }
    sum
}

/// The S-box on four bytes: the inverse `v^254`, and an affine map.
fn substitute(v: u32) -> u32 {
    let (mut inverse, mut square) = (0x01010101, v);
    for _ in 0..7 {
        square = product(square, square);
        inverse = product(inverse, square);
    }
    let map = |b: u8| b ^ b.rotate_left(1) ^ b.rotate_left(2) ^ b.rotate_left(3) ^ b.rotate_left(4) ^ 0x63;
    u32::from_le_bytes(inverse.to_le_bytes().map(map))
}

impl Schedule {
    /// Of this key.
    pub fn new(key: &[u8; 16]) -> Schedule {
        let mut words = [0; 44];
        for (w, k) in words.iter_mut().zip(key.as_chunks().0) {
            *w = u32::from_le_bytes(*k);
        }
        let mut round = 1;
        for i in 4..44 {
            let mut last = words[i - 1];
            if i % 4 == 0 {
                last = substitute(last.rotate_right(8)) ^ round;
                round = product(round, 2);
            }
            words[i] = words[i - 4] ^ last;
        }
        for w in &mut words[4..40] {
            *w = w.rotate_left(16);
        }
        Schedule(words)
    }
}

impl std::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Schedule(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appendix A.1 of FIPS 197: the last word of the first round, and of the tenth.
    #[test]
    fn schedule_of_fips_197() {
        let key = 0x2b7e1516_28aed2a6_abf71588_09cf4f3cu128.to_be_bytes();
        let words = Schedule::new(&key).0;
        assert_eq!(words[7].rotate_left(16).swap_bytes(), 0x2a6c7605);
        assert_eq!(words[43].swap_bytes(), 0xb6630ca6);
    }
}
