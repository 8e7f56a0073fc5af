//! How a client talks to all parties at once: whoever of them is lost is noticed while others are waited for.

use super::{Client, ClientError, unexpected};
use crate::config::Place;
use crate::session::control::{Reply, Request, Talk, TalkError, hear, say};
use crate::session::family::Encoded;
use crate::session::links::Purpose;
use crate::session::owner::{Piece, Shared};
use crate::session::peers::abort;
use privet_net::{NetError, TcpChannel, wait_patiently};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// For a party whose connection ended to come back, where a request is asked once more.
const COMING_BACK: Duration = Duration::from_secs(4);

impl Client {
    /// Connections to all parties: those from before, or new ones where one of them has ended. A party that is not up
    /// is waited for until `patience`. From then on a party may serve others for as long as it takes, and is given up once its
    /// service has no turn for [`Timeouts::turn`](crate::config::Timeouts::turn).
    fn connect(&mut self, patience: Duration) -> Result<&mut Vec<TcpChannel>, ClientError> {
        let channels = match self.channels.take().filter(|all| all.iter().all(TcpChannel::is_open)) {
            Some(channels) => channels,
            None => {
                let deployment = &self.links.config.deployment;
                let (parties, turn) = (0..deployment.parties.len() as u8, deployment.timeouts.turn());
                let dial = |party| {
                    let mut channel =
                        self.links.dial_within(&Place::Party(party), Purpose::Client, patience)?;
                    channel.set_patience_for_turns(turn);
                    Ok::<_, NetError>(channel)
                };
                parties.map(dial).collect::<Result<_, _>>()?
            }
        };
        Ok(self.channels.insert(channels))
    }

    /// Ask all parties for something that this client may ask for.
    pub(super) fn request(&mut self, request: &Request) -> Result<(), ClientError> {
        self.may_ask(request)?;
        // A connection kept from before may have died with a party that was restarted since.
        let kept = self.channels.is_some();
        match self.send(request) {
            Err(_) if kept => self.send(request),
            sent => sent,
        }
    }

    /// Ask all parties for something, and share tensors for it once all of them say so. Until then nothing secret has been
    /// sent. So where a connection ends while a party is waited for (it was restarted, and knows nothing of the request),
    /// all parties are asked once more, under another name. Then the others whom the request needs may have given up, where
    /// they had sent more than this client: it waits for them as long as for a party to come up, and fails with what it lost.
    pub(super) fn request_and_share(
        &mut self,
        request: &Request,
        kind: Shared,
        pieces: &[Piece],
        encoded: &Encoded,
    ) -> Result<(), ClientError> {
        self.request(request)?;
        match self.await_leader(None) {
            Err(ended) if is_lost(&ended) => {
                if self.connect(COMING_BACK).is_err() {
                    return Err(ended);
                }
                self.send(&request.anew())?;
                let patience = self.links.config.deployment.timeouts.connect;
                if !self.await_leader(Some(Instant::now() + patience))? {
                    return self.or_give_up(Err(ended));
                }
            }
            answered => drop(answered?),
        }
        let channels = self.channels.as_mut().map_or(&mut [][..], Vec::as_mut_slice);
        let owner = &self.links.config.node.me;
        let shared = self.family.share(owner, channels, kind, pieces, encoded);
        self.or_give_up(shared.map_err(ClientError::from))
    }

    pub(super) fn send(&mut self, request: &Request) -> Result<(), ClientError> {
        let patience = self.links.config.deployment.timeouts.connect;
        let channels = self.connect(patience)?;
        let sent = channels.iter_mut().try_for_each(|c| Ok(say(c, Talk::Request, request)?));
        self.or_give_up(sent)
    }

    /// Wait until party 0 has begun to answer, which it does once all parties have consented or the request has failed; an
    /// error as soon as any connection ends. False where `deadline` passes first. Nothing is taken in.
    fn await_leader(&mut self, deadline: Option<Instant>) -> Result<bool, ClientError> {
        let channels = self.channels.as_mut().map_or(&mut [][..], Vec::as_mut_slice);
        let mut waiting: Vec<(usize, &mut TcpChannel)> = channels.iter_mut().enumerate().collect();
        let (mut answered, since) = (false, Instant::now());
        let mut result = Ok(());
        while let Some(first) = wait_patiently(waiting.iter_mut().map(|(_, c)| &mut **c), since, deadline) {
            let (party, channel) = waiting.swap_remove(first);
            if !channel.is_open() {
                result = Err(last_word(channel));
                break;
            }
            if party == 0 {
                answered = true;
                break;
            }
        }
        self.or_give_up(result).map(|()| answered)
    }

    /// Hear from every party, in whatever order they answer: where a connection ends meanwhile, nobody else is waited for.
    pub(super) fn hear_all<T>(
        &mut self,
        mut each: impl FnMut(&mut TcpChannel) -> Result<T, ClientError>,
    ) -> Result<Vec<T>, ClientError> {
        let channels = self.channels.as_mut().map_or(&mut [][..], Vec::as_mut_slice);
        let mut answers = BTreeMap::new();
        let mut waiting: Vec<(usize, &mut TcpChannel)> = channels.iter_mut().enumerate().collect();
        let (mut result, since) = (Ok(()), Instant::now());
        while let Some(first) = wait_patiently(waiting.iter_mut().map(|(_, c)| &mut **c), since, None) {
            let (party, channel) = waiting.swap_remove(first);
            match each(channel) {
                Ok(answer) => drop(answers.insert(party, answer)),
                Err(e) => {
                    result = Err(e);
                    break;
                }
            }
        }
        self.or_give_up(result)?;
        Ok(answers.into_values().collect())
    }

    /// After an error all connections are given up, since a party may be in the middle of something, or wait for one that
    /// this client has lost. All are told why.
    fn or_give_up(&mut self, result: Result<(), ClientError>) -> Result<(), ClientError> {
        if let Err(e) = &result {
            let channels = self.channels.take().into_iter().flatten();
            abort(channels.filter(TcpChannel::is_open), &format!("the client gives up: {e}"));
        }
        result
    }
}

/// Whether a connection ended without a reason of its party.
fn is_lost(e: &ClientError) -> bool {
    use NetError::{Closed, Ended, Silent};
    matches!(e, ClientError::Talk(TalkError::Net(Closed { .. } | Ended { .. } | Silent { .. })))
}

/// Why a connection that has ended is of no use: what its party said at the end, or that it ended.
fn last_word(c: &mut TcpChannel) -> ClientError {
    loop {
        match hear::<Reply>(c, Talk::Reply) {
            Ok(reply @ Reply::Failed { .. }) => return unexpected(c, reply),
            // Its leave to send, from before it ended.
            Ok(_) => {}
            Err(e) => return e.into(),
        }
    }
}
