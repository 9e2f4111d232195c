//! The order in which one subscriber's filters reach one publisher.
//!
//! SUBSCRIBE and UNSUBSCRIBE ride streams of their own, which QUIC does not
//! order. A lane sends them one after the other and lets a filter's next frame
//! wait for the receipt of its last one, so that taking a filter back and
//! asking for it again end as the application said. `[wire 11]`

use std::fmt;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use weida_core::{Filter, Result};
use weida_protocol::{CreditHeader, FrameKind, SubscriptionHeader};

use crate::connection::head::Frame;
use crate::connection::{Connection, SendHalf};
use crate::exec::poll_once;
use crate::listener::table::Claim;

/// Frames that may wait in a lane; the application waits for room.
const MAX_WAITING: usize = 64;

/// What a lane is told to send.
#[derive(Clone, Debug)]
pub(crate) enum Say {
    Subscribe(Filter),
    Unsubscribe(Filter),
    Credit(Filter, u64),
}

/// One frame and whoever waits for it to be written.
type Order = (Say, oneshot::Sender<Result<()>>);

/// The way to one publisher.
#[derive(Clone)]
pub(crate) struct Lane {
    orders: mpsc::Sender<Order>,
    connection: Connection,
    claim: Arc<Claim>,
}

/// Room for one frame in a lane.
pub(crate) struct Room(mpsc::OwnedPermit<Order>);

/// Resolves when a frame is written.
pub(crate) type Written = oneshot::Receiver<Result<()>>;

impl Lane {
    /// A lane for the path that `claim` took on `connection`.
    pub(crate) fn start(connection: &Connection, claim: Claim) -> Self {
        let (orders, inbox) = mpsc::channel(MAX_WAITING);
        let claim = Arc::new(claim);
        let task = Task {
            connection: connection.clone(),
            claim: Arc::clone(&claim),
            inbox,
            held: Vec::new(),
            unsettled: Vec::new(),
        };
        connection.shared().tasks.spawn(task.run());
        Self {
            orders,
            connection: connection.clone(),
            claim,
        }
    }

    /// The subscriber has no more to say here: with the last handle the lane
    /// takes every filter back and gives the path up.
    pub(crate) fn leave(self) {
        self.claim.leave();
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Waits for room; `None` once the lane is over.
    ///
    /// # Cancel safety
    ///
    /// Safe: room that was found is given back.
    pub(crate) async fn room(&self) -> Option<Room> {
        self.orders.clone().reserve_owned().await.ok().map(Room)
    }
}

impl Room {
    /// Queues `say`; it is sent even if nobody waits for it.
    pub(crate) fn send(self, say: Say) -> Written {
        let (done, written) = oneshot::channel();
        self.0.send((say, done));
        written
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

struct Task {
    connection: Connection,
    claim: Arc<Claim>,
    inbox: mpsc::Receiver<Order>,
    /// Filters the publisher was told and not untold.
    held: Vec<Filter>,
    /// Frames without a receipt, with their filter.
    unsettled: Vec<(Filter, SendHalf)>,
}

impl Task {
    async fn run(mut self) {
        let over = self.connection.clone();
        tokio::select! {
            biased;
            _ = over.closed() => {}
            () = self.serve() => {}
        }
    }

    async fn serve(&mut self) {
        while let Some((say, done)) = self.inbox.recv().await {
            let sent = self.say(say).await;
            let _: std::result::Result<(), _> = done.send(sent); // the caller may be gone
        }
        // The subscriber left and the connection lives: take everything back.
        // The path stays ours until that is certain to have arrived before
        // whatever the next holder of the path says.
        for filter in std::mem::take(&mut self.held) {
            if self.say(Say::Unsubscribe(filter)).await.is_err() {
                return;
            }
        }
        for (_, frame) in std::mem::take(&mut self.unsettled) {
            if frame.settled().await.is_err() {
                return;
            }
        }
    }

    async fn say(&mut self, say: Say) -> Result<()> {
        let path = Arc::clone(self.claim.path());
        let (filter, frame) = match say {
            Say::Subscribe(filter) => {
                let header = SubscriptionHeader::new(&path, &filter);
                let frame = Frame::encode(FrameKind::Subscribe, &header)?;
                if !self.held.contains(&filter) {
                    self.held.push(filter.clone());
                }
                (filter, frame)
            }
            Say::Unsubscribe(filter) => {
                let header = SubscriptionHeader::new(&path, &filter);
                let frame = Frame::encode(FrameKind::Unsubscribe, &header)?;
                self.held.retain(|held| *held != filter);
                (filter, frame)
            }
            Say::Credit(filter, limit) => {
                let header = CreditHeader::new(&path, &filter, limit);
                let frame = Frame::encode(FrameKind::Credit, &header)?;
                (filter, frame)
            }
        };
        self.unsettled
            .retain(|(_, frame)| poll_once(frame.settled()).is_pending());
        while let Some(at) = self.unsettled.iter().position(|(of, _)| *of == filter) {
            let (_, before) = self.unsettled.swap_remove(at);
            // Refused or lost: nothing of it can overtake this frame.
            let _: std::result::Result<(), _> = before.settled().await;
        }
        let frame = self.connection.send_frame(frame).await?;
        self.unsettled.push((filter, frame));
        Ok(())
    }
}
