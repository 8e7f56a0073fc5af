//! Correlations out of nothing, for tests of those that use them.

use crate::channel::Pair;
use crate::cot::{ReceiverCots, SenderCots};
use crate::delta::Delta;
use crate::hash::Pads;
use privet_prg::{Domain, Seed, Wiped};

#[cfg(all(feature = "ideal", not(debug_assertions)))]
compile_error!(
    "the feature `ideal` makes correlations that one seed knows, for tests: never in a release build"
);

/// `n` transfers as a trusted dealer would make them.
pub fn deal(seed: &Seed, n: usize) -> (SenderCots, ReceiverCots) {
    let mut prg = seed.stream();
    let delta = Delta::draw(&mut prg);
    let hash = Pads::new(seed.derive(Domain::Public, 0));
    let mut q = Wiped::zeros(n);
    prg.fill_blocks(&mut q);
    q.iter_mut().for_each(|q| *q &= !1);
    let choices = prg.bits(n);
    let t =
        q.iter().enumerate().map(|(i, q)| if choices.get(i) == 1 { q ^ delta.block() } else { *q }).collect();
    let sender = SenderCots { delta, hash: hash.clone(), first: 0, blocks: q };
    (sender, ReceiverCots { hash, first: 0, blocks: Wiped::new(t) })
}

/// Gives party `me` of two `n` transfers in each direction, and takes all others away.
///
/// All that party `holder` has of them follows from `kept`. With another `drawn` its view is the same, and what its peer
/// has beyond it is new: the choices that the holder does not know, or the strings that it lacks.
pub fn restock(pair: &mut Pair, [me, holder]: [usize; 2], [kept, drawn]: [&Seed; 2], n: usize) {
    for sender in 0..2 {
        let stream = |seed: &Seed| seed.derive(Domain::Mask, sender as u64).stream();
        let (mut kept, mut drawn) = (stream(kept), stream(drawn));
        let mut held = Wiped::zeros(n);
        kept.fill_blocks(&mut held);
        let mut other = held.clone();
        let (delta, q, t) = if sender == holder {
            let (delta, choices) = (Delta::draw(&mut kept), drawn.bits(n));
            held.iter_mut().for_each(|q| *q &= !1);
            for (i, (t, q)) in other.iter_mut().zip(held.iter()).enumerate() {
                *t = if choices.get(i) == 1 { q ^ delta.block() } else { *q };
            }
            (delta, held, other)
        } else {
            let delta = Delta::draw(&mut drawn);
            other.iter_mut().for_each(|q| *q ^= (*q & 1).wrapping_neg() & delta.block());
            (delta, other, held)
        };
        if sender == me { pair.sender.restock(delta, &q) } else { pair.receiver.restock(&t) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cot::MaskedBits;
    use crate::error::Malformed;
    use privet_ring::Ring;

    fn read(strings: &mut crate::pack::Strings) -> Vec<(u64, u64)> {
        let words = (strings.words(Ring::R64), strings.words(Ring::R64));
        words.0.iter().copied().zip(words.1.iter().copied()).collect()
    }

    #[test]
    fn the_receiver_has_the_string_of_its_choice_and_not_the_other() {
        for n in [0, 1, 64, 5000] {
            let (sender, receiver) = deal(&Seed::from_bytes([3; 16]), n);
            let (sender, mut receiver) = (sender.into_pads(), receiver.into_pads());
            let mut strings = sender.strings;
            let (zero, one, mine) =
                (read(&mut strings[0]), read(&mut strings[1]), read(&mut receiver.strings));
            for i in 0..n {
                let (chosen, other) = if receiver.choices[i / 64] >> (i % 64) & 1 == 1 {
                    (one[i], zero[i])
                } else {
                    (zero[i], one[i])
                };
                assert_eq!(mine[i], chosen);
                assert!(mine[i].0 != other.0 && mine[i].1 != other.1);
            }
        }
    }

    /// Delta, q of the direction in which a party sends, and t of the other one.
    type Part = (u128, Vec<u128>, Vec<u128>);

    /// Each party's part, for two seeds of what is drawn.
    fn restocked(holder: usize) -> Vec<[Part; 2]> {
        privet_testkit::Mesh::new(2).run(|links| {
            let (me, step) = (links.me(), privet_net::Step::new(0, "transfers"));
            let source = crate::Source::SoftSpoken(crate::Width::Four);
            let mut pair = Pair::start(links.to(1 - me), &step, source, &Seed::random()).unwrap();
            [1, 2].map(|drawn| {
                let seeds = [7, drawn].map(|byte| Seed::from_bytes([byte; 16]));
                restock(&mut pair, [me, holder], [&seeds[0], &seeds[1]], 100);
                let (sent, got) = (pair.sender.take(100).unwrap(), pair.receiver.take(100).unwrap());
                assert!(sent.first == 0 && got.first == 0 && pair.sender.take(1).is_err());
                (sent.delta.block(), sent.blocks.to_vec(), got.blocks.to_vec())
            })
        })
    }

    #[test]
    fn the_holder_keeps_what_it_has_and_its_peer_does_not() {
        for holder in [0, 1] {
            let found = restocked(holder);
            for (here, there) in [(0, 1), (1, 0)] {
                for ((delta, q, _), (_, _, t)) in found[here].iter().zip(&found[there]) {
                    assert!(q.iter().zip(t).all(|(q, t)| *q == t ^ ((t & 1).wrapping_neg() & delta)));
                }
            }
            assert!(found[holder][0] == found[holder][1], "party {holder} holds it");
            let [first, second] = &found[1 - holder];
            assert!(first.0 != second.0 && first.1 != second.1 && first.2 != second.2);
        }
    }

    #[test]
    fn wanted_choices_reach_the_sender_masked() {
        let n = 1000;
        let (sender, receiver) = deal(&Seed::from_bytes([4; 16]), n);
        let wanted = vec![u64::MAX; n.div_ceil(64)];
        let (mine, masked) = receiver.choose(&wanted);
        let ones: u32 = masked.to_bytes().iter().map(|b| b.count_ones()).sum();
        assert!((400..600).contains(&ones), "{ones} of {n} masked ones are one");
        let masked = MaskedBits::from_bytes(n, &masked.to_bytes()).unwrap();
        let mut strings = sender.into_chosen(&masked).strings;
        assert_eq!(read(&mut mine.into_strings()), read(&mut strings[1]));
        assert!(strings[0].len() == n && !strings[0].is_empty());
    }

    #[test]
    fn malformed_choices_are_named() {
        let error = MaskedBits::from_bytes(9, &[0]).unwrap_err();
        assert!(matches!(error, Malformed::Length { expected: 2, found: 1, .. }), "{error}");
        assert!(matches!(MaskedBits::from_bytes(9, &[0, 2]), Err(Malformed::Bits { bits: 9, .. })));
    }
}
