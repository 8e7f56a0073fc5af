//! What travels and what records hold, byte by byte, with fixed seeds: a change of the protocol shows in `vectors/semi2k.txt`.
//!
//! After an intended change: `PRIVET_UPDATE_VECTORS=1 cargo test -p privet-semi2k --test wire`, and say in the commit
//! why the wire changed.

mod common;

use common::{Seeds, in_every_form, that_it_has, transcript};
use privet_plan::suite::{cases, optional_cases, repository, training_cases};
use privet_prg::{Domain, Seed};
use privet_ring::Ring;
use privet_testkit::{Sent, record};
use std::fmt::Write;

const VECTORS: &str = include_str!("../../../vectors/semi2k.txt");
const HEAD: &str = "# case, parties: BLAKE3 (16 bytes) of receivers, steps and payloads that each party sent, and of all parties' frames\n";

#[test]
fn bytes_on_the_wire_and_in_records_are_as_recorded() {
    let mut found = HEAD.to_owned();
    let all =
        that_it_has(true, cases().into_iter().chain(training_cases()).chain(optional_cases()).collect());
    let of_two = in_every_form(all).into_iter().map(|case| (case, 2));
    let of_three = that_it_has(true, cases()).into_iter().map(|case| (case, 3));
    for (i, (case, parties)) in of_two.chain(of_three).enumerate() {
        let base = Seed::from_bytes([7; 16]).derive(Domain::Public, i as u64);
        let mut stream = base.derive(Domain::Public, 0).stream();
        let operands = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
        let t = transcript(&case.plan, &operands, Seeds::of(parties, &base));
        let head = |m: &Sent| ((m.to as u64) << 32 | u64::from(m.step.id)).to_le_bytes();
        let sent = t.sent.iter().flatten().map(|m| (head(m), m.bytes.as_slice()));
        let sent = record::digest(sent).to_hex()[..32].to_owned();
        let frames = t.frames.iter().enumerate();
        let frames = frames.flat_map(|(p, f)| f.iter().map(move |f| ((p as u64).to_le_bytes(), &f[..])));
        let frames = &record::digest(frames).to_hex()[..32];
        writeln!(found, "{}, {parties}: {sent} {frames}", case.name).unwrap();
    }
    let path = repository().join("vectors/semi2k.txt");
    record::as_recorded(&path, VECTORS, &found);
}
