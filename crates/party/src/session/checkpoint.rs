//! Checkpoints: a party's shares of all states, in files that only it can use.
//!
//! ```text
//! checkpoints/<training>/<step>.checkpoint
//!     "privetCP"   8 bytes
//!     length       4 bytes, little endian: of what follows
//!     header       JSON: whose and of what ([`Header`])
//!     shares       as the family writes them
//!     digest       BLAKE3 of everything before
//! ```
//! Directories are 0700 and files 0600. A file is written under another name, synced, renamed, and its directory synced; the
//! last two are kept, because another party may have been stopped before it wrote the last one. The digest finds what was
//! cut off or changed by accident. A party that means harm may write what it likes about its own shares, and under `rep3` is
//! found when the parties compare components.

use super::control::Id;
use super::order::Version;
use crate::config::Protocol;
use crate::events::KeyFile;
use crate::store::{hex, unhex};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"privetCP";
/// Version of the format.
pub const FORMAT: u32 = 1;
/// Longest header, bytes.
const MAX_HEADER: usize = 4096;
const DIGEST: usize = blake3::OUT_LEN;
const EXTENSION: &str = "checkpoint";
/// Most files of a training that are looked at.
const MAX_FILES: usize = 1000;

/// Whose shares a checkpoint holds, and of what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// [`FORMAT`].
    pub format: u32,
    /// The protocol family.
    pub protocol: Protocol,
    /// The program's hash, hexadecimal.
    pub program: String,
    /// The training.
    pub training: Id,
    /// Which of its states.
    pub version: Version,
    /// The party.
    pub party: u8,
    /// Steps from one checkpoint to the next.
    pub checkpoint_every: u64,
}

/// Why a checkpoint cannot be used or written. Messages name the file and the cause.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// A file operation failed.
    #[error(
        "{path}: {source}: its checkpoint cannot be written, so the step is not taken; make room or correct the rights, then \
         repeat the step"
    )]
    Write {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A file operation failed.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The file was refused.
    #[error("{path} is refused: {problem}")]
    Refused {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: Problem,
    },
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// Its end is missing.
    #[error("it is cut off")]
    CutOff,
    /// Something else.
    #[error("it is no checkpoint")]
    NoCheckpoint,
    /// A header that no checkpoint has.
    #[error("its header is too long, so it was changed or is of another version")]
    LongHeader,
    /// The digest at its end.
    #[error("its digest is wrong: it is cut off, or was changed")]
    Digest,
    /// A header with other fields.
    #[error("its header is of another version")]
    Header,
    /// Another format.
    #[error("it has format {found}, but this build reads format {FORMAT}")]
    Format {
        /// Its format.
        found: u32,
    },
    /// Another family's.
    #[error("it is of protocol {found}, not {ours}")]
    Protocol {
        /// Its family.
        found: Protocol,
        /// The deployment's.
        ours: Protocol,
    },
    /// Another program's.
    #[error("it is of program {found}, but this deployment runs {ours}")]
    Program {
        /// The beginning of its program's hash.
        found: String,
        /// The deployment's.
        ours: String,
    },
    /// Another training's.
    #[error("it is of training {}, not {}", found.short(), ours.short())]
    Training {
        /// Its training.
        found: Id,
        /// The one asked for.
        ours: Id,
    },
    /// Another party's.
    #[error("it is party {found}'s, and this is party {ours}")]
    Party {
        /// Whose it is.
        found: u8,
        /// This party.
        ours: u8,
    },
    /// A step that its name does not say.
    #[error("it holds step {found}, which its name does not say")]
    Step {
        /// Its step.
        found: u64,
    },
    /// Another file by now.
    #[error("it was replaced meanwhile")]
    Replaced,
}

impl CheckpointError {
    /// Which file, as events have it.
    pub fn file(&self) -> KeyFile {
        match self {
            CheckpointError::Write { path, .. }
            | CheckpointError::Read { path, .. }
            | CheckpointError::Refused { path, .. } => KeyFile::of(path),
        }
    }
}

/// Read and check a checkpoint of any party: its header and its shares.
pub fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), Problem> {
    let cut = || Problem::CutOff;
    let (magic, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
    if magic != MAGIC {
        return Err(Problem::NoCheckpoint);
    }
    let (len, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
    let len = u32::from_le_bytes(*len) as usize;
    if len > MAX_HEADER {
        return Err(Problem::LongHeader);
    }
    let (header, rest) = rest.split_at_checked(len).ok_or_else(cut)?;
    let body = rest.len().checked_sub(DIGEST).ok_or_else(cut)?;
    let (body, digest) = rest.split_at(body);
    if blake3::hash(&bytes[..bytes.len() - DIGEST]).as_bytes()[..] != *digest {
        return Err(Problem::Digest);
    }
    let header: Header = serde_json::from_slice(header).map_err(|_| Problem::Header)?;
    match header.format {
        FORMAT => Ok((header, body)),
        found => Err(Problem::Format { found }),
    }
}

/// What [`parse`] reads.
pub fn encode(header: &Header, body: &[u8]) -> io::Result<Zeroizing<Vec<u8>>> {
    let header = serde_json::to_vec(header)?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(12 + header.len() + body.len() + DIGEST));
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&header);
    bytes.extend_from_slice(body);
    let digest = blake3::hash(&bytes);
    bytes.extend_from_slice(digest.as_bytes());
    Ok(bytes)
}

/// A party's checkpoints of one program.
pub struct Checkpoints {
    dir: PathBuf,
    protocol: Protocol,
    program: String,
    party: u8,
}

/// A checkpoint that can be used.
pub struct Found {
    /// Its header.
    pub header: Header,
    /// The shares, as the family wrote them.
    pub shares: Zeroizing<Vec<u8>>,
}

impl Checkpoints {
    /// Below `dir`.
    pub fn new(dir: &Path, protocol: Protocol, program: &[u8; 32], party: u8) -> Checkpoints {
        Checkpoints { dir: dir.to_owned(), protocol, program: hex(program), party }
    }

    fn folder(&self, training: Id) -> PathBuf {
        self.dir.join(hex(&training.0))
    }

    /// Write the states of a version. Of the others only `previous` is kept.
    pub fn write(
        &self,
        training: Id,
        version: Version,
        checkpoint_every: u64,
        shares: &[u8],
        previous: Option<Version>,
    ) -> Result<(), CheckpointError> {
        let dir = self.folder(training);
        let path = dir.join(name(version.step));
        let (program, protocol, party) = (self.program.clone(), self.protocol, self.party);
        let header = Header { format: FORMAT, protocol, program, training, version, party, checkpoint_every };
        let written = encode(&header, shares).and_then(|bytes| replace(&dir, &path, &bytes));
        written.map_err(|source| CheckpointError::Write { path: path.display().to_string(), source })?;
        // What cannot be removed does no harm.
        for other in files(&dir).unwrap_or_default() {
            if other != path && previous.is_none_or(|p| other != dir.join(name(p.step))) {
                let _ = fs::remove_file(other);
            }
        }
        Ok(())
    }

    /// The checkpoints of a training that can be used, and why others cannot.
    pub fn list(&self, training: Id) -> (Vec<Header>, Vec<CheckpointError>) {
        let dir = self.folder(training);
        let files = match files(&dir) {
            Ok(files) => files,
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => {
                return (vec![], vec![CheckpointError::Read { path: dir.display().to_string(), source }]);
            }
        };
        let (mut usable, mut refused) = (Vec::new(), Vec::new());
        for path in files.iter().filter(|p| p.extension().is_some_and(|e| e == EXTENSION)).take(MAX_FILES) {
            match self.read_file(path, training) {
                Ok(found) => usable.push(found.header),
                Err(e) => refused.push(e),
            }
        }
        (usable, refused)
    }

    /// The checkpoint of a version.
    pub fn read(&self, training: Id, version: Version) -> Result<Found, CheckpointError> {
        let path = self.folder(training).join(name(version.step));
        let found = self.read_file(&path, training)?;
        match found.header.version == version {
            true => Ok(found),
            false => Err(refused(&path, Problem::Replaced)),
        }
    }

    fn read_file(&self, path: &Path, training: Id) -> Result<Found, CheckpointError> {
        let bytes = fs::read(path).map(Zeroizing::new);
        let bytes =
            bytes.map_err(|source| CheckpointError::Read { path: path.display().to_string(), source })?;
        let (header, shares) = parse(&bytes).map_err(|problem| refused(path, problem))?;
        self.refuse_foreign(&header, training).map_err(|problem| refused(path, problem))?;
        if path.file_name().is_none_or(|n| n != name(header.version.step).as_str()) {
            return Err(refused(path, Problem::Step { found: header.version.step }));
        }
        let shares = Zeroizing::new(shares.to_vec());
        Ok(Found { header, shares })
    }

    fn refuse_foreign(&self, header: &Header, training: Id) -> Result<(), Problem> {
        if header.protocol != self.protocol {
            return Err(Problem::Protocol { found: header.protocol, ours: self.protocol });
        }
        if header.program != self.program {
            let short = |hash: &str| hash.chars().take(12).collect::<String>();
            return Err(Problem::Program { found: short(&header.program), ours: short(&self.program) });
        }
        if header.training != training {
            return Err(Problem::Training { found: header.training, ours: training });
        }
        match header.party == self.party {
            true => Ok(()),
            false => Err(Problem::Party { found: header.party, ours: self.party }),
        }
    }
}

/// Every training below `dir` with its files.
pub fn trainings(dir: &Path) -> io::Result<Vec<(Id, Vec<PathBuf>)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let Some(training) = path.file_name().and_then(|n| n.to_str()).and_then(unhex) else { continue };
        let all = files(&path)?.into_iter();
        found.push((Id(training), all.filter(|p| p.extension().is_some_and(|e| e == EXTENSION)).collect()));
    }
    found.sort();
    Ok(found)
}

fn name(step: u64) -> String {
    format!("{step}.{EXTENSION}")
}

fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)?.map(|e| Ok(e?.path())).collect::<io::Result<_>>()?;
    files.sort();
    Ok(files)
}

/// Put a file in its place so that a crash at any moment leaves the old one or the new one.
fn replace(dir: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let temporary = path.with_extension("part");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(dir)?.sync_all()
}

fn refused(path: &Path, problem: Problem) -> CheckpointError {
    CheckpointError::Refused { path: path.display().to_string(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: u32, body: &[u8]) -> Vec<u8> {
        let (training, program) = (Id([1; 16]), hex(&[2; 32]));
        let version = Version { step: 7, trail: Id([3; 16]) };
        let protocol = "rep3".parse().unwrap();
        let header = Header { format, protocol, program, training, version, party: 2, checkpoint_every: 7 };
        encode(&header, body).unwrap().to_vec()
    }

    #[test]
    fn every_cut_and_every_changed_bit_is_found() {
        let good = written(FORMAT, b"shares");
        let (header, body) = parse(&good).unwrap();
        assert_eq!((header.version.step, header.party, body), (7, 2, &b"shares"[..]));
        for len in 0..good.len() {
            assert!(parse(&good[..len]).is_err(), "{len} bytes");
        }
        for bit in 0..8 * good.len() {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&bad).is_err(), "bit {bit}");
        }
        assert!(parse(&[&good[..], b"x"].concat()).is_err(), "something follows");
        assert!(parse(&written(FORMAT + 1, b"")).unwrap_err().to_string().contains("reads format 1"));
    }

    #[test]
    fn files_of_others_are_refused_and_the_last_two_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (id, program) = (Id([1; 16]), [2; 32]);
        let named = |name: &str| name.parse().unwrap();
        let at = |step| Version { step, trail: Id([step as u8; 16]) };
        let of = |protocol, program: &[u8; 32], party| Checkpoints::new(dir.path(), protocol, program, party);
        let mine = of(named("fss"), &program, 1);
        let mut previous = None;
        for step in [0, 5, 10] {
            mine.write(id, at(step), 5, &[step as u8], previous).unwrap();
            previous = Some(at(step));
        }
        let (found, refused) = mine.list(id);
        assert_eq!(found.iter().map(|h| h.version.step).collect::<Vec<_>>(), [10, 5]);
        assert!(refused.is_empty());
        assert_eq!(mine.read(id, at(10)).unwrap().shares[..], [10]);
        assert!(mine.read(id, at(0)).is_err());
        let other_trail = Version { trail: id, ..at(10) };
        assert!(mine.read(id, other_trail).err().unwrap().to_string().contains("replaced meanwhile"));
        for (other, says) in [
            (of(named("rep3"), &program, 1), "it is of protocol fss, not rep3"),
            (
                of(named("fss"), &[4; 32], 1),
                "it is of program 020202020202, but this deployment runs 040404040404",
            ),
            (of(named("fss"), &program, 0), "it is party 1's, and this is party 0"),
        ] {
            let (found, refused) = other.list(id);
            assert!(found.is_empty() && refused.len() == 2);
            assert!(refused.iter().all(|e| e.to_string().contains(says)), "{refused:?}");
        }
        assert_eq!(mine.list(Id([9; 16])).0.len(), 0, "another training");
        assert_eq!(trainings(dir.path()).unwrap().len(), 1);
    }
}
