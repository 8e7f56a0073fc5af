//! Times and what is printed of them.

use cudarc::driver::{CudaStream, DriverError, sys};
use privet_kernels::cuda::GpuError;
use std::sync::Arc;

/// Repeats of everything; the median counts.
pub const REPEATS: usize = 9;

/// Seconds of repeats, sorted.
pub struct Times(Vec<f64>);

impl Times {
    pub fn new(mut seconds: Vec<f64>) -> Times {
        seconds.sort_by(f64::total_cmp);
        Times(seconds)
    }

    pub fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }

    /// Units a second: median, and those of the slowest and the fastest repeat.
    pub fn rates(&self, units: f64) -> String {
        let (slowest, fastest) = (self.0[self.0.len() - 1], self.0[0]);
        let [median, least, most] = [self.median(), slowest, fastest].map(|t| number(units / t));
        format!("{{\"median\":{median},\"least\":{least},\"most\":{most}}}")
    }
}

/// Four digits are more than repeats agree in.
pub fn number(v: f64) -> String {
    if v == 0.0 {
        return "0".into();
    }
    let digits = 3 - v.abs().log10().floor() as i32;
    let unit = 10f64.powi(digits);
    format!("{:.*}", digits.max(0) as usize, (v * unit).round() / unit)
}

/// Seconds on the device of `repeats` calls, after two that do not count: events before and behind each.
pub fn timed(
    on: &Arc<CudaStream>,
    repeats: usize,
    mut work: impl FnMut(&Arc<CudaStream>) -> Result<(), GpuError>,
) -> Result<Times, GpuError> {
    let event = || on.context().new_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT));
    let mut seconds = Vec::new();
    for i in 0..repeats + 2 {
        let (start, end) = (event()?, event()?);
        start.record(on)?;
        work(on)?;
        end.record(on)?;
        let time = start.elapsed_ms(&end)? as f64 / 1e3;
        if i >= 2 {
            seconds.push(time);
        }
    }
    Ok(Times::new(seconds))
}

/// Seconds on the host's clock, to the end of what was begun.
pub fn clocked(
    repeats: usize,
    mut work: impl FnMut() -> Result<(), GpuError>,
    wait: impl Fn() -> Result<(), DriverError>,
) -> Result<Times, GpuError> {
    let mut seconds = Vec::new();
    for i in 0..repeats + 2 {
        wait()?;
        let start = std::time::Instant::now();
        work()?;
        wait()?;
        if i >= 2 {
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    Ok(Times::new(seconds))
}

/// Lines of JSON, in order.
#[derive(Default)]
pub struct Report(Vec<String>);

impl Report {
    /// `value` is JSON. Also shown on standard error, so that a run that is stopped has said something.
    pub fn add(&mut self, name: &str, value: impl std::fmt::Display) {
        eprintln!("{name}: {value}");
        self.0.push(format!("\"{name}\":{value}"));
    }

    pub fn print(&self) {
        println!("{{\n{}\n}}", self.0.join(",\n"));
    }
}
