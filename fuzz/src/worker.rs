//! The process that runs inputs. It may die of one; [`crate::watch`] then finds the input in the slot.

use crate::Target;
use crate::coverage::Coverage;
use crate::mutate::{Choices, MAX_INPUT, mutate};
use privet_prg::Seed;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Most memory that a target may use.
pub const MEMORY_BYTES: u64 = 2 << 30;

/// The input that is being run, in a file: number of the run (8 bytes), length (8 bytes), bytes.
pub struct Slot(File);

impl Slot {
    /// Create or open.
    pub fn open(path: &Path) -> io::Result<Slot> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Slot(file))
    }

    pub(crate) fn put(&self, run: u64, input: &[u8], buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.clear();
        buffer.extend_from_slice(&run.to_le_bytes());
        buffer.extend_from_slice(&(input.len() as u64).to_le_bytes());
        buffer.extend_from_slice(input);
        self.0.write_all_at(buffer, 0)
    }

    /// Number of the run, and its input.
    pub fn get(&self) -> io::Result<(u64, Vec<u8>)> {
        let mut head = [0; 16];
        self.0.read_exact_at(&mut head, 0)?;
        let (run, len) = head.split_at(8);
        let number = |b: &[u8]| u64::from_le_bytes(b.try_into().unwrap_or_default());
        let mut input = vec![0; (number(len) as usize).min(MAX_INPUT)];
        self.0.read_exact_at(&mut input, 16)?;
        Ok((number(run), input))
    }
}

/// Run regressions, then seeds, then mutations of what reached new code, for `time`.
pub fn work(target: &Target, folder: &Path, slot: &Slot, seed: Seed, time: Duration) -> io::Result<()> {
    limit_memory();
    let end = Instant::now() + time;
    let mut coverage = Coverage::new();
    let mut corpus: Vec<Vec<u8>> = Vec::new();
    let (mut runs, mut buffer) = (0, Vec::new());
    let mut run = |input: &[u8], coverage: &mut Coverage| {
        runs += 1;
        slot.put(runs, input, &mut buffer)?;
        coverage.start();
        (target.run)(input);
        io::Result::Ok(runs)
    };
    let mut start = regressions(&folder.join("regressions").join(target.name))?;
    start.extend((target.seeds)());
    start.push(Vec::new());
    for input in start {
        run(&input, &mut coverage)?;
        coverage.is_new();
        corpus.push(input);
    }
    let mut choices = Choices::new(seed.stream());
    let mut total = corpus.len() as u64;
    while Instant::now() < end {
        let mut input = corpus[choices.below(corpus.len())].clone();
        let other = &corpus[choices.below(corpus.len())];
        mutate(&mut input, other, target.words, &mut choices);
        total = run(&input, &mut coverage)?;
        if coverage.is_new() {
            corpus.push(input);
        }
    }
    let how = match coverage.is_instrumented() {
        true => format!("{} counters reached, {} inputs kept", coverage.reached(), corpus.len()),
        false => "not guided: built without coverage".into(),
    };
    println!("{:14} {total:>9} inputs, {how}", target.name);
    Ok(())
}

fn regressions(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let Ok(files) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    files.map(|f| std::fs::read(f?.path())).collect()
}

/// An input that makes a parser ask for more memory than this ends the process, which is a finding.
fn limit_memory() {
    let limit = libc::rlimit { rlim_cur: MEMORY_BYTES, rlim_max: MEMORY_BYTES };
    // SAFETY: a plain system call on a local structure.
    let done = unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) };
    assert_eq!(done, 0, "cannot limit memory");
}
