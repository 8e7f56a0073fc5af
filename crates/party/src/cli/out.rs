use super::CliError;
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, BufWriter, Write};

/// Standard output. A reader that goes away (`privet env | head -1`) ends the command quietly.
pub struct Out {
    to: Box<dyn Write>,
}

impl std::fmt::Debug for Out {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Out(..)")
    }
}

impl Out {
    /// The process's standard output, buffered.
    pub fn stdout() -> Out {
        Out { to: Box::new(BufWriter::new(io::stdout())) }
    }

    /// One line for people.
    pub fn line(&mut self, text: impl Display) -> Result<(), CliError> {
        writeln!(self.to, "{text}").map_err(closed)
    }

    /// One value for machines, on one line.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), CliError> {
        let text = serde_json::to_string(value).map_err(|e| CliError::failed(e, "report this as a bug"))?;
        self.line(text)
    }

    /// Hand everything to the system; without it an error at exit would be lost.
    pub fn flush(&mut self) -> Result<(), CliError> {
        self.to.flush().map_err(closed)
    }
}

fn closed(e: io::Error) -> CliError {
    match e.kind() {
        io::ErrorKind::BrokenPipe => CliError::reader_left(),
        _ => CliError::failed(format!("cannot write to standard output: {e}"), "check where it goes to"),
    }
}
