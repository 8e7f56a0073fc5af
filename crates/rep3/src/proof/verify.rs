//! The rounds in which the three parties prove their messages to each other, all at once.

use super::batch::{Batches, Role};
use super::drawn::{Drawn, sum};
use super::fold::Masks;
use super::products::{CommonFolds, ProductClaim};
use super::verification::Verification;
use crate::price::proofs::{Shapes, folds};
use crate::{Messages, Party, PartyId, RunError, mutation};
use privet_prg::Seed;
use std::time::Instant;

/// What says that its sender has come this far.
const HERE: u8 = 1;
/// What says that its sender's checks failed.
const REFUSED: u8 = 0;

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
        let result = self.prove_and_check(batches, shapes, products);
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
        let (mut all, mut told, mut values) = self.learn_coefficients(batches, shapes, products)?;
        for k in 0..folds {
            let of_prev = self.exchange_values(&all, k, values, &told)?;
            told = self.exchange_challenges(&all, k, k + 1 < folds)?;
            values = all.go_on(self.device, k, &of_prev, &told.challenges());
        }
        self.compare_last_values(&all)
    }

    /// Round 1: every party has received every message of the batch, and says so by telling both provers that it checks half of the seed of
    /// their coefficients. A prover has its seed once both its verifiers have all its messages.
    fn learn_coefficients(
        &mut self,
        batches: [Batches; 3],
        shapes: [Shapes; 3],
        products: Vec<ProductClaim>,
    ) -> Result<(Verification, Told, Vec<u8>), RunError> {
        let in_common = CommonFolds::of(&shapes, &products);
        let shared = self.draw();
        let masks = self.draw_masks();
        let shapes = self.rotated(shapes);
        let [_, of_next, of_prev] = &shapes;
        let of_next = Drawn::new(Role::Before, of_next.clone(), shared.own);
        let of_prev = Drawn::new(Role::After, of_prev.clone(), shared.next);

        // before all that takes time: then the parties wait once and not twice
        let out = Messages { prev: of_prev.tells(0), next: of_next.tells(0) };
        let got = self.talk("proof: coefficients", out, (Seed::BYTES, Seed::BYTES))?;
        let told = Told { before: got.prev, after: got.next };
        let seed = told.seed();
        let [own, next, prev] = self.rotated(batches);
        #[cfg(test)]
        let own = match self.adapt.take() {
            Some(adapt) => adapt.done_to(own, &seed),
            None => own,
        };
        let mut shapes = shapes.into_iter();
        let proved = [own, next, prev].map(|batches| (batches, shapes.next().expect("three shapes")));
        let (all, values) =
            Verification::new(self.device, &seed, [of_next, of_prev], proved, masks, products, in_common);
        Ok((all, told, values))
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
    fn exchange_values(
        &mut self,
        all: &Verification,
        k: usize,
        values: Vec<u8>,
        told: &Told,
    ) -> Result<Vec<u8>, RunError> {
        let [of_next, of_prev] = &all.drawn;
        let mut to_next = values;
        // what it tells both provers again is what they are to report
        let again = [of_prev, of_next].map(|drawn| drawn.other_tells(k));
        let to_prev = [&again[0][..], &told.after].concat();
        to_next.extend([&again[1][..], &told.before].concat());

        let values = of_prev.shapes.message_bytes(k);
        let lens = (values + told.after.len() + again[0].len(), told.before.len() + again[1].len());
        let out = Messages { prev: to_prev, next: to_next };
        let mut got = self.talk("proof: values", out, lens)?;
        let from_prev = got.prev.split_off(values);
        let (after, of_prev) = from_prev.split_at(told.after.len());
        let (before, of_next) = got.next.split_at(told.before.len());
        self.agree(before, &told.before)?;
        self.agree(after, &told.after)?;
        self.told_alike(self.id.prev(), of_prev, &again[0])?;
        self.told_alike(self.id.next(), of_next, &again[1])?;
        Ok(got.prev)
    }

    /// Round 2, second half: the answer to the values of fold `k` of the party before, and, where there is a next fold, its own verifier's
    /// answer to this party.
    fn exchange_challenges(&mut self, all: &Verification, k: usize, goes_on: bool) -> Result<Told, RunError> {
        let mut told = Told::default();
        if goes_on {
            let [_, of_prev] = &all.drawn;
            let out = Messages { prev: of_prev.tells(k + 1), next: vec![HERE] };
            let got = self.talk("proof: challenge", out, (1, all.shapes.challenge_bytes(k + 1)))?;
            self.present(self.id.prev(), &got.prev)?;
            told.after = got.next;
        }
        Ok(told)
    }

    /// Rounds 3 and 4: the verifiers of each proof compare what is left of it, and all tell all what they found.
    fn compare_last_values(&mut self, all: &Verification) -> Result<(), RunError> {
        let (next, prev) = (self.id.next(), self.id.prev());
        let [of_next, of_prev] = all.drawn.each_ref().map(|drawn| drawn.shapes.final_bytes());
        let [to_prev, to_next] = all.finish();
        let got =
            self.talk("proof: last values", Messages { prev: to_prev, next: to_next }, (of_next, of_prev))?;
        let [of_next, of_prev] = all.accepts(self.device, [&got.prev, &got.next]);
        let accepted = [(next, of_next), (prev, of_prev)];
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

/// What the verifiers of its own proof have told a prover since its last values.
#[derive(Default)]
struct Told {
    /// The party before: a half of the seed.
    before: Vec<u8>,
    /// The party after: the other half, or the challenges of a fold.
    after: Vec<u8>,
}

impl Told {
    /// The seed of its coefficients.
    fn seed(&self) -> Seed {
        let half = |bytes: &[u8]| Seed::from_bytes(bytes.try_into().expect("as many bytes as asked for"));
        sum([&half(&self.before), &half(&self.after)])
    }

    fn challenges(&self) -> Vec<u64> {
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
