//! A session of encryption among all parties: public coins, this party's own coins, and transforms.
//!
//! SECURITY: docs/semi2k-preprocessing.md, "Products by homomorphic encryption".

use super::peers::Peers;
use crate::PrepareError;
use privet_he::layout::Layout;
use privet_he::{
    Context, Encrypted, Factor, Kind, Message, Parameters, Partial, Product, SPARE, Set, Slots, WireError,
};
use privet_prg::{Domain, Prg, Seed};
use privet_ring::Ring;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of values of weights that are kept for a product's later calls; of more weights values are made anew every time.
const WEIGHTS_ROOM: usize = 1 << 29;
/// Bytes of an operand's values that are worked on at a time: for every part, weights' values are made anew.
pub(super) const OPERAND_ROOM: usize = 96 << 20;

/// One party's side of a session of encrypted products. All parties use theirs alike, in one order.
pub struct Encryption {
    public: Seed,
    products: u64,
    pub(super) prg: Prg,
    contexts: Vec<Arc<Context>>,
    slots: HashMap<Ring, Arc<Slots>>,
    threads: usize,
    room: usize,
}

impl Encryption {
    /// One step: all parties toss the public coins. `secret` is this party's own fresh seed, used for nothing else;
    /// `threads` are those that it computes with.
    pub(super) fn start(
        peers: &mut Peers<'_>,
        secret: &Seed,
        threads: usize,
    ) -> Result<Encryption, PrepareError> {
        let mut prg = secret.stream();
        let mut public = *prg.seed().expose();
        for other in peers.tell("encryption / public coins", &public.clone())? {
            public.iter_mut().zip(other).for_each(|(sum, coin)| *sum ^= coin);
        }
        let public = Seed::from_bytes(public);
        let (contexts, slots) = (Vec::new(), HashMap::new());
        Ok(Encryption { public, products: 0, prg, contexts, slots, threads, room: WEIGHTS_ROOM })
    }

    /// Keep weights' values up to so many bytes a product.
    pub fn with_room(mut self, bytes: usize) -> Encryption {
        self.room = bytes;
        self
    }

    pub(super) fn room(&self) -> usize {
        self.room
    }

    pub(super) fn threads(&self) -> usize {
        self.threads
    }

    /// The transforms of a set, made once.
    pub(super) fn context(&mut self, set: &'static Set) -> Result<Arc<Context>, PrepareError> {
        if let Some(context) = self.contexts.iter().find(|context| context.set() == set) {
            return Ok(Arc::clone(context));
        }
        let context = Context::new(set, self.threads).map_err(|e| PrepareError::Failed(e.to_string()))?;
        self.contexts.push(Arc::clone(&context));
        Ok(context)
    }

    /// How words of a ring are products' slots, made once.
    pub(super) fn slots(
        &mut self,
        set: &'static Set,
        ring: Ring,
        parties: usize,
    ) -> Result<Arc<Slots>, PrepareError> {
        let context = self.context(set)?;
        let slots =
            self.slots.entry(ring).or_insert_with(|| Arc::new(Slots::new(&context, ring, parties, SPARE)));
        Ok(Arc::clone(slots))
    }

    /// The next product, under public polynomials of its own.
    pub(super) fn product(
        &mut self,
        p: &Parameters,
        layout: Arc<dyn Layout>,
    ) -> Result<Product, PrepareError> {
        self.products += 1;
        let public = self.public.derive(Domain::Common, self.products);
        Ok(Product::new(&self.context(p.set())?, p, layout, public))
    }

    /// Transforms and products of values of one prime since the session began.
    pub fn work(&self) -> (usize, usize) {
        self.contexts.iter().map(|c| c.work()).fold((0, 0), |sum, work| (sum.0 + work.0, sum.1 + work.1))
    }
}

/// Takes the front of a peer's bytes as its message of this kind, and adds it to what there is.
pub(super) fn add<K: Kind>(
    product: &Product,
    sum: &mut Option<Message<K>>,
    polynomials: usize,
    bytes: &mut &[u8],
) -> Result<(), PrepareError> {
    let (head, tail) = bytes.split_at(product.bytes::<K>(polynomials));
    *bytes = tail;
    let message = Message::decode(product, polynomials, head).map_err(wrong)?;
    match sum {
        Some(sum) => sum.add(product.context(), &message),
        None => *sum = Some(message),
    }
    Ok(())
}

/// A peer's bytes are no message.
pub(super) fn wrong(error: WireError) -> PrepareError {
    PrepareError::Failed(format!("a message of the encrypted products: {error}"))
}

/// Who opens: the last party, whose share of a product follows from all others'.
pub(super) fn opener(peers: &Peers<'_>) -> usize {
    peers.parties() - 1
}

/// A party's part of an opening: which of several shares, what it multiplies with, and the operand.
pub(super) type Part<'a> = (usize, &'a Factor, Encrypted<'a>);

/// One step: everybody's summands to the opener, less their shares; what is left is the opener's share.
pub(super) fn open<S: AsMut<[u64]>>(
    peers: &mut Peers<'_>,
    what: &str,
    prg: &mut Prg,
    parts: &[Part<'_>],
    shares: &mut [S],
) -> Result<(), PrepareError> {
    let opener = opener(peers);
    let bytes = |(_, factor, x): &Part<'_>| factor.product().partial_bytes(x.group, x.tiles.clone());
    let due: usize = parts.iter().map(bytes).sum();
    if peers.me != opener {
        let mut message = Vec::with_capacity(due);
        for (which, factor, x) in parts {
            let partial = factor.partial(x, shares[*which].as_mut(), prg);
            message.extend(partial.encode(factor.product().parameters()));
        }
        peers.pass(what, &message, |peer| peer == opener, |_| 0)?;
        return Ok(());
    }
    let mut openings: Vec<_> = parts.iter().map(|(_, factor, x)| factor.opening(x)).collect();
    for message in peers.pass(what, &[], |_| false, |_| due)? {
        let mut message = &message[..];
        for (part, opening) in parts.iter().zip(&mut openings) {
            let (head, tail) = message.split_at(bytes(part));
            message = tail;
            let (_, factor, x) = part;
            let partial = Partial::decode(factor.product(), x.group, x.tiles.clone(), head);
            opening.add(&partial.map_err(wrong)?);
        }
    }
    openings.into_iter().zip(parts).for_each(|(opening, (which, ..))| opening.open(shares[*which].as_mut()));
    Ok(())
}
