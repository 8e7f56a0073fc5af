//! Deal an opened session again and compare it with what this party was given, byte for byte.

use super::CheckError;
use crate::session::family::fss::deal::DealerSession;
use crate::store::checked::open_record;
use crate::store::format::RecordWriter;
use crate::store::{SessionFile, StoreError, hex};
use privet_fss::keys::{KeyError, KeySink};
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

/// Bytes read from a record at a time.
const READ_BYTES: usize = 1 << 20;

/// Compare `party`'s session file and its records `0..runs` below `dir` with those of `dealt`. `name` is what
/// the dealer called the session when it dealt it. `worked` is called every now and then.
pub fn compare(
    dir: &Path,
    name: &[u8; 16],
    dealt: &DealerSession,
    party: u8,
    runs: u64,
    worked: &mut dyn FnMut(),
) -> Result<(), CheckError> {
    let wrong = |at: String| CheckError::Wrong { session: hex(&name[..6]), at };
    if &dealt.session != name {
        return Err(wrong("name".into()));
    }
    let given = SessionFile::read(dir, name)?;
    let right = dealt.files().into_iter().nth(usize::from(party));
    if right.is_none_or(|right| given.id != right.id || given.keys != right.keys) {
        return Err(wrong("seed and hash keys".into()));
    }
    for index in 0..runs {
        let (file, path) = open_record(dir, name, index)?;
        record(dealt, party, index, file, worked).map_err(|e| match e {
            Failure::Differs(at) => wrong(format!("record {index}, {at}")),
            Failure::Io(source) => StoreError::Io { path: path.display().to_string(), source }.into(),
        })?;
    }
    Ok(())
}

enum Failure {
    Differs(String),
    Io(io::Error),
}

fn record(
    dealt: &DealerSession,
    party: u8,
    index: u64,
    file: File,
    worked: &mut dyn FnMut(),
) -> Result<(), Failure> {
    let at = |at: &str, e: io::Error| match e.get_ref().is_some_and(|e| e.is::<Differs>()) {
        true => Failure::Differs(at.to_owned()),
        false => Failure::Io(e),
    };
    let file = Against { file: BufReader::with_capacity(READ_BYTES, file), buffer: Vec::new() };
    let header = dealt.headers(index).swap_remove(usize::from(party & 1));
    let writer = RecordWriter::new(file, &header).map_err(|e| at("header", e))?;
    let mut sink = Frames { writer, party, frame: 0, worked };
    dealt.frames(index, &mut sink, &mut |_| {}).map_err(|e| match e {
        KeyError::Io(e) => at(&format!("frame {}", sink.frame), e),
        KeyError::Corrupt(e) => Failure::Io(io::Error::other(e)),
    })?;
    let mut rest = sink.writer.finish().map_err(|e| at("end", e))?;
    match rest.file.read(&mut [0]).map_err(Failure::Io)? {
        0 => Ok(()),
        _ => Err(Failure::Differs("end".into())),
    }
}

/// The frames of one party.
struct Frames<'a> {
    writer: RecordWriter<Against>,
    party: u8,
    frame: u64,
    worked: &'a mut dyn FnMut(),
}

impl KeySink for Frames<'_> {
    fn put(&mut self, frames: [&mut Vec<u8>; 2]) -> Result<(), KeyError> {
        let [f0, f1] = frames;
        let ours = if self.party == 0 { f0 } else { f1 };
        if !ours.is_empty() {
            self.writer.frame(ours)?;
            self.frame += 1;
        }
        (self.worked)();
        Ok(())
    }
}

/// A sink that takes only what the file holds at the same place.
struct Against {
    file: BufReader<File>,
    buffer: Vec<u8>,
}

/// What was written is not what the file holds.
#[derive(Debug, thiserror::Error)]
#[error("the bytes differ")]
struct Differs;

impl Write for Against {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let n = data.len().min(READ_BYTES);
        self.buffer.resize(n, 0);
        match self.file.read_exact(&mut self.buffer) {
            Ok(()) if self.buffer == data[..n] => Ok(n),
            Ok(()) => Err(io::Error::other(Differs)),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Err(io::Error::other(Differs)),
            Err(e) => Err(e),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
