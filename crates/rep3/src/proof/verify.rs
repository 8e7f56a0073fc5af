//! The rounds in which the three parties prove their messages to each other, all at once.

use super::batch::{Batches, Role, Weights};
use super::extension::Extension;
use super::field::Gf;
use super::fold::{Masks, Point, Prover, Verifier};
use super::folded::Folded;
use super::galois::Gr;
use super::products::{Combined, CommonFolds, ProductClaim};
use super::words::FoldedWords;
use crate::price::proofs::{OF_BITS, Shapes, folds};
use crate::{Messages, Party, PartyId, RunError, mutation};
use privet_prg::{Domain, Prg, Seed};
use privet_ring::Ring;
use std::time::Instant;

/// What says that its sender has come this far.
const HERE: u8 = 1;
/// What says that its sender's checks failed.
const REFUSED: u8 = 0;

/// A verifier of one proof: what it draws together with the other, and both algebras.
struct Check {
    shapes: Shapes,
    seed: Seed,
    /// Per fold; none is 0, so that the masks at the end are multiplied by units.
    challenges: Vec<Vec<u64>>,
    masks: Masks,
    bits: Verifier<Gf>,
    ring: Verifier<Gr>,
}

impl Check {
    fn new(
        party: &Party,
        role: Role,
        (batches, shapes): (Batches, Shapes),
        mut shared: Prg,
        masks: Masks,
    ) -> Check {
        let seed = shared.seed();
        let mut nonzero = || loop {
            let r = shared.elements(Ring::R64, 1)[0];
            if r != 0 {
                break r;
            }
        };
        let challenges =
            (0..shapes.folds()).map(|k| (0..shapes.challenges(k)).map(|_| nonzero()).collect()).collect();
        let (bits, ring) = Weights::expand(&seed, &batches);
        let bits = Verifier::new(party.device, role, batches.bits, shapes.bits.clone(), bits);
        let ring = Verifier::new(party.device, role, batches.ring, shapes.ring.clone(), ring);
        Check { shapes, seed, challenges, masks, bits, ring }
    }

    /// Go on with the statements about bits, at this point if all three proofs have one in common.
    fn fold_bits(
        &mut self,
        party: &Party,
        k: usize,
        message: &[u8],
        common: Common<Gf>,
        products: &Combined,
    ) {
        if let Some(own) = self.challenges.get(k) {
            self.bits.fold(party.device, k, &mut self.masks, message, common.or(own), products);
        }
    }

    /// Go on with those about rings.
    fn fold_ring(
        &mut self,
        party: &Party,
        k: usize,
        message: &[u8],
        common: Common<Gr>,
        products: &Combined,
    ) {
        if let Some(own) = self.challenges.get(k) {
            self.ring.fold(party.device, k, &mut self.masks, message, common.or(own), products);
        }
    }

    /// The challenges that the prover needs after message `k`: none after its last.
    fn reveal(&self, k: usize) -> Vec<u8> {
        if k + 1 >= self.shapes.folds() {
            return vec![];
        }
        self.challenges[k].iter().flat_map(|r| r.to_le_bytes()).collect()
    }

    fn finish(&self) -> Vec<u8> {
        let mut out = vec![];
        self.bits.finish(&mut out);
        self.ring.finish(&mut out);
        out
    }

    fn accepts(&self, bytes: &[u8]) -> bool {
        let (bits, ring) = bytes.split_at(self.shapes.bits.final_bytes());
        // both, whatever the first says
        let of_ring = self.ring.check(ring) | mutation::active("bits-alone-checked");
        (self.bits.check(bits) & of_ring) | mutation::active("last-values-not-checked")
    }
}

/// The prover of one proof.
struct Proof {
    shapes: Shapes,
    masks: Masks,
    bits: Prover<Gf>,
    ring: Prover<Gr>,
}

impl Proof {
    fn new((batches, shapes): (Batches, Shapes), seed: &Seed, masks: Masks) -> Proof {
        let (bits, ring) = Weights::expand(seed, &batches);
        let bits = Prover::new(batches.bits, shapes.bits.clone(), bits);
        let ring = Prover::new(batches.ring, shapes.ring.clone(), ring);
        Proof { shapes, masks, bits, ring }
    }

    fn message(
        &mut self,
        party: &Party,
        k: usize,
        products: &Combined,
        words: Option<&mut FoldedWords>,
    ) -> Vec<u8> {
        let mut out = vec![];
        self.bits.message(party.device, k, &mut self.masks, products, None, &mut out);
        self.ring.message(party.device, k, &mut self.masks, products, words, &mut out);
        out
    }

    fn fold(
        &mut self,
        party: &Party,
        k: usize,
        r: &[u64],
        (bits, ring): (Common<Gf>, Common<Gr>),
        products: &Combined,
    ) {
        self.bits.fold(party.device, k, bits.or(r), products);
        self.ring.fold(party.device, k, ring.or(r), products);
    }
}

/// What one party does in a verification.
struct Verification {
    /// Of its own messages.
    proof: Proof,
    /// Of the messages of the party after, in whose proof it is B.
    of_next: Check,
    /// Of the messages of the party before, in whose proof it is A.
    of_prev: Check,
    /// What it knows of all products, for all three proofs.
    products: Combined,
    /// What is made of words of ring elements at points that all three proofs have in common.
    words: FoldedWords,
}

impl Verification {
    /// Variables of fold `k` of words of bits, where all three proofs have one: it is at a point that they have in common.
    fn common_bits(&self, k: usize) -> Option<u32> {
        let shapes = [&self.proof.shapes, &self.of_next.shapes, &self.of_prev.shapes];
        let vars = OF_BITS.get(k).copied()?;
        shapes.iter().all(|shapes| shapes.bits.of_words() > k).then_some(vars)
    }

    /// The same of words of ring elements.
    fn common_words(&self, k: usize) -> Option<u32> {
        let shapes = [&self.of_next.shapes, &self.of_prev.shapes];
        let own = &self.proof.shapes.ring;
        let alike = |shapes: &&Shapes| shapes.ring.of_words() > k && shapes.ring.vars(k) == own.vars(k);
        (own.of_words() > k && shapes.iter().all(alike)).then(|| own.vars(k))
    }
}

/// What the three proofs have in common in a fold, of one algebra.
struct Common<'a, E: Extension> {
    /// Its point; else each proof goes on at its own challenges.
    point: Option<&'a [u64]>,
    /// Columns that are folded at this point by now.
    folded: Option<&'a mut E::Folded>,
}

impl<'a, E: Extension> Common<'a, E> {
    /// At this point, with what is folded there; nothing in common where there is none.
    fn at(point: Option<&'a [u64]>, folded: &'a mut E::Folded) -> Common<'a, E> {
        Common { point, folded: point.map(|_| folded) }
    }

    /// Where a proof goes on that has this challenge.
    fn or(self, own: &'a [u64]) -> Point<'a, E> {
        Point { r: self.point.unwrap_or(own), folded: self.folded }
    }
}

/// The point of a fold that all three proofs have in common, from the challenges of each in any order: uniform to a prover that lacks its
/// own, whatever the others are. None of them is 0, and as good as never their sum; a 1 takes its place.
fn common_point(challenges: [&[u64]; 3], vars: u32) -> Vec<u64> {
    let sum = |i: usize| challenges.iter().fold(0, |sum, r| sum ^ r[i]);
    (0..vars as usize).map(|i| sum(i).max(1)).collect()
}

/// The seed of the coefficients that all three proofs share, from all provers' seeds in any order. Uniform to a party that
/// lacks one of them, whatever the others are: its own, until both its verifiers have revealed it.
fn common(seeds: [&Seed; 3]) -> Seed {
    // keys of their own: each seed's stream is its proof's alone
    let [a, b, c] = seeds.map(|seed| *seed.derive(Domain::Common, 0).expose());
    Seed::from_bytes(std::array::from_fn(|i| a[i] ^ b[i] ^ c[i]))
}

impl Party<'_> {
    /// Prove every message since the last call and check the others' proofs; on success nothing is left to be proved, and
    /// both neighbours have said that their checks passed. Must come before anything is revealed. What it costs is counted
    /// apart from what the protocol does.
    ///
    /// Where a check fails, or a party says that one failed, the job is over: both links are closed with the reason.
    pub fn verify(&mut self) -> Result<(), RunError> {
        let Some(transcript) = &mut self.transcript else { return Ok(()) };
        let (claims, products) = transcript.take();
        if mutation::active("nothing-proved") {
            return Ok(());
        }
        let (batches, shapes) = Batches::sort(self.id, claims, &products);
        if folds(&shapes) == 0 {
            return Ok(());
        }
        let (start, of_the_protocol) = (Instant::now(), std::mem::take(&mut self.stats));
        let result = self.prove_and_check(batches.map(Batches::prepared), shapes, products);
        let mut cost = std::mem::replace(&mut self.stats, of_the_protocol);
        cost.seconds = start.elapsed().as_secs_f64();
        self.checks.add(&cost);
        if let Err(e) = &result
            && !matches!(e, RunError::Net(_))
        {
            self.abort(&e.to_string());
        }
        result
    }

    /// [`Party::verify`] when the transcript has grown past what should be kept in memory. All parties' transcripts
    /// have the same number of words, so all do the same.
    pub fn verify_if_large(&mut self) -> Result<(), RunError> {
        match &self.transcript {
            Some(t) if self.limits.are_many(t.bytes()) => self.verify(),
            _ => Ok(()),
        }
    }

    /// The rounds of docs/rep3.md, section 6. All parties are to give the same shapes.
    fn prove_and_check(
        &mut self,
        batches: [Batches; 3],
        shapes: [Shapes; 3],
        products: Vec<ProductClaim>,
    ) -> Result<(), RunError> {
        let folds = folds(&shapes);
        self.hear_that_all_is_in()?;
        let mut all = self.learn_coefficients(batches, shapes, products)?;
        let mut answer = vec![];
        for k in 0..folds {
            let message = self.exchange_values(&mut all, k, &answer)?;
            answer = self.exchange_challenges(&mut all, k, &message, k + 1 < folds)?;
        }
        self.compare_last_values(&all)
    }

    /// Round 1: everybody has received every message of the batch. Only now may coefficients become known.
    fn hear_that_all_is_in(&mut self) -> Result<(), RunError> {
        let out = Messages { prev: vec![HERE], next: vec![HERE] };
        let got = self.talk("proof: all messages are in", out, (1, 1))?;
        self.present(self.id.prev(), &got.prev)?;
        self.present(self.id.next(), &got.next)
    }

    /// Round 2: both verifiers tell each prover the seed of its coefficients.
    fn learn_coefficients(
        &mut self,
        batches: [Batches; 3],
        shapes: [Shapes; 3],
        products: Vec<ProductClaim>,
    ) -> Result<Verification, RunError> {
        let in_common = CommonFolds::of(&shapes, &products);
        // Own key i is shared with the party before: as challenges about the party after, as the masks of the own
        // proof, and of v in the proof of the party before. Three draws, so that no stream is used twice.
        let (shared, messages, ends) = (self.draw(), self.draw(), self.draw());
        let mut stated: Vec<_> = batches.into_iter().zip(shapes).collect();
        // from its own on, the parties' in their order
        stated.rotate_left(self.id.index());
        let Ok([own, of_next, of_prev]) = <[_; 3]>::try_from(stated) else { unreachable!("three provers") };
        let own_masks = Masks { before: Some(messages.own), after: Some(ends.next) };
        let next_masks = Masks { before: Some(messages.next), after: None };
        let prev_masks = Masks { before: None, after: Some(ends.own) };
        let of_next = Check::new(self, Role::Before, of_next, shared.own, next_masks);
        let of_prev = Check::new(self, Role::After, of_prev, shared.next, prev_masks);

        let seed = |check: &Check| check.seed.expose().to_vec();
        let out = Messages { prev: seed(&of_prev), next: seed(&of_next) };
        let got = self.talk("proof: coefficients", out, (Seed::BYTES, Seed::BYTES))?;
        self.agree(&got.prev, &got.next)?;
        let seed = Seed::from_bytes(got.next.try_into().expect("as many bytes as asked for"));
        #[cfg(test)]
        let own = match self.adapt.take() {
            Some(adapt) => adapt.done_to(own, &seed),
            None => own,
        };
        let proof = Proof::new(own, &seed, own_masks);
        let coefficients = common([&seed, &of_next.seed, &of_prev.seed]);
        let products = Combined::new(self.device, products, in_common, &coefficients);
        Ok(Verification { proof, of_next, of_prev, products, words: FoldedWords::default() })
    }

    /// Round 3, first half: values of fold `k` go to the party after alone, which answers with challenge `k`. The party
    /// before says the same a round later, when the answer of the party after has told it that the values were in.
    fn exchange_values(
        &mut self,
        all: &mut Verification,
        k: usize,
        answer: &[u8],
    ) -> Result<Vec<u8>, RunError> {
        let in_common = k > 0 && all.common_words(k - 1).is_some();
        let words = in_common.then_some(&mut all.words);
        let mut out = all.proof.message(self, k, &all.products, words);
        if k > 0 {
            out.extend(all.of_next.reveal(k - 1));
        }
        let expected = all.of_prev.shapes.message_bytes(k);
        let len = expected + answer.len();
        let mut got = self.talk("proof: values", Messages { prev: vec![], next: out }, (len, 0))?.prev;
        let again = got.split_off(expected);
        self.agree(&again, answer)?;
        Ok(got)
    }

    /// Round 3, second half: the answer to the values of the party before, `message`, and, where there is a next fold, its
    /// own verifiers' answer to this party. All three proofs go on at their challenges.
    fn exchange_challenges(
        &mut self,
        all: &mut Verification,
        k: usize,
        message: &[u8],
        goes_on: bool,
    ) -> Result<Vec<u8>, RunError> {
        let [bits_vars, words_vars] = [all.common_bits(k), all.common_words(k)];
        let Verification { proof, of_next, of_prev, products, words } = all;
        let (of_bits, of_ring) = message.split_at(of_prev.shapes.bits.message_bytes(k));
        let mut folded = Folded::default();
        if bits_vars.is_none() {
            of_prev.fold_bits(self, k, of_bits, Common::at(None, &mut folded), products);
            of_next.fold_bits(self, k, &[], Common::at(None, &mut folded), products);
        }
        let mut answer = vec![];
        if goes_on {
            let out = Messages { prev: of_prev.reveal(k), next: vec![HERE] };
            let got = self.talk("proof: challenge", out, (1, proof.shapes.challenge_bytes(k)))?;
            self.present(self.id.prev(), &got.prev)?;
            answer = got.next;
        }
        let r: Vec<u64> = answer.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
        let point_of = |vars| common_point([&r, &of_next.challenges[k], &of_prev.challenges[k]], vars);
        let ring_vars = words_vars.or(products.common_vars(k));
        let [bits, ring] = [bits_vars, ring_vars].map(|vars| vars.map(point_of));
        if bits.is_some() {
            of_prev.fold_bits(self, k, of_bits, Common::at(bits.as_deref(), &mut folded), products);
            of_next.fold_bits(self, k, &[], Common::at(bits.as_deref(), &mut folded), products);
        }
        of_prev.fold_ring(self, k, of_ring, Common::at(ring.as_deref(), words), products);
        of_next.fold_ring(self, k, &[], Common::at(ring.as_deref(), words), products);
        // last, as what it folds are sums of what the others did
        let common = (Common::at(bits.as_deref(), &mut folded), Common::at(ring.as_deref(), words));
        proof.fold(self, k, &r, common, products);
        if let (Some(point), None) = (&ring, words_vars) {
            products.fold(self.device, point);
        }
        if k + 1 >= proof.shapes.ring.of_words() {
            *words = FoldedWords::default();
        }
        Ok(answer)
    }

    /// Rounds 4 to 6: the verifiers of each proof compare what is left of it, and all tell all what they found.
    fn compare_last_values(
        &mut self,
        Verification { of_next, of_prev, .. }: &Verification,
    ) -> Result<(), RunError> {
        let (next, prev) = (self.id.next(), self.id.prev());
        // The prover has seen the same challenges from both: only then does what the party before holds fit what the
        // party after was sent, so that their sum says nothing new.
        let out = Messages { prev: vec![HERE], next: vec![] };
        let got = self.talk("proof: challenges agree", out, (0, 1))?;
        self.present(next, &got.next)?;
        let lens = (of_next.shapes.final_bytes(), of_prev.shapes.final_bytes());
        let out = Messages { prev: of_next.finish(), next: of_prev.finish() };
        let got = self.talk("proof: last values", out, lens)?;
        let accepted = [(next, of_next.accepts(&got.prev)), (prev, of_prev.accepts(&got.next))];
        let refused = accepted.iter().find(|(_, accepted)| !accepted);

        let verdict = || vec![if refused.is_some() { REFUSED } else { HERE }];
        let got = self.talk("proof: verdicts", Messages { prev: verdict(), next: verdict() }, (1, 1))?;
        let (step, layer) = self.place();
        if let Some(&(prover, _)) = refused {
            let verifier = if prover == next { prev } else { next };
            return Err(RunError::Dishonest { prover, verifier, step, layer });
        }
        for (peer, byte) in [(prev, &got.prev), (next, &got.next)] {
            if byte[..] != [HERE] && !mutation::active("verdicts-ignored") {
                return Err(RunError::Refused { peer, step, layer });
            }
        }
        Ok(())
    }

    /// Both verifiers must have sent the same challenges.
    fn agree(&self, before: &[u8], after: &[u8]) -> Result<(), RunError> {
        if before == after || mutation::active("challenges-not-compared") {
            return Ok(());
        }
        let (step, layer) = self.place();
        Err(RunError::Challenge { before: self.id.prev(), after: self.id.next(), step, layer })
    }

    fn present(&self, peer: PartyId, byte: &[u8]) -> Result<(), RunError> {
        if byte == [HERE] {
            return Ok(());
        }
        let (step, layer) = self.place();
        Err(RunError::Refused { peer, step, layer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else a prover would know the point of a fold before its values are in.
    #[test]
    fn common_points_need_all_challenges() {
        let [a, b, c]: [&[u64]; 3] = [&[1, 2, 3, 4], &[5, 6, 7, 8], &[9, 10, 11, 12]];
        let found = common_point([a, b, c], 4);
        assert!([[b, c, a], [c, a, b], [b, a, c]].into_iter().all(|all| common_point(all, 4) == found));
        assert_eq!(common_point([a, b, c], 2), found[..2], "of fewer variables");
        let other: &[u64] = &[13, 14, 15, 16];
        for changed in [[other, b, c], [a, other, c], [a, b, other]] {
            assert!(common_point(changed, 4).iter().zip(&found).all(|(other, r)| other != r));
        }
        assert_eq!(common_point([&[1], &[2], &[3]], 1), [1], "never 0, which would take the masks away");
    }

    /// Else a prover would know its own coefficients before its messages are in.
    #[test]
    fn common_coefficients_need_all_seeds() {
        let seeds = [1, 2, 3].map(|i| Seed::from_bytes([i; 16]));
        let [a, b, c] = seeds.each_ref();
        let found = common([a, b, c]);
        // every party has them in an order of its own
        assert!([[b, c, a], [c, a, b], [b, a, c]].iter().all(|seeds| common(*seeds) == found));
        let other = Seed::from_bytes([4; 16]);
        for changed in [[&other, b, c], [a, &other, c], [a, b, &other]] {
            assert_ne!(common(changed), found);
        }
    }
}
