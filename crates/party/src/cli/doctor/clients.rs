//! Checks of a server of many clients: whom it serves, and whether the machine has room for all they may have.

use super::{Findings, Patient};
use crate::report::count;
use crate::sys;
use privet_net::tcp::CONNECTIONS;

/// Descriptors of a connection, with those of its thread.
const DESCRIPTORS: u64 = 4;
/// Descriptors of the server itself.
const OWN: u64 = 128;

pub(super) fn examine(patient: &Patient, findings: &mut Findings) {
    let Some(clients) = patient.clients else { return };
    if clients == 0 {
        let remedy = "`privet init --join` a client's card; the plan and the weights are looked at then";
        return findings.warn("clients", "there are none yet", remedy);
    }
    let connections = clients as u64 * CONNECTIONS as u64;
    let found = format!(
        "{clients}, each with at most {CONNECTIONS} connections, a store and a disk budget of its own: {} connections in all",
        count(connections)
    );
    match sys::open_file_limit() {
        Some(limit) if limit < OWN + DESCRIPTORS * connections => {
            let remedy = format!("raise the limit (`ulimit -n {}`)", OWN + DESCRIPTORS * connections);
            findings.warn("clients", format!("{found}, and {} open files are allowed", count(limit)), remedy);
        }
        _ => findings.ok("clients", found),
    }
}
