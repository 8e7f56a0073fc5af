//! What every party is doing, for whoever waits for all of them.

use crate::hook::Hook;
use privet_net::{Channel, NetError, Step};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug)]
enum Doing {
    /// Something of its own, since it sent or received at this step.
    Works(Option<Step>),
    Waits {
        peer: usize,
        step: Step,
    },
    Done,
}

#[derive(Debug)]
struct Seen {
    doing: Vec<Doing>,
    /// What all were doing when nothing came to one of them, the first time.
    silent: Option<String>,
}

/// Shared by the hooks of all links of a mesh. It prints what every party does.
#[derive(Clone, Debug)]
pub struct Watch(Arc<Mutex<Seen>>);

impl Watch {
    pub fn new(parties: usize) -> Watch {
        Watch(Arc::new(Mutex::new(Seen { doing: vec![Doing::Works(None); parties], silent: None })))
    }

    pub fn watcher(&self, me: usize, peer: usize) -> Watcher {
        Watcher { watch: self.clone(), me, peer }
    }

    pub fn done(&self, party: usize) {
        self.seen().doing[party] = Doing::Done;
    }

    /// Who waited for whom when the first party gave up waiting.
    pub fn silent(&self) -> Option<String> {
        self.seen().silent.clone()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doing::Works(None) => write!(f, "works and has sent nothing yet"),
            Doing::Works(Some(step)) => write!(f, "works since step {step}"),
            Doing::Waits { peer, step } => write!(f, "waits for party {peer} at step {step}"),
            Doing::Done => write!(f, "is done"),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (me, doing) in self.doing.iter().enumerate() {
            write!(f, "{}party {me} {doing}", if me > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.seen().fmt(f)
    }
}

/// The outermost hook of a link.
#[derive(Debug)]
pub struct Watcher {
    watch: Watch,
    me: usize,
    peer: usize,
}

impl Watcher {
    fn now(&self, doing: Doing) {
        self.watch.seen().doing[self.me] = doing;
    }
}

impl Hook for Watcher {
    fn send(&mut self, link: &mut dyn Channel, step: &Step, payload: Vec<u8>) -> Result<(), NetError> {
        self.now(Doing::Works(Some(step.clone())));
        link.send(step, payload)
    }

    fn waits(&mut self, step: &Step) {
        self.now(Doing::Waits { peer: self.peer, step: step.clone() });
    }

    fn received(&mut self, step: &Step, result: Result<Vec<u8>, NetError>) -> Result<Vec<u8>, NetError> {
        let mut seen = self.watch.seen();
        if matches!(result, Err(NetError::Silent { .. })) && seen.silent.is_none() {
            seen.silent = Some(seen.to_string());
        }
        seen.doing[self.me] = Doing::Works(Some(step.clone()));
        result
    }
}
