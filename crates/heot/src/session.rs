//! A session: weights at the server, hints at the client; and what a run uses up.

use crate::context::{RunError, Side};
use crate::gate::{At, Kind, kind};
use crate::gates::{linear, local};
use crate::refusals;
use privet_family::{Secret, is_static};
use privet_he::torus::{ClientHint, HintId, Hinted, Mask, Masked, TorusLayer};
use privet_plan::Plan;
use privet_plan::ir::ValueId;
use privet_prg::Prg;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Bytes of what announces hints: the set's random name, the norm's bits, and the runs that packings are for.
pub const HEADER_BYTES: usize = 16 + 1 + 8;

/// Bits of weights' norms beyond their fraction at least: what a server names tells no more than whether one is larger.
pub(crate) const LEAST_SPARE: u32 = 3;

/// One side of a session with a plan.
pub struct Session {
    side: Sided,
}

enum Sided {
    Server {
        /// Values that depend on weights alone.
        statics: HashMap<ValueId, Arc<Secret>>,
        layers: BTreeMap<ValueId, Hinted>,
        header: Vec<u8>,
        hints: Vec<u8>,
    },
    Client {
        layers: BTreeMap<ValueId, (TorusLayer, ClientHint)>,
    },
}

/// What one run uses up beside transfers: no `Clone`, and no encoding.
pub struct Record {
    pub(crate) layers: Layers,
}

pub(crate) enum Layers {
    Server(BTreeMap<ValueId, Masked>),
    Client(BTreeMap<ValueId, Mask>),
}

/// Hints that are announced to a client.
pub struct Announced {
    layers: Vec<(ValueId, TorusLayer)>,
}

impl Announced {
    /// Reads an announcement of exactly [`HEADER_BYTES`] bytes, in so many threads.
    pub fn read(plan: &Plan, header: &[u8], threads: usize) -> Result<Announced, RunError> {
        let wrong =
            || RunError::Missing(format!("{HEADER_BYTES} bytes announce hints, {} came", header.len()));
        let (id, rest) = header.split_first_chunk::<16>().ok_or_else(wrong)?;
        let (spare, runs) = rest.split_first().ok_or_else(wrong)?;
        let runs: [u8; 8] = runs.try_into().map_err(|_| wrong())?;
        let runs = usize::try_from(u64::from_le_bytes(runs)).map_err(|_| wrong())?;
        let id = HintId::from_bytes(*id);
        let mut layers = Vec::new();
        for v in hinted(plan) {
            layers.push((v, layer(plan, v, u32::from(*spare), runs, id, threads)?));
        }
        Ok(Announced { layers })
    }

    /// Bytes of the hints.
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(|(_, layer)| layer.hint_bytes()).sum()
    }

    /// Reads the hints, of exactly [`Announced::bytes`] bytes: the client's side of the session.
    pub fn finish(self, bytes: &[u8]) -> Result<Session, RunError> {
        if bytes.len() != self.bytes() {
            let (due, came) = (self.bytes(), bytes.len());
            return Err(RunError::Missing(format!("hints of {due} bytes were announced, {came} came")));
        }
        let (mut layers, mut rest) = (BTreeMap::new(), bytes);
        for (v, layer) in self.layers {
            let (here, after) = rest.split_at(layer.hint_bytes());
            let hint = layer.read_hint(here).map_err(|e| RunError::Missing(e.to_string()))?;
            layers.insert(v, (layer, hint));
            rest = after;
        }
        Ok(Session { side: Sided::Client { layers } })
    }
}

/// Nodes with a hint.
fn hinted(plan: &Plan) -> impl Iterator<Item = ValueId> {
    (0..plan.nodes.len()).filter(move |v| linear::has_hint(&At { plan, id: *v }))
}

fn layer(
    plan: &Plan,
    v: ValueId,
    spare: u32,
    runs: usize,
    id: HintId,
    threads: usize,
) -> Result<TorusLayer, RunError> {
    let at = At { plan, id: v };
    let refused = |e: &dyn std::fmt::Display| RunError::Refused(format!("{}: {e}", at.node().layer));
    let norm_bits = at.operand(1).frac + spare;
    let (parameters, layout) = linear::layout(&at, norm_bits, runs).map_err(|e| refused(&e))?;
    TorusLayer::new(parameters, layout, id, v as u64, threads).map_err(|e| refused(&e))
}

impl Session {
    /// The server's side, with weights by name in the rings of their nodes, with packings for so many runs. Hints are made here,
    /// under a name and with hidings that are drawn now. `prg` is the server's own.
    pub fn serve(
        plan: &Plan,
        weights: &BTreeMap<String, Vec<u64>>,
        runs: usize,
        threads: usize,
        prg: &mut Prg,
    ) -> Result<Session, RunError> {
        if let Some(first) = refusals(plan).first() {
            return Err(RunError::Refused(first.to_string()));
        }
        let mut statics: HashMap<ValueId, Arc<Secret>> = HashMap::new();
        for (v, node) in plan.nodes.iter().enumerate().filter(|(v, _)| is_static(plan, *v)) {
            let value = match kind(&node.op) {
                Kind::Weight(name) => {
                    let missing = || RunError::Missing(format!("weight `{name}` was not given"));
                    let w = weights.get(name).filter(|w| w.len() == node.ty.len());
                    Arc::new(Secret::new(w.ok_or_else(missing)?.clone()))
                }
                Kind::Input(_) | Kind::Public | Kind::Gate(_) | Kind::Lacks(_) => {
                    let operands: Vec<_> = node.inputs.iter().map(|i| Arc::clone(&statics[i])).collect();
                    Arc::new(Secret::new(local::map(&At { plan, id: v }, Side::Server, &operands)))
                }
            };
            statics.insert(v, value);
        }
        let filters = |v: ValueId| &statics[&plan.nodes[v].inputs[1]];
        let spare = hinted(plan)
            .map(|v| {
                let at = At { plan, id: v };
                linear::norm_bits(&at, filters(v)).saturating_sub(at.operand(1).frac)
            })
            .fold(LEAST_SPARE, u32::max);
        let id = HintId::random();
        let mut header = id.to_bytes().to_vec();
        header.push(spare as u8);
        header.extend_from_slice(&(runs as u64).to_le_bytes());
        let (mut layers, mut hints) = (BTreeMap::new(), Vec::new());
        for v in hinted(plan) {
            let layer = layer(plan, v, spare, runs, id, threads)?;
            let w = Secret::new(linear::in_order(&At { plan, id: v }, filters(v)));
            let refused = |e| RunError::Refused(format!("{}: {e}", plan.nodes[v].layer));
            let (hinted, hint) = layer.hint(&w, prg).map_err(refused)?;
            layers.insert(v, hinted);
            hints.extend_from_slice(&hint);
        }
        Ok(Session { side: Sided::Server { statics, layers, header, hints } })
    }

    /// What a server sends every client: the announcement, then the hints. The client has nothing to send.
    pub fn hints(&self) -> Option<[&[u8]; 2]> {
        match &self.side {
            Sided::Server { header, hints, .. } => Some([header, hints]),
            Sided::Client { .. } => None,
        }
    }

    /// Which side it is.
    pub fn side(&self) -> Side {
        match &self.side {
            Sided::Server { .. } => Side::Server,
            Sided::Client { .. } => Side::Client,
        }
    }

    /// The client's masks for a run, and what the server needs to prepare for it; none at a server. `prg` is the client's own.
    pub fn mask(&self, prg: &mut Prg) -> Option<(Record, Vec<u8>)> {
        let Sided::Client { layers } = &self.side else { return None };
        let (mut masks, mut message) = (BTreeMap::new(), Vec::new());
        for (v, (_, hint)) in layers {
            let (mask, bytes) = hint.prepare(prg);
            masks.insert(*v, mask);
            message.extend_from_slice(&bytes);
        }
        Some((Record { layers: Layers::Client(masks) }, message))
    }

    /// Bytes of [`Session::mask`]'s message.
    pub fn mask_bytes(&self) -> usize {
        match &self.side {
            Sided::Server { layers, .. } => layers.values().map(|h| h.layer().prepare_bytes()).sum(),
            Sided::Client { layers } => layers.values().map(|(layer, _)| layer.prepare_bytes()).sum(),
        }
    }

    /// The server's part of a run, from the client's message of exactly [`Session::mask_bytes`] bytes.
    pub fn masked(&self, message: &[u8]) -> Result<Record, RunError> {
        let Sided::Server { layers, .. } = &self.side else {
            return Err(RunError::Missing("a client prepares for nobody".into()));
        };
        if message.len() != self.mask_bytes() {
            let (due, came) = (self.mask_bytes(), message.len());
            return Err(RunError::Missing(format!("masks of {due} bytes were due, {came} came")));
        }
        let (mut prepared, mut rest) = (BTreeMap::new(), message);
        for (v, hinted) in layers {
            let (here, after) = rest.split_at(hinted.layer().prepare_bytes());
            let masked = hinted.prepare(here).map_err(|e| RunError::Missing(e.to_string()))?;
            prepared.insert(*v, masked);
            rest = after;
        }
        Ok(Record { layers: Layers::Server(prepared) })
    }

    /// This side's share of a value that depends on weights alone: all of it, or nothing.
    pub(crate) fn static_share(&self, plan: &Plan, v: ValueId) -> Arc<Secret> {
        match &self.side {
            Sided::Server { statics, .. } => statics.get(&v).cloned().unwrap_or_default(),
            Sided::Client { .. } => Arc::new(Secret::new(vec![0; plan.nodes[v].ty.len()])),
        }
    }

    /// What a record has for a layer.
    pub(crate) fn prepared<'a>(&'a self, record: &mut Record, v: ValueId) -> Option<linear::Prepared<'a>> {
        match (&self.side, &mut record.layers) {
            (Sided::Server { layers, .. }, Layers::Server(masked)) => {
                Some(linear::Prepared::Server(layers.get(&v)?, masked.remove(&v)?))
            }
            (Sided::Client { layers }, Layers::Client(masks)) => {
                Some(linear::Prepared::Client(&layers.get(&v)?.0, masks.remove(&v)?))
            }
            (Sided::Server { .. }, Layers::Client(_)) | (Sided::Client { .. }, Layers::Server(_)) => None,
        }
    }

    /// Bytes that the client sends for a layer in a run.
    pub fn run_bytes(&self, v: ValueId) -> Option<usize> {
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

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Record(..)")
    }
}
