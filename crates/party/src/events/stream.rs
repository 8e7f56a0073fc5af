//! The stream: events go in without waiting, and come out at every subscriber in order.

use super::event::Event;
use super::public::{Count, Number};
use crate::config::Place;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant, SystemTime};

/// Events that wait for one subscriber. A node makes some ten a second; a burst of a failing deployment is far smaller.
const QUEUE: usize = 4096;

/// An event, and when it was.
#[derive(Clone, Debug)]
pub struct Stamped {
    /// When.
    pub at: SystemTime,
    /// What.
    pub event: Arc<Event>,
    /// At a server of many clients, the client in whose deployment it was.
    pub client: Option<Arc<Place>>,
}

/// Hears of every event, on a thread of its own. It may take its time: what does not fit into its queue is lost to it, and
/// told to it as [`Event::EventsLost`].
pub trait Subscriber: Send + 'static {
    /// The next event.
    fn take(&mut self, stamped: &Stamped);
}

/// Hears of every event on the thread that emits it, so it must do no more than count.
pub trait Inline: Send + Sync + 'static {
    /// The next event.
    fn take(&self, event: &Event);
}

/// A queue before a subscriber.
struct Queue {
    to: SyncSender<Stamped>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    /// Put into the queue.
    put: AtomicU64,
    /// Taken by the subscriber.
    taken: AtomicU64,
    /// Not put, and not yet told.
    lost: AtomicU64,
}

#[derive(Default)]
struct Feed {
    queues: Vec<Queue>,
    inline: Vec<Arc<dyn Inline>>,
    connections: AtomicU64,
}

/// Where a node's events go: a handle, cheap to clone.
#[derive(Clone, Default)]
pub struct Events {
    feed: Arc<Feed>,
    client: Option<Arc<Place>>,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Events({} subscribers)", self.feed.queues.len() + self.feed.inline.len())
    }
}

impl Events {
    /// To nobody.
    pub fn unheard() -> Events {
        Events::default()
    }

    /// To these, each on its own thread, and to those who count. A subscriber for which the system gives no thread hears nothing.
    pub fn to(subscribers: Vec<Box<dyn Subscriber>>, inline: Vec<Arc<dyn Inline>>) -> Events {
        Self::with_queues(subscribers, inline, QUEUE)
    }

    fn with_queues(
        subscribers: Vec<Box<dyn Subscriber>>,
        inline: Vec<Arc<dyn Inline>>,
        size: usize,
    ) -> Events {
        let queue = |subscriber: Box<dyn Subscriber>| {
            let (to, from) = sync_channel(size);
            let counts = Arc::new(Counts::default());
            let of_thread = counts.clone();
            let body = move || deliver(subscriber, &from, &of_thread);
            Builder::new().name("privet-events".into()).spawn(body).ok()?;
            Some(Queue { to, counts })
        };
        let queues = subscribers.into_iter().filter_map(queue).collect();
        let feed = Arc::new(Feed { queues, inline, connections: AtomicU64::new(0) });
        Events { feed, client: None }
    }

    /// The same, of a client's deployment at a server of many.
    pub fn of_client(&self, client: Place) -> Events {
        Events { feed: self.feed.clone(), client: Some(Arc::new(client)) }
    }

    /// Tell everybody. Never waits.
    pub fn emit(&self, event: Event) {
        self.feed.inline.iter().for_each(|inline| inline.take(&event));
        if self.feed.queues.is_empty() {
            return;
        }
        let (at, client) = (SystemTime::now(), self.client.clone());
        let stamped = Stamped { at, event: Arc::new(event), client };
        for Queue { to, counts } in &self.feed.queues {
            match to.try_send(stamped.clone()) {
                Ok(()) => counts.put.fetch_add(1, Ordering::Relaxed),
                Err(TrySendError::Full(_)) => counts.lost.fetch_add(1, Ordering::Relaxed),
                // Its thread has panicked.
                Err(TrySendError::Disconnected(_)) => 0,
            };
        }
    }

    /// Whether somebody hears of it.
    pub fn heard(&self) -> bool {
        !(self.feed.queues.is_empty() && self.feed.inline.is_empty())
    }

    /// A number for a new connection, from 1.
    pub fn connection(&self) -> Number {
        Number::of(self.feed.connections.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Before the process ends: wait until every subscriber has taken what was emitted, at most `patience`.
    pub fn drain(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let behind =
            |q: &Queue| q.counts.taken.load(Ordering::Acquire) < q.counts.put.load(Ordering::Acquire);
        while self.feed.queues.iter().any(behind) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn deliver(mut subscriber: Box<dyn Subscriber>, from: &Receiver<Stamped>, counts: &Counts) {
    let tell_lost = |subscriber: &mut dyn Subscriber| {
        let lost = counts.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let event = Arc::new(Event::EventsLost { lost: Count::of(lost) });
            subscriber.take(&Stamped { at: SystemTime::now(), event, client: None });
        }
    };
    loop {
        match from.recv_timeout(Duration::from_secs(1)) {
            Ok(stamped) => {
                subscriber.take(&stamped);
                counts.taken.fetch_add(1, Ordering::Release);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        tell_lost(&mut *subscriber);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Reason;
    use std::sync::Mutex;
    use std::sync::mpsc::{Sender, channel};

    struct Slow {
        may_go: Receiver<()>,
        saw: Sender<Arc<Event>>,
    }

    impl Subscriber for Slow {
        fn take(&mut self, stamped: &Stamped) {
            let _ = self.may_go.recv();
            let _ = self.saw.send(stamped.event.clone());
        }
    }

    fn event(reason: &Reason) -> Event {
        Event::NoOrder { reason: reason.clone() }
    }

    #[test]
    fn whoever_emits_never_waits_and_what_is_lost_is_told() {
        let reason = crate::events::reason!("test.some", "some");
        let ((go, may_go), (saw, seen)) = (channel(), channel());
        let events = Events::with_queues(vec![Box::new(Slow { may_go, saw })], vec![], 10);
        let begun = Instant::now();
        (0..100_000).for_each(|_| events.emit(event(&reason)));
        // With a subscriber that takes nothing at all.
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        drop(go);
        let first: Vec<Arc<Event>> =
            std::iter::from_fn(|| seen.recv_timeout(Duration::from_secs(10)).ok()).take(12).collect();
        let lost: u64 = first
            .iter()
            .map(|e| match &**e {
                Event::EventsLost { lost } => lost.get(),
                _ => 0,
            })
            .sum();
        let taken = first.iter().filter(|e| !matches!(***e, Event::EventsLost { .. })).count() as u64;
        assert_eq!(lost + taken, 100_000, "{first:?}");
    }

    #[test]
    fn a_subscriber_that_panics_is_not_heard_of_again_and_the_others_go_on() {
        struct Broken;
        impl Subscriber for Broken {
            fn take(&mut self, _: &Stamped) {
                panic!("on purpose")
            }
        }
        struct Keeps(Arc<Mutex<u64>>);
        impl Subscriber for Keeps {
            fn take(&mut self, _: &Stamped) {
                *self.0.lock().unwrap() += 1;
            }
        }
        let kept: Arc<Mutex<u64>> = Arc::default();
        let events = Events::to(vec![Box::new(Broken), Box::new(Keeps(kept.clone()))], vec![]);
        let reason = crate::events::reason!("test.some", "some");
        for n in 1..=50 {
            events.emit(event(&reason));
            while *kept.lock().unwrap() < n {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    #[test]
    fn connections_are_numbered_and_draining_waits() {
        let events = Events::unheard();
        assert_eq!([events.connection(), events.clone().connection()].map(Number::get), [1, 2]);
        struct Sleepy(Arc<AtomicU64>);
        impl Subscriber for Sleepy {
            fn take(&mut self, _: &Stamped) {
                std::thread::sleep(Duration::from_millis(20));
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let taken = Arc::new(AtomicU64::new(0));
        let events = Events::to(vec![Box::new(Sleepy(taken.clone()))], vec![]);
        let reason = crate::events::reason!("test.some", "some");
        (0..5).for_each(|_| events.emit(event(&reason)));
        events.drain(Duration::from_secs(20));
        assert_eq!(taken.load(Ordering::SeqCst), 5);
    }
}
