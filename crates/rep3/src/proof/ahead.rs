//! Results of layers with tags, combined while the protocol goes on (docs/rep3.md, section 6, *Rows combined ahead*).
//!
//! Once a layer's messages are in, its rows' coefficients need not wait for the verification. With whatever they send it next, the verifiers of
//! each prover tell it a half of a seed. All three seeds give the coefficients. Whether everybody was told alike is compared before anything of tags is opened.

use super::batch::Role;
use super::drawn::{Halves, common_coefficients};
use super::verify::Told;
use crate::{Messages, Party};
use privet_prg::Seed;

/// Seeds that this party knows by now.
pub(super) struct Ahead {
    /// As a verifier of the party after, and of the party before.
    pub halves: [Halves; 2],
    /// As a prover.
    pub told: Told,
}

/// Halves that this party has sent, before it has heard its own.
pub(crate) struct Telling([Halves; 2]);

impl Party<'_> {
    /// If results wait for coefficients, add a half of a seed to what either neighbour is sent, and expect as much from both.
    pub(crate) fn tell_ahead(
        &mut self,
        out: &mut Messages,
        (prev, next): &mut (usize, usize),
    ) -> Option<Telling> {
        self.transcript.as_ref().filter(|transcript| transcript.waits())?;
        let mut shared = self.draw();
        let [of_next, of_prev] = [Halves::draw(&mut shared.own), Halves::draw(&mut shared.next)];
        out.next.extend_from_slice(of_next.told(Role::Before));
        out.prev.extend_from_slice(of_prev.told(Role::After));
        (*prev, *next) = (*prev + Seed::BYTES, *next + Seed::BYTES);
        Some(Telling([of_next, of_prev]))
    }

    /// Take the halves off what both neighbours sent, and begin with all results that waited. What was sent for that is counted as verification.
    pub(crate) fn heard_ahead(&mut self, Telling(halves): Telling, got: &mut Messages) {
        let sent = 2 * Seed::BYTES as u64;
        self.stats.sent_bytes -= sent;
        self.checks.sent_bytes += sent;
        let half = |message: &mut Vec<u8>| message.split_off(message.len() - Seed::BYTES);
        let told = Told { before: half(&mut got.prev), after: half(&mut got.next) };
        let [of_next, of_prev] = halves.each_ref().map(Halves::seed);
        let coefficients = common_coefficients([&told.seed(), &of_next, &of_prev]);
        if let Some(transcript) = &mut self.transcript {
            transcript.begin_ahead(self.device, &coefficients, Ahead { halves, told });
        }
    }
}
