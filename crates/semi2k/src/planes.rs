//! Planes of bits in the layout of [`privet_kernels::chunks`]: in blocks of comparisons, plane after plane.

use crate::shares::Bits;
use privet_kernels::chunks::SIDE;

/// Planes, each whole, as blocks.
pub(crate) fn join(planes: &[&Bits]) -> Bits {
    let seats = planes[0].seats();
    let share = |place: usize| {
        let planes: Vec<&[u64]> = planes.iter().map(|plane| plane.shares()[place].as_slice()).collect();
        let (total, mut out) = (planes[0].len(), Vec::with_capacity(planes.len() * planes[0].len()));
        for start in (0..total).step_by(SIDE) {
            let block = start..total.min(start + SIDE);
            planes.iter().for_each(|plane| out.extend_from_slice(&plane[block.clone()]));
        }
        privet_family::Secret::new(out)
    };
    Bits::new(seats, (0..seats.len()).map(share).collect())
}

/// Blocks of `planes` planes as planes, each whole.
pub(crate) fn split(blocks: &Bits, planes: usize) -> Vec<Bits> {
    let total = blocks.words() / planes;
    let plane = |p: usize| {
        blocks.map(|words| {
            let mut out = Vec::with_capacity(total);
            for start in (0..total).step_by(SIDE) {
                let side = SIDE.min(total - start);
                let at = start * planes + p * side;
                out.extend_from_slice(&words[at..at + side]);
            }
            out
        })
    };
    (0..planes).map(plane).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shares::Seats;
    use privet_family::Secret;

    #[test]
    fn planes_are_split_as_they_were_joined() {
        for words in [1, 7, 8, 9, 24, 25] {
            let plane =
                |p: u64| Bits::new(Seats::one(1), vec![(0..words).map(|w| 100 * p + w).collect::<Secret>()]);
            let planes: Vec<Bits> = (0..5).map(plane).collect();
            let joined = join(&planes.iter().collect::<Vec<_>>());
            let first = words.min(8) as usize;
            assert_eq!(joined.own()[first], 100, "the second plane follows in the block");
            for (found, plane) in split(&joined, 5).iter().zip(&planes) {
                assert_eq!(found.own().as_slice(), plane.own().as_slice());
            }
        }
    }
}
