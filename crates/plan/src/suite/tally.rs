//! Whether words that fixed inputs give over many runs could be uniform.

use super::{ChiSquare, LIMIT};
use privet_ring::Ring;

/// Counts of one message (one step, one kind of view) over many runs.
#[derive(Default)]
pub struct Tally {
    bits: u32,
    /// Ones by bit of the ring, over elements and runs.
    ones: Vec<u64>,
    /// Ones by place (element and bit), over runs.
    places: Vec<u32>,
    low_byte: Vec<u64>,
    high_byte: Vec<u64>,
    words: u64,
    runs: u64,
}

impl Tally {
    /// The words that one run showed.
    pub fn add(&mut self, ring: Ring, words: &[u64]) {
        let bits = ring.bits();
        self.bits = bits;
        self.ones.resize(bits as usize, 0);
        self.places.resize(bits as usize * words.len(), 0);
        self.low_byte.resize(256, 0);
        self.high_byte.resize(256, 0);
        for (i, w) in words.iter().enumerate() {
            for j in 0..bits {
                let one = w >> j & 1;
                self.ones[j as usize] += one;
                self.places[i * bits as usize + j as usize] += one as u32;
            }
            if bits >= 8 {
                self.low_byte[(w & 255) as usize] += 1;
                self.high_byte[(w >> (bits - 8)) as usize] += 1;
            }
        }
        self.words += words.len() as u64;
        self.runs += 1;
    }

    /// Fails unless all that was counted could be uniform; `what` says whose words they are.
    #[track_caller]
    pub fn uniform(&self, what: &str) {
        if self.words == 0 {
            return; // nothing but bits of a last byte
        }
        let judge = |chi: ChiSquare, how: &str| {
            let z = chi.deviate();
            assert!(z < LIMIT, "{what}: {how} over {} words is not uniform (deviate {z:.1})", self.words);
        };
        let mut chi = ChiSquare::new();
        self.ones.iter().for_each(|&ones| chi.coin(ones, self.words));
        judge(chi, "bit by bit");
        let mut chi = ChiSquare::new();
        self.places.iter().for_each(|&ones| chi.coin(ones.into(), self.runs));
        judge(chi, "place by place");
        if self.bits >= 8 && self.words >= 256 * 8 {
            let mut chi = ChiSquare::new();
            chi.die(&self.low_byte);
            chi.die(&self.high_byte);
            judge(chi, "byte by byte");
        }
    }
}

/// What every element of an operand is.
pub type Fill = fn(Ring) -> u64;

/// Inputs that would show through a weak mask.
pub fn fixed_inputs() -> [(&'static str, Fill); 3] {
    [("zero", |_| 0), ("the largest", |r| r.mask() >> 1), ("the smallest", |r| 1 << (r.bits() - 1))]
}
