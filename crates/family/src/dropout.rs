//! Dropout by public coins: words of which each has two numbers uniform in 32 bits, the lower half first.

/// The elements of `x` that `Op::Dropout` keeps, zeros for the others; `words` are half as many as elements, rounded up.
pub fn keep(words: &[u64], keep: u32, x: &[u64]) -> Vec<u64> {
    let kept = |coin: u32| u64::from(coin < keep).wrapping_neg();
    let mut out = x.to_vec();
    for (pair, w) in out.chunks_mut(2).zip(words) {
        pair[0] &= kept(*w as u32);
        pair[1..].iter_mut().for_each(|x| *x &= kept((w >> 32) as u32));
    }
    out
}

/// The coins in these words, `count` of them: what the interpreter needs to agree with a protocol.
pub fn dropout_coins(words: &[u64], count: usize) -> Vec<u64> {
    words.iter().flat_map(|w| [w & u64::from(u32::MAX), w >> 32]).take(count).collect()
}
