//! The rounds in which the three parties prove their messages to each other, all at once.

use super::Taken;
use super::ahead::Ahead;
use super::batch::{Batches, Role};
use super::drawn::{Drawn, sum};
use super::fold::Masks;
use super::products::{CommonFolds, ProductClaim};
use super::tags::{Difference, Tagged, opened};
use super::under_way::{Begun, UnderWay};
use super::verification::{OfProducts, Verification};
use crate::context::Awaited;
use crate::limits::Verified;
use crate::price::proofs::{Shapes, folds};
use crate::{Messages, Party, PartyId, RunError, mutation};
use privet_prg::Seed;
use std::time::Instant;

/// What says that its sender has come this far.
const HERE: u8 = 1;
/// What says that its sender's checks failed.
const REFUSED: u8 = 0;

impl Party<'_> {
    /// Prove every message that is not proved yet, and check the others' proofs; on success nothing is left to be proved, and
    /// both neighbours have said that their checks passed. Must come before anything is revealed. What it costs is counted
    /// apart from what the protocol does.
    ///
    /// Where a check fails, or a party says that one failed, the job is over: both links are closed with the reason.
    pub fn verify(&mut self) -> Result<(), RunError> {
        self.begin_to_verify()?;
        self.finish_verifying()
    }

    /// Verify when the transcript has grown past what should be kept in memory: at once, or in the rounds of what the protocol does next. All
    /// parties' transcripts have the same number of words, so all do the same.
    pub fn verify_if_large(&mut self) -> Result<(), RunError> {
        let Some(transcript) = &self.transcript else { return Ok(()) };
        let under_way = self.under_way.iter().map(|one| one.bytes).sum();
        match self.limits.verified(transcript.bytes(), under_way) {
            Verified::Later => Ok(()),
            Verified::Beside => {
                #[cfg(test)]
                self.note_remembered();
                self.finish_verifying()?;
                self.begin_to_verify()?;
                if mutation::active("under-way-forgotten") {
                    self.under_way.clear();
                }
                Ok(())
            }
            Verified::Now => self.verify(),
        }
    }

    /// Send the first messages of a verification of all that is stated.
    fn begin_to_verify(&mut self) -> Result<(), RunError> {
        #[cfg(test)]
        self.note_remembered();
        let Some(transcript) = &mut self.transcript else { return Ok(()) };
        let bytes = transcript.bytes();
        let Taken { claims, products, tagged, ahead } = transcript.take();
        if mutation::active("nothing-proved") {
            return Ok(());
        }
        let (batches, shapes) = Batches::sort(self.id, claims, &products);
        if folds(&shapes) == 0 && tagged.is_empty() {
            return Ok(());
        }
        let begun = self.counted_as_checks(|party| {
            let begun = party.begun(batches, shapes, products, tagged, ahead);
            UnderWay::begin(party, begun, bytes)
        })?;
        self.under_way.push(begun);
        Ok(())
    }

    /// The rounds that are left of all verifications that are under way, which do nothing else.
    fn finish_verifying(&mut self) -> Result<(), RunError> {
        while !self.under_way.is_empty() {
            self.checks.rounds += 1;
            self.go_on_verifying()?;
        }
        Ok(())
    }

    /// End the job if this party has refused a proof: it has said so, and says nothing else.
    pub(crate) fn heed_refusal(&mut self) -> Result<(), RunError> {
        match self.under_way.iter().any(UnderWay::is_refused) {
            true => self.finish_verifying(),
            false => Ok(()),
        }
    }

    /// Read what came for every verification that is under way, and send its next messages. From a refusal on a party reads alone, in the order
    /// in which it is sent what it waits for.
    pub(crate) fn go_on_verifying(&mut self) -> Result<(), RunError> {
        if self.under_way.is_empty() {
            return Ok(());
        }
        let under_way = std::mem::take(&mut self.under_way);
        let mut refused = under_way.iter().any(UnderWay::is_refused);
        self.under_way = self.counted_as_checks(|party| {
            let mut left = Vec::with_capacity(under_way.len());
            for one in under_way {
                if refused && !one.is_refused() {
                    one.read(party);
                    continue;
                }
                let next = one.go_on(party)?;
                refused |= next.as_ref().is_some_and(UnderWay::is_refused);
                left.extend(next);
            }
            Ok(left)
        })?;
        Ok(())
    }

    /// What this does and sends is counted as verification; an error of it ends the job at both neighbours.
    fn counted_as_checks<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let (start, of_the_protocol) = (Instant::now(), std::mem::take(&mut self.stats));
        let result = work(self);
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

    /// What a verification begins with. All parties are to give the same shapes.
    fn begun(
        &mut self,
        batches: [Batches; 3],
        shapes: [Shapes; 3],
        products: Vec<ProductClaim>,
        tagged: Vec<Tagged>,
        ahead: Vec<Ahead>,
    ) -> Begun {
        let in_common = CommonFolds::of(&shapes, &products);
        let shared = self.draw();
        let masks = self.draw_masks();
        let tagged = (!tagged.is_empty()).then(|| {
            let streams = self.draw();
            (tagged, [streams.own, streams.next])
        });
        let (batches, shapes) = (self.rotated(batches), self.rotated(shapes));
        let [_, of_next, of_prev] = &shapes;
        let (mut halves, mut told) = ([vec![], vec![]], Told::default());
        let ahead = if mutation::active("ahead-not-reported") { vec![] } else { ahead };
        for Ahead { halves: [of_next, of_prev], told: more } in ahead {
            halves[0].push(of_next);
            halves[1].push(of_prev);
            told.add(more);
        }
        let [ahead_of_next, ahead_of_prev] = halves;
        let of_next = Drawn::new(Role::Before, of_next.clone(), ahead_of_next, shared.own);
        let of_prev = Drawn::new(Role::After, of_prev.clone(), ahead_of_prev, shared.next);
        let products = OfProducts { proved: products, in_common, tagged };
        Begun { batches, shapes, products, drawn: [of_next, of_prev], told, masks }
    }

    /// Round 1: half of the seed of its coefficients to each prover. Before all that takes time: then the parties wait once and not twice.
    pub(super) fn tell_seeds(&mut self, [of_next, of_prev]: &[Drawn; 2]) -> Result<Awaited, RunError> {
        let out = Messages { prev: of_prev.tells(0), next: of_next.tells(0) };
        self.tell("proof: coefficients", out, (Seed::BYTES, Seed::BYTES))
    }

    /// Masks of the proofs of both algebras. Own key i is shared with the party before: as the masks of the own proof, and of those of the
    /// proof of the party before. These are two draws for each algebra, so that no stream is used twice.
    fn draw_masks(&mut self) -> [[Masks; 3]; 2] {
        [(); 2].map(|()| {
            let (messages, ends) = (self.draw(), self.draw());
            let own = Masks { before: Some(messages.own), after: Some(ends.next) };
            let next = Masks { before: Some(messages.next), after: None };
            [own, next, Masks { before: None, after: Some(ends.own) }]
        })
    }

    /// What there is of each party, in their order, from this one on.
    fn rotated<T>(&self, mut each: [T; 3]) -> [T; 3] {
        each.rotate_left(self.id.index());
        each
    }

    /// Round 2, first half: values of fold `k` go to the party after alone. What a party was `told` since the last values it hears again from
    /// the other verifier of its proof, which by now knows that all was in; and it tells that one what it was told. So if a verifier lied,
    /// both honest parties know before anybody's last values.
    pub(super) fn tell_values(
        &mut self,
        all: &Verification,
        k: usize,
        values: Vec<u8>,
        told: &Told,
    ) -> Result<Awaited, RunError> {
        let [of_next, of_prev] = told_again(all, k);
        let lens = (
            all.drawn[1].shapes.message_bytes(k) + told.after.len() + of_prev.len(),
            told.before.len() + of_next.len() + all.difference_bytes(k),
        );
        let mut to_next = values;
        to_next.extend([&of_next[..], &told.before].concat());
        let mut to_prev =
            all.difference.as_ref().filter(|_| k == 0).map(Difference::tells).unwrap_or_default();
        to_prev.extend([&of_prev[..], &told.after].concat());
        self.tell("proof: values", Messages { prev: to_prev, next: to_next }, lens)
    }

    /// The values of fold `k` of the party before. What it and the party after tell again is what it should be.
    pub(super) fn heard_values(
        &mut self,
        all: &mut Verification,
        k: usize,
        mut got: Messages,
        told: &Told,
    ) -> Result<Vec<u8>, RunError> {
        let again = told_again(all, k);
        let from_prev = got.prev.split_off(all.drawn[1].shapes.message_bytes(k));
        let from_next = got.next.split_off(all.difference_bytes(k));
        let (after, of_prev) = from_prev.split_at(told.after.len());
        let (before, of_next) = from_next.split_at(told.before.len());
        self.agree(before, &told.before)?;
        self.agree(after, &told.after)?;
        self.told_alike(self.id.prev(), of_prev, &again[1])?;
        self.told_alike(self.id.next(), of_next, &again[0])?;
        if let (0, Some(difference)) = (k, &mut all.difference) {
            difference.hears(&got.next);
        }
        Ok(got.prev)
    }

    /// Round 2, second half, where another fold follows: the answer to the values of fold `k` of the party before.
    pub(super) fn tell_challenges(&mut self, all: &Verification, k: usize) -> Result<Awaited, RunError> {
        let [_, of_prev] = &all.drawn;
        let out = Messages { prev: of_prev.tells(k + 1), next: vec![HERE] };
        self.tell_and_open(all, k, "proof: challenge", out, (1, all.shapes.challenge_bytes(k + 1)))
    }

    /// Its own verifier's answer to this party.
    pub(super) fn heard_challenges(
        &mut self,
        all: &mut Verification,
        k: usize,
        got: Messages,
    ) -> Result<Told, RunError> {
        let got = opened(all, k, got);
        self.present(self.id.prev(), &got.prev)?;
        Ok(Told { before: vec![], after: got.next })
    }

    /// Round 3: the verifiers of each proof compare what is left of it.
    pub(super) fn tell_last_values(&mut self, all: &Verification) -> Result<Awaited, RunError> {
        let [of_next, of_prev] = all.drawn.each_ref().map(|drawn| drawn.shapes.final_bytes());
        let [to_prev, to_next] = all.finish();
        let out = Messages { prev: to_prev, next: to_next };
        self.tell_and_open(all, all.last_fold(), "proof: last values", out, (of_next, of_prev))
    }

    /// Round 4: all tell all what they found. Gives what this party refuses, too.
    pub(super) fn tell_verdicts(
        &mut self,
        all: &mut Verification,
        got: Messages,
    ) -> Result<(Awaited, Option<Refused>), RunError> {
        let got = opened(all, all.last_fold(), got);
        let [of_next, of_prev] = all.accepts(self.device, [&got.prev, &got.next]);
        let accepted = [
            (Refused::Proof(self.id.next()), of_next),
            (Refused::Proof(self.id.prev()), of_prev),
            (Refused::Products, all.is_zero),
        ];
        let refused = accepted.into_iter().find(|(_, accepted)| !accepted).map(|(what, _)| what);
        let verdict = || vec![if refused.is_some() { REFUSED } else { HERE }];
        let out = Messages { prev: verdict(), next: verdict() };
        Ok((self.tell("proof: verdicts", out, (1, 1))?, refused))
    }

    /// Nothing but that ends the run of a party that `refused` something, whatever it heard.
    pub(super) fn heard_verdicts(
        &mut self,
        got: Result<Messages, RunError>,
        refused: Option<Refused>,
    ) -> Result<(), RunError> {
        let (next, prev) = (self.id.next(), self.id.prev());
        if let Some(refused) = refused {
            let (step, layer) = self.place();
            return Err(match refused {
                Refused::Proof(prover) => {
                    let verifier = if prover == next { prev } else { next };
                    RunError::Dishonest { prover, verifier, step, layer }
                }
                Refused::Products => RunError::Products { before: prev, after: next, step, layer },
            });
        }
        let got = got?;
        for (peer, byte) in [(prev, &got.prev), (next, &got.next)] {
            if !mutation::active("verdicts-ignored") {
                self.present(peer, byte)?;
            }
        }
        Ok(())
    }

    /// Both verifiers must have told this party the same.
    fn agree(&self, one: &[u8], other: &[u8]) -> Result<(), RunError> {
        if one == other || mutation::active("challenges-not-compared") {
            return Ok(());
        }
        let (step, layer) = self.place();
        Err(RunError::Challenge { before: self.id.prev(), after: self.id.next(), step, layer })
    }

    /// The other verifier must have told this prover what both drew. If it did not, and the prover is honest, the sum of both verifiers' last
    /// values would be a function of secrets; so this one does not send its own.
    fn told_alike(&self, prover: PartyId, report: &[u8], expected: &[u8]) -> Result<(), RunError> {
        if report == expected || mutation::active("reports-not-compared") {
            return Ok(());
        }
        let verifier = if prover == self.id.next() { self.id.prev() } else { self.id.next() };
        let (step, layer) = self.place();
        Err(RunError::Report { prover, verifier, step, layer })
    }

    fn present(&self, peer: PartyId, byte: &[u8]) -> Result<(), RunError> {
        if byte == [HERE] {
            return Ok(());
        }
        let (step, layer) = self.place();
        Err(RunError::Refused { peer, step, layer })
    }
}

/// What a party does not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The proof of this party.
    Proof(PartyId),
    /// Products of layers with tags, which any other party may have changed.
    Products,
}

/// What a verifier of the party after, and of the party before, tells it again before its values of fold `k`: what it is to report.
fn told_again(all: &Verification, k: usize) -> [Vec<u8>; 2] {
    all.drawn.each_ref().map(|drawn| drawn.other_tells(k))
}

/// What the verifiers of its own proof have told a prover since its last values.
#[derive(Default)]
pub(super) struct Told {
    /// The party before: halves of seeds.
    pub before: Vec<u8>,
    /// The party after: the other halves, or the challenges of a fold.
    pub after: Vec<u8>,
}

impl Told {
    /// The first seed, of its coefficients.
    pub fn seed(&self) -> Seed {
        let half = |bytes: &[u8]| *bytes.first_chunk().expect("as many bytes as asked for");
        sum([&self.before, &self.after].map(|bytes| Seed::from_bytes(half(bytes))).each_ref())
    }

    /// And what they told beside.
    pub fn add(&mut self, more: Told) {
        self.before.extend(more.before);
        self.after.extend(more.after);
    }

    /// The point of a fold.
    pub fn challenges(&self) -> Vec<u64> {
        self.after.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::Security;
    use crate::testing::three;
    use privet_ring::Ring;
    use std::collections::HashSet;

    /// A stream that masked values of both algebras would show their difference.
    #[test]
    fn no_mask_is_drawn_twice() {
        three(Security::Malicious, |party| {
            let masks = party.draw_masks().into_iter().flatten();
            let streams = masks.flat_map(|masks| [masks.before, masks.after]).flatten();
            let drawn: Vec<_> = streams.map(|mut stream| stream.elements(Ring::R64, 4)).collect();
            assert_eq!(drawn.len(), 8, "two of the own proof and one of each other, in each algebra");
            assert_eq!(drawn.iter().collect::<HashSet<_>>().len(), drawn.len());
        });
    }
}
