//! How far a long job is: a bar with the time left on a terminal, plain lines elsewhere, or nothing.

use super::event::Event;
use super::stream::{Stamped, Subscriber};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What a preparation is called.
const PREPARING: &str = "preparing";

/// Shortest time between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(2);

/// What a job tells about itself. One stage at a time; calls may come from any thread.
pub trait Progress: Send + Sync + 'static {
    /// A stage of `total` steps begins; `what` is shown to the user. Ends the stage before it.
    fn start(&self, total: u64, what: &str);
    /// `n` more steps are done.
    fn advance(&self, n: u64);
    /// The stage is over, whatever was done of it.
    fn finish(&self);
}

/// Shows how far preparations are.
pub struct Bars {
    on: Box<dyn Progress>,
    /// Records that came and that are expected, as far as they are shown.
    shown: Option<(u64, u64)>,
}

impl Bars {
    /// On what [`for_stderr`] gives, for example.
    pub fn new(on: Box<dyn Progress>) -> Bars {
        Bars { on, shown: None }
    }
}

impl Subscriber for Bars {
    fn take(&mut self, stamped: &Stamped) {
        match &*stamped.event {
            Event::PreparationBegan { .. } => self.on.start(0, PREPARING),
            Event::Preparing { came, expected, .. } if expected.get() > 0 => {
                let (came, expected) = (came.get(), expected.get());
                let before = match self.shown {
                    Some((before, all)) if all == expected => before,
                    _ => {
                        self.on.start(expected, PREPARING);
                        0
                    }
                };
                self.on.advance(came.saturating_sub(before));
                self.shown = Some((came, expected));
            }
            Event::PreparationDone { .. } | Event::JobFailed { .. } => {
                // All that was expected has come, which nobody may have been told since.
                if let (Some((came, all)), Event::PreparationDone { .. }) =
                    (self.shown.take(), &*stamped.event)
                {
                    self.on.advance(all.saturating_sub(came));
                }
                self.on.finish();
            }
            // Nothing else takes a client long that it could watch.
            _ => {}
        }
    }
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn start(&self, _total: u64, _what: &str) {}
    fn advance(&self, _n: u64) {}
    fn finish(&self) {}
}

/// What fits where standard error goes: a bar on a terminal, lines elsewhere, nothing when `quiet`.
pub fn for_stderr(quiet: bool) -> Box<dyn Progress> {
    if quiet {
        Box::new(Silent)
    } else if std::io::stderr().is_terminal() {
        Box::new(Bar::default())
    } else {
        Box::new(Lines::new(Box::new(std::io::stderr())))
    }
}

/// A bar with rate and time left, on standard error.
#[derive(Debug, Default)]
pub struct Bar {
    stage: Mutex<Option<ProgressBar>>,
}

impl Progress for Bar {
    fn start(&self, total: u64, what: &str) {
        self.finish();
        let style = ProgressStyle::with_template("{msg:<28} [{bar:32}] {pos}/{len}  {elapsed} (left {eta})")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        let bar = ProgressBar::new(total).with_style(style).with_message(what.to_string());
        bar.enable_steady_tick(Duration::from_millis(250));
        *lock(&self.stage) = Some(bar);
    }

    fn advance(&self, n: u64) {
        if let Some(bar) = lock(&self.stage).as_ref() {
            bar.inc(n);
        }
    }

    fn finish(&self) {
        if let Some(bar) = lock(&self.stage).take() {
            bar.abandon();
        }
    }
}

/// Plain lines for logs and pipes: the first and last step of a stage, and at most one every two seconds between.
pub struct Lines {
    state: Mutex<LineState>,
}

struct LineState {
    out: Box<dyn Write + Send>,
    stage: Option<Stage>,
}

struct Stage {
    what: String,
    total: u64,
    done: u64,
    began: Instant,
    last: Instant,
}

impl Lines {
    /// Lines to `out`. A failed write (a closed pipe) never stops the job.
    pub fn new(out: Box<dyn Write + Send>) -> Lines {
        Lines { state: Mutex::new(LineState { out, stage: None }) }
    }
}

impl std::fmt::Debug for Bars {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bars(..)")
    }
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lines(..)")
    }
}

impl Progress for Lines {
    fn start(&self, total: u64, what: &str) {
        self.finish();
        let mut state = lock(&self.state);
        let now = Instant::now();
        let _ = writeln!(state.out, "{what}: started");
        state.stage = Some(Stage { what: what.to_string(), total, done: 0, began: now, last: now });
    }

    fn advance(&self, n: u64) {
        let mut state = lock(&self.state);
        let LineState { out, stage } = &mut *state;
        let Some(stage) = stage else { return };
        stage.done = stage.done.saturating_add(n);
        if stage.last.elapsed() >= LINE_EVERY {
            stage.last = Instant::now();
            let _ = writeln!(out, "{}", stage.line());
        }
    }

    fn finish(&self) {
        let mut state = lock(&self.state);
        if let Some(stage) = state.stage.take() {
            let seconds = stage.began.elapsed().as_secs_f64();
            let _ = writeln!(state.out, "{}: {}/{} in {seconds:.1} s", stage.what, stage.done, stage.total);
        }
    }
}

impl Stage {
    fn line(&self) -> String {
        let elapsed = self.began.elapsed().as_secs_f64();
        let percent = 100 * self.done.min(self.total) / self.total.max(1);
        let left = match self.done {
            0 => String::new(),
            done => {
                let remaining = self.total.saturating_sub(done) as f64;
                format!(", about {:.0} s left", elapsed * remaining / done as f64)
            }
        };
        format!("{}: {}/{} ({percent}%){left}", self.what, self.done, self.total)
    }
}

/// A panic elsewhere while drawing must not stop the job: the state is only for showing.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
            lock(&self.0).extend_from_slice(buf);
            Ok(buf.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_are_few_and_say_where_the_job_stopped() {
        let sink = Sink::default();
        let lines = Lines::new(Box::new(sink.clone()));
        lines.start(1000, "dealing");
        (0..400).for_each(|_| lines.advance(1));
        lines.start(1, "running");
        lines.finish();
        let text = String::from_utf8(lock(&sink.0).clone()).unwrap();
        assert!(text.contains("dealing: 400/1000 in"), "{text}");
        assert!(text.contains("running: 0/1 in"), "{text}");
        assert!(text.lines().count() < 10, "a line a step floods a log:\n{text}");
    }

    #[test]
    fn a_preparation_is_shown_as_far_as_it_is() {
        use crate::events::{Bytes, Count, Job, Secs};
        use crate::session::control::Id;
        let sink = Sink::default();
        let mut bars = Bars::new(Box::new(Lines::new(Box::new(sink.clone()))));
        let job = || Job::deal(Id([1; 16]), None);
        let (runs, checks, keys, took) = (Count::of(8), Count::of(0), Bytes::of(9), Secs::of(Duration::ZERO));
        let far = |came| Event::Preparing {
            job: job(),
            came: Count::of(came),
            expected: Count::of(8),
            bytes: Bytes::of(came),
        };
        let all = [
            Event::PreparationBegan { job: job(), runs, checks },
            far(2),
            far(5),
            Event::PreparationDone { job: job(), runs, keys, took },
        ];
        for event in all {
            bars.take(&Stamped { at: std::time::SystemTime::now(), event: Arc::new(event), client: None });
        }
        let text = String::from_utf8(lock(&sink.0).clone()).unwrap();
        assert!(text.contains("preparing: 8/8 in"), "{text}");
    }

    #[test]
    fn a_stage_tells_the_share_done_and_survives_empty_totals() {
        let now = Instant::now();
        let mut stage = Stage { what: "x".into(), total: 8, done: 2, began: now, last: now };
        assert!(stage.line().starts_with("x: 2/8 (25%)"));
        stage.total = 0;
        assert!(stage.line().starts_with("x: 2/0 (0%)"), "{}", stage.line());
    }

    #[test]
    fn a_closed_pipe_does_not_stop_the_job() {
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let lines = Lines::new(Box::new(Broken));
        lines.start(2, "x");
        lines.advance(1);
        lines.finish();
    }
}
