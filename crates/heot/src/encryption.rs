//! Products of matrices and of many elements that both sides share, by encryption ([`privet_he`], docs/he.md, section 2): the two are all
//! parties of it.
//!
//! Both send what their weights make of public polynomials, and their operands under fresh keys. Both multiply the sums. The server takes a
//! fresh share off under drowning noise, and the client adds up. Shares are exact modulo 2^k; of elements but with a probability of 2^-80.
//!
//! SECURITY: docs/heot.md, section 3.2.

use crate::context::{RunError, Side};
use crate::gathered::Gathering;
use crate::material::{Made, Maker};
use privet_he::layout::{Cost, Layout, Matmul, MatmulLayout, Roles, cost};
use privet_he::{
    Context, Encrypted, Factor, Keys, Kind, Message, NoSet, Operand, Parameters, Partial, Product, Residues,
    SETS, Set, Slots, Zero,
};
use privet_prg::{Domain, Seed, Wiped};
use privet_ring::Ring;
use std::sync::Arc;

/// Bytes of values of weights that are kept from tile to tile.
const WEIGHTS_ROOM: usize = 1 << 28;
/// Bytes of an operand's values that are worked on at a time.
const OPERAND_ROOM: usize = 96 << 20;
/// Calls of which distances stay below 2^-40 together: a run has fewer. SECURITY.
pub(crate) const CALLS: usize = 1 << 12;
/// Bits by which a share hides a product of elements: 2^24 of them are within 2^-56. SECURITY.
const SPARE: u32 = 80;
/// Both sides take part.
const PARTIES: usize = 2;

/// What encrypted products of a preparation share: public coins and transforms.
pub(crate) struct Encryption {
    public: Option<Seed>,
    products: u64,
    contexts: Vec<Arc<Context>>,
    slots: Vec<(Ring, Arc<Slots>)>,
    /// Keys of gathered products, once there were some.
    pub gathering: Option<Gathering>,
    pub threads: usize,
}

impl Encryption {
    /// Nothing is said until the first product.
    pub fn new(threads: usize) -> Encryption {
        Encryption {
            public: None,
            products: 0,
            contexts: Vec::new(),
            slots: Vec::new(),
            gathering: None,
            threads,
        }
    }

    fn context(&mut self, set: &'static Set) -> Result<Arc<Context>, RunError> {
        if let Some(context) = self.contexts.iter().find(|context| context.set() == set) {
            return Ok(Arc::clone(context));
        }
        let context = Context::new(set, self.threads).map_err(|e| RunError::Missing(e.to_string()))?;
        self.contexts.push(Arc::clone(&context));
        Ok(context)
    }

    fn slots(&mut self, ring: Ring) -> Result<Arc<Slots>, RunError> {
        if let Some((_, slots)) = self.slots.iter().find(|(of, _)| *of == ring) {
            return Ok(Arc::clone(slots));
        }
        let context = self.context(set())?;
        let slots = Arc::new(Slots::new(&context, ring, PARTIES, SPARE));
        self.slots.push((ring, Arc::clone(&slots)));
        Ok(slots)
    }
}

/// Parameters and packing, alike at both sides.
pub(crate) fn plan(ring: Ring, shape: Matmul) -> Result<(Parameters, MatmulLayout), NoSet> {
    MatmulLayout::plan_coarse(shape, ring, ring.bits(), PARTIES, CALLS)
}

/// Bytes that each side sends for the public coins of a preparation.
pub(crate) const COINS_BYTES: usize = size_of::<u128>();

/// What residues of elements are encrypted with: 38 bits and their noise fit.
fn set() -> &'static Set {
    &SETS[1]
}

/// What a product of matrices takes.
pub(crate) fn made(ring: Ring, shape: Matmul) -> Made {
    let Ok((p, layout)) = plan(ring, shape) else { return Made::default() };
    taken(&cost(&p, &layout, Roles::BOTH, true), p.set(), 3)
}

/// What so many products of elements take.
pub(crate) fn elements_made(ring: Ring, n: usize) -> Made {
    let cost = Slots::cost(set(), ring, PARTIES, SPARE, n);
    cost.map_or(Made::default(), |cost| taken(&cost, set(), 2))
}

fn taken(cost: &Cost, set: &Set, steps: u64) -> Made {
    let both = (cost.hint_bytes + cost.operand_bytes) as u64;
    let products = (cost.hint_products + cost.products) / PRODUCTS;
    let values = set.degree * (cost.hint_transforms + cost.transforms + products);
    let bytes = [both + cost.partial_bytes as u64, both];
    Made { bytes, values: values as u64, steps, ..Made::default() }
}

/// Products of values that take as long as one transform of them.
const PRODUCTS: usize = 16;

/// The seed of the next product's public polynomials. Both sides toss the one that all follow from: one step, before the first.
pub(crate) fn public(maker: &mut Maker<'_>) -> Result<Seed, RunError> {
    if maker.encryption.public.is_none() {
        let own = maker.prg.seed();
        let theirs =
            maker.exchange("encrypted matrices / public coins", own.expose().to_vec(), COINS_BYTES)?;
        let mut coins = *own.expose();
        coins.iter_mut().zip(theirs).for_each(|(coin, theirs)| *coin ^= theirs);
        maker.encryption.public = Some(Seed::from_bytes(coins));
    }
    maker.encryption.products += 1;
    let public = maker.encryption.public.as_ref().expect("tossed above");
    Ok(public.derive(Domain::Common, maker.encryption.products))
}

/// Takes the front of the peer's bytes as its message of this kind, and adds it to one's own.
fn add<K: Kind>(
    maker: &Maker<'_>,
    product: &Product,
    sum: &mut Message<K>,
    bytes: &mut &[u8],
) -> Result<(), RunError> {
    let (head, tail) = bytes.split_at(product.bytes::<K>(sum.len()));
    *bytes = tail;
    let theirs = Message::decode(product, sum.len(), head);
    sum.add(product.context(), &theirs.map_err(|e| maker.wrong("encrypted matrices", e))?);
    Ok(())
}

/// This side's share of the products `A B` of a chunk, from its shares of A and B: three steps, and as many again for each part of A that fits
/// into memory.
pub(crate) fn product(
    maker: &mut Maker<'_>,
    ring: Ring,
    shape: Matmul,
    a: &[u64],
    b: &[u64],
) -> Result<Wiped<u64>, RunError> {
    let (p, layout) = plan(ring, shape).map_err(|e| RunError::Refused(e.to_string()))?;
    let public = public(maker)?;
    let product = Product::new(&maker.encryption.context(p.set())?, &p, Arc::new(layout), public);
    let blocks = product.layout().blocks();
    let (weights, mut hint) = product.weights(b, maker.prg, WEIGHTS_ROOM);
    let message = hint.encode();
    let due = message.len();
    let theirs = maker.exchange("encrypted matrices / weights", message, due)?;
    add(maker, &product, &mut hint, &mut &theirs[..])?;
    drop(theirs);
    let factor = weights.factor(Some(hint));
    let outputs = product.layout().output_len();
    let mut share = Wiped::new(match maker.side {
        Side::Server => p.plain().uniform(maker.prg, outputs),
        Side::Client => vec![0; outputs],
    });
    let at_once = product.tiles_in(OPERAND_ROOM);
    for first in (0..blocks.tiles).step_by(at_once) {
        let tiles = first..(first + at_once).min(blocks.tiles);
        let (mut keys, mut zeros) = product.keys(tiles.clone(), maker.prg);
        let mut message = zeros.encode();
        let mut operands: Vec<Message<Operand>> = Vec::with_capacity(blocks.groups);
        for group in 0..blocks.groups {
            let operand = keys.encrypt(group, a, maker.prg);
            message.extend(operand.encode());
            operands.push(operand);
        }
        let due = message.len();
        let theirs = maker.exchange("encrypted matrices / operand", message, due)?;
        let mut rest = &theirs[..];
        add(maker, &product, &mut zeros, &mut rest)?;
        operands.iter_mut().try_for_each(|operand| add(maker, &product, operand, &mut rest))?;
        drop(theirs);
        let encrypted = |group: usize| Encrypted {
            group,
            tiles: tiles.clone(),
            sums: Some((&zeros, &operands[group])),
            keys: Some(&keys),
        };
        let what = "encrypted matrices / shares";
        match maker.side {
            Side::Server => {
                let partial = |group| factor.partial(&encrypted(group), &share, maker.prg).encode(&p);
                let message = (0..blocks.groups).flat_map(partial).collect();
                maker.exchange(what, message, 0)?;
            }
            Side::Client => {
                let openings: Vec<_> =
                    (0..blocks.groups).map(|group| factor.opening(&encrypted(group))).collect();
                let bytes = |group| product.partial_bytes(group, tiles.clone());
                let theirs = maker.exchange(what, Vec::new(), (0..blocks.groups).map(bytes).sum())?;
                let mut rest = &theirs[..];
                for (group, mut opening) in openings.into_iter().enumerate() {
                    let (head, tail) = rest.split_at(bytes(group));
                    rest = tail;
                    let partial = Partial::decode(&product, group, tiles.clone(), head);
                    opening.add(&partial.map_err(|e| maker.wrong(what, e))?);
                    opening.open(&mut share);
                }
            }
        }
    }
    Ok(share)
}

/// One prime's product of elements.
struct Prime {
    factor: Factor,
    keys: Keys,
    zeros: Message<Zero>,
    operands: Vec<Message<Operand>>,
}

impl Prime {
    fn encrypted(&self, group: usize) -> Encrypted<'_> {
        let sums = Some((&self.zeros, &self.operands[group]));
        Encrypted { group, tiles: 0..1, sums, keys: Some(&self.keys) }
    }
}

/// This side's share of `a b`, element by element, from its shares of a and b: two steps.
pub(crate) fn elements(
    maker: &mut Maker<'_>,
    ring: Ring,
    a: &[u64],
    b: &[u64],
) -> Result<Wiped<u64>, RunError> {
    let (n, slots) = (a.len(), maker.encryption.slots(ring)?);
    let layout: Arc<dyn Layout> = Arc::new(slots.layout(n));
    let groups = layout.blocks().groups;
    let (mut made, mut message) = (Vec::new(), Vec::new());
    for ((prime, a), b) in slots.primes().zip(slots.operands(a)).zip(slots.operands(b)) {
        let p = slots.parameters(set(), prime, n).map_err(|e| RunError::Refused(e.to_string()))?;
        let public = public(maker)?;
        let product = Product::new(&maker.encryption.context(set())?, &p, Arc::clone(&layout), public);
        let (weights, hint) = product.weights(&b, maker.prg, usize::MAX);
        let (mut keys, zeros) = product.keys(0..1, maker.prg);
        let operands: Vec<_> = (0..groups).map(|group| keys.encrypt(group, &a, maker.prg)).collect();
        message.extend(hint.encode());
        message.extend(zeros.encode());
        operands.iter().for_each(|operand| message.extend(operand.encode()));
        made.push((product, weights, hint, keys, zeros, operands));
    }
    let due = message.len();
    let theirs = maker.exchange("encrypted elements / operands", message, due)?;
    let mut rest = &theirs[..];
    let mut primes = Vec::with_capacity(made.len());
    for (product, weights, mut hint, keys, mut zeros, mut operands) in made {
        add(maker, &product, &mut hint, &mut rest)?;
        add(maker, &product, &mut zeros, &mut rest)?;
        operands.iter_mut().try_for_each(|operand| add(maker, &product, operand, &mut rest))?;
        primes.push(Prime { factor: weights.factor(Some(hint)), keys, zeros, operands });
    }
    drop(theirs);
    let what = "encrypted elements / shares";
    let bytes = |prime: &Prime, group| prime.factor.product().partial_bytes(group, 0..1);
    match maker.side {
        Side::Server => {
            let (residues, words) = slots.share(n, maker.prg);
            let mut message = Vec::new();
            for (prime, share) in primes.iter().zip(&residues) {
                for group in 0..groups {
                    let partial = prime.factor.partial(&prime.encrypted(group), share, maker.prg);
                    message.extend(partial.encode(prime.factor.product().parameters()));
                }
            }
            maker.exchange(what, message, 0)?;
            Ok(words)
        }
        Side::Client => {
            let all = || primes.iter().flat_map(|prime| (0..groups).map(move |group| (prime, group)));
            let openings: Vec<_> =
                all().map(|(prime, group)| prime.factor.opening(&prime.encrypted(group))).collect();
            let theirs =
                maker.exchange(what, Vec::new(), all().map(|(prime, group)| bytes(prime, group)).sum())?;
            let mut residues: Vec<Residues> =
                primes.iter().map(|_| Wiped::zeros(layout.output_len())).collect();
            let (mut rest, mut openings) = (&theirs[..], openings.into_iter());
            for (prime, residues) in primes.iter().zip(&mut residues) {
                for (group, mut opening) in openings.by_ref().take(groups).enumerate() {
                    let (head, tail) = rest.split_at(bytes(prime, group));
                    rest = tail;
                    let partial = Partial::decode(prime.factor.product(), group, 0..1, head);
                    opening.add(&partial.map_err(|e| maker.wrong(what, e))?);
                    opening.open(residues);
                }
            }
            Ok(slots.opened(n, residues))
        }
    }
}
