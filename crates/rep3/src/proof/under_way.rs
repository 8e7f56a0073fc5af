//! A verification between two of its messages, so that the protocol goes on meanwhile: the rounds of both are the same.

use super::batch::Batches;
use super::drawn::Drawn;
use super::fold::Masks;
use super::spent::Wiping;
use super::verification::{OfProducts, Verification};
use super::verify::Refused;
use super::verify::Told;
use crate::context::Awaited;
use crate::price::proofs::Shapes;
use crate::{Party, RunError};
use privet_prg::Seed;

/// A verification whose last messages are sent, and nobody's answers read yet.
pub(crate) struct UnderWay {
    stage: Stage,
    awaited: Awaited,
    /// Of the statements that it is about.
    pub bytes: u64,
}

/// What the last messages were.
enum Stage {
    /// Halves of the coefficients' seeds.
    Coefficients(Box<Begun>),
    /// Values of fold `k`.
    Values { k: usize, all: Box<Verification>, told: Told },
    /// The challenges of fold `k`, whose values `of_prev` the party before sent.
    Challenges { k: usize, all: Box<Verification>, of_prev: Vec<u8> },
    /// What is left of both proofs that this party checks.
    LastValues(Box<Verification>),
    /// Whether both hold, or whose does not.
    Verdicts { refused: Option<Refused>, opened: bool, wiping: Wiping },
}

/// All that there is before coefficients are known, in the order of [`super::roles::Roles`].
pub(super) struct Begun {
    pub batches: [Batches; 3],
    pub shapes: [Shapes; 3],
    pub products: OfProducts,
    pub drawn: [Drawn; 2],
    /// What this party was told ahead.
    pub told: Told,
    pub masks: [[Masks; 3]; 2],
}

impl UnderWay {
    /// Begin: every party has received every message of the batch, and says so by telling both provers that it checks half of the seed of
    /// their coefficients. A prover has its seed once both its verifiers have all its messages.
    pub(super) fn begin(party: &mut Party, begun: Begun, bytes: u64) -> Result<UnderWay, RunError> {
        let awaited = party.tell_seeds(&begun.drawn)?;
        Ok(UnderWay { stage: Stage::Coefficients(Box::new(begun)), awaited, bytes })
    }

    /// Whether this party has told the others that it refuses a proof.
    pub fn is_refused(&self) -> bool {
        matches!(self.stage, Stage::Verdicts { refused: Some(_), .. })
    }

    /// What came in answer to the last messages, to nobody's use: the job is over, and the next message is to be found.
    pub fn read(self, party: &mut Party) {
        let _ = party.hear(&self.awaited);
    }

    /// What came in answer to the last messages, and the next ones; nothing after the last.
    pub fn go_on(self, party: &mut Party) -> Result<Option<UnderWay>, RunError> {
        let got = party.hear(&self.awaited);
        if let Stage::Verdicts { refused, opened, wiping } = self.stage {
            party.heard_verdicts(got, refused)?;
            party.opened_tags -= usize::from(opened);
            party.wiping = wiping;
            return Ok(None);
        }
        let got = got?;
        let next = match self.stage {
            Stage::Coefficients(begun) => {
                let mut told = Told { before: got.prev, after: got.next };
                let seed = told.seed();
                let (all, values) = begun.learn(party, &seed, &mut told);
                Stage::values(party, 0, all.into(), values, told)?
            }
            Stage::Values { k, mut all, told } => {
                let of_prev = party.heard_values(&mut all, k, got, &told)?;
                if k + 1 < all.folds() {
                    let awaited = party.tell_challenges(&all, k)?;
                    (Stage::Challenges { k, all, of_prev }, awaited)
                } else {
                    all.go_on(party.device, k, &of_prev, &[]);
                    let awaited = party.tell_last_values(&all)?;
                    (Stage::LastValues(all), awaited)
                }
            }
            Stage::Challenges { k, mut all, of_prev } => {
                let told = party.heard_challenges(&mut all, k, got)?;
                let values = all.go_on(party.device, k, &of_prev, &told.challenges());
                Stage::values(party, k + 1, all, values, told)?
            }
            Stage::LastValues(mut all) => {
                let (awaited, refused) = party.tell_verdicts(&mut all, got)?;
                let opened = all.difference.is_some();
                (Stage::Verdicts { refused, opened, wiping: all.into_wiping() }, awaited)
            }
            Stage::Verdicts { .. } => unreachable!("they come last"),
        };
        let (stage, awaited) = next;
        Ok(Some(UnderWay { stage, awaited, ..self }))
    }
}

impl Stage {
    fn values(
        party: &mut Party,
        k: usize,
        all: Box<Verification>,
        values: Vec<u8>,
        told: Told,
    ) -> Result<(Stage, Awaited), RunError> {
        let awaited = party.tell_values(&all, k, values, &told)?;
        Ok((Stage::Values { k, all, told }, awaited))
    }
}

impl Begun {
    /// With the seed of the own proof's coefficients: all three proofs, and the own one's first values.
    fn learn(self, party: &mut Party, seed: &Seed, told: &mut Told) -> (Verification, Vec<u8>) {
        let Begun { batches, shapes, products, drawn, told: ahead, masks } = self;
        told.add(ahead);
        let [own, next, prev] = batches;
        #[cfg(test)]
        let own = match party.adapt.take() {
            Some(adapt) => adapt.done_to(own, seed),
            None => own,
        };
        let mut shapes = shapes.into_iter();
        let proved = [own, next, prev].map(|batches| (batches, shapes.next().expect("three shapes")));
        Verification::new(party.device, seed, drawn, proved, masks, products)
    }
}
