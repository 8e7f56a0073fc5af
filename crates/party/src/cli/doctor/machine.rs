//! Checks of the machine: processor, memory, limits, clock.

use super::{Findings, Patient};
use crate::report::{bytes, count};
use crate::sys;

/// Less free memory than this is little even for small models.
const LITTLE_MEMORY: u64 = 1 << 30;
/// Fewer files and sockets than this can run out with a few dozen clients.
const FEW_FILES: u64 = 1024;

pub(super) fn examine(patient: &Patient, findings: &mut Findings) {
    processor(patient, findings);
    memory(patient.estimate.as_ref().map(|e| e.memory_bytes), findings);
    files(findings);
    clock(findings);
}

fn processor(patient: &Patient, findings: &mut Findings) {
    let threads = patient.node.thread_count();
    let features = sys::cpu_features(&crate::cli::env::FEATURES);
    if !features.contains(&"aes") {
        let found = "no AES instructions: every comparison is tens of times slower";
        findings.warn("processor", found, "use a processor with AES-NI, or let the virtual machine see it");
    } else {
        match privet_kernels::try_cpu(threads) {
            Ok(device) => findings.ok("processor", device.name()),
            Err(e) => findings.fail("processor", e.to_string(), "unset PRIVET_CPU, or correct it"),
        }
    }
    if threads > sys::cores() {
        let found = format!("{threads} threads on {} cores", sys::cores());
        findings.warn("threads", found, "lower `threads` in node.toml, or remove it");
    }
}

fn memory(needed: Option<u64>, findings: &mut Findings) {
    match (sys::available_memory_bytes(), needed) {
        (Some(b), Some(n)) if b < n => {
            let found = format!("{} available, a run of this plan needs about {}", bytes(b), bytes(n));
            findings.fail("memory", found, "stop other processes, add memory, or lower the plan's batch");
        }
        (Some(b), _) if b < LITTLE_MEMORY => {
            findings.warn("memory", format!("{} available", bytes(b)), "stop other processes, or add memory");
        }
        (Some(b), _) => findings.ok("memory", format!("{} available", bytes(b))),
        (None, _) => {}
    }
}

fn files(findings: &mut Findings) {
    match sys::open_file_limit() {
        Some(n) if n < FEW_FILES => {
            let found = format!("at most {} open files and sockets", count(n));
            findings.warn(
                "open files",
                found,
                "raise the limit (`ulimit -n 4096`, or LimitNOFILE= of the service)",
            );
        }
        Some(n) => findings.ok("open files", count(n)),
        None => {}
    }
}

fn clock(findings: &mut Findings) {
    match sys::clock_synchronised() {
        Some(true) => findings.ok("clock", "kept by NTP"),
        Some(false) => {
            let remedy = "set it by NTP (`timedatectl set-ntp true`): certificates have dates";
            findings.warn(
                "clock",
                "nothing keeps this machine's clock right, as far as the system knows",
                remedy,
            );
        }
        None => {}
    }
}
