//! A party's part in a preparation: keys from the dealer, at once, checked, or as a stream.

use super::checks::{Both, CheckError, Checker};
use super::stream::{AwaitError, Stream};
use super::{FssError, hex};
use crate::events::{Bytes, Count, Event};
use crate::session::control::{Amount, Id, Talk, say};
use crate::session::family::dealing::fetch::{self, FetchError, fetch};
use crate::session::family::dealing::messages::DealRequest;
use crate::session::family::{Made, Preparer};
use crate::session::job::JobError;
use crate::session::links::Links;
use crate::session::order::Preparation;
use crate::session::work::Work;
use crate::store::{Shelf, Store, StoreError};
use privet_kernels::Device;
use privet_net::{NetError, TcpChannel};
use privet_plan::Plan;
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// The preparation of keys that a dealer deals.
pub(in crate::session) struct Dealt {
    pub party: u8,
    pub links: Arc<Links>,
    pub plan: Arc<Plan>,
    pub device: Arc<dyn Device>,
    pub store: Arc<Mutex<Store>>,
    pub what: Preparation,
}

/// What a party takes over at the end.
pub(in crate::session) struct Keep {
    /// The stream whose first record came.
    pub stream: Option<Stream>,
    /// The session that the dealer knows no more; what came is a new one's.
    pub forgotten: Option<Id>,
}

impl Preparer for Dealt {
    type Made = Keep;

    fn run(self, work: &mut Work<'_>) -> Result<Made<Keep>, JobError> {
        let Preparation { deal, session, amount: Amount { runs, checks, stream } } = self.what;
        let all = if stream { runs.min(1) } else { runs.saturating_mul(checks.saturating_add(1)) };
        work.progress.expect(all);
        let request = DealRequest { deal, plan: hex(&self.plan.hash()), session, runs, checks };
        let (keep, bytes) = match self.get(&request, work) {
            // A dealer that was restarted knows the open session no more.
            Err(Failure::Fetch(FetchError::Forgotten)) if session.is_some() => {
                work.progress.emit(|job| Event::DealerForgot { job });
                let anew = DealRequest { deal: deal.again(), session: None, ..request };
                let got = self.get(&anew, work);
                got.map(|(keep, bytes)| (Keep { forgotten: session, ..keep }, bytes))
            }
            got => got,
        }
        .map_err(|e| e.told(work))?;
        let (runs, keys) = (Count::of(runs), Bytes::of(bytes));
        work.progress.emit(|job| match stream {
            true => Event::StreamBegan { job, runs, keys },
            false => Event::KeysStored { job, runs, keys },
        });
        Ok(Made { key_bytes: bytes, made: keep })
    }
}

/// Why there are no keys.
#[derive(Debug, Error)]
enum Failure {
    #[error("{0}")]
    Fetch(FetchError),
    #[error("{0}")]
    Check(CheckError),
    #[error("{0}")]
    Stream(AwaitError),
}

impl Failure {
    fn told(self, work: &Work<'_>) -> JobError {
        match self {
            Failure::Check(CheckError::Fetch(cause)) | Failure::Fetch(cause) => {
                let shown = work.progress.shown();
                FssError::Dealer { came: shown.came, all: shown.came + shown.to_come, cause }.into()
            }
            Failure::Check(e) => FssError::Checked(e).into(),
            Failure::Stream(AwaitError::Stream(e)) => FssError::Stream(e).into(),
            Failure::Stream(AwaitError::Other(e)) => e.into(),
        }
    }
}

impl From<FetchError> for Failure {
    fn from(e: FetchError) -> Failure {
        Failure::Fetch(e)
    }
}

impl From<NetError> for Failure {
    fn from(e: NetError) -> Failure {
        Failure::Fetch(e.into())
    }
}

impl Dealt {
    fn shelf(&self) -> Result<Shelf, StoreError> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).shelf()
    }

    fn get(&self, request: &DealRequest, work: &mut Work<'_>) -> Result<(Keep, u64), Failure> {
        if self.what.amount.stream && request.checks == 0 {
            return self.begin_stream(request, work);
        }
        let (bytes, dealer) = self.links.with_dealer(|dealer| match request.checks {
            0 => self.fetch(dealer, request, work).map_err(Failure::Fetch),
            _ => self.fetch_checked(dealer, request, work).map_err(Failure::Check),
        })?;
        self.links.keep_to_dealer(dealer);
        Ok((Keep { stream: None, forgotten: None }, bytes))
    }

    fn fetch(
        &self,
        dealer: &mut TcpChannel,
        request: &DealRequest,
        work: &mut Work<'_>,
    ) -> Result<u64, FetchError> {
        let (shelf, progress) = (self.shelf()?, work.progress.clone());
        let mut dealer = work.attend(dealer);
        Ok(fetch(&mut dealer, &shelf, self.party, &self.plan.hash(), request, &progress)?.1)
    }

    fn fetch_checked(
        &self,
        dealer: &mut TcpChannel,
        request: &DealRequest,
        work: &mut Work<'_>,
    ) -> Result<u64, CheckError> {
        let checker = Checker { party: self.party, plan: &self.plan, device: &self.device };
        let mut both = Both { dealer: work.attend(dealer), peer: 1 - self.party };
        let (_, bytes) = checker.fetch(&mut both, &self.store, request)?;
        let checks = Count::of(request.checks);
        work.progress.emit(|job| Event::SessionsChecked { job, checks });
        Ok(bytes)
    }

    /// Have keys come while runs use them up; gives the bytes of the first record, once it is there.
    fn begin_stream(&self, request: &DealRequest, work: &mut Work<'_>) -> Result<(Keep, u64), Failure> {
        let shelf = self.shelf().map_err(FetchError::from)?;
        let (deal, dealer) = self.links.with_dealer(|dealer| {
            let mut dealer = work.attend(dealer);
            say(&mut dealer, Talk::Deal, request).map_err(FetchError::from)?;
            fetch::begin(&mut dealer, &shelf, self.party, &self.plan.hash(), request).map_err(Failure::Fetch)
        })?;
        let stream = Stream::begin(dealer, &self.links, shelf, deal, work.progress.clone());
        let bytes = stream.await_first(work).map_err(Failure::Stream)?;
        Ok((Keep { stream: Some(stream), forgotten: None }, bytes))
    }
}
