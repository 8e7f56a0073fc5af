//! What travels, byte by byte, with fixed seeds: a change of the protocol shows in `vectors/wire-rep3.txt`.
//!
//! After an intended change: `PRIVET_UPDATE_VECTORS=1 cargo test -p privet-rep3 --test wire`, and say in the commit
//! why the wire changed.

mod common;

use common::World;
use privet_plan::suite::{cases, repository, training_cases};
use privet_prg::{Domain, Seed};
use privet_rep3::Security;
use privet_ring::Ring;
use privet_testkit::record;
use std::fmt::Write;

const VECTORS: &str = include_str!("../../../vectors/wire-rep3.txt");
const HEAD: &str = "# case: BLAKE3 (8 bytes) of steps, receivers and payloads that parties 0, 1 and 2 sent; semi-honest, then malicious\n";

fn digests(world: &World) -> [String; 3] {
    world.transcript().map(|messages| {
        let heads = messages.iter().map(|sent| {
            let [a, b, c, d] = sent.step.id.to_le_bytes();
            ([a, b, c, d, sent.to as u8], &sent.bytes[..])
        });
        record::digest(heads).to_hex()[..16].to_owned()
    })
}

#[test]
fn bytes_on_the_wire_are_as_recorded() {
    let mut found = HEAD.to_owned();
    // seeds of each list are its own, so that either can grow
    let inference = cases().into_iter().enumerate().map(|case| (7, case));
    let training = training_cases().into_iter().enumerate().map(|case| (8, case));
    for (list, (i, case)) in inference.chain(training) {
        let base = Seed::from_bytes([list; 16]).derive(Domain::Public, i as u64);
        let mut stream = base.derive(Domain::Public, 0).stream();
        let operands = case.operands(&mut || stream.elements(Ring::R64, 1)[0]);
        let both = [Security::SemiHonest, Security::Malicious]
            .map(|security| digests(&World::new(&case.plan, security, &operands, &base)).join(" "));
        writeln!(found, "{}: {}; {}", case.name, both[0], both[1]).unwrap();
        if case.name == "small network" {
            let mut world = World::new(&case.plan, Security::Malicious, &operands, &base);
            world.beside = Some(0);
            writeln!(found, "{}, proved beside the protocol: {}", case.name, digests(&world).join(" "))
                .unwrap();
        }
    }
    let path = repository().join("vectors/wire-rep3.txt");
    record::as_recorded(&path, VECTORS, &found);
}
