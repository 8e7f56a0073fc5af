//! A coin that neither party decides: both commit to randomness, then reveal it (Blum 1981).

use super::CheckError;
use crate::session::control::Talk;
use privet_net::Channel;
use privet_prg::Seed;

const BYTES: usize = 32;

/// Commitment of `party` to its randomness. BLAKE3 hides 256 random bits and binds to them; the party's
/// number keeps one from answering with a copy of the other's, the context a coin from counting twice.
fn commit(party: u8, context: &[u8; 32], random: &[u8]) -> [u8; 32] {
    let mut hash = blake3::Hasher::new_derive_key("privet dealer check: coin toss commitment v1");
    hash.update(&[party]).update(context).update(random);
    *hash.finalize().as_bytes()
}

/// A number below `sides`, uniform up to 2^-120 as long as one party is honest; two
/// rounds of 32 bytes. `context` is what the coin decides on, the same at both parties.
pub fn toss(peer: &mut dyn Channel, party: u8, context: &[u8; 32], sides: u64) -> Result<u64, CheckError> {
    let mut ours = Vec::with_capacity(BYTES);
    ours.extend_from_slice(Seed::random().expose());
    ours.extend_from_slice(Seed::random().expose());
    let step = Talk::Coin.step();
    let commitment = peer.exchange(&step, commit(party, context, &ours).to_vec(), BYTES)?;
    let theirs = peer.exchange(&step, ours.clone(), BYTES)?;
    if commit(1 - party, context, &theirs) != commitment[..] {
        return Err(CheckError::Coin);
    }
    let mut both = [0; 16];
    for (b, (x, y)) in both.iter_mut().zip(ours.iter().zip(&theirs)) {
        *b = x ^ y;
    }
    Ok((u128::from_le_bytes(both) % u128::from(sides.max(1))) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_net::mem;
    use privet_testkit::fault::{Action, Faulty, When};

    #[test]
    fn both_see_the_same_coin_and_every_side_comes_up() {
        let mut seen = [0; 3];
        for _ in 0..64 {
            let (mut a, mut b) = mem::pair();
            let other = std::thread::spawn(move || toss(&mut b, 1, &[9; 32], 3).unwrap());
            let coin = toss(&mut a, 0, &[9; 32], 3).unwrap();
            assert_eq!(coin, other.join().unwrap());
            seen[coin as usize] += 1;
        }
        assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
    }

    #[test]
    fn whoever_reveals_something_else_is_detected() {
        // Message 0 is the commitment, message 1 what it commits to.
        for message in [0, 1] {
            let (mut a, b) = mem::pair();
            let mut b = Faulty::new(b, [(When::Message(message), Action::FlipBit(77))]);
            let other = std::thread::spawn(move || drop(toss(&mut b, 1, &[9; 32], 2)));
            assert!(matches!(toss(&mut a, 0, &[9; 32], 2), Err(CheckError::Coin)), "message {message}");
            other.join().unwrap();
        }
    }

    #[test]
    fn a_commitment_holds_for_one_party_and_one_context() {
        let (mut a, mut b) = mem::pair();
        let other = std::thread::spawn(move || toss(&mut b, 1, &[8; 32], 2).is_err());
        assert!(toss(&mut a, 0, &[9; 32], 2).is_err());
        assert!(other.join().unwrap());
        // An echo of the other party's messages.
        let (mut a, mut b) = mem::pair();
        let echo = std::thread::spawn(move || {
            for _ in 0..2 {
                let message = b.recv(&Talk::Coin.step(), 32).unwrap();
                b.send(&Talk::Coin.step(), message).unwrap();
            }
        });
        assert!(matches!(toss(&mut a, 0, &[9; 32], 2), Err(CheckError::Coin)));
        echo.join().unwrap();
    }
}
