//! A session: weights at the server, hints at the client; and the masks of its runs.

use crate::context::{RunError, Side};
use crate::gate::{At, Kind, kind};
use crate::gates::{linear, local};
use crate::material::Keep;
use crate::mutation;
use crate::refusals;
use privet_family::keys::KeySource;
use privet_family::{Secret, is_static};
use privet_he::torus::{ClientHint, HintId, Hinted, TorusLayer};
use privet_net::{Channel, Step};
use privet_plan::Plan;
use privet_plan::ir::ValueId;
use privet_prg::Seed;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Bytes of what announces hints: the set's random name, the norm's bits, and the runs that packings are for.
const HEADER_BYTES: usize = 16 + 1 + 8;

/// Bits of weights' norms beyond their fraction at least: what a server names tells no more than whether one is larger.
pub(crate) const LEAST_SPARE: u32 = 3;

/// Outputs of linear layers, of all runs together, that one set of hints serves. SECURITY: each is wrong with a probability of at
/// most 2^-64 (docs/he.md, 6.2), and a wrong one tells a bit about the weights; so all together do with 2^-30.
const LIFE: u64 = 1 << 34;

/// Runs that one set of hints serves; then a new session has new ones.
pub fn most_runs(plan: &Plan) -> u64 {
    let outputs: u64 = hinted(plan).map(|v| plan.nodes[v].ty.len() as u64).sum();
    LIFE.checked_div(outputs).unwrap_or(u64::MAX)
}

/// One side of a session with a plan.
pub struct Session {
    side: Sided,
    name: [u8; 32],
}

enum Sided {
    Server {
        /// Values that depend on weights alone.
        statics: HashMap<ValueId, Arc<Secret>>,
        layers: BTreeMap<ValueId, Hinted>,
    },
    Client {
        layers: BTreeMap<ValueId, (TorusLayer, ClientHint)>,
    },
}

/// What announces a set of hints.
struct Header {
    id: HintId,
    spare: u32,
    runs: usize,
}

impl Header {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.id.to_bytes().to_vec();
        bytes.push(self.spare as u8);
        bytes.extend_from_slice(&(self.runs as u64).to_le_bytes());
        bytes
    }

    /// Of exactly [`HEADER_BYTES`] bytes.
    fn decode(bytes: &[u8]) -> Option<Header> {
        let (id, rest) = bytes.split_first_chunk()?;
        let (spare, runs) = rest.split_first()?;
        let runs = u64::from_le_bytes(runs.try_into().ok()?);
        let (id, spare) = (HintId::from_bytes(*id), u32::from(*spare));
        Some(Header { id, spare, runs: usize::try_from(runs).ok()? })
    }

    fn layer(&self, plan: &Plan, v: ValueId, threads: usize) -> Result<TorusLayer, RunError> {
        let at = At { plan, id: v };
        let refused = |e: &dyn std::fmt::Display| RunError::Refused(format!("{}: {e}", at.node().layer));
        let norm_bits = at.operand(1).frac + self.spare;
        let (parameters, layout, _) = linear::layout(&at, norm_bits, self.runs).map_err(|e| refused(&e))?;
        TorusLayer::new(parameters, layout, self.id, v as u64, threads).map_err(|e| refused(&e))
    }
}

/// The step of hints, and of masks, at a layer.
fn step(plan: &Plan, v: ValueId, what: &str) -> Step {
    Step::new(2 + v as u32, format!("{} / {what}", plan.nodes[v].layer))
}

/// The step before that of the first layer.
fn announced() -> Step {
    Step::new(1, "announced hints")
}

/// What both sides name a set of hints by.
fn named(header: &[u8]) -> blake3::Hasher {
    let mut hash = blake3::Hasher::new_derive_key("privet heot: a set of hints v1");
    hash.update(header);
    hash
}

/// What is wrong with a message of the peer.
fn malformed(plan: &Plan, v: ValueId, channel: &mut dyn Channel, e: impl ToString) -> RunError {
    let (step, peer) = (plan.nodes[v].layer.clone(), channel.peer().to_owned());
    RunError::Form { step, peer, what: e.to_string() }
}

/// Nodes with a hint.
fn hinted(plan: &Plan) -> impl Iterator<Item = ValueId> {
    (0..plan.nodes.len()).filter(move |v| linear::has_hint(&At { plan, id: *v }))
}

/// All values that depend on weights alone, from weights by name in the rings of their nodes.
fn statics(
    plan: &Plan,
    weights: &BTreeMap<String, Vec<u64>>,
) -> Result<HashMap<ValueId, Arc<Secret>>, RunError> {
    let mut statics: HashMap<ValueId, Arc<Secret>> = HashMap::new();
    for (v, node) in plan.nodes.iter().enumerate().filter(|(v, _)| is_static(plan, *v)) {
        let value = match kind(&node.op) {
            Kind::Weight { name, .. } => {
                let missing = || RunError::Missing(format!("weight `{name}` was not given"));
                let w = weights.get(name).filter(|w| w.len() == node.ty.len());
                Arc::new(Secret::new(w.ok_or_else(missing)?.clone()))
            }
            Kind::Input { .. } | Kind::Public | Kind::Gate(_) | Kind::Lacks(_) => {
                let operands: Vec<_> = node.inputs.iter().map(|i| Arc::clone(&statics[i])).collect();
                Arc::new(Secret::new(local::map(&At { plan, id: v }, Side::Server, &operands)))
            }
        };
        statics.insert(v, value);
    }
    Ok(statics)
}

impl Session {
    /// The server's side, with weights by name in the rings of their nodes, with packings for so many runs. Hints are made here,
    /// under a name and with hidings that are drawn now, and the client gets each as it is made.
    pub fn serve(
        plan: &Plan,
        weights: &BTreeMap<String, Vec<u64>>,
        runs: usize,
        threads: usize,
        channel: &mut dyn Channel,
    ) -> Result<Session, RunError> {
        if let Some(first) = refusals(plan).first() {
            return Err(RunError::Refused(first.to_string()));
        }
        let statics = statics(plan, weights)?;
        let filters = |v: ValueId| &statics[&plan.nodes[v].inputs[1]];
        let spare = hinted(plan)
            .map(|v| {
                let at = At { plan, id: v };
                linear::norm_bits(&at, filters(v)).saturating_sub(at.operand(1).frac)
            })
            .fold(LEAST_SPARE, u32::max);
        let header = Header { id: HintId::random(), spare, runs };
        let announcement = header.encode();
        let mut name = named(&announcement);
        channel.send(&announced(), announcement)?;
        let mut prg = Seed::random().stream();
        let mut layers = BTreeMap::new();
        for v in hinted(plan) {
            let layer = header.layer(plan, v, threads)?;
            let w = Secret::new(linear::in_order(&At { plan, id: v }, filters(v)));
            let refused = |e| RunError::Refused(format!("{}: {e}", plan.nodes[v].layer));
            let (hinted, hint) = layer.hint(&w, &mut prg).map_err(refused)?;
            name.update(&hint);
            channel.send(&step(plan, v, "hint"), hint)?;
            layers.insert(v, hinted);
        }
        Ok(Session { side: Sided::Server { statics, layers }, name: *name.finalize().as_bytes() })
    }

    /// The client's side: it reads the server's hints.
    pub fn join(plan: &Plan, threads: usize, channel: &mut dyn Channel) -> Result<Session, RunError> {
        let announcement = channel.recv(&announced(), HEADER_BYTES)?;
        let mut name = named(&announcement);
        let header = Header::decode(&announcement)
            .ok_or_else(|| RunError::Missing("the server announced hints that nobody can read".into()))?;
        let mut layers = BTreeMap::new();
        for v in hinted(plan) {
            let layer = header.layer(plan, v, threads)?;
            let bytes = channel.recv(&step(plan, v, "hint"), layer.hint_bytes())?;
            name.update(&bytes);
            let hint = layer.read_hint(&bytes).map_err(|e| malformed(plan, v, channel, e))?;
            layers.insert(v, (layer, hint));
        }
        Ok(Session { side: Sided::Client { layers }, name: *name.finalize().as_bytes() })
    }

    /// Which side it is.
    pub fn side(&self) -> Side {
        match &self.side {
            Sided::Server { .. } => Side::Server,
            Sided::Client { .. } => Side::Client,
        }
    }

    /// What the hints are, alike at both sides: parties compare it, and it tells nothing that hints do not.
    pub fn name(&self) -> &[u8; 32] {
        &self.name
    }

    /// Makes the masks of a run with the other side, before its input is known. The client draws them here; what each side has
    /// of them goes to `keep`, layer by layer, and is read once, by a run.
    pub fn make_masks(&self, plan: &Plan, channel: &mut dyn Channel, keep: Keep<'_>) -> Result<(), RunError> {
        let seed = if mutation::active("masks-repeat") { Seed::from_bytes([0; 16]) } else { Seed::random() };
        let mut prg = seed.stream();
        match &self.side {
            Sided::Client { layers } => {
                for (v, (_, hint)) in layers {
                    let (mask, message) = hint.prepare(&mut prg);
                    channel.send(&step(plan, *v, "mask"), message)?;
                    keep(&mask.keep())?;
                }
            }
            Sided::Server { layers, .. } => {
                for (v, hinted) in layers {
                    let message = channel.recv(&step(plan, *v, "mask"), hinted.layer().prepare_bytes())?;
                    let masked = hinted.prepare(&message).map_err(|e| malformed(plan, *v, channel, e))?;
                    keep(&masked.keep())?;
                }
            }
        }
        Ok(())
    }

    /// This side's share of a value that depends on weights alone: all of it, or nothing.
    pub(crate) fn static_share(&self, plan: &Plan, v: ValueId) -> Arc<Secret> {
        match &self.side {
            Sided::Server { statics, .. } => statics.get(&v).cloned().unwrap_or_default(),
            Sided::Client { .. } => Arc::new(Secret::new(vec![0; plan.nodes[v].ty.len()])),
        }
    }

    /// What a run's masks have for a node; nothing where it has no hint. Nodes come in order.
    pub(crate) fn prepared<'a>(
        &'a self,
        masks: &mut dyn KeySource,
        v: ValueId,
    ) -> Result<Option<linear::Prepared<'a>>, RunError> {
        let unread = |e: privet_he::WireError| RunError::Missing(format!("a mask cannot be read: {e}"));
        Ok(match &self.side {
            Sided::Server { layers, .. } => match layers.get(&v) {
                None => None,
                Some(hinted) => {
                    let masked = hinted.kept(masks.take(hinted.layer().masked_bytes())?).map_err(unread)?;
                    Some(linear::Prepared::Server(hinted, masked))
                }
            },
            Sided::Client { layers } => match layers.get(&v) {
                None => None,
                Some((layer, hint)) => {
                    let mask = hint.kept(masks.take(layer.mask_bytes())?).map_err(unread)?;
                    Some(linear::Prepared::Client(layer, mask))
                }
            },
        })
    }

    /// Bytes that the client sends for a layer in a run.
    #[cfg(test)]
    pub(crate) fn run_bytes(&self, v: ValueId) -> Option<usize> {
        match &self.side {
            Sided::Server { layers, .. } => layers.get(&v).map(|hinted| hinted.layer().run_bytes()),
            Sided::Client { layers } => layers.get(&v).map(|(layer, _)| layer.run_bytes()),
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({:?})", self.side())
    }
}
