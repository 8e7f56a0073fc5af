use super::{LIMB, Lane, Order};
use crate::word::Factor;
use std::arch::x86_64::*;

/// Eight words, with the 52-bit multipliers of AVX-512 IFMA.
///
/// Its methods are inlined into [`super::dispatch`]'s function for this processor, which alone makes values of it.
#[derive(Clone, Copy)]
pub(crate) struct Ifma(());

impl Ifma {
    /// Safety: the processor has AVX-512 F and IFMA.
    pub(super) unsafe fn new() -> Ifma {
        Ifma(())
    }
}

/// Where the words of the first result come from: 0..8 the first register, 8..16 the second one. The second result's
/// are at the same places of the other half.
const fn source(from: Order, to: Order, second: bool) -> [u64; 8] {
    let mut index = [0; 8];
    let mut lane = 0;
    while lane < 8 {
        index[lane] = register(from, place(to, lane + if second { 8 } else { 0 })) as u64;
        lane += 1;
    }
    index
}

/// The place in memory of word `lane` of the two registers.
const fn place(order: Order, lane: usize) -> usize {
    match order {
        Order::Memory => lane,
        // lane % 8 without its bit t's place, then which register as that bit
        Order::Pairs(t) => ((lane & 7) & !(t - 1)) << 1 | (lane & (t - 1)) | if lane >= 8 { t } else { 0 },
    }
}

/// Word of the two registers that is at this place in memory.
const fn register(order: Order, place: usize) -> usize {
    match order {
        Order::Memory => place,
        Order::Pairs(t) => ((place >> 1) & !(t - 1)) | (place & (t - 1)) | if place & t != 0 { 8 } else { 0 },
    }
}

const REGROUP: [[[u64; 8]; 2]; 6] = [
    both(Order::Memory, Order::Pairs(4)),
    both(Order::Pairs(4), Order::Pairs(2)),
    both(Order::Pairs(2), Order::Pairs(1)),
    both(Order::Pairs(1), Order::Memory),
    both(Order::Memory, Order::Pairs(1)),
    both(Order::Pairs(1), Order::Pairs(2)),
];
const REGROUP_UP: [[[u64; 8]; 2]; 2] =
    [both(Order::Pairs(2), Order::Pairs(4)), both(Order::Pairs(4), Order::Memory)];

const fn both(from: Order, to: Order) -> [[u64; 8]; 2] {
    [source(from, to, false), source(from, to, true)]
}

const fn regrouping(from: Order, to: Order) -> &'static [[u64; 8]; 2] {
    match (from, to) {
        (Order::Memory, Order::Pairs(4)) => &REGROUP[0],
        (Order::Pairs(4), Order::Pairs(2)) => &REGROUP[1],
        (Order::Pairs(2), Order::Pairs(1)) => &REGROUP[2],
        (Order::Pairs(1), Order::Memory) => &REGROUP[3],
        (Order::Memory, Order::Pairs(1)) => &REGROUP[4],
        (Order::Pairs(1), Order::Pairs(2)) => &REGROUP[5],
        (Order::Pairs(2), Order::Pairs(4)) => &REGROUP_UP[0],
        (Order::Pairs(4), Order::Memory) => &REGROUP_UP[1],
        _ => panic!("no transform goes between these orders"),
    }
}

// SAFETY of every block: a value of this type exists only where the processor has the instructions, and slices are
// checked for their eight words.
impl Lane for Ifma {
    type V = __m512i;
    const WIDTH: usize = 8;

    #[inline(always)]
    fn splat(self, word: u64) -> __m512i {
        unsafe { _mm512_set1_epi64(word as i64) }
    }

    #[inline(always)]
    fn load(self, words: &[u64]) -> __m512i {
        let words: &[u64; 8] = words.first_chunk().expect("eight words");
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, words: &mut [u64], v: __m512i) {
        let words: &mut [u64; 8] = words.first_chunk_mut().expect("eight words");
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), v) }
    }

    #[inline(always)]
    fn spread(self, words: &[u64], t: usize) -> __m512i {
        match t {
            1 => self.load(words),
            2 => {
                let words: &[u64; 4] = words.first_chunk().expect("four words");
                unsafe {
                    let four = _mm512_castsi256_si512(_mm256_loadu_si256(words.as_ptr().cast()));
                    _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), four)
                }
            }
            _ => {
                let words: &[u64; 2] = words.first_chunk().expect("two words");
                unsafe {
                    let two = _mm512_castsi128_si512(_mm_loadu_si128(words.as_ptr().cast()));
                    _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 0, 0, 1, 1, 1, 1), two)
                }
            }
        }
    }

    #[inline(always)]
    fn regroup(self, from: Order, to: Order, a: __m512i, b: __m512i) -> (__m512i, __m512i) {
        let [first, second] = regrouping(from, to);
        let (first, second) = (self.load(first), self.load(second));
        unsafe { (_mm512_permutex2var_epi64(a, first, b), _mm512_permutex2var_epi64(a, second, b)) }
    }

    #[inline(always)]
    fn add(self, a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_add_epi64(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_sub_epi64(a, b) }
    }

    #[inline(always)]
    fn less(self, a: __m512i, bound: __m512i) -> __m512i {
        // a negative difference is a huge word
        unsafe { _mm512_min_epu64(a, _mm512_sub_epi64(a, bound)) }
    }

    #[inline(always)]
    fn low(self, a: __m512i) -> __m512i {
        unsafe { _mm512_and_si512(a, _mm512_set1_epi64((1 << LIMB) - 1)) }
    }

    #[inline(always)]
    fn high(self, a: __m512i) -> __m512i {
        unsafe { _mm512_srli_epi64::<LIMB>(a) }
    }

    #[inline(always)]
    fn times(self, x: __m512i, factor: Factor<__m512i>, p: __m512i) -> __m512i {
        unsafe {
            let zero = _mm512_setzero_si512();
            let q = _mm512_madd52hi_epu64(zero, x, factor.quotient);
            let product = _mm512_madd52lo_epu64(zero, x, factor.value);
            // the multiplier takes the lowest 52 bits of -p, so all is right modulo 2^52
            self.low(_mm512_madd52lo_epu64(product, q, _mm512_sub_epi64(zero, p)))
        }
    }

    #[inline(always)]
    fn multiply_add(self, (low, high): (__m512i, __m512i), x: __m512i, y: __m512i) -> (__m512i, __m512i) {
        unsafe { (_mm512_madd52lo_epu64(low, x, y), _mm512_madd52hi_epu64(high, x, y)) }
    }
}
