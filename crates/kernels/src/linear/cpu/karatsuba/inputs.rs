//! Sums of inputs for the products of patches: what they take of inputs along both axes.

use super::super::kernel::Kernel;
use super::{INPUTS, Karatsuba, PRODUCTS, Row, TAPS};

/// What a tile of patches reads of a channel, and sums of it. Of each place a line of all patches.
pub(super) struct Lines {
    /// `[INPUTS, INPUTS, K::COLS]`.
    read: Vec<u64>,
    /// One product's sums along the columns: `[INPUTS, K::COLS]`.
    lines: Vec<u64>,
    /// And along the rows.
    line: Vec<u64>,
    /// A line of the input with the padding around it.
    padded: Vec<u64>,
}

impl Lines {
    pub(super) fn new<K: Kernel>() -> Lines {
        Lines {
            read: vec![0; INPUTS * INPUTS * K::COLS],
            lines: vec![0; INPUTS * K::COLS],
            line: vec![0; K::COLS],
            padded: vec![0; TAPS * (K::COLS - 1) + INPUTS],
        }
    }

    /// Read channel `l` for a row of patches; zeros outside of the image.
    pub(super) fn read<K: Kernel>(&mut self, of: Karatsuba, x: &[u64], row: &Row, l: usize) {
        let c = &of.conv;
        let [height, width] = c.input;
        let plane = &x[(row.image * c.in_channels + l) * height * width..][..height * width];
        let (left, pad) = (row.at[1] * TAPS, c.padding[2]);
        let len = TAPS * (row.count - 1) + INPUTS;
        // Places of the line that lie in the image.
        let start = pad.saturating_sub(left).min(len);
        let end = len.min((width + pad).saturating_sub(left)).max(start);
        for (dy, out) in self.read.chunks_mut(INPUTS * K::COLS).enumerate() {
            let y = (row.at[0] * TAPS + dy).wrapping_sub(c.padding[0]);
            let out = &mut out[row.first..];
            if y >= height {
                out.chunks_mut(K::COLS).for_each(|out| out[..row.count].fill(0));
                continue;
            }
            let source =
                if start < end { &plane[y * width + start + left - pad..][..end - start] } else { &[] };
            let line = if source.len() == len {
                source
            } else {
                self.padded[..len].fill(0);
                self.padded[start..end].copy_from_slice(source);
                &self.padded[..len]
            };
            for (dx, out) in out.chunks_mut(K::COLS).enumerate() {
                let every_third = line[dx..].iter().step_by(TAPS);
                out[..row.count].iter_mut().zip(every_third).for_each(|(out, v)| *out = *v);
            }
        }
    }

    /// Give the sums of all products.
    #[inline(always)]
    pub(super) fn sum<K: Kernel>(&mut self, mut give: impl FnMut(usize, &[u64])) {
        let all = INPUTS * K::COLS;
        let y = |i: usize| &self.read[i * all..(i + 1) * all];
        for (i, factor) in FACTORS.iter().enumerate() {
            let lines = match *factor {
                Factor::Less(a, b, c) => {
                    less_both(y(a), y(b), y(c), &mut self.lines);
                    &self.lines
                }
                Factor::As(a) => y(a),
            };
            let x = |j: usize| &lines[j * K::COLS..(j + 1) * K::COLS];
            for (j, factor) in FACTORS.iter().enumerate() {
                match *factor {
                    Factor::Less(a, b, c) => {
                        less_both(x(a), x(b), x(c), &mut self.line);
                        give(i * PRODUCTS + j, &self.line[..K::COLS]);
                    }
                    Factor::As(a) => give(i * PRODUCTS + j, x(a)),
                }
            }
        }
    }
}

/// What a product takes of inputs along an axis.
#[derive(Clone, Copy)]
enum Factor {
    /// The first less both others.
    Less(usize, usize, usize),
    As(usize),
}

const FACTORS: [Factor; PRODUCTS] = [
    Factor::Less(0, 1, 2),
    Factor::Less(2, 1, 3),
    Factor::Less(4, 2, 3),
    Factor::As(1),
    Factor::As(2),
    Factor::As(3),
];

#[inline(always)]
fn less_both(a: &[u64], b: &[u64], c: &[u64], out: &mut [u64]) {
    for (out, (a, (b, c))) in out.iter_mut().zip(a.iter().zip(b.iter().zip(c))) {
        *out = a.wrapping_sub(*b).wrapping_sub(*c);
    }
}
