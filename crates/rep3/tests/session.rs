//! The start of a session and what comes from owners and goes to receivers.

mod common;

use common::parties;
use privet_family::Secret;
use privet_kernels::cpu;
use privet_prg::Seed;
use privet_rep3::{
    Component, Digests, Keys, Party, PartyId, Portion, Revealed, RunError, Security, Share, SharingError,
};
use privet_ring::{PackError, Ring};
use privet_testkit::{Action, Mesh, When};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn neighbours_agree_on_keys_that_differ_everywhere_and_always() {
    let mut seen = Vec::new();
    for _ in 0..3 {
        let keys = parties(Mesh::new(3), |id, prev, next| Keys::agree(id, prev, next).unwrap());
        for id in PartyId::ALL {
            let (mine, after) = (&keys[id.index()], &keys[id.next().index()]);
            assert!(mine.next == after.own && mine.common == after.common);
            seen.push(*mine.own.expose());
        }
        seen.push(*keys[0].common.expose());
    }
    let n = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!((seen.len(), n), (12, 12));
}

/// Flip one bit of the message that party 1 sends party 2 or party 0 at every step of the agreement.
#[test]
fn a_contribution_that_is_not_what_was_committed_to_ends_the_session() {
    for towards_next in [true, false] {
        for (message, bit) in [(0, 8 * 20), (1, 3), (1, 200), (2, 7)] {
            let what = format!("message {message} of party 1, bit {bit}, to the next: {towards_next}");
            let victim = if towards_next { 2 } else { 0 };
            let mut mesh = Mesh::patient(3, Duration::from_secs(5));
            mesh.fault(1, victim, [(When::Message(message), Action::FlipBit(bit))]);
            let keys = parties(mesh, |id, prev, next| Keys::agree(id, prev, next));
            let error = keys[victim].as_ref().map(|_| ()).expect_err(&what).to_string();
            assert!(error.contains("party 1") && error.contains("common key"), "{what}: {error}");
        }
    }
}

#[test]
fn the_common_key_is_hidden_until_all_have_committed() {
    let mut mesh = Mesh::new(3);
    let log = mesh.record();
    let keys = parties(mesh, |id, prev, next| Keys::agree(id, prev, next).unwrap());
    for log in log.all() {
        assert_eq!(log.iter().map(|m| m.step.id).collect::<Vec<_>>(), [1, 1, 2, 2, 3, 3]);
        assert!(log.iter().all(|m| !m.bytes.windows(16).any(|w| w == keys[0].common.expose())));
    }
}

fn shares(ring: Ring, values: &[u64]) -> [Share; 3] {
    Portion::of(ring, values).map(|portion| portion.expand(ring, values.len()))
}

fn revealed(shares: &[Share; 3]) -> [Revealed; 3] {
    shares.each_ref().map(Revealed::of)
}

#[test]
fn what_is_shared_travels_and_comes_back() {
    for (bits, n) in [(1, 0), (1, 9), (7, 1), (37, 65), (64, 3), (64, 200)] {
        let ring = Ring::new(bits);
        let values = Seed::random().stream().elements(ring, n);
        let portions = Portion::of(ring, &values);
        let mut stream = Vec::new();
        for portion in &portions {
            let mut bytes = Vec::new();
            portion.encode(ring, &mut bytes);
            assert!(bytes.len() <= Portion::max_len(ring, n));
            assert!(Portion::decode(ring, n, &bytes).unwrap() == *portion);
            stream.extend(bytes);
        }
        let mut rest = &stream[..];
        let taken = [(); 3].map(|()| Portion::take(ring, n, &mut rest).unwrap());
        assert!(rest.is_empty());
        let shares = taken.map(|portion| portion.expand(ring, n));
        let parts = revealed(&shares).map(|part| {
            let mut bytes = Vec::new();
            part.encode(ring, &mut bytes);
            assert_eq!(bytes.len(), Revealed::len(ring, n));
            Revealed::decode(ring, n, &bytes).unwrap()
        });
        assert_eq!(Revealed::combine(ring, parts).unwrap(), values);
    }
}

#[test]
fn messages_of_another_length_or_kind_are_refused() {
    let ring = Ring::new(20);
    let [first, second, _] = Portion::of(ring, &[1, 2, 3]);
    for portion in [first, second] {
        let mut bytes = Vec::new();
        portion.encode(ring, &mut bytes);
        for len in 0..bytes.len() {
            let error = Portion::decode(ring, 3, &bytes[..len]).unwrap_err();
            assert!(matches!(error, SharingError::Length { .. }), "{len}: {error}");
        }
        bytes.push(0);
        assert!(matches!(Portion::decode(ring, 3, &bytes), Err(SharingError::Length { .. })));
        bytes.pop();
        bytes[0] = 2;
        assert_eq!(Portion::decode(ring, 3, &bytes), Err(SharingError::Kind(2)));
    }
    // 60 bits fill seven bytes and a half
    let [_, portion, _] = Portion::of(ring, &[1, 2, 3]);
    let mut bytes = Vec::new();
    portion.encode(ring, &mut bytes);
    *bytes.last_mut().unwrap() |= 0x80;
    assert!(matches!(Portion::decode(ring, 3, &bytes), Err(SharingError::Pack(PackError::Padding { .. }))));
    let mut revealed = vec![0; 40];
    assert!(Revealed::decode(ring, 3, &revealed).is_ok());
    revealed[39] = 0x10;
    let error = Revealed::decode(ring, 3, &revealed).err();
    assert!(matches!(error, Some(SharingError::Pack(PackError::Padding { .. }))), "{error:?}");
    for len in [0, 31, 32, 39, 41] {
        assert!(Revealed::decode(ring, 3, &vec![0; len]).is_err(), "{len}");
    }
}

/// Every component changed at either of its holders is noticed, and both holders are named.
#[test]
fn copies_that_differ_are_not_combined() {
    let ring = Ring::new(50);
    let sound = shares(ring, &[5, ring.mask(), 1 << 49]);
    for id in PartyId::ALL {
        for own in [true, false] {
            let mut shares = sound.clone();
            let share = &mut shares[id.index()];
            let component = if own { &mut share.own } else { &mut share.next };
            let changed: Secret = component.iter().enumerate().map(|(i, x)| x ^ (i == 1) as u64).collect();
            *component = Arc::new(changed);
            let first = if own { id.prev() } else { id };
            let error = Revealed::combine(ring, revealed(&shares)).unwrap_err();
            assert_eq!(error, SharingError::Disagree { first, second: first.next() });
        }
    }
}

fn compare(shares: &[Share; 3], name: impl Fn(PartyId) -> &'static str + Sync) -> [Result<(), RunError>; 3] {
    parties(Mesh::new(3), |id, prev, next| {
        let device = cpu(1);
        let seed = || Seed::from_bytes([1; 16]);
        let keys = Keys { own: seed(), next: seed(), common: seed() };
        let mut cx = Party::new(id, Security::Malicious, device.as_ref(), keys, prev, next);
        let mut digests = Digests::default();
        digests.add(name(id), Ring::R64, &shares[id.index()]);
        cx.compare("inputs", digests)
    })
}

#[test]
fn an_owner_that_tells_holders_different_things_is_found_out() {
    let sound = shares(Ring::R64, &[0, 1, u64::MAX]);
    assert!(compare(&sound, |_| "x").iter().all(Result::is_ok));
    for id in PartyId::ALL {
        let mut shares = sound.clone();
        let mut own = (*shares[id.index()].own).clone();
        own[2] ^= 1 << 63;
        shares[id.index()].own = own.into();
        let ends = compare(&shares, |_| "x");
        let said = |id: PartyId| ends[id.index()].as_ref().err().map(RunError::to_string);
        let (mine, theirs) = (said(id).unwrap(), said(id.prev()).unwrap());
        assert!(mine.contains(&id.prev().to_string()) && theirs.contains(&id.to_string()), "{mine} {theirs}");
        assert!(mine.contains("/ inputs"), "{mine}");
        assert!(said(id.next()).is_none_or(|e| e.contains("ended the session")));
    }
    let other = compare(&sound, |id| if id.index() == 1 { "y" } else { "x" });
    assert!(other.iter().all(Result::is_err), "another name is another input");
}

/// Any one party's portion is uniform whatever the values: seeds, or values under the seeds it does not get.
#[test]
fn portions_of_equal_values_share_nothing() {
    let values = [7u64; 64];
    let mut seen = std::collections::HashSet::new();
    for _ in 0..50 {
        for portion in Portion::of(Ring::R64, &values) {
            if let Component::Elements(elements) = &portion.next {
                elements.iter().for_each(|&w| assert!(seen.insert(w), "a word came twice"));
            }
        }
    }
}
