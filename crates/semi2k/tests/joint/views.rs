//! What all parties but one see of the last one is uniform, given what they hold.
//!
//! All operands are the same in every run, so whatever varies comes from the transfers' randomness. A view has every message
//! from the remaining party to the coalition, apart from those that make the transfers (`crates/ot` tests these), and the
//! coalition's shares of the results: messages that its own strings unmask would follow from them.

use super::*;
use privet_plan::suite::{View, unseen};
use privet_semi2k::PrepareError;
use privet_testkit::record;

/// A call, with what a party gets.
type Call = fn(&mut Transfers<'_>, usize) -> Result<(Vec<Words>, Vec<Bits>), PrepareError>;

fn calls() -> Vec<(&'static str, Call)> {
    fn only(words: Words) -> Result<(Vec<Words>, Vec<Bits>), PrepareError> {
        Ok((vec![words], vec![]))
    }
    vec![
        ("mask", |t, me| {
            let of = mask(64, 3, Ring::new(4), &[0..3], true);
            let mask = t.bitwise_mask(&of, &bits(me, 0, 3))?;
            Ok((mask.words, mask.pairs))
        }),
        ("products of bits", |t, me| {
            let [x, y, z] = [0, 1, 2].map(|i| bits(me, i, 1));
            Ok((vec![], t.and(&[(&x, vec![&y, &z])])?.remove(0)))
        }),
        ("words of bits", |t, me| Ok((t.to_words(&[&bits(me, 0, 1)], 64, Ring::new(4))?, vec![]))),
        ("bits times words", |t, me| {
            let (x, y) = (bits(me, 0, 1), words(me, 1, Ring::new(3), 64));
            Ok((t.times(&[(&x, vec![&y])])?.remove(0), vec![]))
        }),
        ("products of words", |t, me| {
            only(t.multiply(&words(me, 0, Ring::new(3), 64), &words(me, 1, Ring::new(3), 64))?)
        }),
        ("squares", |t, me| only(t.square(&words(me, 0, Ring::new(4), 64))?)),
    ]
}

/// What a call makes everybody but party `alone` see, so many times.
fn views(parties: usize, alone: usize, times: usize, call: Call) -> Vec<View> {
    let mut mesh = Mesh::new(parties);
    let log = mesh.record();
    let results = mesh.run(|links| {
        let me = links.me();
        with_transfers(links, |t| (0..times).map(|_| call(t, me).unwrap()).collect::<Vec<_>>())
    });
    let of_rows = |sent: &record::Sent| sent.step.id > 0 && !sent.step.name.ends_with("/ transfers");
    let messages: Vec<record::Sent> = log.of(alone).into_iter().filter(of_rows).collect();
    assert_eq!(messages.len() % times, 0, "every run has as many messages");
    let each = messages.len() / times;
    (0..times)
        .map(|run| {
            let mut view = View::default();
            let mut of_run: Vec<&record::Sent> = messages[run * each..(run + 1) * each].iter().collect();
            // threads send to several peers in any order
            of_run.sort_by_key(|sent| (sent.step.id, sent.to));
            for sent in of_run {
                view.bytes(format!("message to {} at {}", sent.to, sent.step.name), &sent.bytes);
            }
            for (party, results) in results.iter().enumerate().filter(|(party, _)| *party != alone) {
                let (words, bits) = &results[run];
                for words in words {
                    view.elements(format!("words of {party}"), words.ring(), words.own());
                }
                for bits in bits {
                    view.elements(format!("bits of {party}"), R64, bits.own());
                }
            }
            view
        })
        .collect()
}

fn nothing_is_found(parties: usize, alone: usize) {
    for (what, call) in calls() {
        let draws = views(parties, alone, 1, call)[0].draws();
        let mut drawn = views(parties, alone, draws, call).into_iter();
        if let Err(found) = unseen(|| drawn.next().expect("as many as are drawn")) {
            panic!("{what}, {parties} parties: all but {alone} learn something: {found}");
        }
    }
}

#[test]
fn party_0_learns_nothing_from_party_1() {
    nothing_is_found(2, 1);
}

#[test]
fn party_1_learns_nothing_from_party_0() {
    nothing_is_found(2, 0);
}

#[test]
fn two_of_three_learn_nothing_from_the_third() {
    nothing_is_found(3, 0);
    nothing_is_found(3, 2);
}
