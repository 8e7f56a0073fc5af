//! What verification sends, from the numbers of statements alone (docs/rep3.md, section 6).

use super::extension::Extension;
use super::field::Gf;
use super::fold::Shape;
use super::galois::Gr;
use super::verify::Shapes;
use crate::PartyId;
use privet_prg::Seed;

/// What is stated about one prover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// Words and terms of every batch of statements about bits.
    pub bits: Vec<(usize, usize)>,
    /// Elements and terms of every batch of statements about ring elements, whatever their rings.
    pub ring: Vec<(usize, usize)>,
    /// The inner dimensions of all matrix products, added up (input channels times kernel of a convolution).
    pub depth: usize,
}

/// What one verification costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Bytes that each party sends, to both neighbours together.
    pub sent: [u64; 3],
    /// Rounds.
    pub rounds: u64,
}

fn shape<E: Extension>(batches: &[(usize, usize)], more: usize) -> Shape {
    let words = batches.iter().map(|(words, _)| words).sum();
    let vars = if words == 0 { 0 } else { E::first(words) };
    let groups: usize = batches.iter().map(|(words, terms)| words.div_ceil(1 << vars) * terms).sum();
    Shape::with_items::<E>(vars, groups * E::ITEMS + more)
}

impl Stated {
    fn shapes(&self) -> Shapes {
        Shapes { bits: shape::<Gf>(&self.bits, 0), ring: shape::<Gr>(&self.ring, 2 * self.depth) }
    }
}

/// What verifying these statements costs; `stated[i]` are those about party i. Nothing where nothing is stated.
pub fn verification(stated: &[Stated; 3]) -> Verification {
    let shapes = stated.each_ref().map(Stated::shapes);
    let folds = shapes.iter().map(Shapes::folds).max().unwrap_or(0);
    if folds == 0 {
        return Verification::default();
    }
    let first = usize::from(shapes.iter().all(|s| s.message_bytes(0) == 0));
    let sent = PartyId::ALL.map(|id| {
        let [own, ahead, behind] = [id, id.next(), id.prev()].map(|p| &shapes[p.index()]);
        let messages: usize = (first..folds).map(|k| own.message_bytes(k)).sum();
        let checked = [ahead, behind].map(|s| {
            let challenges: usize = (0..s.folds().saturating_sub(1)).map(|k| 8 * s.challenges(k)).sum();
            challenges + s.final_bytes() + Seed::BYTES
        });
        // here and a verdict, to both; a byte with every challenge, and one before the last values
        let signals = 4 + (folds - first - 1) + 1;
        (messages + checked.iter().sum::<usize>() + signals) as u64
    });
    Verification { sent, rounds: 2 * (folds - first) as u64 + 4 }
}
