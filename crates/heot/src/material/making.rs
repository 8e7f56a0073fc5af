//! Records of material: what a plan needs, and its making with the peer.

use super::{Correlation, Maker, Need, make};
use crate::context::{RunError, Side};
use crate::encryption::Encryption;
use crate::gate::{self, At, kind};
use crate::mutation;
use privet_family::is_static;
use privet_family::keys::KeyError;
use privet_he::torus::Link;
use privet_net::{Channel, Step};
use privet_ot::params::{B11, B12};
use privet_ot::{Pair, Source, Width};
use privet_plan::Plan;
use privet_plan::ir::ValueId;
use privet_prg::{Prg, Seed};

/// Transfers of both directions above which Ferret's fixed messages are less than what SoftSpoken sends. AGREEMENT.
const MANY: usize = 1 << 18;

/// Transfers that are asked for at once beyond what is due: a message then serves many chunks. AGREEMENT.
const AHEAD: usize = 1 << 20;

/// Transfers above which distant sides take Ferret's next larger set: of each it sends half as many bits, for a twentieth more work,
/// and begins with twice as many bytes. AGREEMENT.
const VERY_MANY: usize = 1 << 24;

/// How so many transfers are made over such a link: alike at both sides.
pub(crate) fn source(transfers: usize, link: Link) -> Source {
    match link {
        Link::Distant if transfers > VERY_MANY => Source::Ferret(B12),
        Link::Near | Link::Distant if transfers > MANY => Source::Ferret(B11),
        Link::Near | Link::Distant => Source::SoftSpoken(Width::Four),
    }
}

/// What a run needs, in the order in which it is read.
pub(crate) fn needs(plan: &Plan) -> Vec<Need> {
    (0..plan.nodes.len()).flat_map(|v| needs_of(plan, v)).collect()
}

/// The same of one node.
pub(crate) fn needs_of(plan: &Plan, v: ValueId) -> Vec<Need> {
    match kind(&plan.nodes[v].op) {
        gate::Kind::Gate(gate) if !is_static(plan, v) && !plan.nodes[v].ty.is_empty() => {
            gate.uses(&At { plan, id: v }).needs
        }
        gate::Kind::Gate(_)
        | gate::Kind::Input { .. }
        | gate::Kind::Weight { .. }
        | gate::Kind::Public
        | gate::Kind::Lacks(_) => Vec::new(),
    }
}

/// Transfers of needs: in which the server has both strings, and in which the client has.
pub(crate) fn transfers(needs: &[Need]) -> [usize; 2] {
    let all = needs.iter().map(Need::transfers);
    all.fold([0; 2], |sum, of| [sum[0] + of[0], sum[1] + of[1]])
}

/// Where what is prepared is kept, frame by frame.
pub type Keep<'a> = &'a mut (dyn FnMut(&[u8]) -> Result<(), KeyError> + Send);

/// Makes the material of some runs of a plan together with the peer, one after the other. All randomness is drawn here, and gone when
/// it is dropped: what a run's transfers follow from serves the other runs as well, and each transfer is used once.
pub struct MaterialMaker {
    needs: Vec<Need>,
    side: Side,
    pair: Pair,
    /// Transfers of all runs that are not made yet.
    left: [usize; 2],
    /// Public coins and keys of encrypted products, of all runs.
    encryption: Encryption,
}

/// What a record's making is called in errors.
fn step() -> Step {
    Step::new(1, "transfers")
}

impl MaterialMaker {
    /// For so many runs. Both sides name the same number of runs and the same link. Encryption computes with so many threads.
    ///
    /// # Errors
    /// The peer's messages, or the way to it.
    pub fn start(
        plan: &Plan,
        (side, link): (Side, Link),
        threads: usize,
        runs: usize,
        channel: &mut dyn Channel,
    ) -> Result<MaterialMaker, RunError> {
        let needs = needs(plan);
        let left = transfers(&needs).map(|each| each.saturating_mul(runs));
        let source = source(left[0].saturating_add(left[1]), link);
        let pair = Pair::start(channel, &step(), source, &Seed::random())?;
        Ok(MaterialMaker { needs, side, pair, left, encryption: Encryption::new(threads) })
    }

    /// The next run's material: this side's own goes to `keep`, frame by frame, and is the record that one run reads.
    ///
    /// # Errors
    /// The peer's messages, the way to it, what `keep` says, or a run more than it was started for.
    pub fn run(&mut self, channel: &mut dyn Channel, keep: Keep<'_>) -> Result<(), RunError> {
        let MaterialMaker { needs, side, pair, left, encryption } = self;
        let (side, mut prg) = (*side, coins());
        let of_run = transfers(needs);
        if left.iter().zip(of_run).any(|(left, due)| *left < due) {
            return Err(RunError::Missing("material of more runs than were begun".into()));
        }
        let mine = |[server, client]: [usize; 2]| match side {
            Side::Server => [server, client],
            Side::Client => [client, server],
        };
        for need in needs.iter() {
            for (first, n) in need.chunks() {
                let due = need.of.transfers().map(|each| each * n);
                let [send, receive] = mine(due);
                if pair.sender.available() < send || pair.receiver.available() < receive {
                    let [send, receive] = mine([0, 1].map(|i| left[i].min(due[i] + AHEAD)));
                    pair.prepare(channel, &step(), send, receive)?;
                }
                *left = [0, 1].map(|i| left[i] - due[i]);
                let (prg, encryption) = (&mut prg, &mut *encryption);
                let mut maker = Maker { side, pair, channel: &mut *channel, step: 1, prg, encryption };
                keep(&make(&need.of, &mut maker, first, n)?.bytes())?;
            }
        }
        Ok(())
    }
}

/// A side's own coins for what it draws beside transfers.
fn coins() -> Prg {
    let seed = if mutation::active("material-repeats") { Seed::from_bytes([0; 16]) } else { Seed::random() };
    seed.stream()
}
