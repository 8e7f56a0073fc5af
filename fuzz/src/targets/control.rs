//! Messages between clients, parties and dealer, and the report of a run.

use crate::Target;
use privet_party::report::{self, RunReport};
use privet_party::session::control::{Amount, At, Id, PlanStatus, Preparing, Reply, Request, Status};
use privet_party::session::family::dealing::messages::{DealReply, DealRequest};
use privet_party::session::order::{Consent, Go, Order, Preparation, Start, Version};
use serde_json::{from_slice, to_vec};

/// Control messages, as the receiver parses them.
pub const CONTROL: Target = Target {
    name: "control",
    run: control,
    seeds: control_seeds,
    words: &[
        "\"ask\":",
        "\"answer\":",
        "\"order\":",
        "\"status\"",
        "\"prepare\"",
        "\"run\"",
        "\"share_weights\"",
        "\"share\"",
        "\"no_session\"",
        "\"declined\":",
        "\"failed\"",
        "\"runs\":",
        "\"indices\":",
        "\"dealing\":",
        "\"refused\":",
        "18446744073709551615",
        "null",
        "[]",
        "é",
    ],
};

fn control(data: &[u8]) {
    if let Ok(found) = from_slice::<Request>(data) {
        let again: Request =
            from_slice(&to_vec(&found).expect("plain data")).expect("what was written is read");
        assert_eq!(again.id(), found.id());
    }
    let _ = from_slice::<Reply>(data);
    if let Ok(order) = from_slice::<Order>(data) {
        let ids = order.requests();
        let twice = (1..ids.len()).any(|i| ids[..i].contains(&ids[i]));
        assert!(!twice || order.well_formed().is_err());
    }
    let _ = from_slice::<Consent>(data);
    let _ = from_slice::<Go>(data);
    let _ = from_slice::<DealRequest>(data);
    let _ = from_slice::<DealReply>(data);
    let _ = from_slice::<Vec<Version>>(data);
}

fn control_seeds() -> Vec<Vec<u8>> {
    let id = Id([7; 16]);
    let plan = || "train".to_owned();
    let at = At { training: id, step: 3 };
    let preparing = Some(Preparing { came: 1, to_come: 2, bytes: 3, seconds: 0.5 });
    let status = PlanStatus { sessions: 1, open: true, runs_left: Some(2), stream: None, preparing };
    let plans = [(plan(), status)].into();
    let reply = Reply::Status(Status { plans, training: Some(at), peers: true });
    let from = Some(Start { training: id, version: Version { step: 3, trail: id } });
    let amount = Amount { runs: 2, checks: 1, stream: true };
    let seeds = [
        to_vec(&Request::Prepare { id, plan: plan(), amount }),
        to_vec(&Request::Run { id, plan: plan(), from: Some(at), publics: [("rate".into(), 0.5)].into() }),
        to_vec(&Request::BeginTraining { id, checkpoint_every: 5 }),
        to_vec(&Request::Resume { id, training: id }),
        to_vec(&Reply::Training { at }),
        to_vec(&reply),
        to_vec(&Reply::Share { seeds: [("x".to_owned(), "00".repeat(16))].into() }),
        to_vec(&Order::Run {
            ids: vec![id],
            plan: plan(),
            session: id,
            index: 4,
            from,
            publics: [("rate".into(), 8)].into(),
        }),
        to_vec(&Order::BeginTraining { ids: vec![id], training: id, checkpoint_every: 5 }),
        to_vec(&Order::Resume { id, training: id }),
        to_vec(&vec![Version { step: 3, trail: id }]),
        to_vec(&Order::Prepare { id, plan: plan(), what: Preparation { deal: id, session: None, amount } }),
        to_vec(&Order::BeginFrom { plan: plan(), owner: Some(1), session: id }),
        to_vec(&Consent::Declined { reason: "away".into() }),
        to_vec(&Go::Again),
        to_vec(&DealRequest { deal: id, plan: plan(), session: Some(id), runs: 2, checks: 0 }),
        to_vec(&DealReply::Dealing { session: id, indices: vec![0, 1] }),
        to_vec(&DealReply::Refused { reason: "full".into() }),
    ];
    seeds.into_iter().flatten().collect()
}

/// A run's report, and the page made from it: no text of it becomes mark-up.
pub const REPORT: Target = Target {
    name: "report",
    run: page,
    seeds: report_seeds,
    words: &[
        "<script>",
        "&",
        "\\u003c",
        "null",
        "1e308",
        "-0",
        "[]",
        "\"layers\":",
        "\"parties\":",
        "\"totals\":",
    ],
};

fn page(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(found) = report::parse(text) {
        let found: RunReport = found;
        let page = report::html(&found);
        assert!(!page.contains("<script>"), "text of the report became mark-up");
    }
}

fn report_seeds() -> Vec<Vec<u8>> {
    vec![REPORT_SEED.as_bytes().to_vec()]
}

const REPORT_SEED: &str = r#"{"version":2,"plan":"p","plan_hash":"00","protocol":"fss","security":"semi-honest","transport":"TLS","batch":2,"network":"wan","parties":[{"place":"party:0","roles":["model_owner"],"peak_rss_bytes":9,"bytes_sent":7,"learned":["a & b"]}],"layers":[{"layer":"conv1","ops":"conv2d, relu","seconds":0.5,"bytes_sent":3,"rounds":2,"key_bytes":5,"max_error":0.001}],"totals":{"online_s":1.0,"offline_s":2.0,"bytes_sent":3,"rounds":2,"key_bytes":5},"openings":{"masked":1,"masked_bits":64,"revealed":[{"name":"y","to":"client:a","shape":[2,3],"bits":32}]},"accuracy":{"samples":2,"plaintext":0.5,"private":0.5,"agreement":1.0,"max_abs_err":0.1},"machine":{"privet":"0","cpu":"c","cores":2,"memory_bytes":1,"device":"d"}}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_valid() {
        assert_eq!(report::parse(REPORT_SEED).map(|r| r.batch), Ok(2));
        assert!(!control_seeds().is_empty());
    }
}
