//! Registers of AES blocks, 128, 256 and 512 bits wide. Every function needs the instructions of its type, and is inlined where they are enabled.

use std::arch::x86_64::*;

/// A register of whole blocks.
///
/// # Safety
/// All functions but the constants are to be called only where [`Lanes::available`] holds.
pub(super) trait Lanes: Copy {
    /// Blocks to a register.
    const BLOCKS: usize;

    /// Whether this machine has the instructions.
    fn available() -> bool;
    /// A block in every place.
    unsafe fn broadcast(block: __m128i) -> Self;
    /// `first, first + 1, ...`, each in the low half of its block, zero in the high one.
    unsafe fn counters(first: u64) -> Self;
    /// So many more in each low half.
    unsafe fn ahead(self, n: u64) -> Self;
    /// Of [`Lanes::BLOCKS`] blocks.
    unsafe fn load(from: *const u128) -> Self;
    /// To [`Lanes::BLOCKS`] blocks.
    unsafe fn store(self, to: *mut u128);
    /// Of fewer blocks, zeros behind.
    unsafe fn load_part(from: *const u128, blocks: usize) -> Self;
    /// To fewer blocks, the first ones.
    unsafe fn store_part(self, to: *mut u128, blocks: usize);
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    /// A round of AES.
    unsafe fn round(self, key: Self) -> Self;
    /// The last round of AES.
    unsafe fn last_round(self, key: Self) -> Self;
    /// `sigma(l || r) = (l ^ r || l)`: swap the halves, then XOR `l` into the high one.
    unsafe fn sigma(self) -> Self;
}

impl Lanes for __m128i {
    const BLOCKS: usize = 1;

    fn available() -> bool {
        is_x86_feature_detected!("aes") && is_x86_feature_detected!("avx")
    }

    #[inline(always)]
    unsafe fn broadcast(block: __m128i) -> Self {
        block
    }

    #[inline(always)]
    unsafe fn counters(first: u64) -> Self {
        // SAFETY: of this and of all functions below: the caller's promise.
        unsafe { _mm_set_epi64x(0, first as i64) }
    }

    #[inline(always)]
    unsafe fn ahead(self, n: u64) -> Self {
        unsafe { _mm_add_epi64(self, _mm_set_epi64x(0, n as i64)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u128) -> Self {
        unsafe { _mm_loadu_si128(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u128) {
        unsafe { _mm_storeu_si128(to.cast(), self) }
    }

    unsafe fn load_part(_: *const u128, _: usize) -> Self {
        unreachable!("one block is a whole register")
    }

    unsafe fn store_part(self, _: *mut u128, _: usize) {
        unreachable!("one block is a whole register")
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { _mm_xor_si128(self, other) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        unsafe { _mm_and_si128(self, other) }
    }

    #[inline(always)]
    unsafe fn round(self, key: Self) -> Self {
        unsafe { _mm_aesenc_si128(self, key) }
    }

    #[inline(always)]
    unsafe fn last_round(self, key: Self) -> Self {
        unsafe { _mm_aesenclast_si128(self, key) }
    }

    #[inline(always)]
    unsafe fn sigma(self) -> Self {
        unsafe {
            let high = _mm_set_epi64x(-1, 0);
            _mm_xor_si128(_mm_shuffle_epi32::<0x4e>(self), _mm_and_si128(self, high))
        }
    }
}

impl Lanes for __m256i {
    const BLOCKS: usize = 2;

    fn available() -> bool {
        is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("aes")
    }

    #[inline(always)]
    unsafe fn broadcast(block: __m128i) -> Self {
        // SAFETY: of this and of all functions below: the caller's promise.
        unsafe { _mm256_broadcastsi128_si256(block) }
    }

    #[inline(always)]
    unsafe fn counters(first: u64) -> Self {
        unsafe { _mm256_set_epi64x(0, first.wrapping_add(1) as i64, 0, first as i64) }
    }

    #[inline(always)]
    unsafe fn ahead(self, n: u64) -> Self {
        unsafe { _mm256_add_epi64(self, _mm256_set_epi64x(0, n as i64, 0, n as i64)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u128) -> Self {
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u128) {
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const u128, blocks: usize) -> Self {
        debug_assert_eq!(blocks, 1);
        unsafe { _mm256_zextsi128_si256(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut u128, blocks: usize) {
        debug_assert_eq!(blocks, 1);
        unsafe { _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(self)) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { _mm256_xor_si256(self, other) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        unsafe { _mm256_and_si256(self, other) }
    }

    #[inline(always)]
    unsafe fn round(self, key: Self) -> Self {
        unsafe { _mm256_aesenc_epi128(self, key) }
    }

    #[inline(always)]
    unsafe fn last_round(self, key: Self) -> Self {
        unsafe { _mm256_aesenclast_epi128(self, key) }
    }

    #[inline(always)]
    unsafe fn sigma(self) -> Self {
        unsafe {
            let high = _mm256_set_epi64x(-1, 0, -1, 0);
            _mm256_xor_si256(_mm256_shuffle_epi32::<0x4e>(self), _mm256_and_si256(self, high))
        }
    }
}

impl Lanes for __m512i {
    const BLOCKS: usize = 4;

    fn available() -> bool {
        is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("aes")
    }

    #[inline(always)]
    unsafe fn broadcast(block: __m128i) -> Self {
        // SAFETY: of this and of all functions below: the caller's promise.
        unsafe { _mm512_broadcast_i32x4(block) }
    }

    #[inline(always)]
    unsafe fn counters(first: u64) -> Self {
        unsafe { _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0).ahead(first) }
    }

    #[inline(always)]
    unsafe fn ahead(self, n: u64) -> Self {
        unsafe { _mm512_add_epi64(self, _mm512_maskz_set1_epi64(0b0101_0101, n as i64)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u128) -> Self {
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u128) {
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const u128, blocks: usize) -> Self {
        unsafe { _mm512_maskz_loadu_epi64(words_of(blocks), from.cast()) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut u128, blocks: usize) {
        unsafe { _mm512_mask_storeu_epi64(to.cast(), words_of(blocks), self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { _mm512_xor_si512(self, other) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        unsafe { _mm512_and_si512(self, other) }
    }

    #[inline(always)]
    unsafe fn round(self, key: Self) -> Self {
        unsafe { _mm512_aesenc_epi128(self, key) }
    }

    #[inline(always)]
    unsafe fn last_round(self, key: Self) -> Self {
        unsafe { _mm512_aesenclast_epi128(self, key) }
    }

    #[inline(always)]
    unsafe fn sigma(self) -> Self {
        unsafe {
            let swapped = _mm512_shuffle_epi32::<0x4e>(self);
            _mm512_mask_xor_epi64(swapped, 0b1010_1010, swapped, self)
        }
    }
}

/// The mask of the two 64-bit words of each of so many blocks, at most 4.
#[inline(always)]
fn words_of(blocks: usize) -> __mmask8 {
    ((1u32 << (2 * blocks)) - 1) as __mmask8
}
