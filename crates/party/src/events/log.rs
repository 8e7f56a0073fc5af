//! The log: events through `tracing`, as text for people or as JSON for machines, a line each.

use super::event::Level;
use super::stream::{Stamped, Subscriber};
use std::cell::Cell;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::{Dispatch, Metadata, Subscriber as Collector};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

/// How lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// `TIME LEVEL TEXT`.
    #[default]
    Text,
    /// An object with all fields.
    Json,
}

thread_local! {
    /// When the event was that this thread writes down: a line has its event's time, however late it is written.
    static AT: Cell<SystemTime> = const { Cell::new(UNIX_EPOCH) };
}

/// Writes lines.
pub struct Log {
    to: Dispatch,
}

impl Log {
    /// Events from `most` on.
    pub fn new<W>(form: LogFormat, most: Level, to: W) -> Log
    where
        W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
    {
        let most = match most {
            Level::Error => tracing::Level::ERROR,
            Level::Warn => tracing::Level::WARN,
            Level::Info => tracing::Level::INFO,
            Level::Debug => tracing::Level::DEBUG,
        };
        let lines = tracing_subscriber::fmt().with_ansi(false).with_max_level(most).with_writer(to);
        Log {
            to: match form {
                LogFormat::Text => Dispatch::new(lines.event_format(Lines).finish()),
                LogFormat::Json => {
                    let json = lines.json().flatten_event(true).with_target(false).with_timer(EmittedAt);
                    Dispatch::new(json.with_current_span(false).with_span_list(false).finish())
                }
            },
        }
    }
}

impl Subscriber for Log {
    fn take(&mut self, stamped: &Stamped) {
        AT.set(stamped.at);
        tracing::dispatcher::with_default(&self.to, || stamped.event.trace(stamped.client.as_deref()));
    }
}

struct EmittedAt;

impl FormatTime for EmittedAt {
    fn format_time(&self, w: &mut Writer<'_>) -> fmt::Result {
        write_time(w, AT.get())
    }
}

/// Text: the fields stand in the message already.
struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Collector + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &tracing::Event<'_>,
    ) -> fmt::Result {
        let metadata: &Metadata<'_> = event.metadata();
        write_time(&mut writer, AT.get())?;
        write!(writer, " {:<5} ", metadata.level().as_str())?;
        let mut message = Message { writer, result: Ok(()) };
        event.record(&mut message);
        message.result?;
        writeln!(message.writer)
    }
}

struct Message<'a> {
    writer: Writer<'a>,
    result: fmt::Result,
}

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.result = write!(self.writer, "{value:?}");
        }
    }
}

/// Universal time to the millisecond, RFC 3339.
fn write_time(w: &mut Writer<'_>, at: SystemTime) -> fmt::Result {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (h, m, s, ms) = (second / 3600, second / 60 % 60, second % 60, since.subsec_millis());
    write!(w, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{ms:03}Z")
}

/// Year, month and day, so many days after 1970-01-01.
fn date(mut days: u64) -> (u64, u64, u64) {
    let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::event::{Event, ROWS};
    use std::collections::BTreeSet;
    use std::io::Write;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(buf);
            Ok(buf.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What is written of all events.
    fn written(form: LogFormat, most: Level) -> Vec<String> {
        let sink = Sink::default();
        let to = sink.clone();
        let mut log = Log::new(form, most, move || to.clone());
        let at = UNIX_EPOCH + Duration::from_millis(1_709_164_800_250);
        for event in Event::samples() {
            log.take(&Stamped { at, event: Arc::new(event), client: None });
        }
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn every_event_has_a_line_of_text() {
        let (lines, events) = (written(LogFormat::Text, Level::Debug), Event::samples());
        assert_eq!((lines.len(), events.len()), (ROWS.len(), ROWS.len()));
        for ((line, event), row) in lines.iter().zip(&events).zip(ROWS) {
            let level = format!("{:?}", row.level).to_uppercase();
            assert_eq!(*line, format!("2024-02-29T00:00:00.250Z {level:<5} {event}"));
            assert_eq!(ROWS[event.index()].name, row.name);
            if let Some(job) = event.common().job {
                assert!(line.contains("client:alice, client:bob, plan infer"), "{line}: {job}");
            }
            if event.common().reason.is_some() {
                assert!(line.contains("1 is too few"), "{line}");
            }
        }
    }

    #[test]
    fn every_event_has_a_json_object_with_all_its_fields() {
        let lines = written(LogFormat::Json, Level::Debug);
        assert_eq!(lines.len(), ROWS.len());
        for ((line, event), row) in lines.iter().zip(Event::samples()).zip(ROWS) {
            let json: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(
                (json["event"].as_str(), json["message"].as_str()),
                (Some(row.name), Some(&*event.to_string()))
            );
            assert_eq!(json["timestamp"], "2024-02-29T00:00:00.250Z");
            assert_eq!(json["level"], format!("{:?}", row.level).to_uppercase());
            let mut keys: BTreeSet<&str> = ["timestamp", "level", "event", "message"].into();
            keys.extend(row.fields);
            if event.common().job.is_some() {
                keys.extend(["job", "kind", "clients", "plan"]);
                assert_eq!(json["clients"], "client:alice, client:bob");
                assert!(json["plan"].as_str().unwrap().starts_with("infer ("), "{line}");
            }
            if event.common().reason.is_some() {
                keys.insert("reason");
                assert_eq!(json["reason"], "test.reason");
            }
            let found: BTreeSet<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(found, keys, "{line}");
        }
        let numbers: serde_json::Value =
            serde_json::from_str(lines.iter().find(|l| l.contains("\"run_done\"")).unwrap()).unwrap();
        assert_eq!(
            (&numbers["run"], &numbers["sent"], &numbers["online"]),
            (&42.into(), &43.into(), &1.25.into())
        );
    }

    #[test]
    fn events_below_the_level_are_not_written() {
        for (level, at_most) in [(Level::Error, 0), (Level::Warn, 1), (Level::Info, 2), (Level::Debug, 3)] {
            let expected = ROWS.iter().filter(|row| row.level as usize <= at_most).count();
            assert_eq!(written(LogFormat::Text, level).len(), expected, "{level:?}");
        }
    }

    #[test]
    fn names_are_given_once() {
        let names: BTreeSet<&str> = ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ROWS.len());
        assert!(ROWS.iter().all(|row| !row.about.trim().is_empty()));
    }
}
