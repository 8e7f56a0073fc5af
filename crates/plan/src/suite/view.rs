//! Whether what some parties see is uniform *given what they hold*: their own seeds stay as they are, everybody else's are drawn
//! anew, and whatever reaches them must be new as well.
//!
//! A view is one row of bits: masked operands, what is prepared, and every opened value (what is received is the opened
//! value minus what these parties send, which follows from the rest).
//!
//! - *No affine relation.* With R rows of N uniform bits, the probability that any of the 2^(N+1) affine combinations of
//!   columns is the same in all rows is below `2^(N + 1 - R)`; R is at least `N + 1 + SURE`. This finds known, missing and
//!   repeated masks, in one bit or as the difference of ring elements (whose lowest bits add up).
//! - *No correlation.* Every bit is balanced, and so is the parity of any two or three of some chosen ones: each of P
//!   parities is off by more than `t R / 2` with probability at most `2 exp(-R t^2 / 2)` (Hoeffding), and t is chosen so
//!   that all of them together stay below `2^-SURE`. A product of two bits (correlation 1/2) is far beyond t.

use privet_ring::Ring;

/// -log2 of the probability of a false alarm of one test.
const SURE: usize = 60;
/// Rows at least, so that a correlation of 1/2 stands out.
const ROWS: usize = 800;
/// Bits of which parities are tested.
const PROBES: usize = 48;

/// A part of a view: so many bits, called so.
struct Part {
    name: String,
    bits: usize,
}

/// One row, and the names of its parts.
#[derive(Default)]
pub struct View {
    parts: Vec<Part>,
    bits: Vec<bool>,
    /// Columns worth a closer look: first and last bits of ring elements and of key blocks.
    probes: Vec<usize>,
    /// Columns that may fill up a frame's last byte: zeros, which tell nothing.
    padding: Vec<usize>,
}

impl View {
    /// Elements of a ring.
    pub fn elements(&mut self, name: String, ring: Ring, words: &[u64]) {
        let k = ring.bits() as usize;
        self.parts.push(Part { name, bits: k * words.len() });
        for w in words {
            self.probes.extend([self.bits.len(), self.bits.len() + k - 1]);
            self.bits.extend((0..k).map(|j| w >> j & 1 == 1));
        }
    }

    /// A frame whose last bits may be padding.
    pub fn bytes(&mut self, name: String, bytes: &[u8]) {
        self.parts.push(Part { name, bits: 8 * bytes.len() });
        for (i, b) in bytes.iter().enumerate() {
            if i % 8 == 0 {
                self.probes.push(self.bits.len());
            }
            self.bits.extend((0..8).map(|j| b >> j & 1 == 1));
        }
        self.padding.extend(self.bits.len() - 7..self.bits.len());
    }

    /// How many views [`unseen`] draws where this is the first.
    pub fn draws(&self) -> usize {
        (self.bits.len() + 1 + SURE).max(ROWS)
    }

    fn name(&self, mut column: usize) -> String {
        for part in &self.parts {
            if column < part.bits {
                return format!("bit {column} of {}", part.name);
            }
            column -= part.bits;
        }
        "nothing".into()
    }
}

/// Columns as packed bits, row by row.
struct Columns(Vec<Vec<u64>>);

impl Columns {
    fn new(rows: &[View]) -> Columns {
        let mut columns = vec![vec![0u64; rows.len().div_ceil(64)]; rows[0].bits.len()];
        for (r, row) in rows.iter().enumerate() {
            assert_eq!(row.bits.len(), columns.len(), "what is sent has another length");
            for (column, &bit) in columns.iter_mut().zip(&row.bits) {
                column[r / 64] |= u64::from(bit) << (r % 64);
            }
        }
        Columns(columns)
    }

    /// The first column that is an affine function of earlier ones, in every row.
    fn dependent(&self, rows: usize, padding: &[usize]) -> Option<usize> {
        let ones: Vec<u64> = (0..rows.div_ceil(64))
            .map(|w| if rows - 64 * w >= 64 { u64::MAX } else { (1 << (rows % 64)) - 1 })
            .collect();
        let mut basis: Vec<(usize, Vec<u64>)> = vec![(0, ones)];
        for (c, column) in self.0.iter().enumerate() {
            if padding.contains(&c) && column.iter().all(|w| *w == 0) {
                continue;
            }
            let mut rest = column.clone();
            for (pivot, b) in &basis {
                if rest[pivot / 64] >> (pivot % 64) & 1 == 1 {
                    rest.iter_mut().zip(b).for_each(|(r, b)| *r ^= b);
                }
            }
            match rest.iter().position(|w| *w != 0) {
                Some(w) => basis.push((64 * w + rest[w].trailing_zeros() as usize, rest)),
                None => return Some(c),
            }
        }
        None
    }

    /// Ones of the parity of some columns.
    fn parity(&self, columns: &[usize]) -> usize {
        let words = self.0[0].len();
        let word = |w: usize| columns.iter().fold(0, |sum, &c| sum ^ self.0[c][w]);
        (0..words).map(|w| word(w).count_ones() as usize).sum()
    }
}

/// At most `PROBES` of them, evenly spread.
fn probes(all: &[usize]) -> Vec<usize> {
    let mut some: Vec<usize> = match all.len() <= PROBES {
        true => all.to_vec(),
        false => (0..PROBES).map(|i| all[i * all.len() / PROBES]).collect(),
    };
    some.dedup();
    some
}

/// All subsets of one, two or three.
fn subsets(of: &[usize]) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    for (i, &a) in of.iter().enumerate() {
        all.push(vec![a]);
        for (j, &b) in of.iter().enumerate().skip(i + 1) {
            all.push(vec![a, b]);
            all.extend(of[j + 1..].iter().map(|&c| vec![a, b, c]));
        }
    }
    all
}

/// What is wrong with such views, if anything is; `view` makes one with everything new that the parties do not hold.
///
/// # Errors
/// What follows from what, or is correlated with what.
pub fn unseen(mut view: impl FnMut() -> View) -> Result<(), String> {
    let first = view();
    let rows = first.draws();
    let mut views = vec![first];
    views.extend((1..rows).map(|_| view()));
    let columns = Columns::new(&views);
    let name = |c: usize| views[0].name(c);
    if let Some(c) = columns.dependent(rows, &views[0].padding) {
        return Err(format!("{} follows from what is seen before it", name(c)));
    }
    let mut parities = subsets(&probes(&views[0].probes));
    // and every bit by itself: what is 1 more often than not, or less, need not follow from anything
    parities.extend((0..columns.0.len()).filter(|c| !views[0].padding.contains(c)).map(|c| vec![c]));
    let sure = ((2 * parities.len()) as f64).ln() + SURE as f64 * 2f64.ln();
    let most = (2.0 * sure / rows as f64).sqrt();
    assert!(most < 0.42, "too few rows to find a correlation of 1/2");
    for parity in parities {
        let correlation = 2.0 * columns.parity(&parity) as f64 / rows as f64 - 1.0;
        if correlation.abs() > most {
            let names: Vec<String> = parity.iter().map(|&c| name(c)).collect();
            return Err(format!("correlation {correlation:.2} of {}", names.join(" and ")));
        }
    }
    Ok(())
}
