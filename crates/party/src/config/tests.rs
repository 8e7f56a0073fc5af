use super::*;
use crate::events::Level;
use crate::events::log::LogFormat;
use privet_family::{Facts, Holder, RoleRule};
use privet_net::Fingerprint;
use std::fs;
use std::path::{Path, PathBuf};

fn fp(name: &str) -> String {
    Fingerprint::of(name.as_bytes()).to_string()
}

fn deployment() -> String {
    format!(
        r#"name = "hospital"
protocol = "fss"
plan = "plan.json"
[parties.0]
address = "a.example:7701"
fingerprint = "{}"
[parties.1]
address = "[::1]:7702"
fingerprint = "{}"
[dealer]
address = "10.0.0.3:7703"
fingerprint = "{}"
[clients.alice]
fingerprint = "{}"
[roles]
data_owner = "client:alice"
model_owner = "party:1"
receiver = "client:alice"
[timeouts]
step = 60
"#,
        fp("0"),
        fp("1"),
        fp("dealer"),
        fp("alice")
    )
}

const NODE: &str = r#"
me = "party:0"
deployment = "deployment.toml"
certificate = "cert.pem"
key = "key.pem"
threads = 2
disk_budget = "50 GB"
"#;

#[test]
fn a_deployment_says_who_is_where() {
    let d = parse_deployment(&deployment()).unwrap();
    assert_eq!(d.parties[1].address, Address { host: "::1".into(), port: 7702 });
    assert_eq!(d.roles.get("model_owner"), Some(&Place::Party(1)));
    assert_eq!(d.roles.get("intruder"), None);
    let more = "[roles]\nlabel-owner = \"party:0\"\n\"data_owner.12\" = \"client:alice\"";
    let more = parse_deployment(&deployment().replace("[roles]", more)).unwrap();
    assert_eq!(more.roles.get("label_owner"), Some(&Place::Party(0)));
    assert_eq!(more.roles.of(&Place::Client("alice".into())), ["data_owner", "data_owner.12", "receiver"]);
    let other_spelling =
        deployment().replace("data_owner", "data-owner").replace("model_owner", "model-owner");
    assert_eq!(parse_deployment(&other_spelling).unwrap(), d);
    assert_eq!(d.timeouts.step.as_secs(), 60);
    assert_eq!(d.timeouts.connect, Timeouts::default().connect);
    assert_eq!(d.place_of(&fp("dealer").parse().unwrap()), Some(Place::Dealer));
    assert_eq!(d.place_of(&fp("nobody").parse().unwrap()), None);
    assert_eq!(d.address(&Place::Client("alice".into())), None);
    assert_eq!(d.places().len(), 4);
}

/// Each edit of a good deployment must be refused with a message that has both texts in it.
#[test]
fn bad_deployments_are_refused_by_name() {
    let cases: &[(&str, &str, &str, &str)] = &[
        ("plan = ", "plann = ", "plann", "line 3"),
        ("[roles]", "[roles]\nwatcher = \"dealer\"", "watcher", "line 16"),
        ("[roles]", "[roles]\n\"data_owner.1\" = \"dealer\"", "data_owner.1", "unknown role"),
        ("[roles]", "[roles]\n\"data_owner.02\" = \"dealer\"", "data_owner.02", "unknown role"),
        ("[roles]", "[roles]\n\"data-owner\" = \"party:0\"", "data_owner", "twice"),
        ("[roles]", "[roles]\nlabel_owner = \"dealer\"", "roles.label_owner", "must not"),
        ("step = 60", "steps = 60", "steps", "line 20"),
        ("step = 60", "step = 0", "timeouts.step", "out of range"),
        ("protocol = \"fss\"", "protocol = \"bgw\"", "bgw", "fss"),
        (
            "protocol = \"fss\"",
            "protocol = \"fss\"\nsecurity = \"malicious\"",
            "security",
            "fss is not secure",
        ),
        ("protocol = \"fss\"", "protocol = \"fss\"\nsecurity = \"covert\"", "covert", "line 3"),
        ("protocol = \"fss\"", "protocol = \"rep3\"", "dealer", "has no dealer"),
        ("[roles]", "[fss]\nmin_checks = 256\n[roles]", "fss.min_checks", "out of range"),
        ("[roles]", "[fss]\nmin_checks = -1\n[roles]", "min_checks", "line 16"),
        ("[roles]", "[fss]\nmin_checks = \"9\"\n[roles]", "invalid type", "line 16"),
        (
            "[roles]",
            "[fss]\nmin_check = 1\n[roles]",
            "fss has no parameter `min_check`; it has `min_checks`",
            "line 16",
        ),
        ("[roles]", "[fss]\nmin_checks = 256\n[roles]", "give 0 to 255", "line 16"),
        ("[roles]", "[rep3]\n[roles]", "`rep3`", "the protocol is fss"),
        ("[roles]", "[rep3]\nx = 1\n[roles]", "rep3 has no parameter `x`; it has none", "line 16"),
        ("[roles]", "[bgw]\n[roles]", "bgw", "line 15"),
        ("name = \"hospital\"", "fss = 3\nname = \"hospital\"", "fss's parameters", "line 1"),
        ("name = \"hospital\"", "name = \"a b\"", "name", "not a name"),
        ("10.0.0.3:7703", "10.0.0.3:0", "10.0.0.3:0", "host:port"),
        ("10.0.0.3:7703", "a.example:7701", "dealer.address", "party:0 listens"),
        ("receiver = \"client:alice\"", "receiver = \"dealer\"", "roles.receiver", "must not"),
        ("receiver = \"client:alice\"", "receiver = \"client:bob\"", "roles.receiver", "not in this"),
        ("receiver = \"client:alice\"", "receiver = \"party:2\"", "roles.receiver", "not in this"),
        ("receiver = \"client:alice\"\n", "", "receiver", "missing"),
        ("[parties.1]", "[parties.2]", "parties.2", "parties 0 to 1"),
        ("[clients.alice]", "[clients.\"al ice\"]", "al ice", "not a name"),
        ("[clients.alice]", "[clients.alice]\naddress = \"b:1\"", "clients.alice.address", "never dialled"),
    ];
    for (from, to, key, problem) in cases {
        let text = deployment().replace(from, to);
        assert_ne!(text, deployment(), "the case `{to}` changes nothing");
        let message = parse_deployment(&text).expect_err(to).to_string();
        assert!(message.contains(key) && message.contains(problem), "{to}: {message}");
    }
    let twice = deployment().replace(&fp("1"), &fp("0"));
    let message = parse_deployment(&twice).unwrap_err().to_string();
    assert!(message.contains("parties.1.fingerprint") && message.contains("party:0"), "{message}");
    let odd = deployment().replace(&fp("1"), "abc");
    assert!(parse_deployment(&odd).unwrap_err().to_string().contains("parties.1.fingerprint"));
}

/// The same with a third party in place of the dealer.
fn three_parties() -> String {
    deployment().replace("protocol = \"fss\"", "protocol = \"rep3\"").replace("[dealer]", "[parties.2]")
}

#[test]
fn three_parties_need_no_dealer_and_are_malicious_by_default() {
    let d = parse_deployment(&three_parties()).unwrap();
    assert_eq!((d.protocol, d.security, d.parties.len()), ("rep3".parse().unwrap(), Security::Malicious, 3));
    assert_eq!((&d.dealer, d.fingerprint(&Place::Dealer)), (&None, None));
    assert_eq!(d.places().len(), 4);
    assert_eq!(d.place_of(&fp("dealer").parse().unwrap()), Some(Place::Party(2)));
    let weaker = three_parties().replace("\"rep3\"", "\"rep3\"\nsecurity = \"semi-honest\"");
    assert_eq!(parse_deployment(&weaker).unwrap().security, Security::SemiHonest);
    assert_eq!(parse_deployment(&deployment()).unwrap().security, Security::SemiHonest);
    let two =
        three_parties().replace("[parties.2]", "[clients.bob]").replace("address = \"10.0.0.3:7703\"", "");
    assert!(parse_deployment(&two).unwrap_err().to_string().contains("parties.2"));
    let error =
        parse_deployment(&three_parties().replace("receiver = \"client:alice\"", "receiver = \"dealer\""));
    assert!(error.unwrap_err().to_string().contains("roles.receiver"));
}

#[test]
fn a_deployment_with_a_dealer_can_demand_checks() {
    let with = |text: String, table: &str| parse_deployment(&format!("{text}[fss]\n{table}\n"));
    let min_checks = |d: Deployment| d.parameters.all(d.protocol.facts()).collect::<Vec<_>>();
    assert_eq!(min_checks(parse_deployment(&deployment()).unwrap()), [("min_checks", "0".to_owned())]);
    assert_eq!(min_checks(parse_deployment(&three_parties()).unwrap()), []);
    for (table, least) in [("", "0"), ("min_checks = 0", "0"), ("min_checks = 255", "255")] {
        assert_eq!(min_checks(with(deployment(), table).unwrap()), [("min_checks", least.to_owned())]);
    }
    let error = with(three_parties(), "min_checks = 1").unwrap_err().to_string();
    assert!(error.contains("`fss`") && error.contains("the protocol is rep3"), "{error}");
}

#[test]
fn how_many_parties_there_are_the_deployment_says() {
    let some = Facts { name: "some", parties: 2..=5, ..privet_fss::FACTS };
    let count = |numbers: &[&str]| {
        let tables = numbers.iter().map(|n| ((*n).to_owned(), ())).collect();
        deployment::count_parties(&some, &tables).map_err(|e| e.to_string())
    };
    assert_eq!(count(&["0", "1", "2", "3", "4"]), Ok(5));
    assert_eq!(count(&["0", "1", "2"]), Ok(3));
    // Party 2 has no table, and is missed when it is looked for; so is party 1.
    assert_eq!(count(&["0", "1", "3"]), Ok(3));
    assert_eq!(count(&["0"]), Ok(2));
    for odd in ["5", "01", "+1", "x", ""] {
        let error = count(&["0", "1", odd]).unwrap_err();
        assert!(
            error.contains(&format!("`parties.{odd}`")) && error.contains("some has parties 0 to 4"),
            "{error}"
        );
    }
}

#[test]
fn a_family_says_who_may_have_a_role_and_why() {
    let rule = |role, holder| RoleRule { role, holder, because: "it computes on them" };
    let rules = [rule("model_owner", Holder::Party(0)), rule("receiver", Holder::AnyParty)];
    let refused = |role: &str, place: &str| against_rules(&rules, role, &place.parse().unwrap());
    for (role, place) in [
        ("model_owner", "party:0"),
        ("model_owner.2", "party:0"),
        ("receiver", "party:1"),
        ("data_owner", "client:a"),
    ] {
        assert_eq!(refused(role, place), None, "{role} {place}");
    }
    for (role, place, holder) in [
        ("model_owner", "party:1", "party:0"),
        ("model_owner.2", "client:a", "party:0"),
        ("receiver", "client:a", "a party"),
    ] {
        let (problem, remedy) = refused(role, place).unwrap();
        assert!(problem.contains(place) && problem.contains("it computes on them"), "{problem}");
        assert!(remedy.contains(&format!("to {holder},")), "{remedy}");
    }
}

#[test]
fn plain_tcp_between_machines_needs_a_word_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_node(dir.path());
    let load = |insecure: &str, listen: &str, deployment: String| {
        fs::write(&path, format!("{NODE}insecure = {insecure}\n{listen}\n")).unwrap();
        fs::write(dir.path().join("deployment.toml"), deployment).unwrap();
        Loaded::load(&path).map(|l| l.node.insecure)
    };
    let here = || deployment().replace("a.example", "localhost").replace("10.0.0.3", "127.0.0.5");
    assert!(load("true", "", here()).unwrap());
    for (listen, deployment, at) in [
        ("", deployment(), "a.example:7701"),
        ("", here().replace("[::1]", "[fe80::1%lo]"), "[fe80::1%lo]:7702"),
        ("", here().replace("127.0.0.5", "localhost.example"), "localhost.example:7703"),
        ("listen = \"0.0.0.0:7701\"", here(), "0.0.0.0:7701"),
    ] {
        let error = load("true", listen, deployment.clone()).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("node.toml") && said.contains("`insecure`") && said.contains(at), "{said}");
        assert!(error.remedy().contains("i-accept-no-encryption"));
        assert!(load("\"i-accept-no-encryption\"", listen, deployment.clone()).unwrap());
        assert!(!load("false", listen, deployment).unwrap());
    }
}

#[test]
fn what_is_still_missing_comes_with_how_to_get_it() {
    let text = deployment();
    let start = text.find("[dealer]").unwrap();
    let end = text.find("[clients").unwrap();
    let error = parse_deployment(&format!("{}{}", &text[..start], &text[end..])).unwrap_err();
    assert!(error.to_string().contains("`dealer`"), "{error}");
    assert!(error.remedy().contains("--join"), "{}", error.remedy());
}

#[test]
fn nodes_are_read_and_refused() {
    let node = parse_node(NODE).unwrap();
    assert_eq!((node.me, node.disk_budget), (Place::Party(0), Some(Bytes(50_000_000_000))));
    assert_eq!((node.ahead, node.memory_budget), (2, None));
    let set = parse_node(&format!("{NODE}ahead = 7\nmemory_budget = 0\n")).unwrap();
    assert_eq!((set.ahead, set.memory_budget), (7, Some(Bytes(0))));
    assert!(parse_node(&format!("{NODE}ahead = 0\n")).unwrap_err().to_string().contains("`ahead`"));
    assert_eq!(node.checkpoints_kept, 4);
    assert_eq!(parse_node(&format!("{NODE}checkpoints_kept = 1\n")).unwrap().checkpoints_kept, 1);
    let none = parse_node(&format!("{NODE}checkpoints_kept = 0\n")).unwrap_err().to_string();
    assert!(none.contains("`checkpoints_kept`"), "{none}");
    assert_eq!(node.store, PathBuf::from("store"));
    assert!(!node.insecure);
    for (line, says) in [
        ("colour = 1", "colour"),
        ("threads = 2", "duplicate key"),
        ("listen = \"nowhere\"", "host:port"),
        ("insecure = \"no\"", "boolean"),
    ] {
        let message = parse_node(&format!("{NODE}{line}\n")).expect_err(line).to_string();
        assert!(message.contains(says) && message.contains("line 8"), "{line}: {message}");
    }
    for (from, to) in
        [("threads = 2", "threads = 0"), ("50 GB", "50 furlongs"), ("50 GB", "0"), ("party:0", "party:x")]
    {
        assert!(parse_node(&NODE.replace(from, to)).is_err(), "{to}");
    }
    let client = NODE.replace("party:0", "client:alice");
    assert!(parse_node(&format!("{client}listen = \"a:1\"")).unwrap_err().to_string().contains("listen"));
}

#[test]
fn what_the_log_says_and_where_metrics_are_is_in_tables() {
    let node = parse_node(NODE).unwrap();
    assert_eq!((node.log, node.metrics), (LogSettings::default(), None));
    let text =
        format!("{NODE}[log]\nlevel = \"warn\"\nformat = \"json\"\n[metrics]\nlisten = \"127.0.0.1:9000\"\n");
    let node = parse_node(&text).unwrap();
    assert_eq!((node.log.level, node.log.format), (Some(Level::Warn), Some(LogFormat::Json)));
    let listen: Address = "127.0.0.1:9000".parse().unwrap();
    assert_eq!(node.metrics, Some(MetricsSettings { listen, anywhere: false }));
    for (table, says) in [
        ("[log]\nlevel = \"loud\"", "loud"),
        ("[log]\nformat = \"xml\"", "xml"),
        ("[log]\ncolour = 1", "colour"),
        ("[metrics]", "listen"),
        ("[metrics]\nlisten = \"9000\"", "host:port"),
        ("[metrics]\nlisten = \"0.0.0.0:9000\"", "`metrics.listen`"),
        ("[metrics]\nlisten = \"metrics.example:9000\"", "`metrics.listen`"),
    ] {
        let refused = parse_node(&format!("{NODE}{table}\n")).unwrap_err().to_string();
        assert!(refused.contains(says), "{table}: {refused}");
    }
    let anywhere = "[metrics]\nlisten = \"0.0.0.0:9000\"\nanywhere = true\n";
    assert!(parse_node(&format!("{NODE}{anywhere}")).unwrap().metrics.unwrap().anywhere);
    let client = NODE.replace("party:0", "client:alice");
    assert!(
        parse_node(&format!("{client}{anywhere}")).unwrap_err().to_string().contains("clients serve none")
    );
}

#[test]
fn sizes_have_units() {
    for (text, bytes) in [
        ("0", 0),
        ("7", 7),
        ("1kB", 1000),
        ("2 MiB", 2 << 20),
        ("1.5 GB", 1_500_000_000),
        ("0.0625KiB", 64),
        ("0.0001 kB", 0),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
    }
    let zeros = format!("1.{:0>41} GB", 1);
    for text in
        ["", "GB", "-1", ".5 GB", "1. GB", "1.5", "1.0 B", "1.2.3 GB", "1e3 GB", "1 gb", zeros.as_str()]
    {
        assert!(text.parse::<Bytes>().is_err(), "{text}");
    }
    for text in ["18446744073709551616", "18446744073709551615 kB", "18446744073709551615.5 kB"] {
        assert!(text.parse::<Bytes>().is_err(), "{text}");
    }
}

#[test]
fn places_addresses_and_cards_read_back() {
    for text in ["party:0", "party:9", "dealer", "client:a.b-c_1"] {
        assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
    }
    let long = format!("client:{}", "x".repeat(65));
    for text in
        ["", "party", "party:", "party:10", "party:+1", "client:", "client:../x", "client:é", "Dealer", &long]
    {
        assert!(text.parse::<Place>().is_err(), "{text}");
    }
    for text in ["h:1", "[::1]:65535", "1.2.3.4:7"] {
        assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
    }
    for text in ["h", "h:", "h:0", "h:65536", ":1", "::1:5", "[h]:5", "[::1:5", "h h:1", "h/x:1", "\u{1}:1"] {
        assert!(text.parse::<Address>().is_err(), "{text}");
    }
    let cards = [format!("party:1@h:7#{}", fp("x")), format!("client:bob#{}", fp("x"))];
    for text in &cards {
        assert_eq!(text.parse::<Card>().unwrap().to_string(), *text);
    }
    for text in [format!("party:1#{}", fp("x")), format!("client:bob@h:7#{}", fp("x")), "dealer@h:7".into()] {
        assert!(text.parse::<Card>().is_err(), "{text}");
    }
}

#[test]
fn files_are_taken_relative_to_where_they_stand() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_node(dir.path());
    let loaded = Loaded::load(&path).unwrap();
    assert_eq!(loaded.deployment.plan, dir.path().join("plan.json"));
    assert_eq!(loaded.node.store, dir.path().join("store"));
    assert_eq!(loaded.roles(), Vec::<&str>::new());

    fs::write(&path, NODE.replace("party:0", "client:mallory")).unwrap();
    let message = Loaded::load(&path).unwrap_err().to_string();
    assert!(message.contains("node.toml") && message.contains("mallory"), "{message}");

    fs::write(&path, NODE.replace("key =", "keys =")).unwrap();
    assert!(Loaded::load(&path).unwrap_err().to_string().contains("node.toml: TOML parse error at line 5"));
    assert!(matches!(Loaded::load(Path::new("/no/such")), Err(ConfigError::Read { .. })));
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = write_node(dir.path());
    fs::set_permissions(dir.path().join("key.pem"), fs::Permissions::from_mode(0o644)).unwrap();
    let error = Loaded::load(&path).unwrap_err();
    assert!(error.to_string().contains("0644") && error.remedy().contains("chmod 600"), "{error}");
}

fn write_node(dir: &Path) -> PathBuf {
    fs::write(dir.join("deployment.toml"), deployment()).unwrap();
    fs::write(dir.join("key.pem"), "not looked into here").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(dir.join("key.pem"), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let path = dir.join("node.toml");
    fs::write(&path, NODE).unwrap();
    path
}

#[test]
fn every_key_that_nodes_must_agree_on_is_a_term_and_no_other() {
    let base = deployment();
    let terms = |text: &str| parse_deployment(text).unwrap().terms();
    let first = |text: &str| terms(&base).difference(&terms(text)).map(|d| d.term);
    for (from, to, term) in [
        ("data_owner = \"client:alice\"", "data_owner = \"party:0\"", "roles.data_owner"),
        ("model_owner = \"party:1\"", "model_owner = \"party:0\"", "roles.model_owner"),
        ("receiver = \"client:alice\"", "receiver = \"party:0\"", "roles.receiver"),
        ("[roles]", "[roles]\nlabel_owner = \"party:0\"", "roles.label_owner"),
        ("step = 60", "step = 61", "timeouts.step"),
        ("step = 60", "step = 60\nconnect = 7", "timeouts.connect"),
        ("step = 60", "step = 60\nheartbeat = 7", "timeouts.heartbeat"),
        ("[roles]", "[fss]\nmin_checks = 1\n[roles]", "fss.min_checks"),
        (&*fp("0"), &*fp("other"), "the certificate of party:0"),
        (&*fp("1"), &*fp("other"), "the certificate of party:1"),
        (&*fp("dealer"), &*fp("other"), "the certificate of dealer"),
        (&*fp("alice"), &*fp("other"), "the certificate of client:alice"),
    ] {
        let changed = base.replace(from, to);
        assert_ne!(changed, base, "{from}");
        assert_eq!(first(&changed).as_deref(), Some(term), "{from} to {to}");
    }
    let dealer = base.find("[dealer]").unwrap()..base.find("[clients.alice]").unwrap();
    let third = format!("[parties.2]\naddress = \"c.example:1\"\nfingerprint = \"{}\"\n", fp("2"));
    let mut rep3 = base.replace("protocol = \"fss\"", "protocol = \"rep3\"");
    rep3.replace_range(dealer.start + 1..dealer.end + 1, &third);
    assert_eq!(first(&rep3).as_deref(), Some("protocol"));
    let weaker = rep3.replace("protocol = \"rep3\"", "protocol = \"rep3\"\nsecurity = \"semi-honest\"");
    let difference = terms(&rep3).difference(&terms(&weaker)).unwrap();
    assert_eq!(
        [&*difference.term, &*difference.ours, &*difference.theirs],
        ["security", "malicious", "semi-honest"]
    );
    // A node's own business.
    let stranger = format!("[clients.eve]\nfingerprint = \"{}\"\n[roles]", fp("eve"));
    for (from, to) in [
        ("a.example:7701", "inside.example:1"),
        ("name = \"hospital\"", "name = \"clinic\""),
        ("plan = \"plan.json\"", "plan = \"other.json\""),
        ("[roles]", &*stranger),
    ] {
        let changed = base.replace(from, to);
        assert_ne!(changed, base, "{from}");
        assert_eq!(first(&changed), None, "{from} to {to}");
    }
}

/// A server with two clients, each of which is party 1 of a deployment of its own.
fn served() -> String {
    format!(
        r#"name = "hospital"
protocol = "heot"
plan = "plan.json"
[parties.0]
address = "a.example:7701"
fingerprint = "{}"
[parties.1]
each_client = true
[clients.alice]
fingerprint = "{}"
[clients.bob]
fingerprint = "{}"
address = "127.0.0.1:7802"
[roles]
data_owner = "party:1"
model_owner = "party:0"
receiver = "party:1"
"#,
        fp("0"),
        fp("alice"),
        fp("bob")
    )
}

fn server(text: &str) -> Server {
    match parse_deployment_file(text).unwrap() {
        DeploymentFile::EachClient(server) => *server,
        DeploymentFile::One(_) => panic!("{text}"),
    }
}

#[test]
fn each_client_of_a_server_is_party_1_of_a_deployment_of_its_own() {
    let server = server(&served());
    let names: Vec<&str> = server.clients().map(|(name, _)| name).collect();
    assert_eq!(names, ["alice", "bob"]);
    for (name, address) in [("alice", "127.0.0.1:7702"), ("bob", "127.0.0.1:7802")] {
        let deployment = server.of(name).unwrap();
        assert_eq!(deployment.parties.len(), 2);
        assert_eq!(deployment.parties[1].fingerprint, fp(name).parse().unwrap());
        assert_eq!(deployment.parties[1].address.to_string(), address);
        assert!(deployment.clients.is_empty(), "nobody else is in it");
        // As if it stood in a file of its own.
        let party = format!("address = \"{address}\"\nfingerprint = \"{}\"", fp(name));
        let alone = served().replace("each_client = true", &party);
        let alone = alone.split("[clients").next().unwrap().to_owned()
            + "[roles]"
            + alone.split("[roles]").nth(1).unwrap();
        assert_eq!(parse_deployment(&alone).unwrap(), *deployment);
    }
    // A client's own file lacks the others, and says the same of it.
    let own = served().replace(
        &format!("[clients.bob]\nfingerprint = \"{}\"\naddress = \"127.0.0.1:7802\"\n", fp("bob")),
        "",
    );
    assert_eq!(self::server(&own).of("alice"), server.of("alice"));
    assert_eq!(self::server(&own).of("bob"), None);
    assert_eq!(self::server(&own).common(), server.common());
    let nobody = served().split("[clients").next().unwrap().to_owned()
        + "[roles]"
        + served().split("[roles]").nth(1).unwrap();
    assert_eq!(self::server(&nobody).clients().count(), 0, "a server may wait for its first client");
    assert_eq!(self::server(&nobody).common(), server.common());
    let other = served().replace("a.example", "b.example");
    assert_ne!(self::server(&other).common(), server.common());
    assert!(parse_deployment(&served()).unwrap_err().to_string().contains("each client"));
}

#[test]
fn a_server_of_many_clients_that_cannot_be_is_refused() {
    let refused = |from: &str, to: &str| {
        let text = served().replacen(from, to, 1);
        assert_ne!(text, served(), "{from}");
        let e = parse_deployment_file(&text).unwrap_err();
        format!("{e}; {}", e.remedy())
    };
    for (from, to, says) in [
        ("\"heot\"", "\"semi2k\"", "no server that many clients share"),
        ("each_client = true", "each_client = true\naddress = \"b.example:1\"", "certificate of its own"),
        (&*fp("bob"), &*fp("alice"), "client:alice has the same certificate"),
        (&*fp("bob"), &*fp("0"), "party:0 has the same certificate"),
        ("127.0.0.1:7802", "10.0.0.9:7802", "others could reach this address"),
        ("127.0.0.1:7802", "0.0.0.0:7802", "others could reach this address"),
        (
            "data_owner = \"party:1\"",
            "data_owner = \"client:alice\"",
            "client:alice is not in this deployment",
        ),
        ("model_owner = \"party:0\"", "model_owner = \"party:1\"", "must not have this role"),
        ("[clients.alice]", "[clients.alice]\neach_client = true", "only party 1"),
        ("[parties.0]", "[parties.0]\neach_client = true", "only party 1"),
        (&*format!("address = \"a.example:7701\"\nfingerprint = \"{}\"", fp("0")), "", "parties.0"),
        (
            &*format!("[clients.alice]\nfingerprint = \"{}\"", fp("alice")),
            "[clients.alice]",
            "clients.alice.fingerprint",
        ),
    ] {
        let said = refused(from, to);
        assert!(said.contains(says), "{from}: {said}");
    }
    let odd =
        served().replace("each_client = true", &format!("address = \"b:1\"\nfingerprint = \"{}\"", fp("1")));
    assert!(parse_deployment_file(&odd).is_err(), "a client with an address, where party 1 is somebody else");
}

#[test]
fn nodes_of_a_server_and_of_its_clients_find_their_part() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("deployment.toml"), served()).unwrap();
    fs::write(path("key.pem"), "").unwrap();
    fs::set_permissions(path("key.pem"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let node = |me: &str, more: &str| {
        let text = NODE.replace("party:0", me) + more;
        fs::write(path("node.toml"), text).unwrap();
        path("node.toml")
    };
    let host = Host::load(&node("party:0", "")).unwrap();
    let [alice, bob] = ["alice", "bob"].map(|client| host.of(client).unwrap());
    assert_eq!((alice.node.store.clone(), bob.node.store), (path("store/alice"), path("store/bob")));
    assert_eq!(alice.deployment.plan, path("plan.json"));
    assert!(alice.node.disk_budget == host.node.disk_budget && host.of("carol").is_none());
    let client = Loaded::load(&node("client:alice", "")).unwrap();
    assert_eq!((client.node.me, client.deployment), (Place::Party(1), alice.deployment));
    for (me, more, says) in [
        ("party:0", "", "`privet serve`"),
        ("party:1", "", "party:1 is not in"),
        ("client:carol", "", "client:carol is not in"),
        ("client:alice", "insecure = true", "certificates"),
    ] {
        let e = Loaded::load(&node(me, more)).unwrap_err();
        assert!(format!("{e}; {}", e.remedy()).contains(says), "{me}: {e}");
    }
    assert!(Host::load(&node("client:alice", "")).unwrap_err().to_string().contains("not the server"));
    assert!(
        Host::load(&node("party:0", "insecure = true")).unwrap_err().to_string().contains("certificates")
    );
}
