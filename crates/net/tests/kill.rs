//! A peer in another process, killed for real.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::{PATIENCE, hello, identities, pin, protection, step};
use privet_net::{Channel, Fingerprint, Identity, Listener, NetError, Options, Pin, Protection, dial};

const ADDRESS: &str = "PRIVET_NET_TEST_ADDRESS";
const FOLDER: &str = "PRIVET_NET_TEST_FOLDER";
const SERVER: &str = "PRIVET_NET_TEST_SERVER";

/// Not a test of its own: the process that the test below starts and kills.
#[test]
fn child_process() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let folder = std::env::var(FOLDER).unwrap();
    let identity = Identity::load(&Path::new(&folder).join("cert"), &Path::new(&folder).join("key")).unwrap();
    let server = Pin::new("party 0", Fingerprint::parse(&std::env::var(SERVER).unwrap()).unwrap());
    let (options, hello) = (Options::default(), hello("party 1"));
    let (mut channel, _) =
        dial(&address, &Protection::Tls(identity), &server, &hello, options, PATIENCE).unwrap();
    for i in 0.. {
        channel.exchange(&step(i), vec![1; 1 << 20], 1 << 20).unwrap();
    }
}

#[test]
fn a_killed_process_is_reported_at_once_with_the_step() {
    let dir = tempfile::tempdir().unwrap();
    identities()[1].write(&dir.path().join("cert"), &dir.path().join("key"), false).unwrap();
    let listener = Listener::bind("127.0.0.1:0", protection(0, true), vec![pin(1)]).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_process"])
        .env(ADDRESS, listener.local_address().unwrap())
        .env(FOLDER, dir.path())
        .env(SERVER, identities()[0].fingerprint().to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut channel, _) = listener.accept_as(&hello("party 0"), Options::default(), PATIENCE).unwrap();
    for i in 0..20 {
        channel.exchange(&step(i), vec![2; 1 << 20], 1 << 20).unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let error = (20..).find_map(|i| channel.exchange(&step(i), vec![2; 1 << 20], 1 << 20).err()).unwrap();
    // Not `Silent`: it is the end of the connection that was noticed.
    assert!(matches!(error, NetError::Closed { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.starts_with("party 1 (127.0.0.1:") && text.contains("open)") && text.contains("killed"),
        "{text}"
    );
}
