//! What a party does in the three proofs of one algebra. Wherever there is one of each proof, they come in the order: the party's own, that of
//! the party after, in which it is B, and that of the party before, in which it is A.

use super::batch::{Role, Statements, Weights};
use super::drawn::common_point;
use super::extension::{Extension, Joining};
use super::fold::{Masks, Point, Prover, Verifier};
use super::spent::{Spent, Wiping};
use crate::price::proofs::Shape;
use privet_kernels::Device;

/// All three proofs of one algebra, as a party has them.
pub(super) struct Roles<E: Extension> {
    own: Prover<E>,
    of_next: Verifier<E>,
    of_prev: Verifier<E>,
    masks: [Masks; 3],
    /// What joins the folded words, the same in all three proofs.
    joining: E::Joining,
    /// What is made of columns at points that all three proofs have in common.
    folded: E::Folded,
    /// Words of all factors of the own statements.
    words: usize,
    /// What is not read any more.
    pub wiping: Wiping,
}

/// What is stated in one proof and one algebra, with its coefficients.
pub(super) struct Stated {
    pub statements: Statements,
    pub shape: Shape,
    pub weights: Weights,
}

impl<E: Extension> Roles<E> {
    pub fn new(
        device: &dyn Device,
        [own, next, prev]: [Stated; 3],
        masks: [Masks; 3],
        joining: E::Joining,
    ) -> Roles<E> {
        let words = own.statements.words();
        let own = Prover::new(own);
        let [of_next, of_prev] =
            [(Role::Before, next), (Role::After, prev)].map(|(role, of)| Verifier::new(device, role, of));
        Roles {
            own,
            of_next,
            of_prev,
            masks,
            joining,
            folded: E::Folded::default(),
            words,
            wiping: Wiping::default(),
        }
    }

    /// Words that are read between the values of fold `k` and those of the next.
    pub fn words(&self, k: usize) -> usize {
        if k < self.own.shape().of_words() { self.words } else { 0 }
    }

    /// The own proof's values of fold `k`: the party after's shares of them.
    pub fn values(&mut self, device: &dyn Device, k: usize) -> Vec<u8> {
        let in_common = k > 0 && self.common_words(k - 1).is_some();
        let folded = in_common.then_some(&mut self.folded);
        let [masks, ..] = &mut self.masks;
        self.own.message(device, k, masks, &self.joining, folded)
    }

    /// Go on after fold `k`, of which the party before sent `values`, at each proof's challenges or where all three do.
    pub fn go_on(&mut self, device: &dyn Device, k: usize, values: &[u8], challenges: [&[u64]; 3]) {
        let words = self.common_words(k);
        let vars = words.or(self.joining.common_vars(k));
        let common = vars.map(|vars| common_point(challenges, vars));
        let [at_own, at_next, at_prev] = challenges;
        let Roles { own, of_next, of_prev, masks: [_, next, prev], joining, folded, .. } = self;
        let (common, mut spent) = (common.as_deref(), Spent::<E>::default());
        let last_of_words = |shape: &Shape| k + 1 == shape.of_words();
        of_prev.fold(device, k, prev, values, Point::of(common, at_prev, folded), joining);
        if last_of_words(of_prev.shape()) {
            spent.add(of_prev.spent());
        }
        of_next.fold(device, k, next, &[], Point::of(common, at_next, folded), joining);
        if last_of_words(of_next.shape()) {
            spent.add(of_next.spent());
        }
        // last, as what it folds are sums of what the others did
        own.fold(device, k, Point::of(common, at_own, folded), joining);
        if last_of_words(own.shape()) {
            spent.add(own.spent());
        }
        if let (Some(point), None) = (common, words) {
            joining.fold(device, point);
        }
        if [own.shape(), of_next.shape(), of_prev.shape()].into_iter().any(last_of_words) {
            spent.folded = std::mem::take(folded);
            self.wiping.add(spent.wipe());
        }
    }

    /// Variables of fold `k` of words, where all three proofs have it: it is at a point that they have in common.
    fn common_words(&self, k: usize) -> Option<u32> {
        let shapes = [self.own.shape(), self.of_next.shape(), self.of_prev.shape()];
        let [own, next, prev] = shapes.map(|shape| (shape.of_words() > k).then(|| shape.vars(k)));
        own.filter(|_| own == next && own == prev)
    }

    /// What the other verifiers need at the end: of the proof of the party after, and of that of the party before.
    pub fn finish(&self) -> [Vec<u8>; 2] {
        [&self.of_next, &self.of_prev].map(Verifier::finish)
    }

    /// Whether the proof of the party after holds, and that of the party before, by what the other verifiers sent.
    pub fn accepts(&self, device: &dyn Device, [of_next, of_prev]: [&[u8]; 2]) -> [bool; 2] {
        [self.of_next.check(device, of_next), self.of_prev.check(device, of_prev)]
    }
}
