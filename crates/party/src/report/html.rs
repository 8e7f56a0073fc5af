//! A report as one HTML file without scripts or outside resources.

use super::svg::{self, Bar};
use super::{Accuracy, LayerReport, PartyReport, RunReport, Transport, bits, bytes, count, seconds};

const STYLE: &str = include_str!("style.css");

/// The page of a run. Every string of the report is escaped: names come from models and from other parties.
pub fn render(r: &RunReport) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>privet: {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        escape(&r.plan)
    );
    page += &header(r);
    page += &tiles(r);
    if let Some(accuracy) = &r.accuracy {
        page += &accuracy_section(accuracy);
    }
    page += &learned(r);
    page += &charts(&r.layers);
    page += &table(r);
    page += &footer(r);
    page + "</main>\n</body>\n</html>\n"
}

/// Text that is safe in HTML content and in quoted attributes; control characters become spaces.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn header(r: &RunReport) -> String {
    let (class, note) = match r.transport {
        Transport::Tls => ("good", "mutual TLS 1.3, pinned certificates"),
        Transport::Insecure => ("bad", "plain TCP: anybody on the network could read and change everything"),
        Transport::Memory => ("plain", "threads of one process: a simulation"),
    };
    let network =
        r.network.as_ref().map(|n| format!(", simulated network {}", escape(n))).unwrap_or_default();
    let computing = r.parties.iter().filter(|p| p.place.starts_with("party:")).count();
    format!(
        "<header>\n<h1>{}</h1>\n<p class=\"sub\">Protocol <b>{}</b> of {computing} parties, secure against {} ones; batch {}{network}</p>\n\
         <p><span class=\"badge {class}\">{}</span> {note}</p>\n<p class=\"hash\">plan {}</p>\n</header>\n",
        escape(&r.plan),
        escape(&r.protocol),
        escape(&r.security),
        count(r.batch as u64),
        r.transport,
        escape(&r.plan_hash),
    )
}

fn tiles(r: &RunReport) -> String {
    let t = &r.totals;
    let peak = r.parties.iter().filter_map(|p| p.peak_rss_bytes).max();
    let rows = r.batch as f64 * r.runs as f64;
    let per_row = if rows > 0.0 { t.online_s / rows } else { f64::NAN };
    let mut tiles = vec![
        ("online", seconds(t.online_s), format!("{} a row", seconds(per_row))),
        ("sent", bytes(t.bytes_sent), "by the party that sent most".into()),
        ("rounds", count(t.rounds), "each costs one network delay".into()),
        ("peak memory", peak.map_or("unknown".into(), bytes), "of the largest process".into()),
    ];
    if t.key_bytes > 0 {
        tiles.insert(1, ("offline", seconds(t.offline_s), "preprocessing by the dealer".into()));
        tiles.insert(4, ("keys", bytes(t.key_bytes), "used once, by the party with the most".into()));
    }
    if let Some(v) = &r.verification {
        let note = format!("to prove and check, {} in {} rounds", bytes(v.bytes_sent), count(v.rounds));
        tiles.insert(1, ("verification", seconds(v.seconds), note));
    }
    if r.runs > 1 {
        let each = |total: f64| total / r.runs as f64;
        let mut note = format!("{} each", seconds(each(t.online_s)));
        if t.key_bytes > 0 {
            note += &format!(", {} of keys", bytes(each(t.key_bytes as f64) as u64));
        }
        tiles.insert(0, ("runs", count(r.runs), note));
    }
    let mut out = String::from("<section class=\"tiles\">\n");
    for (name, figure, note) in tiles {
        out += &format!("<div><span>{name}</span><b>{figure}</b><small>{note}</small></div>\n");
    }
    out + "</section>\n"
}

fn accuracy_section(a: &Accuracy) -> String {
    let percent = |x: Option<f64>| x.map_or("unknown".into(), |x| format!("{:.2} %", 100.0 * x));
    let error = a.max_abs_err.map_or("unknown".into(), scientific);
    format!(
        "<section>\n<h2>Private against plaintext</h2>\n<table class=\"facts\">\n\
         <tr><th>rows compared</th><td>{}</td></tr>\n<tr><th>accuracy in plaintext</th><td>{}</td></tr>\n\
         <tr><th>accuracy in private</th><td>{}</td></tr>\n<tr><th>same class</th><td>{}</td></tr>\n\
         <tr><th>largest difference of an output</th><td>{error}</td></tr>\n</table>\n</section>\n",
        count(a.samples),
        percent(a.plaintext),
        percent(a.private),
        percent(a.agreement),
    )
}

fn learned(r: &RunReport) -> String {
    let mut out = String::from(
        "<section>\n<h2>What each process learned</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th>process</th><th>role</th><th>learned</th><th class=\"n\">sent</th><th class=\"n\">peak memory</th></tr></thead>\n<tbody>\n",
    );
    for p in &r.parties {
        out += &party(p);
    }
    out += "</tbody>\n</table></div>\n";
    let o = &r.openings;
    out += &format!(
        "<p>{} values ({}) were shared or opened under fresh uniform masks, which tells nobody anything.",
        count(o.masked),
        bits(o.masked_bits)
    );
    if o.revealed.is_empty() {
        out += " Nothing was revealed.</p>\n";
    } else {
        out += " Revealed:</p>\n<ul>\n";
        for v in &o.revealed {
            let shape = v.shape.iter().map(usize::to_string).collect::<Vec<_>>().join("\u{d7}");
            let (name, to) = (escape(&v.name), escape(&v.to));
            out += &format!("<li><b>{name}</b> ({shape}, {} bits an element) to <b>{to}</b></li>\n", v.bits);
        }
        out += "</ul>\n";
    }
    out + "<p class=\"note\">Everybody also knows the plan: layer types, shapes, number formats, and how long each step took.</p>\n</section>\n"
}

fn party(p: &PartyReport) -> String {
    let learned = match &p.learned[..] {
        [] => "nothing but sizes and timing".to_string(),
        some => some.iter().map(|s| escape(s)).collect::<Vec<_>>().join("<br>"),
    };
    let roles = if p.roles.is_empty() { "computes".into() } else { escape(&p.roles.join(", ")) };
    format!(
        "<tr><td>{}</td><td>{roles}</td><td>{learned}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
        escape(&p.place),
        bytes(p.bytes_sent),
        p.peak_rss_bytes.map_or("unknown".into(), bytes),
    )
}

fn charts(layers: &[LayerReport]) -> String {
    if layers.is_empty() {
        return String::new();
    }
    let chart = |class: &str, title: &str, value: &dyn Fn(&LayerReport) -> (f64, String)| {
        let bars: Vec<Bar> = layers
            .iter()
            .map(|l| {
                let (value, text) = value(l);
                Bar { label: name(l).into(), value, text }
            })
            .collect();
        format!("<figure>\n<figcaption>{title}</figcaption>\n{}</figure>\n", svg::bars(class, &bars))
    };
    let mut out = String::from("<section>\n<h2>Layer by layer</h2>\n<div class=\"charts\">\n");
    out += &chart("time", "Online time", &|l| (l.seconds, seconds(l.seconds)));
    out += &chart("sent", "Bytes sent", &|l| (l.bytes_sent as f64, bytes(l.bytes_sent)));
    if layers.iter().any(|l| l.key_bytes > 0) {
        out += &chart("keys", "Key bytes", &|l| (l.key_bytes as f64, bytes(l.key_bytes)));
    }
    if layers.iter().any(|l| l.max_error.is_some()) {
        out += &chart("error", "Largest difference to the plaintext model", &|l| {
            (l.max_error.unwrap_or(0.0), l.max_error.map_or("-".into(), scientific))
        });
    }
    out + "</div>\n</section>\n"
}

fn table(r: &RunReport) -> String {
    let mut out = String::from(
        "<section>\n<h2>Figures</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th>layer</th><th>operations</th><th class=\"n\">time</th><th class=\"n\">share</th><th class=\"n\">sent</th><th class=\"n\">rounds</th><th class=\"n\">keys</th><th class=\"n\">difference</th></tr></thead>\n<tbody>\n",
    );
    let all: f64 = r.layers.iter().map(|l| l.seconds).filter(|s| s.is_finite()).sum();
    for l in &r.layers {
        let share = if all > 0.0 { format!("{:.1} %", 100.0 * l.seconds / all) } else { "-".into() };
        out += &format!(
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{share}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
            escape(name(l)),
            escape(&l.ops),
            seconds(l.seconds),
            bytes(l.bytes_sent),
            count(l.rounds),
            bytes(l.key_bytes),
            l.max_error.map_or("-".into(), scientific),
        );
    }
    if let Some(v) = &r.verification {
        out += &format!(
            "<tr><td>verification</td><td>proofs that all followed the protocol</td><td class=\"n\">{}</td><td></td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td></td><td></td></tr>\n",
            seconds(v.seconds),
            bytes(v.bytes_sent),
            count(v.rounds)
        );
    }
    let t = &r.totals;
    out += &format!(
        "</tbody>\n<tfoot><tr><td>whole run</td><td></td><td class=\"n\">{}</td><td></td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td class=\"n\">{}</td><td></td></tr></tfoot>\n</table></div>\n</section>\n",
        seconds(t.online_s),
        bytes(t.bytes_sent),
        count(t.rounds),
        bytes(t.key_bytes)
    );
    out
}

fn footer(r: &RunReport) -> String {
    let Some(m) = &r.machine else { return String::new() };
    format!(
        "<footer>privet {} on {}, {} cores, {} of memory; kernels: {}</footer>\n",
        escape(&m.privet),
        escape(&m.cpu),
        m.cores,
        bytes(m.memory_bytes),
        escape(&m.device)
    )
}

fn name(l: &LayerReport) -> &str {
    if l.layer.is_empty() { "(top level)" } else { &l.layer }
}

fn scientific(x: f64) -> String {
    if x == 0.0 { "0".into() } else { format!("{x:.2e}") }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;

    fn report() -> RunReport {
        let layer = |name: &str, seconds| LayerReport {
            layer: name.into(),
            ops: "conv2d, truncate, relu".into(),
            seconds,
            bytes_sent: 123_456,
            rounds: 4,
            key_bytes: 9_000_000,
            max_error: Some(1.5e-4),
        };
        RunReport {
            version: REPORT_VERSION,
            plan: "lenet".into(),
            plan_hash: "ab".repeat(32),
            protocol: "fss".into(),
            security: "semi-honest".into(),
            transport: Transport::Tls,
            batch: 128,
            runs: 1,
            network: None,
            parties: vec![PartyReport {
                place: "party:0".into(),
                roles: vec![],
                peak_rss_bytes: Some(100_000_000),
                bytes_sent: 5,
                learned: vec![],
            }],
            layers: vec![layer("conv1", 0.2), layer("", 0.1), layer("fc3", 0.1)],
            verification: None,
            totals: Totals {
                online_s: 0.4,
                offline_s: 1.0,
                bytes_sent: 370_368,
                rounds: 12,
                key_bytes: 27_000_000,
            },
            openings: Openings {
                masked: 1000,
                masked_bits: 64_000,
                revealed: vec![Revealed {
                    name: "logits".into(),
                    to: "receiver".into(),
                    shape: vec![128, 10],
                    bits: 37,
                }],
            },
            accuracy: Some(Accuracy { samples: 256, agreement: Some(1.0), ..Default::default() }),
            machine: None,
        }
    }

    #[test]
    fn the_page_has_every_layer_and_every_total() {
        let page = render(&report());
        for text in [
            "conv1",
            "(top level)",
            "fc3",
            "27.0 MB",
            "370 kB",
            "128\u{d7}10, 37 bits",
            "nothing but sizes",
            ">TLS<",
        ] {
            assert!(page.contains(text), "{text} is missing");
        }
        assert_eq!(page.matches("<svg").count(), 4);
        assert_eq!(page.matches("class=\"bar\"").count(), 12);
        let mut plain = report();
        plain.layers.iter_mut().for_each(|l| l.max_error = None);
        assert_eq!(render(&plain).matches("<svg").count(), 3, "no error chart without errors");
        assert!(page.contains("Protocol <b>fss</b> of 1 parties, secure against semi-honest ones"));
        assert!(page.contains("<span>keys</span>") && !page.contains("verification"));
    }

    #[test]
    fn verification_has_a_line_of_its_own_and_keys_none_where_there_are_none() {
        let mut r = report();
        (r.protocol, r.security) = ("rep3".into(), "malicious".into());
        r.verification = Some(Verification { seconds: 0.25, bytes_sent: 4_321_000, rounds: 7 });
        r.totals.key_bytes = 0;
        r.layers.iter_mut().for_each(|l| l.key_bytes = 0);
        let page = render(&r);
        assert!(page.contains("<tr><td>verification</td>") && page.contains("4.32 MB in 7 rounds"), "{page}");
        assert!(page.contains("secure against malicious ones"));
        assert!(!page.contains("<span>keys</span>") && !page.contains("dealer"));
        assert_eq!(page.matches("<svg").count(), 3, "no chart of keys");
    }

    #[test]
    fn no_string_of_the_report_becomes_markup() {
        const EVIL: &str = "</title><script>alert('x')</script>\"&\u{0}";
        let mut r = report();
        let names = [&mut r.protocol, &mut r.security, &mut r.openings.revealed[0].name];
        let strings = [&mut r.plan, &mut r.plan_hash].into_iter().chain(names);
        strings.for_each(|s| *s = EVIL.into());
        r.openings.revealed[0].to = EVIL.into();
        r.network = Some(EVIL.into());
        r.layers.iter_mut().for_each(|l| (l.layer, l.ops) = (EVIL.into(), EVIL.into()));
        let p = &mut r.parties[0];
        (p.place, p.roles, p.learned) = (EVIL.into(), vec![EVIL.into()], vec![EVIL.into()]);
        let evil = || EVIL.to_string();
        r.machine = Some(Machine { privet: evil(), cpu: evil(), device: evil(), ..Default::default() });
        let page = render(&r);
        assert!(!page.contains("<script") && !page.contains("alert('x')") && !page.contains('\u{0}'));
        assert_eq!(page.matches("</title>").count(), 1 + 4 * 3, "the page's title and one for each bar");
        assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)"));
    }

    #[test]
    fn the_page_refers_to_nothing_outside() {
        let page = render(&report());
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn insecure_runs_are_stamped() {
        let r = RunReport { transport: Transport::Insecure, ..report() };
        assert!(render(&r).contains("badge bad\">INSECURE<"));
    }

    #[test]
    fn empty_reports_have_a_page_too() {
        let r = RunReport { layers: vec![], parties: vec![], batch: 0, ..report() };
        let page = render(&r);
        assert!(page.contains("</html>") && !page.contains("<svg") && !page.contains("NaN"));
    }

    #[test]
    fn reports_read_back_and_other_versions_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.json");
        std::fs::write(&path, serde_json::to_string(&report()).unwrap()).unwrap();
        assert_eq!(load(&path).unwrap(), report());
        let newer = serde_json::to_string(&RunReport { version: 9, ..report() }).unwrap();
        std::fs::write(&path, newer.replace("\"batch\"", "\"rows\"")).unwrap();
        assert!(matches!(load(&path), Err(ReportError::Version { found: 9, .. })));
        for text in ["", "[]", "{}", "{\"version\":2}"] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(load(&path), Err(ReportError::Syntax { .. })), "{text}");
        }
    }
}
