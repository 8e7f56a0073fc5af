//! What all parties but one see of the last one is uniform, given what they hold.
//!
//! All operands are the same in every run, so whatever varies comes from the randomness of transfers and of encryption. A view has
//! messages from the remaining party to the coalition, and the coalition's shares of the results: messages that its own strings or
//! key unmask would follow from them. Of rows every bit is looked at. Messages that make transfers and those of encryption are long, and are
//! looked at in places: of transfers at the same ones in every column, in the choices, the answers and the results.

use super::*;
use privet_family::Products;
use privet_kernels::LinearShape;
use privet_plan::suite::{View, unseen};
use privet_semi2k::{PrepareError, Task};
use privet_testkit::record;

/// Transfers of a chunk of the extension.
const CHUNK: usize = 8192;

/// A call, with what a party gets.
type Call = fn(&mut Transfers<'_>, usize) -> Result<Got, PrepareError>;
type Got = (Vec<Words>, Vec<Bits>);

/// A party's calls, so many.
trait Calls: Fn(&mut Transfers<'_>, usize, usize) -> Vec<Got> + Sync {}

impl<F: Fn(&mut Transfers<'_>, usize, usize) -> Vec<Got> + Sync> Calls for F {}

fn repeated(call: Call) -> impl Calls {
    move |t: &mut Transfers<'_>, me: usize, times: usize| (0..times).map(|_| call(t, me).unwrap()).collect()
}

fn only(words: Words) -> Result<Got, PrepareError> {
    Ok((vec![words], vec![]))
}

fn calls() -> Vec<(&'static str, Call)> {
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
            let (x, y, z) = (bits(me, 0, 1), words(me, 1, Ring::new(3), 64), words(me, 2, Ring::new(2), 64));
            Ok((t.times(&[(&x, vec![&y, &z])])?.remove(0), vec![]))
        }),
        ("products of words", |t, me| {
            only(t.multiply(&words(me, 0, Ring::new(3), 64), &words(me, 1, Ring::new(3), 64))?)
        }),
        ("squares", |t, me| only(t.square(&words(me, 0, Ring::new(4), 64))?)),
    ]
}

/// What is looked at of a message of party `alone`, if anything.
type Look = fn(&record::Sent, alone: usize) -> Option<Vec<u8>>;

/// Rows, whole.
fn rows(sent: &record::Sent, _: usize) -> Option<Vec<u8>> {
    (sent.step.id > 0 && !sent.step.name.ends_with("/ transfers")).then(|| sent.bytes.clone())
}

/// Of 8192 transfers the first sixteen: two bytes of each column of the extension, of the choices and of the answers.
fn first_transfers(sent: &record::Sent, _: usize) -> Option<Vec<u8>> {
    let columns = sent.bytes.chunks(CHUNK / 8);
    (sent.step.id > 0).then(|| columns.flat_map(|column| &column[..2]).copied().collect())
}

/// Ciphertexts and answers in twelve places of two bytes each; of what goes to everybody the first copy.
fn ciphertexts(sent: &record::Sent, alone: usize) -> Option<Vec<u8>> {
    let to_all = sent.step.name.ends_with("weights") || sent.step.name.ends_with("operand");
    let looked = sent.step.name.starts_with("encrypted") && (!to_all || sent.to == usize::from(alone == 0));
    let place = |i: usize| i * (sent.bytes.len() - 2) / 11;
    looked.then(|| (0..12).flat_map(|i| sent.bytes[place(i)..][..2].to_vec()).collect())
}

/// What a call makes everybody but party `alone` see, so many times; of results, the first so many words.
fn views(
    [parties, alone]: [usize; 2],
    times: usize,
    calls: &impl Calls,
    look: Look,
    most: usize,
) -> Vec<View> {
    let mut mesh = Mesh::new(parties);
    let log = mesh.record();
    let results = mesh.run(|links| {
        let me = links.me();
        with_transfers(links, |t| calls(t, me, times))
    });
    let looked = |sent: record::Sent| look(&sent, alone).map(|bytes| record::Sent { bytes, ..sent });
    let messages: Vec<record::Sent> = log.of(alone).into_iter().filter_map(looked).collect();
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
                    view.elements(format!("words of {party}"), words.ring(), first(words.own(), most));
                }
                for bits in bits {
                    view.elements(format!("bits of {party}"), R64, first(bits.own(), most));
                }
            }
            view
        })
        .collect()
}

fn first(words: &[u64], most: usize) -> &[u64] {
    &words[..words.len().min(most)]
}

#[track_caller]
fn hides(what: &str, who: [usize; 2], calls: impl Calls, look: Look, most: usize) {
    let draws = views(who, 1, &calls, look, most)[0].draws();
    let mut drawn = views(who, draws, &calls, look, most).into_iter();
    if let Err(found) = unseen(|| drawn.next().expect("as many as are drawn")) {
        let [parties, alone] = who;
        panic!("{what}, {parties} parties: all but {alone} learn something: {found}");
    }
}

fn nothing_is_found(parties: usize, alone: usize) {
    for (what, call) in calls() {
        hides(what, [parties, alone], repeated(call), rows, usize::MAX);
    }
}

/// The messages that make transfers, with what is made of them: a chunk of transfers each way a call.
#[test]
fn transfers_are_made_without_telling_choices() {
    for alone in [0, 1] {
        let call: Call = |t, me| {
            let [x, y] = [0, 1].map(|i| bits(me, i, CHUNK / 64));
            Ok((vec![], t.and(&[(&x, vec![&y])])?.remove(0)))
        };
        hides("transfers and products of bits", [2, alone], repeated(call), first_transfers, 1);
    }
}

/// Encrypted weights, operands and answers, with the coalition's shares of the products. All have weights, or one party alone.
#[test]
fn encryption_tells_nothing_of_weights_and_operands() {
    let calls = |owner: Option<usize>| {
        move |t: &mut Transfers<'_>, me: usize, times: usize| {
            let shape = LinearShape::MatMulT { m: 2, k: 8, n: 3 };
            let what = Products { shape, count: 1 };
            let task = Task { what, runs: 1, calls: 1, ring: R64, owner: owner.map(|owner| (owner, 64)) };
            let weights = elements(me, 0, R64, 24);
            let weights = owner.is_none_or(|owner| owner == me).then_some(&weights[..]);
            let mut session = t.encryption(&Seed::random(), 1).unwrap();
            let call = |_| {
                let layer = t.linear(&mut session, task, weights).unwrap();
                let words = t.products(&mut session, &layer, &words(me, 1, R64, 16)).unwrap();
                (vec![words], vec![])
            };
            (0..times).map(call).collect()
        }
    };
    for who in [[2, 0], [2, 1], [3, 0]] {
        hides("products with weights", who, calls(None), ciphertexts, 1);
    }
    for (who, owner) in [([2, 0], 0), ([2, 0], 1), ([2, 1], 0), ([2, 1], 1), ([3, 0], 0), ([3, 0], 1)] {
        hides(&format!("products with weights of party {owner}"), who, calls(Some(owner)), ciphertexts, 1);
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
