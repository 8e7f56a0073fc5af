//! Statements that are folded, and operands and results that a difference of tags is made of: nobody reads them any more. Wiping statements takes a third
//! of the time that folding them does, and no message waits for it.

use super::batch::Batch;
use super::extension::Extension;
use super::tags::TaggedClaim;
use privet_kernels::Aside;
use std::sync::{Mutex, PoisonError};

/// What folds leave behind of one algebra.
pub(super) struct Spent<E: Extension> {
    proofs: Vec<Vec<Batch>>,
    /// What was made of columns.
    pub folded: E::Folded,
}

/// Most words that stay a little longer, of one proof's factors or of all layers with tags. More are wiped at once, as large runs lack memory.
const FEW: usize = 1 << 22;

impl<E: Extension> Default for Spent<E> {
    fn default() -> Spent<E> {
        Spent { proofs: vec![], folded: E::Folded::default() }
    }
}

impl<E: Extension> Spent<E> {
    /// What a proof was about.
    pub fn add(&mut self, batches: Vec<Batch>) {
        let words: usize = batches.iter().map(|batch| batch.words * batch.terms.len()).sum();
        if words <= FEW {
            self.proofs.push(batches);
        }
    }

    /// Begin to wipe it, where a core is free.
    pub fn wipe(self) -> Wiping {
        Wiping::of(self)
    }
}

/// Secrets of a run that nobody reads any more. A thread that gives way to all others wipes them. Dropped, this wipes those with which it has not begun.
#[derive(Default)]
pub struct Wiping(Vec<Aside<()>>);

impl Wiping {
    /// Begin to wipe these, where a core is free.
    fn of(secrets: impl Send + 'static) -> Wiping {
        let secrets = Mutex::new(Some(secrets));
        let wipe = move |_| drop(secrets.lock().unwrap_or_else(PoisonError::into_inner).take());
        Wiping(vec![Aside::begin(1, wipe)])
    }

    /// The same of operands and results of layers with tags, of which the difference is made; many are wiped at once.
    pub(super) fn of_tagged(claims: Vec<TaggedClaim>) -> Wiping {
        let words: usize = claims.iter().map(|claim| 2 * (claim.x.len() + claim.z.len())).sum();
        if words <= FEW { Wiping::of(claims) } else { Wiping::default() }
    }

    /// And these.
    pub(crate) fn add(&mut self, mut more: Wiping) {
        self.0.append(&mut more.0);
    }
}

impl Drop for Wiping {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|aside| drop(aside.finish()));
    }
}
