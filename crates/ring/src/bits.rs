/// A vector of bits, 64 to a word, bit `i` at position `i % 64` of word `i / 64`.
///
/// Bits past `len` in the last word are zero. `Debug` prints the length alone.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct BitVec {
    len: usize,
    words: Vec<u64>,
}

impl BitVec {
    /// `len` zero bits.
    pub fn zeros(len: usize) -> Self {
        BitVec { len, words: vec![0; len.div_ceil(64)] }
    }

    /// Take over `words`; bits past `len` are cleared. Panics when there are too few words.
    pub fn from_words(len: usize, mut words: Vec<u64>) -> Self {
        assert!(words.len() >= len.div_ceil(64), "{} words for {len} bits", words.len());
        words.truncate(len.div_ceil(64));
        if !len.is_multiple_of(64)
            && let Some(last) = words.last_mut()
        {
            *last &= (1 << (len % 64)) - 1;
        }
        BitVec { len, words }
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is no bit.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bit `i`, 0 or 1.
    pub fn get(&self, i: usize) -> u64 {
        debug_assert!(i < self.len);
        (self.words[i / 64] >> (i % 64)) & 1
    }

    /// Set bit `i` to the lowest bit of `v`.
    pub fn set(&mut self, i: usize, v: u64) {
        debug_assert!(i < self.len);
        let (w, s) = (i / 64, i % 64);
        self.words[w] = (self.words[w] & !(1 << s)) | ((v & 1) << s);
    }

    /// The words.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The words; the caller keeps bits past the length zero.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// XOR another vector of the same length into this one.
    pub fn xor_assign(&mut self, other: &BitVec) {
        assert_eq!(self.len, other.len);
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a ^= b;
        }
    }

    /// `ceil(len / 8)` bytes, little endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out: Vec<u8> = self.words.iter().flat_map(|w| w.to_le_bytes()).collect();
        out.truncate(self.len.div_ceil(8));
        out
    }

    /// The inverse of [`BitVec::to_bytes`]; `None` unless there are exactly `ceil(len / 8)` bytes and
    /// the unused bits of the last one are zero.
    pub fn from_bytes(len: usize, bytes: &[u8]) -> Option<Self> {
        if bytes.len() != len.div_ceil(8) {
            return None;
        }
        let words: Vec<u64> = bytes
            .chunks(8)
            .map(|c| {
                let mut b = [0; 8];
                b[..c.len()].copy_from_slice(c);
                u64::from_le_bytes(b)
            })
            .collect();
        if !len.is_multiple_of(64) && words.last().is_some_and(|w| w >> (len % 64) != 0) {
            return None;
        }
        Some(BitVec { len, words })
    }
}

impl std::fmt::Debug for BitVec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BitVec[{}]", self.len)
    }
}
