//! Hints at a server's weights: each layer's is made once, for any number of sessions and clients, and a bounded number of runs.

use crate::context::RunError;
use crate::gate::At;
use crate::gates::linear;
use crate::mutation;
use crate::packing::packing;
use crate::spool::{Resting, Spool};
use crate::weights::Weights;
use privet_family::Secret;
use privet_he::torus::{HintId, Hinted, Link, PackingAim, TorusLayer};
use privet_plan::Plan;
use privet_plan::ir::ValueId;
use privet_prg::Seed;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Bytes of what announces hints: the set's random name, the norm's bits, and what packings are for: the link and the runs.
pub(crate) const HEADER_BYTES: usize = 16 + 1 + 1 + 8;

/// Bits of weights' norms beyond their fraction at least: what a server names tells no more than whether one is larger.
pub(crate) const LEAST_SPARE: u32 = 3;

/// Outputs of linear layers, of all runs of all clients together, that one set of hints serves. SECURITY: each is wrong with a probability of at
/// most 2^-64 (docs/he.md, 6.2), and a wrong one tells a bit about the weights; so all together do with 2^-30.
const LIFE: u64 = 1 << 34;

/// Runs that one set of hints serves, all clients together; then a new session has new ones.
pub fn most_runs(plan: &Plan) -> u64 {
    let outputs: u64 = hinted(plan).map(|v| plan.nodes[v].ty.len() as u64).sum();
    LIFE.checked_div(outputs).unwrap_or(u64::MAX)
}

/// Runs that hints serve still.
pub(crate) struct Life(AtomicU64);

impl Life {
    /// Of hints that served none.
    pub fn of(runs: u64) -> Life {
        Life(AtomicU64::new(runs))
    }

    pub fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// One run less; false where none is left. Whoever asks at the same time, no run is counted twice.
    pub fn take(&self) -> bool {
        let less = |left: u64| match mutation::active("runs-uncounted") {
            true => Some(left),
            false => left.checked_sub(1),
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// What announces a set of hints.
pub(crate) struct Header {
    id: HintId,
    spare: u32,
    aim: PackingAim,
    /// One of each kind of layer: others share what follows from its packing.
    kinds: Mutex<Vec<TorusLayer>>,
}

impl Header {
    fn new(id: HintId, spare: u32, aim: PackingAim) -> Header {
        Header { id, spare, aim, kinds: Mutex::default() }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.id.to_bytes().to_vec();
        bytes.push(self.spare as u8);
        bytes.push(self.aim.link as u8);
        bytes.extend_from_slice(&(self.aim.runs as u64).to_le_bytes());
        bytes
    }

    /// Of exactly [`HEADER_BYTES`] bytes.
    pub fn decode(bytes: &[u8]) -> Option<Header> {
        let (id, rest) = bytes.split_first_chunk()?;
        let (&[spare, link], runs) = rest.split_first_chunk()?;
        let runs = usize::try_from(u64::from_le_bytes(runs.try_into().ok()?)).ok()?;
        let link = Link::ALL.into_iter().find(|known| *known as u8 == link)?;
        Some(Header::new(HintId::from_bytes(*id), u32::from(spare), PackingAim { runs, link }))
    }

    pub fn layer(&self, plan: &Plan, v: ValueId, threads: usize) -> Result<TorusLayer, RunError> {
        let at = At { plan, id: v };
        let refused = |e: &dyn std::fmt::Display| RunError::Refused(format!("{}: {e}", at.node().layer));
        let norm_bits = at.operand(1).frac + self.spare;
        let (parameters, layout, _) = packing(&at, norm_bits, self.aim).map_err(|e| refused(&e))?;
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kind) = kinds.iter().find(|kind| kind.has(&parameters, &layout)) {
            return Ok(kind.alike(self.id, v as u64));
        }
        let new = TorusLayer::new(parameters, layout, self.id, v as u64, threads).map_err(|e| refused(&e))?;
        kinds.push(new.clone());
        Ok(new)
    }
}

/// What both sides name a set of hints by: this, and then a digest of each layer's.
pub(crate) fn named(header: &[u8]) -> blake3::Hasher {
    let mut hash = blake3::Hasher::new_derive_key("privet heot: a set of hints v5");
    hash.update(header);
    hash
}

/// Nodes with a hint.
pub(crate) fn hinted(plan: &Plan) -> impl Iterator<Item = ValueId> {
    (0..plan.nodes.len()).filter(move |v| linear::has_hint(&At { plan, id: *v }))
}

/// A layer's hint.
pub(crate) struct Made {
    pub hinted: Hinted,
    /// What clients are sent.
    message: Resting,
    bytes: usize,
    digest: [u8; 32],
}

/// A layer's place in a set.
#[derive(Default)]
struct Layer {
    made: OnceLock<Made>,
    /// Held by whoever makes it.
    making: Mutex<()>,
}

/// A set of hints, as the server holds it. It serves any number of sessions, whoever the client is, and [`most_runs`] runs of all of
/// them together (docs/heot.md, section 4).
pub struct Hints {
    weights: Arc<Weights>,
    header: Header,
    /// Each made once, when a session first needs it: others that need it at the same time wait.
    layers: BTreeMap<ValueId, Layer>,
    spool: Spool,
    name: OnceLock<[u8; 32]>,
    life: Life,
    threads: usize,
}

impl Hints {
    /// Under a name that is drawn now, with packings for this. Each layer's hint is made when a session first needs
    /// it, with hidings that are drawn then and never again, and rests in `spool`.
    pub fn new(plan: &Plan, weights: Arc<Weights>, aim: PackingAim, threads: usize, spool: Spool) -> Hints {
        let header = Header::new(HintId::random(), weights.spare(), aim);
        let layers = hinted(plan).map(|v| (v, Layer::default())).collect();
        let (name, life) = (OnceLock::new(), Life::of(most_runs(plan)));
        Hints { weights, header, layers, spool, name, life, threads }
    }

    /// The hint of a node that has one.
    pub(crate) fn layer(&self, plan: &Plan, v: ValueId) -> Result<&Made, RunError> {
        let layer = self.layers.get(&v);
        let layer = layer.ok_or_else(|| RunError::Missing("a layer of another plan".into()))?;
        let _making = layer.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = layer.made.get() {
            return Ok(made);
        }
        let made = self.make(plan, v)?;
        Ok(layer.made.get_or_init(|| made))
    }

    fn make(&self, plan: &Plan, v: ValueId) -> Result<Made, RunError> {
        let layer = self.header.layer(plan, v, self.threads)?;
        let missing = || RunError::Missing("a layer of another plan".into());
        let made = layer.hint(self.weights.filters(v).ok_or_else(missing)?, &mut Seed::random().stream());
        let named = |e| RunError::Refused(format!("{}: {e}", plan.nodes[v].layer));
        let (hinted, message) = made.map_err(named)?;
        let (bytes, digest) = (message.len(), *blake3::hash(&message).as_bytes());
        let message = self.spool.put(message)?;
        Ok(Made { hinted, message, bytes, digest })
    }

    /// What every client is sent for a layer.
    pub(crate) fn message(&self, made: &Made) -> Result<Vec<u8>, RunError> {
        Ok(self.spool.get(&made.message)?)
    }

    /// Those that are made, in order.
    fn made(&self) -> impl Iterator<Item = &Made> {
        self.layers.values().filter_map(|layer| layer.made.get())
    }

    /// Runs that it serves still, of all clients together.
    pub fn runs_left(&self) -> u64 {
        self.life.left()
    }

    /// Bytes that a client is sent: of all layers whose hints are made.
    pub fn bytes(&self) -> u64 {
        (HEADER_BYTES + self.made().map(|made| made.bytes).sum::<usize>()) as u64
    }

    /// What packings are for.
    pub fn packed_for(&self) -> PackingAim {
        self.header.aim
    }

    pub(crate) fn announcement(&self) -> Vec<u8> {
        self.header.encode()
    }

    /// The hint of a node, if it has one that is made.
    pub(crate) fn hinted(&self, v: ValueId) -> Option<&Hinted> {
        self.layers.get(&v)?.made.get().map(|made| &made.hinted)
    }

    /// Those of all layers, in order: none is missing once a session is open.
    pub(crate) fn layers(&self) -> impl Iterator<Item = (ValueId, &Hinted)> {
        self.layers.keys().filter_map(|v| Some((*v, self.hinted(*v)?)))
    }

    pub(crate) fn value(&self, v: ValueId) -> Option<&Arc<Secret>> {
        self.weights.value(v)
    }

    /// A digest of all, once they are made.
    pub(crate) fn name(&self) -> &[u8; 32] {
        self.name.get_or_init(|| {
            let mut name = named(&self.header.encode());
            for made in self.made() {
                name.update(&made.digest);
            }
            *name.finalize().as_bytes()
        })
    }

    pub(crate) fn life(&self) -> &Life {
        &self.life
    }
}

impl std::fmt::Debug for Hints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hints(for {:?})", self.header.aim)
    }
}
