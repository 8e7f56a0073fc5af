//! The targets, one file a crate or concern.

mod config;
mod control;
mod he;
mod net;
mod ot;
mod plan;
mod sharing;
mod store;
mod tensors;

use crate::Target;

/// All targets.
pub const TARGETS: &[Target] = &[
    net::HEADER,
    net::FRAMES,
    net::MESSAGES,
    net::HELLO,
    net::SETTINGS,
    net::CERTIFICATE,
    plan::GRAPH,
    plan::PLAN,
    plan::PROGRAM,
    store::RECORD,
    store::DAMAGE,
    store::SESSION,
    store::CHECKPOINT,
    config::DEPLOYMENT,
    config::NODE,
    config::CARD,
    control::CONTROL,
    control::REPORT,
    he::ENCRYPTED,
    he::GATHERED,
    ot::MESSAGES,
    ot::SESSION,
    sharing::SHARING,
    tensors::TENSORS,
];

/// Reads fields off the front of an input; zeros after its end.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let taken = self.slice(N);
        out[..taken.len()].copy_from_slice(taken);
        out
    }

    fn byte(&mut self) -> u8 {
        self.bytes::<1>()[0]
    }

    fn slice(&mut self, len: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(len.min(self.0.len()));
        self.0 = tail;
        head
    }
}
