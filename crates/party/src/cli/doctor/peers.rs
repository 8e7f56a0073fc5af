//! Checks of the network: this node's port, and the way to every other node that listens.

use super::{Findings, Patient};
use crate::config::{Address, Place};
use crate::session::probe;
use privet_net::{NetError, Protection};
use std::net::TcpListener;
use std::time::Duration;

/// Clocks further apart than this confuse logs and certificate dates.
const SKEW_S: f64 = 60.0;

pub(super) fn examine(patient: &Patient, timeout: Duration, findings: &mut Findings) {
    let Some(deployment) = &patient.deployment else { return };
    let security = match (patient.node.insecure, &patient.identity) {
        (true, _) => Protection::InsecurePlain,
        (false, Some(identity)) => Protection::Tls(identity.clone()),
        (false, None) => return,
    };
    let plan_hash = patient.program.as_ref().map_or([0; 32], |p| p.hash());
    let me = &patient.node.me;
    let call = |place: &Place, address: &Address| {
        let fingerprint = *deployment.fingerprint(place)?;
        let address = address.to_string();
        Some(probe::call(
            &address,
            &security,
            (place, fingerprint),
            me,
            (plan_hash, deployment.terms()),
            timeout,
        ))
    };
    if let Some(address) = deployment.address(me) {
        let bind = patient.node.listen.as_ref().unwrap_or(address);
        match listen(bind) {
            Ok(()) => findings.ok("port", format!("{bind} is free")),
            Err(e) if e.kind() == std::io::ErrorKind::AddrInUse => {
                in_use(call(me, bind).is_some_and(|r| is_pinned(&r)), bind, findings);
            }
            Err(e) => {
                let remedy = "correct `address` in the deployment, or set `listen` in node.toml to an address of this machine";
                findings.fail("port", format!("cannot listen on {bind}: {e}"), remedy);
            }
        }
    }
    // All at once: one that does not answer must not delay the others.
    // A server calls no client.
    let calls_others = patient.clients.is_none();
    let others: Vec<Place> = deployment.places().into_iter().filter(|p| p != me && calls_others).collect();
    let results: Vec<_> = std::thread::scope(|scope| {
        let calls = others.iter().filter_map(|place| Some((place, deployment.address(place)?)));
        let calls: Vec<_> = calls.map(|(p, a)| (p, a, scope.spawn(move || call(p, a)))).collect();
        calls.into_iter().map(|(p, a, c)| (p, a, c.join().ok().flatten())).collect()
    });
    for (place, address, result) in results {
        match result {
            Some(result) => peer(place, address, result, findings),
            None => findings.fail(
                place.to_string(),
                format!("the call to {address} failed"),
                "report this as a bug",
            ),
        }
    }
}

fn listen(address: &Address) -> std::io::Result<()> {
    TcpListener::bind(&address.resolve()?[..]).map(drop)
}

/// Whether whoever answered showed the certificate that was asked for, however the call went on.
fn is_pinned(result: &Result<probe::Answer, NetError>) -> bool {
    use NetError::*;
    matches!(
        result,
        Ok(_)
            | Err(CertificateRefused { .. }
                | Aborted { .. }
                | WrongRole { .. }
                | PlanMismatch { .. }
                | TermsMismatch { .. })
    )
}

fn in_use(by_this_node: bool, address: &Address, findings: &mut Findings) {
    if by_this_node {
        findings.ok("port", format!("{address}: this node is running"));
    } else {
        let remedy = "stop the other process (`ss -ltnp` lists it), or choose another port in the deployment";
        findings.fail("port", format!("{address} is in use by another process"), remedy);
    }
}

fn peer(place: &Place, address: &Address, result: Result<probe::Answer, NetError>, findings: &mut Findings) {
    let check = place.to_string();
    match result {
        Ok(answer) if answer.clock_skew_s.abs() > SKEW_S => {
            let found = format!("its clock and this machine's differ by {:.0} s", answer.clock_skew_s.abs());
            findings.warn(check, found, "set both clocks by NTP (`timedatectl set-ntp true`)");
        }
        Ok(answer) => {
            let ms = answer.round_trip_s * 1e3;
            findings.ok(
                check,
                format!(
                    "{address} answers with the pinned certificate, the same plan and deployment, {ms:.0} ms"
                ),
            );
        }
        Err(NetError::Aborted { reason, .. }) => {
            let found = format!("{address} shows the pinned certificate, but turns the call away: {reason}");
            findings.warn(check, found, format!("look at the log of {place}"));
        }
        Err(e @ NetError::Refused { .. }) => {
            findings.warn(
                check,
                e.to_string(),
                format!("start {place} there, or correct its address or the firewall"),
            );
        }
        Err(e) => findings.fail(check, e.to_string(), remedy(place, &e)),
    }
}

fn remedy(place: &Place, e: &NetError) -> String {
    match e {
        NetError::WrongCertificate { .. } => {
            format!("ask the operator of {place} for its card; `privet init --replace --join CARD`")
        }
        NetError::CertificateRefused { .. } => {
            format!("send your card (`privet certs show`) to the operator of {place}")
        }
        NetError::CertificateDates { .. } => {
            "its operator runs `privet certs renew` and sends the new card".into()
        }
        NetError::PlanMismatch { .. } => {
            "give every node the same plan file (`privet plan show` prints its hash)".into()
        }
        NetError::TermsMismatch { .. } => {
            format!(
                "agree with the operator of {place} which is right, then give every node the same deployment.toml"
            )
        }
        NetError::PrivetVersion { .. } | NetError::ProtocolVersion { .. } => {
            "install the same version of privet everywhere".into()
        }
        NetError::NotTls { .. } | NetError::TlsVersion { .. } | NetError::BadHello { .. } => {
            "another program listens there, or one side has `insecure` set".into()
        }
        NetError::Address { .. } => "correct the address in deployment.toml, or the name service".into(),
        _ => format!("check the network and the firewall, and the log of {place}"),
    }
}
