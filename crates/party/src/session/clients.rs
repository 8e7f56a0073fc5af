//! One server with many clients: a process that listens once, and serves each client in a deployment of its own.
//!
//! Whoever calls is known by the certificate that TLS has seen, and that alone says whose deployment the call is for
//! ([`tenant`]). From there on all is as for a party with one client: a service on a thread of its own, a door with its seats,
//! stores, sessions. Clients share what the family shares among their plans, and the processor.
//!
//! Whom the server serves stands in the deployment file, which is read again when it changes. A deployment begins with its
//! client's first call. A client that is gone from the file is let in no more. Its service ends after the job under way.

use super::access::tenant;
use super::door::Door;
use super::engine::Served;
use super::family::Family;
use super::links::{Links, Purpose};
use super::party::{ServeError, TURN, Wake, start};
use super::threads::{Crew, aside, no_thread};
use crate::config::{CLIENT_PARTY, DeploymentFile, Host as Config, Place, Server, load_file};
use crate::events::{Count, Event, Events, Name, Reason, Why, reason};
use crate::store::StoreError;
use privet_kernels::Device;
use privet_net::tcp::Incoming;
use privet_net::{Hello, Identity, Listener, NetError, NetworkProfile, Pin, Pins, Protection, Terms};
use privet_plan::Program;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::SystemTime;

/// The place of the server in every deployment.
const SERVER: u8 = 0;

/// The server's side of all its clients' connections.
pub struct Host {
    config: Config,
    security: Protection,
    network: NetworkProfile,
    program: [u8; 32],
}

impl Host {
    /// Load the server's identity.
    pub fn new(config: Config, program: &Program, network: NetworkProfile) -> Result<Host, NetError> {
        let identity = Identity::load(&config.node.certificate, &config.node.key)?;
        Ok(Host { config, security: Protection::Tls(identity), network, program: program.hash() })
    }

    /// The node's own configuration, and its clients' deployments.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The server's side in a client's deployment.
    fn links(&self, client: &str) -> Option<Links> {
        Some(Links::within(self.config.of(client)?, self.security.clone(), self.program, self.network))
    }

    /// All clients, each as party 1 with its own certificate.
    fn pins(&self) -> Pins {
        let name = Place::Party(CLIENT_PARTY);
        let clients = self.config.server.clients();
        let certificates = clients.filter_map(|(_, deployment)| deployment.fingerprint(&name));
        certificates.map(|fingerprint| Pin::new(name.to_string(), *fingerprint)).collect()
    }

    fn listen(&self) -> Result<Listener, NetError> {
        let address = self.config.node.listen.as_ref().or(self.config.server.common().address());
        let address = address.map(ToString::to_string).unwrap_or_default();
        Listener::bind(&address, self.security.clone(), self.pins())
    }

    /// What a caller is told that is turned away before it is known whose it is.
    fn greeting(&self) -> Hello {
        let me = Place::Party(SERVER).to_string();
        Hello::new(&me, self.program, Purpose::Client.word(), Terms::default())
    }
}

/// Serve until the process ends.
pub fn serve(
    host: Host,
    program: Arc<Program>,
    device: &dyn Device,
    events: Events,
) -> Result<(), ServeError> {
    let protocol = host.config.server.common().protocol();
    let place = Place::Party(SERVER);
    let family = protocol.registered();
    let serve = family.serve_clients.ok_or_else(|| ServeError::NotAParty(place.clone()))?;
    events.emit(Event::Started { place, protocol: Name::of(protocol.facts().name), device: device.into() });
    serve(host, program, events)
}

/// The same for a family that says how a client's plans are served, with its part of the connections and where its events go.
pub(super) fn serve_family<F: Family>(
    host: Host,
    program: Arc<Program>,
    events: Events,
    plans: impl Fn(&Arc<Links>, &Events) -> Result<BTreeMap<String, Served<F>>, StoreError>,
) -> Result<(), ServeError> {
    let listener = host.listen()?;
    if let Ok(address) = listener.local_address()?.to_string().parse() {
        events.emit(Event::Listening { place: Place::Party(SERVER), address });
    }
    // It may have changed since it was loaded.
    let read = Version(None);
    let clients = Count::of(host.config.server.clients().count() as u64);
    events.emit(Event::ClientsServed { clients });
    let open = |host: &Host, client: &str| {
        let events = events.of_client(Place::Client(client.to_owned()));
        Tenancy::open(host, client, &program, &events, &plans)
    };
    let mut reception = Reception { host, events: events.clone(), tenancies: BTreeMap::new(), read, open };
    loop {
        reception.read_again(&listener);
        match listener.accept(TURN) {
            Ok(caller) => reception.take_call(caller),
            Err(NetError::Timeout { .. }) => {}
            Err(e) => events.emit(Event::Stranger { reason: e.why() }),
        }
    }
}

/// A client's deployment that is served.
struct Tenancy {
    door: Door,
    wakes: Sender<Wake>,
    /// Its service has ended, or panicked.
    ended: Arc<AtomicBool>,
}

impl Tenancy {
    fn open<F: Family>(
        host: &Host,
        client: &str,
        program: &Arc<Program>,
        events: &Events,
        plans: impl Fn(&Arc<Links>, &Events) -> Result<BTreeMap<String, Served<F>>, StoreError>,
    ) -> Result<Tenancy, ServeError> {
        let place = Place::Client(client.to_owned());
        let links = host.links(client).ok_or_else(|| ServeError::NotAParty(place.clone()))?;
        let links = Arc::new(links);
        let plans = plans(&links, events)?;
        let (crew, watch) = Crew::new();
        let (door, wakes) = start(SERVER, links, program.clone(), plans, events.clone(), &crew)?;
        let ended = Arc::new(AtomicBool::new(false));
        let (over, told) = (ended.clone(), events.clone());
        aside("privet-client", events, move || {
            if watch.end().is_some() {
                told.emit(Event::ServicePanicked { place });
            }
            over.store(true, Ordering::Release);
        });
        Ok(Tenancy { door, wakes, ended })
    }
}

/// Which version of a file it is, as far as the system tells.
#[derive(PartialEq)]
struct Version(Option<(SystemTime, u64)>);

impl Version {
    fn of(path: &Path) -> Version {
        Version(fs::metadata(path).ok().and_then(|meta| Some((meta.modified().ok()?, meta.len()))))
    }
}

/// Takes calls, and leads each to its client's door.
struct Reception<Open> {
    host: Host,
    events: Events,
    /// By client.
    tenancies: BTreeMap<String, Tenancy>,
    /// The deployment file as it was read last.
    read: Version,
    open: Open,
}

impl<Open: Fn(&Host, &str) -> Result<Tenancy, ServeError>> Reception<Open> {
    fn take_call(&mut self, caller: Incoming) {
        let client = match tenant(&self.host.config.server, caller.certificate().as_ref()) {
            Ok(client) => client.to_owned(),
            Err(why) => {
                self.events.emit(Event::Stranger {
                    reason: reason!("access.no_client", "a certificate that is no client's any more"),
                });
                return self.refuse(caller, why);
            }
        };
        match self.door(&client) {
            Ok(door) => door.take_call(caller),
            Err(reason) => {
                self.events.emit(Event::ClientFailed { place: Place::Client(client), reason });
                self.refuse(caller, "the server cannot serve this client now; its log says why");
            }
        }
    }

    /// A client's door. Where its service has ended by a panic it begins anew, as a party does that is started again.
    fn door(&mut self, client: &str) -> Result<Door, Reason> {
        self.tenancies.retain(|_, tenancy| !tenancy.ended.load(Ordering::Acquire));
        if let Some(tenancy) = self.tenancies.get(client) {
            return Ok(tenancy.door.clone());
        }
        let opened = (self.open)(&self.host, client).map_err(|e| why(&e))?;
        Ok(self.tenancies.entry(client.to_owned()).or_insert(opened).door.clone())
    }

    fn refuse(&self, caller: Incoming, why: &'static str) {
        let greeting = self.host.greeting();
        aside("privet-caller", &self.events, move || caller.refuse(&greeting, why));
    }

    /// Take in whom the deployment file names, where it has changed.
    fn read_again(&mut self, listener: &Listener) {
        let path = &self.host.config.node.deployment;
        let now = Version::of(path);
        if now == self.read {
            return;
        }
        self.read = now;
        let reason = match load_file(path) {
            Ok(DeploymentFile::EachClient(server)) if *server == self.host.config.server => return,
            Ok(DeploymentFile::EachClient(server)) if server.common() == self.host.config.server.common() => {
                return self.serve_those_of(*server, listener);
            }
            Ok(_) => reason!("clients.other", "more than clients changed: start this server again"),
            Err(_) => reason!("clients.unread", "it is no deployment file: `privet doctor` says why"),
        };
        self.events.emit(Event::ClientsUnread { reason });
    }

    fn serve_those_of(&mut self, server: Server, listener: &Listener) {
        let before = std::mem::replace(&mut self.host.config.server, server);
        listener.admit(self.host.pins());
        let server = &self.host.config.server;
        for (client, _) in before.clients().filter(|(name, old)| server.of(name) != Some(*old)) {
            if let Some(tenancy) = self.tenancies.remove(client) {
                let _ = tenancy.wakes.send(Wake::Over);
            }
            self.events.emit(Event::ClientOver { place: Place::Client(client.to_owned()) });
        }
        let clients = Count::of(server.clients().count() as u64);
        self.events.emit(Event::ClientsServed { clients });
    }
}

/// Why a client's deployment cannot be served, as events may say it.
fn why(e: &ServeError) -> Reason {
    match e {
        ServeError::Net(e) => e.why(),
        ServeError::Store(e) => e.why(),
        ServeError::Thread(e) => no_thread(e),
        ServeError::NotAParty(_) => reason!("clients.gone", "it is not in the deployment file any more"),
        ServeError::Panicked(_) => reason!("clients.panicked", "a thread panicked: report this as a bug"),
    }
}
