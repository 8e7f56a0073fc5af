//! What travels, byte by byte, with fixed seeds: a change of the protocol shows in `vectors/wire.txt`.
//!
//! After an intended change: `PRIVET_UPDATE_VECTORS=1 cargo test -p privet-fss --test wire`, and say in the commit
//! why the wire changed.

mod common;

use common::{in_every_form, transcript};
use privet_plan::suite::{cases, repository, training_cases};
use privet_prg::{Domain, Seed};
use privet_ring::Ring;
use privet_testkit::{Sent, record};
use std::fmt::Write;

const VECTORS: &str = include_str!("../../../vectors/wire.txt");
const HEAD: &str = "# case: BLAKE3 (16 bytes) of steps and payloads that party 0 sent, party 1 sent, and of the key frames\n";

fn digest<'a>(messages: impl Iterator<Item = (u32, &'a [u8])>) -> String {
    let messages = messages.map(|(step, bytes)| (step.to_le_bytes(), bytes));
    record::digest(messages).to_hex()[..32].to_owned()
}

#[test]
fn bytes_on_the_wire_are_as_recorded() {
    let mut found = HEAD.to_owned();
    let all = in_every_form(cases().into_iter().chain(training_cases()).collect());
    for (i, case) in all.iter().enumerate() {
        let base = Seed::from_bytes([7; 16]).derive(Domain::Public, i as u64);
        let mut stream = base.derive(Domain::Public, 0).stream();
        let operands = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
        let (session, record) = (base.derive(Domain::Session, 0), base.derive(Domain::Record, 0));
        let t = transcript(&case.plan, &operands, &session, &record);
        let sent = |s: &[Sent]| digest(s.iter().map(|m| (m.step.id, m.bytes.as_slice())));
        let keys =
            digest(t.frames.iter().enumerate().flat_map(|(b, f)| f.iter().map(move |f| (b as u32, &f[..]))));
        writeln!(found, "{}: {} {} {keys}", case.name, sent(&t.sent[0]), sent(&t.sent[1])).unwrap();
    }
    let path = repository().join("vectors/wire.txt");
    record::as_recorded(&path, VECTORS, &found);
}
