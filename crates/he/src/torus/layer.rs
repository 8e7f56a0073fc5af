//! What both sides of a layer hold alike: parameters, packing, public polynomials, and which coefficients are sent.

use super::digits::Cut;
use super::keys::Kind;
use super::params::TorusParameters;
use super::wide::{self, Wide};
use crate::context::{Context, Points};
use crate::lane::HePath;
use crate::layout::{Output, Windowed};
use crate::mutation;
use crate::panel::Panel;
use privet_kernels::{CpuCap, CpuCapError, Device, try_cpu};
use privet_prg::{Domain, Seed};
use std::collections::HashMap;
use std::sync::Arc;

/// The name of a set of hints: random, so that it says nothing of the weights. Public polynomials follow from it.
///
/// A new one is drawn whenever weights, packing or parameters change. Hidings of hints are drawn with it and never
/// again, so no hiding ever serves two weights, or two errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintId([u8; 16]);

impl HintId {
    /// Fresh from the operating system: the server's.
    pub fn random() -> HintId {
        HintId(*Seed::random().expose())
    }

    /// As the server sent it.
    pub fn from_bytes(bytes: [u8; 16]) -> HintId {
        HintId(bytes)
    }

    /// What the client gets.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

/// A linear layer: alike at both sides.
#[derive(Clone)]
pub struct TorusLayer {
    pub(crate) shape: Arc<Shape>,
}

pub(crate) struct Shape {
    pub(crate) context: Arc<Context>,
    /// For plain products.
    pub(crate) device: Arc<dyn Device>,
    pub(crate) parameters: TorusParameters,
    pub(crate) layout: Arc<dyn Windowed>,
    /// Which of the layers that share a set of hints it is.
    pub(crate) number: (HintId, u64),
    /// Layers that it shares keys with.
    pub(crate) kind: Kind,
    /// What public rows follow from: the layer's own, and those of its kind.
    public: [Seed; 2],
    pub(crate) places: Arc<Places>,
}

/// What follows from parameters and layout: layers that are alike share it.
pub(crate) struct Places {
    /// Of a group's operand polynomials of a tile: coefficients of the weights that they meet.
    taps: Vec<Box<[u32]>>,
    /// Coefficients that products read of each operand polynomial of a group, tile by tile.
    needed: Vec<Arc<[u32]>>,
    /// Of these, those of each operand polynomial where operands stand.
    held: Vec<Box<[Place]>>,
    /// Outputs of a group's answers, tile by tile.
    outputs: Vec<Box<[Place]>>,
}

/// A coefficient of an operand polynomial where an operand stands, or of an answer where an output does. There is one for every value of
/// a layer as long as a session lasts: it has few bytes.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    coefficient: u32,
    index: u32,
}

impl Place {
    /// Panics where there are 2^32 values or more.
    fn new(coefficient: usize, index: usize) -> Place {
        let [coefficient, index] =
            [coefficient, index].map(|at| u32::try_from(at).expect("a layer of less than 2^32 values"));
        Place { coefficient, index }
    }

    pub(crate) fn coefficient(self) -> usize {
        self.coefficient as usize
    }

    /// The value's place in the layer's operand or output.
    pub(crate) fn index(self) -> usize {
        self.index as usize
    }
}

/// What public polynomials of a layer follow from: its own, and those of its kind.
fn public((id, number): (HintId, u64), kind: &Kind) -> [Seed; 2] {
    let number = if mutation::active("torus-layers-alike") { 0 } else { number };
    [Seed::from_bytes(id.0).derive(Domain::Public, number), kind.rows()]
}

impl TorusLayer {
    /// Layer `number` of those that share a set of hints, in so many threads.
    ///
    /// Panics where the layout is for polynomials of another degree.
    pub fn new(
        parameters: TorusParameters,
        layout: Arc<dyn Windowed>,
        id: HintId,
        number: u64,
        threads: usize,
    ) -> Result<TorusLayer, CpuCapError> {
        let context = Context::on(parameters.set(), HePath::detect(CpuCap::from_env()?), threads);
        let place = |o: &Output| Place::new(o.coefficient, o.index);
        let outputs: Vec<Box<[Place]>> =
            (0..layout.answers()).map(|answer| layout.outputs(answer).iter().map(place).collect()).collect();
        let taps = taps(parameters.degree(), &*layout);
        let needed = needed(parameters.degree(), &*layout, &taps, &outputs);
        let held = held(parameters.degree(), &*layout, &needed);
        let (device, places) = (try_cpu(threads)?, Arc::new(Places { taps, needed, held, outputs }));
        let (number, kind) = ((id, number), Kind::of(id, &parameters));
        let public = public(number, &kind);
        let shape = Shape { context, device, parameters, layout, number, kind, public, places };
        Ok(TorusLayer { shape: Arc::new(shape) })
    }

    /// Layer `number` of the same ones, with the same parameters and layout.
    pub fn alike(&self, id: HintId, number: u64) -> TorusLayer {
        let s = &*self.shape;
        let (number, kind) = ((id, number), Kind::of(id, &s.parameters));
        let shape = Shape {
            context: Arc::clone(&s.context),
            device: Arc::clone(&s.device),
            parameters: s.parameters,
            layout: Arc::clone(&s.layout),
            number,
            kind,
            public: public(number, &kind),
            places: Arc::clone(&s.places),
        };
        TorusLayer { shape: Arc::new(shape) }
    }

    /// Whether it has these parameters and this very layout.
    pub fn has(&self, parameters: &TorusParameters, layout: &Arc<dyn Windowed>) -> bool {
        self.shape.parameters == *parameters && Arc::ptr_eq(&self.shape.layout, layout)
    }

    /// The parameters.
    pub fn parameters(&self) -> &TorusParameters {
        &self.shape.parameters
    }

    /// The packing.
    pub fn layout(&self) -> &dyn Windowed {
        &*self.shape.layout
    }

    /// Bytes of a hint.
    pub fn hint_bytes(&self) -> usize {
        let b = self.layout().blocks();
        b.groups * b.outputs * self.shape.vector_bytes()
    }

    /// Bytes of what prepares one run, with the encryptions of 0 under all of its keys.
    pub fn prepare_bytes(&self) -> usize {
        self.prepare_bytes_after(0)
    }

    /// The same where the server has those under so many keys.
    pub(crate) fn prepare_bytes_after(&self, there: usize) -> usize {
        let (s, p, b) = (&*self.shape, &self.shape.parameters, self.layout().blocks());
        let operand = |query: usize| {
            let (held, blanks) = (s.held(query).len(), s.blanks(query).count());
            wide::bytes(p.low_bits(), held) + wide::bytes(p.blank_bits(), blanks)
        };
        let zeros = b.tiles.saturating_sub(there) * s.vector_bytes();
        zeros + (0..self.layout().queries()).map(operand).sum::<usize>()
    }

    /// Bytes of a mask that is kept for its run.
    pub fn mask_bytes(&self) -> usize {
        self.run_bytes() + self.masked_bytes()
    }

    /// Bytes of what the server keeps for a run.
    pub fn masked_bytes(&self) -> usize {
        self.shape.parameters.ring().packed_bytes(self.layout().output_len())
    }

    /// Bytes of a run: k bits for each coefficient where an operand stands that a product reads.
    pub fn run_bytes(&self) -> usize {
        let s = &*self.shape;
        s.places.held.iter().map(|held| s.parameters.ring().packed_bytes(held.len())).sum()
    }
}

impl Shape {
    /// Bytes of a hint's answer, and of a tile's encryptions of 0.
    pub(crate) fn vector_bytes(&self) -> usize {
        self.parameters.rank() * wide::bytes(self.parameters.kept_bits(), self.parameters.degree())
    }

    /// Coefficients of operand polynomial `query` that products read.
    fn needed(&self, query: usize) -> &[u32] {
        let b = self.layout.blocks();
        #[expect(clippy::integer_division_remainder_used, reason = "shapes are public")]
        &self.places.needed[query % (b.tiles * b.inputs)]
    }

    /// Of operand polynomial `query`: where operands stand, the least coefficient first.
    pub(crate) fn held(&self, query: usize) -> &[Place] {
        &self.places.held[query]
    }

    /// Of the coefficients that products read of operand polynomial `query`, those where no operand stands.
    pub(crate) fn blanks(&self, query: usize) -> impl Iterator<Item = usize> {
        let mut held = self.held(query).iter().map(|held| held.coefficient).peekable();
        let blank = move |at: &&u32| held.next_if_eq(*at).is_none();
        self.needed(query).iter().filter(blank).map(|at| *at as usize)
    }

    /// For each operand polynomial of a tile the coefficients where a weight may stand that meets it, the same for all answers.
    pub(crate) fn taps(&self) -> &[Box<[u32]>] {
        &self.places.taps
    }

    /// Whether products read coefficients where no operand stands.
    pub(crate) fn has_blanks(&self) -> bool {
        (0..self.layout.queries()).any(|query| self.needed(query).len() > self.held(query).len())
    }

    /// Outputs of an answer of a group's tile.
    pub(crate) fn outputs(&self, [group, tile, answer]: [usize; 3]) -> &[Place] {
        let b = self.layout.blocks();
        &self.places.outputs[(group * b.tiles + tile) * b.outputs + answer]
    }

    /// How wide polynomials are cut for products with ternary ones of a whole key.
    pub(crate) fn ternary_cut(&self) -> Cut {
        let p = &self.parameters;
        let n = p.dimension();
        Cut::for_squares(p.modulus_bits(), n as f64, n).expect("a key has less than 2^16 coefficients")
    }

    /// A row of the public matrix that operand polynomial `input` of a group is hidden under: r polynomials.
    pub(crate) fn public(&self, group: usize, input: usize) -> Vec<Vec<Wide>> {
        let number = (group * self.layout.blocks().inputs + input) as u64;
        self.uniform(0, if mutation::active("torus-publics-repeat") { 0 } else { number })
    }

    /// A row of the public matrix that encryptions of 0 are hidden under.
    pub(crate) fn public_of_zero(&self, row: usize) -> Vec<Vec<Wide>> {
        self.uniform(1, row as u64)
    }

    fn uniform(&self, which: usize, number: u64) -> Vec<Vec<Wide>> {
        let mut prg = self.public[which].derive(Domain::Public, number).stream();
        let (n, bits) = (self.parameters.degree(), self.parameters.modulus_bits());
        (0..self.parameters.rank()).map(|_| wide::uniform(&mut prg, bits, n)).collect()
    }

    /// Vectors of r small polynomials, as rows of a panel.
    pub(crate) fn rows(&self, vectors: &[Vec<Points>]) -> Panel {
        let mut panel = Panel::new(&self.context, vectors.len(), self.parameters.rank());
        for (row, vector) in vectors.iter().enumerate() {
            vector.iter().enumerate().for_each(|(column, v)| panel.put(row, column, v));
        }
        panel
    }

    /// A sum modulo 2^LQ as a share of an output: `floor(sum / delta)` modulo 2^k.
    pub(crate) fn share(&self, sum: &Wide) -> u64 {
        sum.bits(self.parameters.step_bits(), self.parameters.ring().bits())
    }
}

/// For each input of a tile: coefficients of weights. The first answer has as many output channels as any, at the same places.
fn taps(degree: usize, layout: &dyn Windowed) -> Vec<Box<[u32]>> {
    let ones = vec![1; layout.weight_len()];
    let of = |input| {
        let mut any = vec![0; degree];
        layout.pack_weights(input, &ones, &mut any);
        (0..degree as u32).filter(|at| any[*at as usize] != 0).collect()
    };
    (0..layout.blocks().inputs).map(of).collect()
}

/// For each tile and input of a group: all `t - a` with t an output and a a tap, modulo X^d + 1. All of these are read, as
/// the polynomials that hide are dense; the packing's zeros are values like others.
fn needed(
    degree: usize,
    layout: &dyn Windowed,
    taps: &[Box<[u32]>],
    outputs: &[Box<[Place]>],
) -> Vec<Arc<[u32]>> {
    let b = layout.blocks();
    let read_at = |places: &[usize], taps: &[u32]| -> Arc<[u32]> {
        let mut read = vec![false; degree];
        for t in places {
            taps.iter().for_each(|a| read[(t + degree - *a as usize) & (degree - 1)] = true);
        }
        (0..degree as u32).filter(|at| read[*at as usize]).collect()
    };
    // most tiles have outputs at the same places, and most polynomials weights
    let of_places = |places: &Vec<usize>| {
        let mut all: Vec<Arc<[u32]>> = Vec::with_capacity(b.inputs);
        for (input, own) in taps.iter().enumerate() {
            let alike =
                taps[..input].last().filter(|before| *before == own).and_then(|_| all.last().cloned());
            all.push(alike.unwrap_or_else(|| read_at(places, own)));
        }
        all
    };
    let mut known: HashMap<Vec<usize>, Vec<Arc<[u32]>>> = HashMap::new();
    let of_tile = |tile: usize| {
        let answers = &outputs[tile * b.outputs..][..b.outputs];
        let mut places: Vec<usize> = answers.iter().flatten().map(|o| o.coefficient()).collect();
        places.sort_unstable();
        places.dedup();
        known.entry(places).or_insert_with_key(of_places).clone()
    };
    (0..b.tiles).flat_map(of_tile).collect()
}

/// For each operand polynomial: the coefficients among those that are needed where operands stand.
fn held(degree: usize, layout: &dyn Windowed, needed: &[Arc<[u32]>]) -> Vec<Box<[Place]>> {
    // one more than its place, as blanks are 0
    let places: Vec<u64> = (1..=layout.input_len() as u64).collect();
    let mut poly = vec![0; degree];
    let of = needed.iter().cycle().take(layout.queries()).enumerate();
    of.map(|(query, needed)| {
        poly.fill(0);
        layout.pack_input(query, &places, &mut poly);
        let held = needed.iter().filter_map(|at| {
            let index = poly[*at as usize].checked_sub(1)?;
            Some(Place::new(*at as usize, index as usize))
        });
        held.collect()
    })
    .collect()
}
