//! What a node does, as one stream of typed events: the log, progress bars and metrics are made of nothing else.
//!
//! ```text
//! session, dealer, client --emit--> Events --+--> Metrics (at once: counters)  --> http
//!                                            +--> queue --> Log  (tracing: text or JSON)
//!                                            +--> queue --> Bars (a terminal)
//! ```
//!
//! **Nothing secret gets in, by types.** Every field of an event is [`Public`]: a sealed trait of the types in `public.rs` and
//! `words.rs`.
//! Neither `String`, `&str`, bare numbers, bytes, tensors nor seeds are among them. A text enters as the name of something
//! public only, by a parser that knows what such a name looks like. The reason of a failure is a [`Reason`]: a literal of
//! this program, filled with public fields; never an error's own text.
//!
//! **Nobody waits for a subscriber.** [`Events::emit`] puts the event into bounded queues and returns. What does not fit is
//! counted, and the log says how many events it lost.

pub mod bars;
mod event;
pub mod http;
mod job;
pub mod log;
pub mod metrics;
mod public;
mod reason;
mod reasons;
#[cfg(test)]
mod samples;
mod stream;
mod words;

pub use event::{Event, Level, ROWS, Row};
pub use job::{Job, JobEvents, JobKind, PlanName};
pub(crate) use public::never_public;
pub use public::{Bytes, Count, DeviceName, ErrorKind, Number, Public, Purpose, Secs, ShortId, ThreadName};
pub(crate) use reason::reason;
pub use reason::{Reason, Why};
pub use stream::{Events, Inline, Stamped, Subscriber};
pub use words::{KeyFile, Name, Peer, StepName, Term, Told};

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATORS: &str = include_str!("../../../../docs/operators.md");

    /// Rows of a table of the page: the first cell of each, and the rest.
    fn rows(first: &str) -> Vec<(&'static str, &'static str)> {
        let table = OPERATORS.split_once(first).unwrap().1;
        let rows = table.lines().skip(2).take_while(|line| line.starts_with("| `"));
        rows.map(|line| line[3..].split_once("` | ").unwrap()).collect()
    }

    #[test]
    fn operators_find_every_event_and_every_metric() {
        let events = rows("| event | level | fields | when |");
        let samples = Event::samples();
        assert_eq!(events.len(), ROWS.len());
        for (((name, rest), row), event) in events.into_iter().zip(ROWS).zip(&samples) {
            let mut fields = Vec::new();
            fields.extend(event.common().job.map(|_| "of a job".to_owned()));
            fields.extend(event.common().reason.map(|_| "`reason`".to_owned()));
            fields.extend(row.fields.iter().map(|f| format!("`{f}`")));
            let level = format!("{:?}", row.level).to_lowercase();
            assert_eq!(name, row.name);
            assert_eq!(rest, format!("{level} | {} | {} |", fields.join(", "), row.about.trim()));
        }
        let metrics: Vec<String> =
            rows("| metric | kind | meaning |").iter().map(|(n, r)| format!("{n}: {r}")).collect();
        let expected = |(name, kind, about): &(&str, metrics::Kind, &str)| {
            format!("{name}: {} | {about} |", format!("{kind:?}").to_lowercase())
        };
        assert_eq!(metrics, metrics::METRICS.iter().map(expected).collect::<Vec<_>>());
    }
}
