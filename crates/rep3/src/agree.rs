//! The start of a session: pairwise keys, and one that all three parties hold and none chose alone.
//!
//! Party i draws key i and sends it to the party before it. A corrupt party's choice of its own key harms nobody: what
//! key j hides from party j + 1 is not known to that party whatever party j drew, and what is hidden from party j is
//! under key j + 2, which it neither draws nor sees.
//!
//! The common key is the sum of three contributions, each committed to before any is opened. A party that opens
//! differently to its neighbours is found out by comparing what both saw, so the most that a corrupt party can do is
//! to end the session after it has seen the key.

use crate::{Keys, PartyId, RunError, mutation};
use privet_net::{Channel, Step};
use privet_prg::Seed;

/// Contribution and the nonce that hides it in its commitment.
const OPENING: usize = 2 * Seed::BYTES;
const DIGEST: usize = blake3::OUT_LEN;

impl Keys {
    /// Agree on fresh keys with the parties before and after: three rounds. The channels must be authenticated, private
    /// and of this session.
    pub fn agree(id: PartyId, prev: &mut dyn Channel, next: &mut dyn Channel) -> Result<Keys, RunError> {
        let own = Seed::random();
        let mut opening = [0; OPENING];
        opening[..Seed::BYTES].copy_from_slice(Seed::random().expose());
        opening[Seed::BYTES..].copy_from_slice(Seed::random().expose());

        let step = Step::new(1, "session / keys");
        let commitment = commit(id, &opening);
        prev.send(&step, [&own.expose()[..], &commitment].concat())?;
        next.send(&step, commitment.to_vec())?;
        let commitments = [prev.recv(&step, DIGEST)?, next.recv(&step, Seed::BYTES + DIGEST)?];
        let (key, commitment) = commitments[1].split_at(Seed::BYTES);
        let commitments = [&commitments[0][..], commitment];

        let step = Step::new(2, "session / common key");
        let openings = both(&step, prev, next, &opening)?;
        for ((peer, opening), commitment) in
            [id.prev(), id.next()].into_iter().zip(&openings).zip(commitments)
        {
            let kept = commit(peer, opening)[..] == *commitment;
            if !kept && !mutation::active("commitment-not-checked") {
                return Err(RunError::Agreement { step: step.to_string(), peer: peer.to_string() });
            }
        }

        let step = Step::new(3, "session / comparison");
        let seen = seen(id, &opening, &openings);
        let theirs = both(&step, prev, next, &seen)?;
        for (peer, theirs) in [id.prev(), id.next()].into_iter().zip(&theirs) {
            if *theirs != seen {
                return Err(RunError::Agreement { step: step.to_string(), peer: peer.to_string() });
            }
        }
        let common = std::array::from_fn(|i| opening[i] ^ openings[0][i] ^ openings[1][i]);
        Ok(Keys { own, next: seed(key), common: Seed::from_bytes(common) })
    }
}

fn commit(id: PartyId, opening: &[u8; OPENING]) -> [u8; DIGEST] {
    let mut hasher = blake3::Hasher::new_derive_key("privet rep3 commitment to a share of the common key");
    hasher.update(&[id.index() as u8]).update(opening);
    *hasher.finalize().as_bytes()
}

/// A digest of all three contributions, in the order of the parties; those of the others are given as before, after.
fn seen(id: PartyId, own: &[u8; OPENING], others: &[[u8; OPENING]; 2]) -> [u8; DIGEST] {
    let mut all = [[0; OPENING]; 3];
    all[id.index()] = *own;
    all[id.prev().index()] = others[0];
    all[id.next().index()] = others[1];
    let mut hasher = blake3::Hasher::new_derive_key("privet rep3 shares of the common key as seen");
    all.iter().for_each(|opening| {
        hasher.update(opening);
    });
    *hasher.finalize().as_bytes()
}

/// Send the same to both neighbours and receive as much from them.
fn both<const N: usize>(
    step: &Step,
    prev: &mut dyn Channel,
    next: &mut dyn Channel,
    message: &[u8; N],
) -> Result<[[u8; N]; 2], RunError> {
    prev.send(step, message.to_vec())?;
    next.send(step, message.to_vec())?;
    let receive = |channel: &mut dyn Channel| -> Result<[u8; N], RunError> {
        let bytes = channel.recv(step, N)?;
        Ok(std::array::from_fn(|i| bytes[i]))
    };
    Ok([receive(prev)?, receive(next)?])
}

fn seed(bytes: &[u8]) -> Seed {
    Seed::from_bytes(std::array::from_fn(|i| bytes[i]))
}
