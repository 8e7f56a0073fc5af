//! Checks of this node's own files: key, certificate, plan, store, weights.

use super::{Findings, Patient};
use crate::cli::certs;
use crate::cli::family::collusion;
use crate::config::{Deployment, Node, Place, check_insecure};
use crate::report::bytes;
use crate::session::owner::roles;
use crate::store::hex;
use crate::sys;
use privet_net::Identity;
use privet_net::certs::CertificateInfo;
use privet_plan::Program;
use privet_plan::cost::{Estimate, Network, estimate};
use privet_plan::program::NamedPlan;
use std::path::Path;

pub(super) fn examine(patient: &mut Patient, findings: &mut Findings) {
    let refused = patient.deployment.as_ref().and_then(|d| check_insecure(&patient.node, d).err());
    if let Some(e) = refused {
        findings.fail("transport", e.to_string(), e.remedy());
    } else if patient.node.insecure {
        let found = "`insecure` is set: anybody on the network can read and change everything";
        findings.warn(
            "transport",
            found,
            "remove `insecure` from node.toml, except for tests on one machine",
        );
    }
    key(&patient.node, findings);
    patient.identity = certificate(&patient.node, patient.deployment.as_ref(), findings);
    if let Some(deployment) = &patient.deployment {
        let who = format!("{} of {} parties", deployment.security, deployment.parties.len());
        let who = if deployment.dealer.is_some() { format!("{who} and a dealer") } else { who };
        findings.ok("protocol", format!("against {who}: {}", collusion(deployment.protocol)));
        patient.program = program(deployment, findings);
        weights(&patient.node, deployment, findings);
    }
    let family = patient.deployment.as_ref().map(|d| d.protocol.forecast(&d.chosen()));
    let both = patient.program.as_ref().zip(family);
    let estimate = both.and_then(|(program, f)| {
        let of = |p: &NamedPlan| estimate(&p.plan, &*f, &f.rates(), &Network::LAN);
        // The plan whose runs need most.
        program.plans.iter().map(of).max_by_key(|e| (e.total.key_bytes.most(), e.memory_bytes))
    });
    store(&patient.node, estimate.as_ref(), findings);
    patient.estimate = estimate;
}

fn key(node: &Node, findings: &mut Findings) {
    use std::os::unix::fs::PermissionsExt;
    let shown = node.key.display();
    match std::fs::metadata(&node.key) {
        Err(e) => {
            findings.fail("key", format!("{shown}: {e}"), "correct `key` in node.toml, or `privet certs new`")
        }
        Ok(meta) => match meta.permissions().mode() & 0o777 {
            mode if mode & 0o077 == 0 => findings.ok("key", format!("{shown}, mode {mode:04o}")),
            mode => findings.fail(
                "key",
                format!("{shown} has mode {mode:04o}: others on this machine can use it"),
                format!("chmod 600 {shown}; if somebody may have copied it, `privet certs renew`"),
            ),
        },
    }
}

fn certificate(node: &Node, deployment: Option<&Deployment>, findings: &mut Findings) -> Option<Identity> {
    let info = match CertificateInfo::from_pem_file(&node.certificate) {
        Ok(info) => info,
        Err(e) => {
            findings.fail("certificate", e.to_string(), "`privet certs renew`, then send the new card");
            return None;
        }
    };
    match certs::verdict(&info, 0) {
        (true, None) => findings.ok("certificate", format!("{} days left", info.days_left())),
        (true, Some(soon)) => {
            findings.warn("certificate", soon, "`privet certs renew`, then send the new card")
        }
        (false, problem) => {
            let remedy = "correct this machine's clock, or `privet certs renew` and send the new card";
            findings.fail("certificate", problem.unwrap_or_default(), remedy);
        }
    }
    match deployment.map(|d| d.fingerprint(&node.me)) {
        Some(None) => {
            let found = format!("{} is not in the deployment", node.me);
            findings.fail("identity", found, "add its table with `privet init --join CARD`, or correct `me`");
        }
        Some(Some(pinned)) if *pinned != info.fingerprint => findings.fail(
            "identity",
            format!("the deployment pins {pinned} for {}, the certificate is {}", node.me, info.fingerprint),
            "put the right certificate in place, or `privet init --replace --join` the card of `privet certs show`",
        ),
        Some(Some(_)) => findings.ok("identity", format!("{} {}", node.me, info.fingerprint.short())),
        None => {}
    }
    match Identity::load(&node.certificate, &node.key) {
        Ok(identity) => Some(identity),
        Err(e) => {
            findings.fail("key pair", e.to_string(), "repair the key file, or `privet certs renew`");
            None
        }
    }
}

fn program(deployment: &Deployment, findings: &mut Findings) -> Option<Program> {
    let shown = deployment.plan.display();
    let program = match crate::cli::plan::read(&deployment.plan) {
        Ok(program) => program,
        Err(e) => {
            findings.fail("plan", e.message(), format!("put the compiled plan at {shown}"));
            return None;
        }
    };
    let mut unknown = roles(&program);
    unknown.retain(|role| deployment.roles.get(role).is_none());
    if unknown.is_empty() {
        findings.ok("plan", format!("{} {}", program.name, &hex(&program.hash())[..16]));
    } else {
        let found = format!("{shown} names roles that the deployment does not have: {}", unknown.join(", "));
        let remedy =
            "give them places in [roles] of the deployment, or compile the model for the roles there";
        findings.fail("plan", found, remedy);
    }
    Some(program)
}

fn weights(node: &Node, deployment: &Deployment, findings: &mut Findings) {
    let owner = *deployment.roles.model_owner() == node.me;
    match &node.weights {
        Some(path) if !owner => {
            let model_owner = deployment.roles.model_owner();
            let found = format!("{} is set, but {model_owner} owns the model", path.display());
            findings.warn("weights", found, "remove `weights`, or correct `model_owner`");
        }
        Some(path) => match std::fs::metadata(path) {
            Ok(meta) => findings.ok("weights", format!("{}, {}", path.display(), bytes(meta.len()))),
            Err(e) => {
                findings.fail("weights", format!("{}: {e}", path.display()), "put the parameter file there")
            }
        },
        None if owner && node.me.listens() => {
            let remedy = "set `weights` in node.toml, unless the weights are given on the command line";
            findings.warn("weights", "this node owns the model, and node.toml names no weights", remedy);
        }
        None => {}
    }
}

fn store(node: &Node, estimate: Option<&Estimate>, findings: &mut Findings) {
    let shown = node.store.display();
    // A store that is not there yet is made on first use: what counts is the directory it will be made in.
    let there = node.store.ancestors().find(|p| p.is_dir()).unwrap_or(Path::new("."));
    let probe = there.join(format!(".privet-doctor-{}", std::process::id()));
    match std::fs::File::create_new(&probe).and_then(|_| std::fs::remove_file(&probe)) {
        Ok(()) => {
            findings.ok("store", format!("{shown} is writable"));
            if let (true, Some(free)) = (matches!(node.me, Place::Party(_)), sys::disk_free_bytes(there)) {
                room(node, free, estimate.map(|e| e.total.key_bytes.most()), findings);
            }
        }
        Err(e) => findings.fail(
            "store",
            format!("{}: {e}", there.display()),
            "give this user the right to write there",
        ),
    }
}

/// Room for the keys of runs, on the disk and within the budget.
fn room(node: &Node, free: u64, run: Option<u64>, findings: &mut Findings) {
    let usable = node.disk_budget.map_or(free, |b| b.0.min(free));
    let found = match node.disk_budget {
        Some(budget) => format!("{} free, budget {}", bytes(free), bytes(budget.0)),
        None => format!("{} free", bytes(free)),
    };
    match run {
        Some(run) if run > usable => {
            let found = format!("{found}: a run of this plan needs {} of keys", bytes(run));
            findings.fail(
                "disk",
                found,
                "put `store` on a larger disk, raise `disk_budget`, or lower the plan's batch",
            );
        }
        Some(run) if run > 0 => findings.ok("disk", format!("{found}: keys for {} runs", usable / run)),
        _ => findings.ok("disk", found),
    }
}
