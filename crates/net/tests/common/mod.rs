//! Two connected channels over loopback TCP.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use privet_net::{
    Channel, Hello, Identity, Listener, NetError, Options, Pin, Protection, Step, TcpChannel, Terms, dial,
};

pub const PATIENCE: Duration = Duration::from_secs(20);

pub fn step(id: u32) -> Step {
    Step::new(id, format!("layer{id} / open"))
}

/// The identities of two parties, made once.
pub fn identities() -> &'static [Identity; 2] {
    static IDS: OnceLock<[Identity; 2]> = OnceLock::new();
    IDS.get_or_init(|| ["party 0", "party 1"].map(|n| Identity::generate(n).unwrap()))
}

/// What both parties' deployments say, but for this.
pub fn terms(security: &str) -> Terms {
    Terms::new([("protocol", "rep3"), ("security", security)].map(|(n, v)| (n.to_owned(), v.to_owned())))
}

pub fn hello(role: &str) -> Hello {
    Hello::new(role, [9; 32], "online", terms("malicious"))
}

pub fn protection(party: usize, encrypted: bool) -> Protection {
    if encrypted { Protection::Tls(identities()[party].clone()) } else { Protection::InsecurePlain }
}

pub fn pin(party: usize) -> Pin {
    Pin::new(format!("party {party}"), identities()[party].fingerprint())
}

/// Party 0 listens, party 1 dials, with these greetings.
pub fn meet(
    encrypted: bool,
    hellos: [Hello; 2],
    options: [Options; 2],
) -> (Result<TcpChannel, NetError>, Result<TcpChannel, NetError>) {
    let listener = Listener::bind("127.0.0.1:0", protection(0, encrypted), vec![pin(1)]).unwrap();
    let address = listener.local_address().unwrap();
    let [hello0, hello1] = hellos;
    let [options0, options1] = options;
    let dialer = thread::spawn(move || {
        dial(&address, &protection(1, encrypted), &pin(0), &hello1, options1, PATIENCE)
            .map(|(channel, _)| channel)
    });
    let accepted = listener.accept_as(&hello0, options0, PATIENCE).map(|(channel, _)| channel);
    (accepted, dialer.join().unwrap())
}

/// Party 0's and party 1's channel.
pub fn connect_with(encrypted: bool, options: [Options; 2]) -> (TcpChannel, TcpChannel) {
    let (a, b) = meet(encrypted, [hello("party 0"), hello("party 1")], options);
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!((a.peer(), b.peer()), ("party 1", "party 0"));
    assert_eq!((a.is_encrypted(), b.is_encrypted()), (encrypted, encrypted));
    (a, b)
}

pub fn connect(encrypted: bool) -> (TcpChannel, TcpChannel) {
    connect_with(encrypted, [Options::default(), Options::default()])
}
