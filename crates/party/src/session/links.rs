//! Connections of a deployment: who may connect, and how this node dials the others.

use super::control::Talk;
use super::idle::Idle;
use super::preparing::MOST_PREPARATIONS;
use super::probe;
use crate::config::{Loaded, Place};
use privet_net::tcp::Incoming;
use privet_net::{
    Channel, Hello, Identity, Listener, NetError, NetworkProfile, Options, Pin, Protection, TcpChannel, dial,
};
use privet_plan::Program;
use std::fmt::Display;
use std::time::Duration;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Between parties.
    Parties,
    /// A client's requests.
    Client,
    /// Keys from the dealer.
    Keys,
    /// `privet doctor`.
    Doctor,
    /// Between parties, for one preparation, beside their connection for orders and runs.
    Preparation,
}

impl Purpose {
    /// Every purpose.
    pub const ALL: [Purpose; 5] =
        [Purpose::Parties, Purpose::Client, Purpose::Keys, Purpose::Doctor, Purpose::Preparation];

    /// As greetings have it.
    pub fn word(self) -> &'static str {
        match self {
            Purpose::Parties => "parties",
            Purpose::Client => "client",
            Purpose::Keys => "keys",
            Purpose::Doctor => probe::PURPOSE,
            Purpose::Preparation => "preparation",
        }
    }

    /// From a greeting.
    pub fn parse(word: &str) -> Option<Purpose> {
        Purpose::ALL.into_iter().find(|p| p.word() == word)
    }
}

/// This node's side of all its connections.
pub struct Links {
    /// The node's own configuration and the deployment's.
    pub config: Loaded,
    /// Network emulation on what this node sends to other parties.
    pub network: NetworkProfile,
    security: Protection,
    program: [u8; 32],
    /// Connections to the dealer, between deals.
    to_dealer: Idle,
}

/// Whether a connection has ended without a reason from its peer, as where that is no more.
fn is_gone(channel: &mut TcpChannel) -> bool {
    let ended = |e: &NetError| {
        matches!(e, NetError::Closed { .. } | NetError::Ended { .. } | NetError::Silent { .. })
    };
    !channel.is_open() && channel.recv(&Talk::Deal.step(), 0).is_err_and(|e| ended(&e))
}

impl Links {
    /// Load this node's identity.
    pub fn new(config: Loaded, program: &Program, network: NetworkProfile) -> Result<Links, NetError> {
        let security = match config.node.insecure {
            true => Protection::InsecurePlain,
            false => Protection::Tls(Identity::load(&config.node.certificate, &config.node.key)?),
        };
        Ok(Links::within(config, security, program.hash(), network))
    }

    /// The side of a node whose identity is loaded already, in one of its deployments of a program.
    pub(super) fn within(
        config: Loaded,
        security: Protection,
        program: [u8; 32],
        network: NetworkProfile,
    ) -> Links {
        Links { config, network, security, program, to_dealer: Idle::new(MOST_PREPARATIONS) }
    }

    /// Whether connections are mutual TLS.
    pub fn encrypted(&self) -> bool {
        !self.config.node.insecure
    }

    fn pin(&self, place: &Place) -> Pin {
        match (self.config.node.insecure, self.config.deployment.fingerprint(place)) {
            (false, Some(fingerprint)) => Pin::new(place.to_string(), *fingerprint),
            _ => Pin::insecure(place.to_string()),
        }
    }

    fn hello(&self, purpose: Purpose) -> Hello {
        let Loaded { node, deployment } = &self.config;
        Hello::new(&node.me.to_string(), self.program, purpose.word(), deployment.terms())
    }

    fn options(&self, purpose: Purpose) -> Options {
        let network = match purpose {
            Purpose::Parties | Purpose::Preparation => self.network,
            Purpose::Client | Purpose::Keys | Purpose::Doctor => NetworkProfile::LAN,
        };
        let heartbeat = self.config.deployment.timeouts.heartbeat;
        Options { network, heartbeat, silence: 6 * heartbeat, filter: None }
    }

    /// Listen where the deployment says others reach this node.
    pub fn listen(&self) -> Result<Listener, NetError> {
        let Loaded { node, deployment } = &self.config;
        let address = node.listen.clone().or_else(|| deployment.address(&node.me).cloned());
        let address = address.map(|a| a.to_string()).unwrap_or_default();
        let others = deployment.places().into_iter();
        Listener::bind(&address, self.security.clone(), others.map(|p| self.pin(&p)).collect())
    }

    /// Who calls, for what. An error where the deployment knows no such place or purpose.
    pub fn called_by(&self, caller: &Incoming) -> Result<(Place, Purpose), NetError> {
        let hello = caller.hello();
        match (hello.role.parse::<Place>(), Purpose::parse(&hello.purpose)) {
            (Ok(place), Some(purpose)) => Ok((place, purpose)),
            _ => {
                let (claimed, pinned) = (hello.role.clone(), "a place of the deployment".into());
                Err(NetError::WrongRole { claimed, pinned })
            }
        }
    }

    /// Turn a caller away; `reason` is public.
    pub fn refuse(&self, caller: Incoming, reason: &str) {
        caller.refuse(&self.hello(Purpose::Client), reason);
    }

    /// Answer a caller that is welcome.
    pub fn answer(&self, caller: Incoming, purpose: Purpose) -> Result<TcpChannel, NetError> {
        caller.answer(&self.hello(purpose), self.options(purpose))
    }

    /// Answer a `privet doctor`.
    pub fn answer_doctor(&self, caller: Incoming) -> Result<(), NetError> {
        probe::answer(self.answer(caller, Purpose::Doctor)?)
    }

    /// Answer a `privet doctor`; gives other callers back.
    pub fn without_doctors(&self, caller: Incoming) -> Option<Incoming> {
        if caller.hello().purpose != probe::PURPOSE {
            return Some(caller);
        }
        // The doctor reports what is wrong; here it is nothing that a job depends on.
        let _ = self.answer_doctor(caller);
        None
    }

    /// Answer any caller.
    pub fn welcome(&self, caller: Incoming) -> Result<(TcpChannel, Place, Purpose), NetError> {
        match self.called_by(&caller) {
            Ok((place, purpose)) => Ok((self.answer(caller, purpose)?, place, purpose)),
            Err(e) => {
                self.refuse(caller, "unknown place or purpose");
                Err(e)
            }
        }
    }

    /// Dial a party or the dealer, waiting for it to come up until the deployment's connect timeout.
    pub fn dial(&self, place: &Place, purpose: Purpose) -> Result<TcpChannel, NetError> {
        self.dial_within(place, purpose, self.config.deployment.timeouts.connect)
    }

    /// The same with another timeout.
    pub fn dial_within(
        &self,
        place: &Place,
        purpose: Purpose,
        timeout: Duration,
    ) -> Result<TcpChannel, NetError> {
        let address = self.config.deployment.address(place).map(|a| a.to_string()).unwrap_or_default();
        let (hello, options) = (self.hello(purpose), self.options(purpose));
        Ok(dial(&address, &self.security, &self.pin(place), &hello, options, timeout)?.0)
    }

    /// Have a deal on a connection that an earlier deal has left, or on a new one; gives the connection as well. The dealer is told
    /// why a deal failed. A connection that was left may be gone although this side has not heard of it. Where it ends without
    /// a byte from the dealer, nothing was dealt, and the deal is asked for anew on a new one.
    pub fn with_dealer<T, E: From<NetError> + Display>(
        &self,
        mut deal: impl FnMut(&mut TcpChannel) -> Result<T, E>,
    ) -> Result<(T, TcpChannel), E> {
        let left = self.to_dealer.take();
        let may_be_gone = left.is_some();
        let new = || self.dial(&Place::Dealer, Purpose::Keys);
        let mut dealer = left.map_or_else(new, Ok)?;
        let before = dealer.meter().total().received;
        let mut got = deal(&mut dealer);
        if may_be_gone && got.is_err() && dealer.meter().total().received == before && is_gone(&mut dealer) {
            dealer = new()?;
            got = deal(&mut dealer);
        }
        match got {
            Ok(dealt) => Ok((dealt, dealer)),
            Err(e) => {
                dealer.abort(&e.to_string());
                Err(e)
            }
        }
    }

    /// Keep a connection on which a deal has ended well for the next deal. The dealer keeps its side.
    pub fn keep_to_dealer(&self, channel: TcpChannel) {
        self.to_dealer.keep(channel);
    }
}
