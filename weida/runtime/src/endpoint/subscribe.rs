//! Sub: filters on publishers' paths, one queue of copies. `[weida 11]`
//!
//! The subscriber owns its filters and sends them on every connection, the
//! first and each redialled one; a publisher keeps nothing across connections.
//! `[weida PS-5, S8-23]`

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weida_core::{Error, Filter, LossCause, Result, codes};

use super::Subscriber;
use crate::connection::{Connection, ConnectionId};
use crate::listener::table::Route;
use crate::pubsub::{Lane, Room, Say};
use crate::queue::Queue;
use crate::reconnect::PeerEvents;
use crate::shared::Life;
use crate::slot::{Dialler, Installing, Registration};
use crate::stats::ConnectionStats;
use crate::tls::ClientTls;
use crate::transfer::IncomingTransfer;

/// What a subscriber holds.
#[expect(unnameable_types, reason = "sealed: only a type alias names it")]
pub struct SubState {
    dialler: Dialler,
    filters: Arc<Filters>,
    life: Arc<Life>,
}

impl fmt::Debug for SubState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubState").finish_non_exhaustive()
    }
}

impl Drop for SubState {
    fn drop(&mut self) {
        for left in self.filters.queue.close() {
            left.refuse(codes::UNKNOWN_ENDPOINT);
        }
    }
}

impl Subscriber {
    pub(crate) fn new(life: Arc<Life>, tls: ClientTls) -> Self {
        let filters = Arc::new(Filters {
            queue: Arc::new(Queue::new(life.shared.config.endpoint_queue)),
            state: Mutex::default(),
        });
        let registration = Arc::clone(&filters) as Arc<dyn Registration>;
        let dialler = Dialler::new(&life.shared, tls, Some(registration));
        Self {
            state: SubState {
                dialler,
                filters,
                life,
            },
        }
    }

    /// Dials a publisher at `url`, sends every filter registered so far, and
    /// keeps the address: after a loss it is redialled and the filters are sent
    /// again. What was published in between is gone; [`Subscriber::events`]
    /// says when the gap began and ended. `[weida RD-5]`
    ///
    /// `Ok` says that the filters were written. That a publisher exists at the
    /// path, that it will send anything, or that it lets this peer have it, no
    /// connection and no silence says; who needs yes or no asks on a request
    /// path beside it. `[weida S17-9, S17-10]`
    ///
    /// # Errors
    ///
    /// As [`Peer::connect`](crate::Peer::connect), and
    /// [`Error::AlreadyRegistered`] if another subscriber with the same terms
    /// has this path already: one connection has one taker of its copies.
    /// `[weida PS-6]`
    pub async fn connect(&self, url: &str) -> Result<()> {
        self.state.dialler.connect(url).await
    }

    /// Forgets a dialled address and takes the filters back there; whether it
    /// was known.
    pub fn disconnect(&self, url: &str) -> bool {
        self.state.dialler.disconnect(url)
    }

    /// Addresses whose connection is open.
    pub fn peer_count(&self) -> usize {
        self.state.dialler.peer_count()
    }

    /// One record per live connection.
    pub fn connection_stats(&self) -> Vec<ConnectionStats> {
        self.state.dialler.stats()
    }

    /// The event stream of this subscriber's addresses.
    pub fn events(&self) -> PeerEvents {
        self.state.dialler.events()
    }

    /// Registers interest in every topic `filter` matches, at every publisher
    /// connected now or later. A repeat changes nothing.
    ///
    /// Segments are split on `.`; `*` is exactly one whole segment, a last `#`
    /// the rest, the empty filter everything, every other byte itself.
    ///
    /// `Ok` says that the filter is remembered and was written to every live
    /// connection; a publisher never answers it. `[weida S17-5]`
    ///
    /// # Errors
    ///
    /// [`Error::Protocol`] for a filter outside the grammar, before it travels;
    /// [`Error::LimitExceeded`] with the publisher's reason if it closed the
    /// connection over the number of filters and no other peer is left. The
    /// filter is not remembered then. `[weida PS-3, RD-8]`
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped call has done all or nothing.
    pub async fn subscribe(&self, filter: &str) -> Result<()> {
        let filter: Filter = filter.parse::<Filter>()?;
        self.over_limit()?;
        self.state.filters.change(Say::Subscribe(filter)).await
    }

    /// Takes a filter back everywhere. One that is not held is ignored. A copy
    /// that was on its way may still arrive.
    ///
    /// # Errors
    ///
    /// [`Error::Protocol`] for a filter outside the grammar.
    ///
    /// # Cancel safety
    ///
    /// As [`Subscriber::subscribe`].
    pub async fn unsubscribe(&self, filter: &str) -> Result<()> {
        let filter: Filter = filter.parse::<Filter>()?;
        self.state.filters.change(Say::Unsubscribe(filter)).await
    }

    /// Filters registered here.
    pub fn filter_count(&self) -> usize {
        self.state.filters.lock().filters.len()
    }

    /// Waits for the next message; its topic is
    /// [`IncomingMeta::topic`](crate::IncomingMeta::topic). Messages of one
    /// publisher may arrive in any order, and a lost connection is waited out.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] with the publisher's reason once it closed the
    /// connection over the number of filters and no other peer is left
    /// `[weida RD-8]`; [`Error::ConnectionLost`] once the runtime is closed.
    ///
    /// # Cancel safety
    ///
    /// Safe: no message is lost.
    pub async fn recv(&self) -> Result<IncomingTransfer> {
        let queue = &self.state.filters.queue;
        if let Some(item) = queue.try_pop() {
            return Ok(item);
        }
        let mut changes = self.state.dialler.changes();
        loop {
            changes.borrow_and_update();
            if let Err(error) = self.over_limit() {
                // What arrived before the end is still handed out.
                return queue.try_pop().ok_or(error);
            }
            tokio::select! {
                biased;
                item = queue.pop() => return item.ok_or(Error::NotConnected),
                () = self.state.life.shared.stop.cancelled() => {
                    return Err(Error::ConnectionLost(LossCause::LocallyClosed));
                }
                Ok(()) = changes.changed() => {}
            }
        }
    }

    /// States how many messages in total this subscriber takes on `filter`, to
    /// every live connection.
    ///
    /// It matters only where a *queue* serves the path; a publisher ignores it.
    /// Absolute and cumulative: repeats are harmless, the highest wins, it
    /// cannot be lowered, and without it a queue delivers nothing.
    /// `[weida FC-8]`
    ///
    /// # Errors
    ///
    /// [`Error::Protocol`] for a filter outside the grammar.
    pub async fn grant(&self, filter: &str, limit: u64) -> Result<()> {
        let filter: Filter = filter.parse::<Filter>()?;
        self.state.filters.change(Say::Credit(filter, limit)).await
    }

    /// The refusal of a publisher that ended the last address over the number
    /// of filters.
    fn over_limit(&self) -> Result<()> {
        match self.state.dialler.ended() {
            Some(error @ Error::LimitExceeded(_)) => Err(error),
            Some(_) | None => Ok(()),
        }
    }
}

/// The filters of one subscriber, and the connections they are on.
struct Filters {
    queue: Arc<Queue<IncomingTransfer>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    filters: Vec<Filter>,
    lanes: Vec<Lane>,
}

impl Filters {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the filters and tells every connection, then waits until it is
    /// written everywhere. Change and telling happen in one step, so a dropped
    /// call has done both or neither, and a connection that comes up meanwhile
    /// misses nothing.
    async fn change(&self, say: Say) -> Result<()> {
        let mut rooms: Vec<(ConnectionId, Option<Room>)> = Vec::new();
        let written = loop {
            let lanes = self.lock().lanes.clone();
            for lane in lanes {
                let id = lane.connection().id();
                if !rooms.iter().any(|(known, _)| *known == id) {
                    rooms.push((id, lane.room().await));
                }
            }
            let mut state = self.lock();
            let known = |lane: &Lane| rooms.iter().any(|(id, _)| *id == lane.connection().id());
            if !state.lanes.iter().all(known) {
                continue;
            }
            if !state.apply(&say) {
                return Ok(());
            }
            let rooms = rooms.into_iter().filter_map(|(_, room)| room);
            break rooms.map(|room| room.send(say.clone())).collect::<Vec<_>>();
        };
        let mut result = Ok(());
        for written in written {
            match written.await {
                // Lost on the way: the redial sends every filter again.
                Err(_) | Ok(Ok(()) | Err(Error::ConnectionLost(_))) => {}
                Ok(Err(error)) => result = Err(error),
            }
        }
        result
    }
}

impl State {
    /// Whether there is anything to tell.
    fn apply(&mut self, say: &Say) -> bool {
        match say {
            Say::Subscribe(filter) => {
                let new = !self.filters.contains(filter);
                if new {
                    self.filters.push(filter.clone());
                }
                new
            }
            Say::Unsubscribe(filter) => {
                let before = self.filters.len();
                self.filters.retain(|held| held != filter);
                self.filters.len() < before
            }
            Say::Credit(..) => true,
        }
    }

    fn remove(&mut self, connection: &Connection) {
        let gone = |lane: &Lane| lane.connection().is(connection);
        if let Some(at) = self.lanes.iter().position(gone) {
            self.lanes.swap_remove(at).leave();
        }
    }
}

impl Registration for Filters {
    fn install<'a>(&'a self, connection: &'a Connection, path: &'a str) -> Installing<'a> {
        Box::pin(async move {
            let route = Route::Puller(Arc::clone(&self.queue));
            let claim = loop {
                match connection.table().claim(path, route.clone()) {
                    // A subscriber that just left is still taking its filters
                    // back; ours must come after.
                    Err(Error::AlreadyRegistered) => match connection.table().leaving(path) {
                        Some(left) => left.cancelled_owned().await,
                        None => return Err(Error::AlreadyRegistered),
                    },
                    claim => break claim?,
                }
            };
            let lane = Lane::start(connection, claim);
            let mut installed = Installed {
                filters: self,
                connection: Some(connection),
            };
            let filters = {
                let mut state = self.lock();
                state.lanes.push(lane.clone());
                state.filters.clone()
            };
            let mut written = Vec::with_capacity(filters.len());
            for filter in filters {
                let room = lane.room().await;
                let room = room.ok_or_else(|| connection.loss_error())?;
                written.push(room.send(Say::Subscribe(filter)));
            }
            for written in written {
                match written.await {
                    Ok(written) => written?,
                    Err(_) => return Err(connection.loss_error()),
                }
            }
            installed.connection = None;
            Ok(())
        })
    }

    fn removed(&self, connection: &Connection, _path: &str, _live: bool) {
        // The lane takes the filters back, or ends with the connection.
        self.lock().remove(connection);
    }

    fn carries_filters(&self) -> bool {
        !self.lock().filters.is_empty()
    }
}

impl fmt::Debug for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filters")
            .field("filters", &self.lock().filters.len())
            .finish_non_exhaustive()
    }
}

/// Undoes an installation that failed or was dropped half way.
struct Installed<'a> {
    filters: &'a Filters,
    connection: Option<&'a Connection>,
}

impl Drop for Installed<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection {
            self.filters.lock().remove(connection);
        }
    }
}
