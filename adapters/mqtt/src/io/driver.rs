//! One task per connection: reads, decodes, routes, acknowledges and writes in one place.
//!
//! A single poll function owns both directions, so their order is visible and nothing passes a
//! channel. One pass reads at most 64 KiB, handles every packet in it, and answers the whole
//! batch with one write. The control lane is never behind the queue of the session, and a full
//! route stops publishes only.

mod publish;
mod send;
mod subscribe;

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};
use tracing::{debug, info};

use super::acks::AckLine;
use super::host::Host;
use super::intake::{Intake, Intakes};
use super::rate::Pace;
use super::read::ReadBuffer;
use super::stream::Stream;
use super::write::WriteBuffer;
use crate::codec::{Packet, PacketType, Publish, ReasonCode, Violation};
use crate::metrics::{Closed, ListenerMetrics};
use crate::session::{Ending, MessageCopy, Session, Subscriptions};
use crate::state::{Connection, Event};
use send::InFlight;

/// Bytes encoded ahead of the socket, and taken from the session's queue at once.
const BATCH_BYTES: usize = 64 << 10;
/// Unsent control packets beyond which nothing more is read from this client.
const CONTROL_BYTES: usize = 64 << 10;
/// Bytes parked in front of full routes beyond which nothing more is read from this client.
const PARKED_BYTES: usize = 2 << 20;
/// Passes before other tasks get their turn.
const ROUNDS: usize = 8;

/// A connected client.
pub(crate) struct Driver<I: Intakes> {
    host: Arc<Host<I>>,
    stream: Stream,
    read: ReadBuffer,
    write: WriteBuffer,
    connection: Connection,
    session: Arc<Session>,
    subscriptions: Subscriptions,
    intake: I::Intake,
    acks: AckLine,
    copies: VecDeque<MessageCopy>,
    in_flight: VecDeque<InFlight>,
    pace: Pace,
    timer: Pin<Box<Sleep>>,
    now: Instant,
    /// The read buffer may hold a whole packet.
    undecoded: bool,
    /// Since when bytes wait for a socket that takes none.
    stalled_since: Option<Instant>,
    /// A queue this client fills is nearly full: let its reader run.
    tight: bool,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) closed: Closed,
    /// What a 5.0 client is told, if anything.
    pub(crate) reason: Option<ReasonCode>,
    /// The will is published.
    pub(crate) will: bool,
}

impl End {
    pub(crate) const LOST: Self = Self {
        closed: Closed::Lost,
        reason: None,
        will: true,
    };

    pub(crate) const fn told(closed: Closed, reason: ReasonCode) -> Self {
        Self {
            closed,
            reason: Some(reason),
            will: true,
        }
    }

    pub(crate) fn violation(violation: Violation, metrics: &ListenerMetrics) -> Self {
        metrics.malformed(violation.rule());
        let reason = violation.reason_code();
        if matches!(
            reason,
            ReasonCode::QosNotSupported | ReasonCode::RetainNotSupported
        ) {
            // A 3.1.1 client hears no announcement and no code: the log is all there is.
            info!(rule = violation.rule(), %violation, "closed: not available in this version");
        } else {
            debug!(rule = violation.rule(), %violation, "connection broke a rule");
        }
        let closed = match reason {
            ReasonCode::KeepAliveTimeout => Closed::KeepAlive,
            ReasonCode::PacketTooLarge => Closed::TooLarge,
            ReasonCode::ReceiveMaximumExceeded => Closed::ReceiveMaximum,
            ReasonCode::TopicAliasInvalid => Closed::Alias,
            ReasonCode::QosNotSupported | ReasonCode::RetainNotSupported => Closed::Unsupported,
            ReasonCode::MalformedPacket => Closed::Malformed,
            _ => Closed::ProtocolError,
        };
        Self::told(closed, reason)
    }
}

impl From<Ending> for End {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::TakenOver => Self::told(Closed::TakenOver, ReasonCode::SessionTakenOver),
            Ending::QueueFull => Self::told(Closed::QueueFull, ReasonCode::QuotaExceeded),
            Ending::Shutdown => Self::told(Closed::Shutdown, ReasonCode::ServerShuttingDown),
        }
    }
}

/// What is left of a connection when its session was given back.
pub(crate) struct Remains<N> {
    pub(crate) stream: Stream,
    pub(crate) write: WriteBuffer,
    pub(crate) connection: Connection,
    pub(crate) intake: N,
}

impl<I: Intakes> Driver<I> {
    pub(crate) fn new(
        host: Arc<Host<I>>,
        stream: Stream,
        read: ReadBuffer,
        connection: Connection,
        session: Arc<Session>,
    ) -> Self {
        let now = Instant::now();
        let intake = host.intakes.open(&session);
        let undecoded = !read.bytes.is_empty();
        Self {
            pace: Pace::new(session.access().rate(), now),
            intake,
            host,
            stream,
            read,
            write: WriteBuffer::default(),
            connection,
            session,
            subscriptions: Subscriptions::default(),
            acks: AckLine::default(),
            copies: VecDeque::new(),
            in_flight: VecDeque::new(),
            timer: Box::pin(sleep_until(now)),
            now,
            undecoded,
            stalled_since: None,
            tight: false,
        }
    }

    /// Puts the CONNACK in front of everything else.
    pub(crate) fn greet(&mut self, connack: &Packet) -> Result<(), End> {
        self.answer(connack)
    }

    /// Serves the client until the connection ends.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the connection is cut; [`release`](Self::release) still gives the session back.
    pub(crate) async fn serve(&mut self) -> End {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Takes everything the session has in router and queues back, and publishes its will.
    ///
    /// After this the key may be claimed by another connection.
    pub(crate) fn release(mut self, will: Option<Publish>) -> Remains<I::Intake> {
        if let Some(will) = will {
            self.now = Instant::now();
            self.publish_will(will);
        }
        let filters: Vec<_> = self.subscriptions.drain().collect();
        if !filters.is_empty() {
            self.host
                .router
                .unsubscribe(&self.session, filters.iter().map(|filter| &**filter));
        }
        // Tickets of copies that nobody will acknowledge any more count as lost from here on.
        drop(self.session.outbound().close());
        self.host.metrics.inflight.sub(self.acks.len() as u64);
        Remains {
            stream: self.stream,
            write: self.write,
            connection: self.connection,
            intake: self.intake,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.session.waker().register(cx.waker());
        match self.poll_rounds(cx) {
            Err(end) => Poll::Ready(end),
            Ok(()) => Poll::Pending,
        }
    }

    /// Passes until nothing moves; `Ok` means that a waker is set for whatever comes next.
    fn poll_rounds(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        for _ in 0..ROUNDS {
            self.now = Instant::now();
            if let Some(ending) = self.session.ending() {
                return Err(ending.into());
            }
            let paused = self.is_paused();
            let read = self.poll_input(cx)?;
            while let Poll::Ready((serial, verdict)) = self.intake.poll_settled(cx) {
                self.acks.settle(serial, verdict);
            }
            self.acknowledge()?;
            self.fill()?;
            let written = self.poll_output(cx)?;
            self.check_time()?;
            if self.tight {
                // The queue's reader shares our workers: give it its turn before more comes in.
                self.tight = false;
                cx.waker().wake_by_ref();
                return Ok(());
            }
            // A pause that ended in this pass left the socket unpolled: look at it again.
            let resumed = paused && !self.is_paused();
            if !(read || written || resumed) {
                return self.sleep(cx);
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Decodes what is there, or reads once and decodes that. True when something moved.
    fn poll_input(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if self.is_paused() {
            return Ok(false);
        }
        if !self.undecoded {
            match self.read.poll_fill(&mut self.stream, cx) {
                Poll::Pending => return Ok(false),
                Poll::Ready(Ok(0) | Err(_)) => return Err(End::LOST),
                Poll::Ready(Ok(_)) => {}
            }
        }
        self.undecoded = true;
        while !self.is_paused() {
            let now = self.now.into_std();
            let received = self.connection.receive(&mut self.read.bytes, now);
            let event = received.map_err(|v| End::violation(v, &self.host.metrics))?;
            let Some(event) = event else {
                self.undecoded = false;
                break;
            };
            self.on_event(event)?;
        }
        Ok(true)
    }

    fn on_event(&mut self, event: Event) -> Result<(), End> {
        let count = |packet| self.host.metrics.packets_in(packet).add(1);
        match &event {
            Event::Publish(_) | Event::PublishRefused { .. } => count(PacketType::Publish),
            Event::Acknowledged { .. } => count(PacketType::PubAck),
            Event::Subscribe(_) => count(PacketType::Subscribe),
            Event::Unsubscribe(_) => count(PacketType::Unsubscribe),
            Event::Answer(Packet::Pingresp) => count(PacketType::Pingreq),
            Event::Disconnect(_) => count(PacketType::Disconnect),
            Event::Unmatched { packet, .. } => count(*packet),
            _ => {}
        }
        match event {
            Event::Publish(publish) => self.on_publish(publish),
            Event::PublishRefused {
                packet_id,
                violation,
            } => self.on_publish_refused(packet_id, violation),
            Event::Acknowledged { packet_id, reason } => {
                self.on_acknowledged(packet_id, reason);
                Ok(())
            }
            Event::Subscribe(subscribe) => self.on_subscribe(&subscribe),
            Event::Unsubscribe(unsubscribe) => self.on_unsubscribe(&unsubscribe),
            Event::Answer(packet) => self.answer(&packet),
            Event::Disconnect(disconnect) => Err(End {
                closed: match disconnect.reason {
                    ReasonCode::Success => Closed::Client,
                    _ => Closed::ClientWithWill,
                },
                reason: None,
                will: disconnect.reason != ReasonCode::Success,
            }),
            // Legal after an expiry, or a second CONNECT that the machine already refused.
            _ => Ok(()),
        }
    }

    /// Writes a packet on the control lane.
    fn answer(&mut self, packet: &Packet) -> Result<(), End> {
        let written = self.connection.write(packet, self.write.control());
        if let Err(error) = written {
            // Too large for the client even without its optional parts: it cannot be served.
            debug!(%error, "an answer does not fit the client");
            return Err(End::told(Closed::ProtocolError, ReasonCode::PacketTooLarge));
        }
        self.host.metrics.packets_out(packet.packet_type()).add(1);
        Ok(())
    }

    /// Whether this client is not read now. Each reason ends by itself or by the client's reads.
    fn is_paused(&self) -> bool {
        self.write.control_bytes() > CONTROL_BYTES
            || self.intake.paused_until().is_some()
            || self.intake.parked_bytes() > PARKED_BYTES
            || self.acks.len() >= self.max_unacknowledged()
            || self.pace.paused_until().is_some()
    }

    /// 5.0 has the quota and is disconnected beyond it; 3.1.1 has none, so it is not read.
    fn max_unacknowledged(&self) -> usize {
        usize::from(self.host.config.receive_maximum)
            .saturating_mul(16)
            .max(1024)
    }

    fn poll_output(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        match self.write.poll_write(&mut self.stream, cx) {
            Poll::Ready(Ok(0)) => self.poll_flush(cx).map(|()| false),
            Poll::Ready(Ok(_)) => {
                self.stalled_since = None;
                Ok(true)
            }
            Poll::Ready(Err(_)) => Err(End::LOST),
            Poll::Pending => {
                self.stalled_since.get_or_insert(self.now);
                Ok(false)
            }
        }
    }

    /// Only TLS holds bytes back that were written.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        use tokio::io::AsyncWrite;
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(Err(_)) => Err(End::LOST),
            Poll::Ready(Ok(())) => {
                self.stalled_since = None;
                Ok(())
            }
            Poll::Pending => {
                self.stalled_since.get_or_insert(self.now);
                Ok(())
            }
        }
    }

    fn check_time(&mut self) -> Result<(), End> {
        let now = self.now;
        if self.intake.paused_until().is_some_and(|until| until <= now) {
            self.intake.give_up_waiting(now);
        }
        self.pace.tick(now);
        if self
            .stalled_since
            .is_some_and(|since| now >= since + self.host.config.write_stall)
        {
            return Err(End::told(Closed::WriteStall, ReasonCode::UnspecifiedError));
        }
        // While we do not read it, a client's silence is ours.
        if !self.is_paused()
            && !self.undecoded
            && let Some(violation) = self.connection.on_timeout(now.into_std())
        {
            self.host.metrics.keepalive_timeouts.add(1);
            return Err(End::violation(violation, &self.host.metrics));
        }
        Ok(())
    }

    /// Sets the timer to the next deadline. It only ever has to move earlier: a deadline that
    /// moved later is found out when the old one fires.
    fn sleep(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let paused = self.is_paused();
        if self.undecoded && !paused {
            cx.waker().wake_by_ref();
            return Ok(());
        }
        let silence = match self.connection.next_deadline() {
            Some(at) if !paused => Some(Instant::from_std(at)),
            Some(_) => Some(self.now + Duration::from_secs(1)),
            None => None,
        };
        let stall = self
            .stalled_since
            .map(|since| since + self.host.config.write_stall);
        let others = [stall, self.intake.paused_until(), self.pace.paused_until()];
        let Some(next) = others.into_iter().chain([silence]).flatten().min() else {
            return Ok(());
        };
        if self.timer.is_elapsed() || next < self.timer.deadline() {
            self.timer.as_mut().reset(next);
        }
        if self.timer.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Ok(())
    }
}
