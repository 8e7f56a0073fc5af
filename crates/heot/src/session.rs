//! A session: hints of a server, which others may share, hints at its client; and the masks of its runs.

use crate::context::{RunError, Side};
use crate::gates::linear;
use crate::hints::{HEADER_BYTES, Header, Hints, Life, hinted, most_runs, named};
use crate::material::Keep;
use crate::mutation;
use crate::spool::{Resting, Spool};
use privet_family::Secret;
use privet_family::keys::KeySource;
use privet_he::torus::{ClientHint, Hinted, Keys, TorusLayer, Zeros};
use privet_net::{Channel, Step};
use privet_plan::Plan;
use privet_plan::ir::ValueId;
use privet_prg::Seed;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One side of a session with a plan.
pub struct Session {
    side: Sided,
    name: [u8; 32],
}

enum Sided {
    Server {
        hints: Arc<Hints>,
    },
    /// Hints rest until masks of further runs are made.
    Client {
        layers: BTreeMap<ValueId, (TorusLayer, Resting)>,
        spool: Spool,
        life: Life,
    },
}

/// The step of hints, and of masks, at a layer.
fn step(plan: &Plan, v: ValueId, what: &str) -> Step {
    Step::new(2 + v as u32, format!("{} / {what}", plan.nodes[v].layer))
}

/// The step before that of the first layer.
fn announced() -> Step {
    Step::new(1, "announced hints")
}

/// What is wrong with a message of the peer.
fn malformed(plan: &Plan, v: ValueId, channel: &mut dyn Channel, e: impl ToString) -> RunError {
    let (step, peer) = (plan.nodes[v].layer.clone(), channel.peer().to_owned());
    RunError::Form { step, peer, what: e.to_string() }
}

/// The client's keys and coins for the masks of a run: drawn for it, and gone when they are made.
fn keys() -> Keys {
    let seed = if mutation::active("masks-repeat") { Seed::from_bytes([0; 16]) } else { Seed::random() };
    Keys::new(seed.stream())
}

/// The client's masks of a layer, run by run.
fn draw_masks(
    plan: &Plan,
    v: ValueId,
    hint: &ClientHint,
    keys: &mut [Keys],
    masks: &mut [Keep<'_>],
    channel: &mut dyn Channel,
) -> Result<(), RunError> {
    for (keep, keys) in masks.iter_mut().zip(keys) {
        let (mask, message) = hint.prepare(keys);
        channel.send(&step(plan, v, "mask"), message)?;
        keep(&mask.keep())?;
    }
    Ok(())
}

/// What the server makes of a layer's masks, run by run, with what came for each run before.
fn take_masks(
    plan: &Plan,
    v: ValueId,
    hinted: &Hinted,
    zeros: &mut [Zeros],
    masks: &mut [Keep<'_>],
    channel: &mut dyn Channel,
) -> Result<(), RunError> {
    if masks.is_empty() {
        return Ok(());
    }
    // of all runs: it is made once
    let multiplier = hinted.multiplier();
    for (keep, zeros) in masks.iter_mut().zip(zeros) {
        let message = channel.recv(&step(plan, v, "mask"), zeros.prepare_bytes(&hinted.layer()))?;
        let masked = multiplier.prepare(zeros, &message).map_err(|e| malformed(plan, v, channel, e))?;
        keep(&masked.keep())?;
    }
    Ok(())
}

impl Session {
    /// The server's side: the client is sent the hints, and masks are made for as many runs as there are places to keep them. While a
    /// layer's hint is made, the client draws the masks of the layer before; so nothing of a session is used before both sides have
    /// compared its name.
    pub fn serve(
        plan: &Plan,
        hints: Arc<Hints>,
        masks: &mut [Keep<'_>],
        channel: &mut dyn Channel,
    ) -> Result<Session, RunError> {
        channel.send(&announced(), hints.announcement())?;
        let mut zeros: Vec<Zeros> = masks.iter().map(|_| Zeros::default()).collect();
        let mut before = None;
        for v in hinted(plan) {
            let made = hints.layer(plan, v)?;
            channel.send(&step(plan, v, "hint"), hints.message(made)?)?;
            if let Some((v, hinted)) = before.replace((v, &made.hinted)) {
                take_masks(plan, v, hinted, &mut zeros, masks, channel)?;
            }
        }
        if let Some((v, hinted)) = before {
            take_masks(plan, v, hinted, &mut zeros, masks, channel)?;
        }
        let name = *hints.name();
        Ok(Session { side: Sided::Server { hints }, name })
    }

    /// The client's side: it reads the server's hints, which rest in `spool`, and draws masks for as many runs as there are places to keep
    /// them.
    pub fn join(
        plan: &Plan,
        threads: usize,
        spool: Spool,
        masks: &mut [Keep<'_>],
        channel: &mut dyn Channel,
    ) -> Result<Session, RunError> {
        let announcement = channel.recv(&announced(), HEADER_BYTES)?;
        let mut name = named(&announcement);
        let header = Header::decode(&announcement)
            .ok_or_else(|| RunError::Missing("the server announced hints that nobody can read".into()))?;
        let mut keys: Vec<Keys> = masks.iter().map(|_| keys()).collect();
        let mut layers = BTreeMap::new();
        for v in hinted(plan) {
            let layer = header.layer(plan, v, threads)?;
            let bytes = channel.recv(&step(plan, v, "hint"), layer.hint_bytes())?;
            name.update(blake3::hash(&bytes).as_bytes());
            let hint = layer.read_hint(&bytes).map_err(|e| malformed(plan, v, channel, e))?;
            draw_masks(plan, v, &hint, &mut keys, masks, channel)?;
            layers.insert(v, (layer, spool.put(bytes)?));
        }
        let life = Life::of(most_runs(plan));
        Ok(Session { side: Sided::Client { layers, spool, life }, name: *name.finalize().as_bytes() })
    }

    /// Which side it is.
    pub fn side(&self) -> Side {
        match &self.side {
            Sided::Server { .. } => Side::Server,
            Sided::Client { .. } => Side::Client,
        }
    }

    fn life(&self) -> &Life {
        match &self.side {
            Sided::Server { hints } => hints.life(),
            Sided::Client { life, .. } => life,
        }
    }

    /// Runs that the hints serve still: at the server of all its clients together, at a client of this session alone.
    pub fn runs_left(&self) -> u64 {
        self.life().left()
    }

    /// One run less, whether or not it ends well; false where the hints serve no more.
    #[must_use = "a run that is not counted must not take place"]
    pub fn take_run(&self) -> bool {
        self.life().take()
    }

    /// What the hints are, alike at both sides: parties compare it, and it tells nothing that hints do not. Sessions may have the same.
    pub fn name(&self) -> &[u8; 32] {
        &self.name
    }

    /// Makes the masks of further runs with the other side, before their inputs are known. The client draws them here; what each side has
    /// of a run's goes to its place, layer by layer, and is read once, by that run. Several together read and transform hints once.
    pub fn make_masks(
        &self,
        plan: &Plan,
        channel: &mut dyn Channel,
        masks: &mut [Keep<'_>],
    ) -> Result<(), RunError> {
        match &self.side {
            Sided::Client { layers, spool, .. } => {
                let mut keys: Vec<Keys> = masks.iter().map(|_| keys()).collect();
                for (v, (layer, resting)) in layers {
                    let hint = layer.read_hint(&spool.get(resting)?);
                    let hint = hint.map_err(|e| malformed(plan, *v, channel, e))?;
                    draw_masks(plan, *v, &hint, &mut keys, masks, channel)?;
                }
            }
            Sided::Server { hints } => {
                let mut zeros: Vec<Zeros> = masks.iter().map(|_| Zeros::default()).collect();
                for (v, hinted) in hints.layers() {
                    take_masks(plan, v, hinted, &mut zeros, masks, channel)?;
                }
            }
        }
        Ok(())
    }

    /// This side's share of a value that depends on weights alone: all of it, or nothing.
    pub(crate) fn static_share(&self, plan: &Plan, v: ValueId) -> Arc<Secret> {
        match &self.side {
            Sided::Server { hints } => hints.value(v).cloned().unwrap_or_default(),
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
            Sided::Server { hints } => match hints.hinted(v) {
                None => None,
                Some(hinted) => {
                    let masked = hinted.kept(masks.take(hinted.layer().masked_bytes())?).map_err(unread)?;
                    Some(linear::Prepared::Server(hinted, masked))
                }
            },
            Sided::Client { layers, .. } => match layers.get(&v) {
                None => None,
                Some((layer, _)) => {
                    let mask = layer.kept(masks.take(layer.mask_bytes())?).map_err(unread)?;
                    Some(linear::Prepared::Client(layer, mask))
                }
            },
        })
    }

    /// Bytes that the client sends for a layer in a run.
    #[cfg(test)]
    pub(crate) fn run_bytes(&self, v: ValueId) -> Option<usize> {
        match &self.side {
            Sided::Server { hints } => hints.hinted(v).map(|hinted| hinted.layer().run_bytes()),
            Sided::Client { layers, .. } => layers.get(&v).map(|(layer, _)| layer.run_bytes()),
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({:?})", self.side())
    }
}
