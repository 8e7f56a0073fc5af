//! What n - 1 parties see together is uniform *given what they hold*: their seeds stay as they are, the honest party's are drawn
//! anew, and whatever reaches them must be new as well ([`privet_plan::suite::unseen`]).
//!
//! A view: masked inputs and weights, what the helper answers the last party if it is corrupt, every opened offset and every opened
//! value. The other parties' shares of answers follow from their seeds, and records from shares. False alarms have a
//! probability of 2^-60 a test.

mod common;

use common::{NUMBER, Seeds, World, sources};
use privet_family::{Class, Forecast, Products, When, Wire};
use privet_plan::Prices;
use privet_plan::ir::{Op, Plan, ValueId};
use privet_plan::suite::{Operands, View, small_chunked, small_operands, small_plans, unseen};
use privet_prg::{Domain, Seed};
use privet_ring::{Ring, unpack};
use privet_semi2k::{
    Bits, BitsAt, BitwiseMask, Factor, Helper, Kept, MaskOf, PartySeed, PrepareError, Preprocess, Public,
    Seats, Semi2k, Words, prepare,
};
use privet_testkit::Mesh;

/// Elements of a small plan's planes that are looked at; the others are as these.
const LOW: u32 = 8;

/// A helper whose answers to the last party are written down, and what is opened.
struct Seen<'a, 'b> {
    helper: &'a mut Helper<'b>,
    /// The last party is corrupt.
    answers: bool,
    view: &'a mut View,
}

impl Seen<'_, '_> {
    fn words(&mut self, what: &str, words: &Words) {
        if self.answers {
            self.view.elements(what.into(), words.ring(), words.shares().last().unwrap());
        }
    }

    fn bits(&mut self, what: &str, bits: &Bits) {
        if self.answers {
            let low: Vec<u64> = bits.shares().last().unwrap().iter().map(|w| w % (1 << LOW)).collect();
            self.view.elements(what.into(), Ring::new(LOW), &low);
        }
    }
}

impl Preprocess for Seen<'_, '_> {
    fn parties(&self) -> usize {
        self.helper.parties()
    }

    fn seats(&self) -> Seats {
        self.helper.seats()
    }

    fn public(&self) -> &Public {
        self.helper.public()
    }

    fn mask(&self, wire: Wire, ring: Ring, n: usize) -> Words {
        self.helper.mask(wire, ring, n)
    }

    fn weight(&self, node: ValueId, ring: Ring, n: usize) -> Words {
        self.helper.weight(node, ring, n)
    }

    fn private_bits(&self, at: BitsAt, words: usize) -> Bits {
        self.helper.private_bits(at, words)
    }

    fn bitwise_mask(&mut self, of: &MaskOf) -> Result<BitwiseMask, PrepareError> {
        let mask = self.helper.bitwise_mask(of)?;
        mask.pairs.iter().for_each(|pair| self.bits("a product of a pair", pair));
        mask.words.iter().for_each(|words| self.words("words of a mask", words));
        Ok(mask)
    }

    fn and(&mut self, factors: &[(&Bits, Vec<&Bits>)]) -> Result<Vec<Vec<Bits>>, PrepareError> {
        let products = self.helper.and(factors)?;
        products.iter().flatten().for_each(|product| self.bits("a product of bits", product));
        Ok(products)
    }

    fn to_words(&mut self, bits: &[&Bits], n: usize, ring: Ring) -> Result<Vec<Words>, PrepareError> {
        let words = self.helper.to_words(bits, n, ring)?;
        words.iter().for_each(|words| self.words("bits as words", words));
        Ok(words)
    }

    fn times(&mut self, factors: &[(&Bits, Vec<&Words>)]) -> Result<Vec<Vec<Words>>, PrepareError> {
        let products = self.helper.times(factors)?;
        products.iter().flatten().for_each(|words| self.words("bits times words", words));
        Ok(products)
    }

    fn multiply(&mut self, x: &Words, y: &Words) -> Result<Words, PrepareError> {
        let product = self.helper.multiply(x, y)?;
        self.words("products", &product);
        Ok(product)
    }

    fn products(&mut self, what: Products, x: &Words, w: Factor) -> Result<Words, PrepareError> {
        let product = self.helper.products(what, x, w)?;
        self.words("products of tensors", &product);
        Ok(product)
    }

    fn dealt(
        &mut self,
        x: &Words,
        ring: Ring,
        each: usize,
        fill: &dyn Fn(u64, &mut [u64]),
    ) -> Result<Words, PrepareError> {
        let dealt = self.helper.dealt(x, ring, each, fill)?;
        self.words("dealt words", &dealt);
        Ok(dealt)
    }

    fn open(&mut self, what: &str, x: &Words) -> Result<Vec<u64>, PrepareError> {
        let opened = self.helper.open(what, x)?;
        self.view.elements(what.into(), x.ring(), &opened);
        Ok(opened)
    }

    fn keep(&mut self, kept: Kept) -> Result<(), PrepareError> {
        self.helper.keep(kept)
    }

    fn kept_bytes(&self) -> u64 {
        self.helper.kept_bytes()
    }
}

/// Who takes part in a run.
#[derive(Clone, Copy)]
struct Who {
    parties: usize,
    /// The one that does not collude.
    honest: usize,
    /// Who knows all weights, if somebody does.
    owner: Option<usize>,
}

/// One run in which all that the honest party draws is new.
fn view(plan: &Plan, operands: &[Operands; 2], who: Who, held: &Seed) -> View {
    let Who { parties, honest, owner } = who;
    let mut seeds = Seeds::of(parties, held).owned(owner);
    seeds.session[honest] = PartySeed::new(honest, Seed::random()).with_owner(owner);
    seeds.record[honest] = PartySeed::new(honest, Seed::random());
    if honest + 1 < parties {
        seeds.states[honest] = Seed::random();
    }
    let mut view = View::default();
    let answers = honest + 1 < parties;
    let (world, mut keys) = World::with(plan, operands, seeds, |helper| {
        prepare(plan, &mut Seen { helper, answers, view: &mut view }, &mut |_| {}).unwrap()
    });
    for (v, node) in plan.nodes.iter().enumerate() {
        let masked = match &node.op {
            // what one of those who collude knows, nothing has to hide from them
            Op::Weight { .. } if owner.is_some_and(|owner| owner != honest) => None,
            Op::Weight { name, .. } => world.weights.get(name),
            _ => world.inputs.get(&v),
        };
        if let Some(masked) = masked {
            view.elements(format!("masked operand {v}"), Ring::new(node.ty.bits), masked);
        }
    }
    let mut mesh = Mesh::new(parties);
    let log = mesh.record();
    world.run(sources(&mut keys), mesh).into_iter().for_each(|done| drop(done.unwrap()));
    // what every party sends goes to all others alike
    let sent = |from: usize| {
        let to = if from == 0 { 1 } else { 0 };
        let sent = log.of(from).into_iter().filter(move |m| m.to == to && !m.bytes.is_empty());
        sent.collect::<Vec<_>>()
    };
    let all: Vec<_> = (0..parties).map(sent).collect();
    let mut step = 0;
    for planned in (Semi2k::helped(parties)).openings(plan) {
        let run = planned.when == When::Run && planned.class == Class::Masked;
        if !run || planned.node.is_some_and(|v| matches!(plan.nodes[v].op, Op::Input { .. })) {
            continue;
        }
        let (n, ring) = (planned.elements as usize, Ring::new((planned.bits / planned.elements) as u32));
        let mut opened = vec![0u64; n];
        for sent in &all {
            let share = unpack(ring, &sent[step].bytes, n).unwrap();
            opened.iter_mut().zip(share).for_each(|(a, b)| *a = ring.wrap(a.wrapping_add(b)));
        }
        view.elements(format!("opened `{}`", planned.what), ring, &opened);
        step += 1;
    }
    assert!(all.iter().all(|sent| sent.len() == step), "an opening that was not planned");
    view
}

fn nothing_is_found(parties: usize, honest: usize, plans: Vec<Plan>) {
    nothing_is_found_where(Who { parties, honest, owner: None }, plans);
}

fn nothing_is_found_where(who: Who, plans: Vec<Plan>) {
    let Who { parties, honest, owner } = who;
    let family = Semi2k::helped(parties);
    for plan in plans.iter().filter(|plan| plan.nodes.iter().all(|node| family.has(&node.op))) {
        let (operands, held) = (small_operands(plan), Seed::random().derive(Domain::Public, NUMBER));
        if let Err(what) = unseen(|| view(plan, &operands, who, &held)) {
            let owner = owner.map_or(String::new(), |owner| format!(", weights of {owner}"));
            panic!("{}: all parties but {honest} of {parties}{owner} learn something: {what}", plan.name);
        }
    }
}

#[test]
fn party_0_of_two_sees_uniform_bits_whatever_it_holds() {
    nothing_is_found(2, 1, small_plans().into_iter().chain(small_chunked()).collect());
}

#[test]
fn party_1_of_two_sees_uniform_bits_whatever_it_holds() {
    nothing_is_found(2, 0, small_plans().into_iter().chain(small_chunked()).collect());
}

#[test]
fn two_of_three_see_uniform_bits_whatever_they_hold() {
    for honest in 0..3 {
        nothing_is_found(3, honest, small_plans());
    }
}

/// A plan's weights may all be known to one party, which alone masks them.
#[test]
fn parties_see_uniform_bits_where_one_of_them_owns_the_weights() {
    let weights = |plan: &Plan| plan.nodes.iter().any(|node| matches!(node.op, Op::Weight { .. }));
    let plans = || small_plans().into_iter().filter(weights).collect::<Vec<Plan>>();
    assert!(!plans().is_empty());
    for (parties, owner, honest) in [(2, 1, 1), (2, 0, 1), (2, 1, 0), (3, 1, 1), (3, 1, 2)] {
        nothing_is_found_where(Who { parties, honest, owner: Some(owner) }, plans());
    }
}

#[test]
fn four_of_five_see_uniform_bits_whatever_they_hold() {
    nothing_is_found(5, 2, small_plans());
}
