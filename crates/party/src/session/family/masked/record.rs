//! Where records rest, and a claimed one as gates read it.

use crate::config::Node;
use crate::store::format::FormatError;
use crate::store::{ClaimedRecord, Space, Store, StoreError};
use crate::sys;
use privet_family::keys::{KeyError, KeySource};
use privet_plan::Program;
use std::sync::Arc;

/// A claimed record's frames.
pub(in crate::session::family) struct Frames<'a>(pub &'a mut ClaimedRecord);

impl KeySource for Frames<'_> {
    fn take(&mut self, len: usize) -> Result<&[u8], KeyError> {
        self.0.take(len).map_err(|e| match e {
            FormatError::Io(e) => KeyError::Io(e),
            e => KeyError::Corrupt(e.to_string()),
        })
    }
}

/// The room that a node gives to the records of all plans.
fn space(node: &Node) -> Arc<Space> {
    let machine = || sys::total_memory_bytes().map_or(1 << 30, |bytes| bytes / 8);
    let (disk, memory) = (node.disk_budget.map(|b| b.0), node.memory_budget.map_or_else(machine, |b| b.0));
    Arc::new(Space::new(&node.store, disk, memory))
}

/// The stores of a node by plan. Records are of one plan: each has a store of its own, but the room is the party's.
pub(in crate::session::family) fn stores(
    node: &Node,
    program: &Program,
) -> impl Fn(&str) -> Result<Store, StoreError> + use<> {
    let (bare, space, all) = (program.bare().is_some(), space(node), node.store.clone());
    move |name| {
        let dir = if bare { all.clone() } else { all.join(name) };
        Ok(Store::open(&dir)?.within(space.clone()))
    }
}
