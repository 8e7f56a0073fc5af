//! Key records and session files.

use super::Fields;
use crate::Target;
use privet_party::config::Protocol;
use privet_party::session::checkpoint::{FORMAT, Header as CheckpointHeader, encode, parse};
use privet_party::session::control::Id;
use privet_party::session::family::fss::keys::SessionKeys;
use privet_party::session::order::Version;
use privet_prg::{HashKeys, Seed};
use privet_store::format::{HEADER_BYTES, Header, RecordId, RecordReader, RecordWriter};
use privet_store::{SessionFile, SessionId};
use std::io::Cursor;

const ID: RecordId = RecordId { session: [1; 16], index: 7, party: 1, plan: [2; 32] };

/// A key record from raw bytes; and its end behind a good header with a good trailer.
pub const RECORD: Target =
    Target { name: "record", run: record, seeds: record_seeds, words: &["PRIVKEY\0", "PRIVEND\0"] };

fn record(data: &[u8]) {
    read(data);
    let (head, tail) = (written(&[]), data.get(HEADER_BYTES..).unwrap_or_default());
    // As long as a record with one frame of these bytes, so that the trailer's length is right.
    let whole = written(&[&vec![0; tail.len().saturating_sub(8)]]);
    let body = &whole[HEADER_BYTES + tail.len().max(8)..];
    read(&[&head[..HEADER_BYTES], tail, body].concat());
}

fn read(data: &[u8]) {
    for wanted in [None, Some(&ID)] {
        let Ok(mut reader) = RecordReader::open(Cursor::new(data), wanted) else { continue };
        for len in [3, 0, 5, 1 << 12] {
            if reader.take(len).is_err() {
                break;
            }
        }
    }
}

fn record_seeds() -> Vec<Vec<u8>> {
    vec![written(&[b"abc", b"", b"12345"])]
}

fn written(frames: &[&[u8]]) -> Vec<u8> {
    let header = Header { id: ID, set: [4; 16], seed: Seed::from_bytes([3; 16]) };
    let bytes = RecordWriter::new(Vec::new(), &header).and_then(|mut writer| {
        frames.iter().try_for_each(|f| writer.frame(f))?;
        writer.finish()
    });
    bytes.unwrap_or_default()
}

/// A checkpoint from raw bytes, and from bytes that end with their digest.
pub const CHECKPOINT: Target = Target {
    name: "checkpoint",
    run: checkpoint,
    seeds: checkpoint_seeds,
    words: &["privetCP", "\"format\":1", "\"protocol\":\"fss\"", "\"version\":", "\"trail\":", "\"step\":"],
};

fn checkpoint(data: &[u8]) {
    let _ = parse(data);
    let sealed = [data, blake3::hash(data).as_bytes()].concat();
    if let Ok((header, shares)) = parse(&sealed) {
        // What is read is what was written, whatever white space its header had.
        let again = encode(&header, shares).expect("plain data");
        assert_eq!(parse(&again), Ok((header.clone(), shares)));
    }
}

fn checkpoint_seeds() -> Vec<Vec<u8>> {
    let id = Id([7; 16]);
    let header = CheckpointHeader {
        format: FORMAT,
        protocol: Protocol::default(),
        program: "00".repeat(32),
        training: id,
        version: Version { step: 3, trail: id },
        party: 1,
        checkpoint_every: 3,
    };
    let whole = encode(&header, b"shares").map(|bytes| bytes.to_vec()).unwrap_or_default();
    // The target puts the digest behind.
    vec![whole[..whole.len().saturating_sub(32)].to_vec(), whole]
}

/// A good record that was damaged: its frames come back as written, or not at all.
pub const DAMAGE: Target = Target { name: "record-damage", run: damage, seeds: damage_seeds, words: &[] };

fn damage(data: &[u8]) {
    let mut fields = Fields(data);
    let frames: Vec<&[u8]> = (0..1 + fields.byte() % 4).map(|_| fields.slice(9)).collect();
    let mut bad = written(&frames);
    while !fields.0.is_empty() {
        let len = bad.len();
        let at = usize::from(u16::from_le_bytes(fields.bytes())) % len;
        match fields.byte() % 4 {
            0 => bad.truncate(at.max(1)),
            1 => bad.push(fields.byte()),
            2 => bad.swap(at, (at + 8) % len),
            _ => bad[at] ^= fields.byte(),
        }
    }
    let Ok(mut reader) = RecordReader::open(Cursor::new(&bad), Some(&ID)) else { return };
    for frame in frames {
        match reader.take(frame.len()) {
            Ok(found) => assert_eq!(found, frame),
            Err(_) => return,
        }
    }
    assert!(reader.take(0).is_err(), "there are no more frames");
}

fn damage_seeds() -> Vec<Vec<u8>> {
    vec![[&[2][..], b"123456789abcdefghi123456789", &[140, 0, 3, 1]].concat(), vec![1, 9, 9]]
}

/// A session file, and the dealer's message that becomes one.
pub const SESSION: Target = Target {
    name: "session-file",
    run: session,
    seeds: session_seeds,
    words: &["\"format\":", "\"session\":", "\"party\":", "\"checks\":", "\"keys\":", "\"seed\":", "é", "+1"],
};

fn session(data: &[u8]) {
    if let Ok(file) = SessionFile::decode(data) {
        let again = SessionFile::decode(&file.encode()).expect("what was written is read");
        assert!(again.id == file.id && again.checks == file.checks && again.keys == file.keys);
        if let Ok(keys) = SessionKeys::of_file(&file) {
            assert!(keys.file(file.checks).keys == file.keys);
        }
    }
}

fn session_seeds() -> Vec<Vec<u8>> {
    let keys = SessionKeys {
        id: SessionId { session: [1; 16], plan: [2; 32], party: 1 },
        seed: Seed::from_bytes([3; 16]),
        hash: HashKeys { inner: [4; 16], leaf: [5; 16] },
    };
    vec![keys.file(3).encode().to_vec()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_valid() {
        assert!(record_seeds().iter().all(|s| RecordReader::open(Cursor::new(s), Some(&ID)).is_ok()));
        assert!(session_seeds().iter().all(|file| SessionFile::decode(file).is_ok()));
    }
}
