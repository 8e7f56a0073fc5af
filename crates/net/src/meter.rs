//! Bytes and rounds of one channel, by phase.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

/// What passed over a channel during one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PhaseCount {
    /// Payload bytes handed to `send`.
    pub sent: u64,
    /// Payload bytes returned by `recv`.
    pub received: u64,
    /// Bytes put on the wire: payload, frame headers and TLS records. Counted when they leave, which may be
    /// after `send` returned.
    pub wire_sent: u64,
    /// Bytes taken off the wire.
    pub wire_received: u64,
    /// Messages handed to `send`.
    pub messages: u64,
    /// Rounds: receives that follow a send on this channel (or are the first), so that several receives in a
    /// row are one round.
    pub rounds: u64,
    /// Time spent blocked in `recv`.
    #[serde(rename = "wait_s", serialize_with = "seconds")]
    pub wait: Duration,
}

fn seconds<S: serde::Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_f64(d.as_secs_f64())
}

impl PhaseCount {
    fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.wire_sent += other.wire_sent;
        self.wire_received += other.wire_received;
        self.messages += other.messages;
        self.rounds += other.rounds;
        self.wait += other.wait;
    }
}

#[derive(Debug)]
struct Counts {
    phases: Vec<(String, PhaseCount)>,
    current: usize,
    turned: bool,
}

/// The counters of one channel, shared between the protocol, the I/O thread and whoever reports.
///
/// Everything is counted under the phase that is current; the first phase is `""`, which a snapshot leaves
/// out while it is empty.
#[derive(Debug)]
pub struct Meter(Mutex<Counts>);

impl Default for Meter {
    fn default() -> Self {
        let phases = vec![(String::new(), PhaseCount::default())];
        Self(Mutex::new(Counts { phases, current: 0, turned: true }))
    }
}

impl Meter {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Switches to the phase `label`; a label used before continues its count.
    pub fn phase(&self, label: &str) {
        let mut counts = self.counts();
        counts.current = counts.phases.iter().position(|(l, _)| l == label).unwrap_or_else(|| {
            counts.phases.push((label.to_owned(), PhaseCount::default()));
            counts.phases.len() - 1
        });
    }

    /// All phases in the order of their first use.
    pub fn snapshot(&self) -> Vec<(String, PhaseCount)> {
        let empty = PhaseCount::default();
        self.counts().phases.iter().filter(|(l, c)| !l.is_empty() || *c != empty).cloned().collect()
    }

    /// The sum over all phases.
    pub fn total(&self) -> PhaseCount {
        let mut sum = PhaseCount::default();
        self.counts().phases.iter().for_each(|(_, count)| sum.add(count));
        sum
    }

    /// Counts a message of `bytes`; returns the phase it belongs to, for [`Meter::wire_sent`].
    pub(crate) fn sent(&self, bytes: usize) -> usize {
        let mut counts = self.counts();
        counts.turned = true;
        let current = counts.current;
        let phase = &mut counts.phases[current].1;
        phase.sent += bytes as u64;
        phase.messages += 1;
        current
    }

    pub(crate) fn received(&self, bytes: usize, wait: Duration) {
        let mut counts = self.counts();
        let new_round = std::mem::replace(&mut counts.turned, false);
        let current = counts.current;
        let phase = &mut counts.phases[current].1;
        phase.received += bytes as u64;
        phase.rounds += u64::from(new_round);
        phase.wait += wait;
    }

    pub(crate) fn wire_sent(&self, phase: usize, bytes: usize) {
        self.counts().phases[phase].1.wire_sent += bytes as u64;
    }

    pub(crate) fn wire_received(&self, bytes: usize) {
        let mut counts = self.counts();
        let current = counts.current;
        counts.phases[current].1.wire_received += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receives_in_a_row_are_one_round() {
        let meter = Meter::default();
        meter.phase("a");
        meter.received(1, Duration::ZERO); // the first receive counts without a send
        meter.received(1, Duration::ZERO);
        meter.sent(3);
        meter.sent(4);
        meter.received(1, Duration::ZERO);
        meter.phase("b");
        meter.received(9, Duration::ZERO);
        meter.phase("a");
        meter.sent(5);
        let phases = meter.snapshot();
        assert_eq!(phases.len(), 2);
        assert_eq!((phases[0].1.rounds, phases[0].1.sent, phases[0].1.received), (2, 12, 3));
        assert_eq!((phases[1].1.rounds, phases[1].1.received), (0, 9));
        assert_eq!(meter.total().messages, 3);
    }
}
