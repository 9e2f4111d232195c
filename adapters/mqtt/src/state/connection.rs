//! The machine of one accepted connection: which packet is legal when, and what it means.
//!
//! ```text
//!                 CONNECT              accept()                DISCONNECT, close()
//! AwaitConnect ------------> Deciding ----------> Connected ----------------------> Closing
//!      |                        |                     |                                ^
//!      +---- timeout, fault ----+---- refuse() -------+---- fault, keep-alive ---------+
//! ```

use std::time::Instant;

use bytes::BytesMut;

use super::inflight::{Admitted, InboundQuota, OutboundWindow, Release, WindowFull};
use super::{InboundAliases, KeepAlive, OutboundAliases, Peer, Terms};
use crate::codec::{
    Ack, ClientId, Connack, Connect, Decoded, Decoder, Disconnect, EncodeError, Encoder, Limits,
    Packet, PacketId, PacketType, Publish, QoS, ReasonCode, Role, Subscribe, Unsubscribe, Version,
    Violation,
};

/// One connection in the server role: bytes to [`Event`]s, messages and answers to bytes.
///
/// The driver reads into a buffer and calls [`receive`](Self::receive) until it says `None`; it answers every event in
/// order. On an `Err` it writes what [`close`](Self::close) returns, then closes.
///
/// ```
/// use std::time::Instant;
/// use bytes::BytesMut;
/// use weida_mqtt::state::{Admission, Connection, Event, Terms};
///
/// # fn demo(now: Instant) -> Result<(), weida_mqtt::codec::Violation> {
/// let mut connection = Connection::new(Terms::default(), now);
/// let mut input = BytesMut::from(&b"\x10\x0e\x00\x04MQTT\x04\x02\x00\x3c\x00\x02s7"[..]);
/// let Some(Event::Connect(connect)) = connection.receive(&mut input, now)? else { panic!() };
/// assert_eq!(connect.keep_alive_secs, 60);
/// let mut output = BytesMut::new();
/// let connack = connection.accept(Admission::default(), now);
/// connection.write(&connack, &mut output).unwrap();
/// assert_eq!(&output[..], b"\x20\x02\x00\x00");
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Connection {
    terms: Terms,
    decoder: Decoder,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// Nothing but CONNECT may come, and soon.
    AwaitConnect {
        deadline: Instant,
    },
    /// The upper floors authenticate; pipelined packets wait in the read buffer.
    Deciding(Peer),
    Connected(Box<Open>),
    /// Nothing is read any more.
    Closing,
}

/// What exists only while connected; it dies with the connection.
#[derive(Debug)]
struct Open {
    peer: Peer,
    encoder: Encoder,
    keep_alive: KeepAlive,
    inbound_aliases: InboundAliases,
    outbound_aliases: OutboundAliases,
    quota: InboundQuota,
    window: OutboundWindow,
    next_seq: u64,
}

/// What a packet means to the floors above. Every variant wants exactly the answer its text names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Decide, then [`Connection::accept`] or [`Connection::close`].
    Connect(Box<Connect>),
    /// A message with its topic in place. QoS 1: [`Connection::puback`] once its fate is known.
    Publish(Publish),
    /// A message that is refused by its form alone; nothing of it is counted as open. 5.0 with an identifier: write
    /// PUBACK with the violation's code. QoS 0: drop and count. 3.1.1: the listener's `legacy_refusal`.
    PublishRefused {
        /// Identifier, none at QoS 0.
        packet_id: Option<PacketId>,
        /// Why; its reach is the message.
        violation: Violation,
    },
    /// One of our messages is finished, well or not.
    Acknowledged {
        /// Its identifier, free again.
        packet_id: PacketId,
        /// The peer's word; 0x80 and above means it did not want it.
        reason: ReasonCode,
    },
    /// Answer each filter in one SUBACK.
    Subscribe(Subscribe),
    /// Answer with one UNSUBACK.
    Unsubscribe(Unsubscribe),
    /// Write this now, on the control lane.
    Answer(Packet),
    /// An acknowledgement of nothing, legal after an expiry: count it.
    Unmatched {
        /// Which acknowledgement.
        packet: PacketType,
        /// Its identifier.
        packet_id: PacketId,
    },
    /// The client leaves; the connection is closing and reads no more.
    Disconnect(Disconnect),
}

/// What the upper floors decided about a CONNECT that they let in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Admission {
    /// A stored session is continued.
    pub session_present: bool,
    /// The session expiry in force; announced when it differs from what was asked.
    pub session_expiry_secs: u32,
    /// The label given to a client that had none.
    pub assigned_client_id: Option<ClientId>,
}

/// A message that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Its identifier; none at QoS 0.
    pub packet_id: Option<PacketId>,
    /// Size of the packet.
    pub packet_bytes: usize,
}

/// Why a message was not written; nothing was counted or taught.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// Wait for an acknowledgement.
    #[error(transparent)]
    WindowFull(#[from] WindowFull),
    /// It cannot be sent to this client at all: counts as finished, `too_large_for_peer`. [MQTT-3.1.2-24]
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// There is no established connection.
    #[error("not connected")]
    NotConnected,
}

impl Connection {
    /// A connection that was just accepted and has until `deadline` to send CONNECT.
    #[must_use]
    pub fn new(terms: Terms, deadline: Instant) -> Self {
        let limits = Limits {
            max_packet_bytes: terms.max_packet_bytes.get(),
            max_connect_bytes: terms.max_connect_bytes,
            strict_utf8: terms.strict_utf8,
        };
        Self {
            terms,
            decoder: Decoder::server(limits),
            phase: Phase::AwaitConnect { deadline },
        }
    }

    /// Takes the next packet off `src`; `None` when it needs more bytes, or while CONNECT is being decided.
    ///
    /// # Errors
    ///
    /// A [`Violation`] that ends the connection: call [`close`](Self::close) with its code.
    pub fn receive(
        &mut self,
        src: &mut BytesMut,
        now: Instant,
    ) -> Result<Option<Event>, Violation> {
        match self.phase {
            Phase::Deciding(_) => return Ok(None),
            Phase::Closing => {
                src.clear();
                return Ok(None);
            }
            Phase::AwaitConnect { .. } | Phase::Connected(_) => {}
        }
        match self.decoder.decode(src)? {
            Decoded::NeedMore(_) => Ok(None),
            Decoded::Packet(packet) => self.on_packet(packet, now).map(Some),
        }
    }

    /// What a decoded packet means now.
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive).
    pub fn on_packet(&mut self, packet: Packet, now: Instant) -> Result<Event, Violation> {
        let packet_type = packet.packet_type();
        match (&mut self.phase, packet) {
            (Phase::AwaitConnect { .. }, Packet::Connect(connect)) => {
                self.phase = Phase::Deciding(Peer::new(&connect, &self.terms));
                self.terms.judge_connect(&connect)?;
                Ok(Event::Connect(connect))
            }
            (Phase::AwaitConnect { .. }, _) => Err(Violation::BeforeConnect {
                packet: packet_type,
            }),
            (_, Packet::Connect(_)) => Err(Violation::SecondConnect),
            (Phase::Deciding(_) | Phase::Closing, _) => Err(Violation::BeforeConnect {
                packet: packet_type,
            }),
            (Phase::Connected(open), packet) => {
                open.keep_alive.on_packet(now);
                let event = open.on_packet(packet, &self.terms)?;
                if matches!(event, Event::Disconnect(_)) {
                    self.phase = Phase::Closing;
                }
                Ok(event)
            }
        }
    }

    /// Lets the client in: returns the CONNACK to write before anything else. Without a CONNECT to answer the
    /// connection stays as it is.
    pub fn accept(&mut self, admission: Admission, now: Instant) -> Packet {
        let Phase::Deciding(peer) = self.phase else {
            return Packet::Connack(Box::new(Connack::refusal(ReasonCode::UnspecifiedError)));
        };
        let mut properties = self.terms.announce(&peer);
        if admission.session_expiry_secs != peer.session_expiry_secs {
            properties.session_expiry_secs = Some(admission.session_expiry_secs);
        }
        properties.assigned_client_id = admission.assigned_client_id;
        self.phase = Phase::Connected(Box::new(Open::new(peer, &self.terms, now)));
        Packet::Connack(Box::new(Connack {
            session_present: admission.session_present,
            reason: ReasonCode::Success,
            properties: match peer.version {
                Version::V5 => properties,
                Version::V311 => crate::codec::ConnackProperties::default(),
            },
        }))
    }

    /// Ends the connection: returns what tells the client why, or `None` for a close without a word. Before CONNACK
    /// the reason goes there, later on DISCONNECT; 3.1.1 has return codes only.
    pub fn close(&mut self, reason: ReasonCode) -> Option<Packet> {
        let last = match &self.phase {
            Phase::AwaitConnect { .. } => self
                .decoder
                .answer_version()
                .and_then(|version| Peer::refusal(version, legal(reason, PacketType::Connack))),
            Phase::Deciding(peer) => {
                Peer::refusal(peer.version, legal(reason, PacketType::Connack))
            }
            Phase::Connected(open) => {
                let reason = legal(reason, PacketType::Disconnect);
                let last = open.peer.version.is_v5().then(|| Disconnect::new(reason));
                self.phase = Phase::Closing;
                return last.map(Packet::Disconnect);
            }
            Phase::Closing => None,
        };
        self.phase = Phase::Closing;
        last.map(|connack| Packet::Connack(Box::new(connack)))
    }

    /// Acknowledges a QoS 1 message: returns the PUBACK and takes the message off the client's quota. 3.1.1 hears no
    /// code; whether it hears anything about a refusal is the caller's policy.
    pub fn puback(&mut self, packet_id: PacketId, reason: ReasonCode) -> Packet {
        if let Phase::Connected(open) = &mut self.phase {
            open.quota.release(packet_id);
        }
        Packet::PubAck(Ack::new(packet_id, reason))
    }

    /// Writes a message toward the client: takes credit and identifier at QoS 1 and 2, uses aliases, obeys its Maximum
    /// Packet Size. `publish` needs no identifier.
    ///
    /// # Errors
    ///
    /// [`SendError`]; nothing was written then, nothing is in flight and no alias was taught.
    pub fn publish(&mut self, mut publish: Publish, dst: &mut BytesMut) -> Result<Sent, SendError> {
        let Phase::Connected(open) = &mut self.phase else {
            return Err(SendError::NotConnected);
        };
        publish.packet_id = match publish.qos {
            QoS::AtMostOnce => None,
            qos => Some(open.window.begin(open.next_seq, qos)?),
        };
        match open.write_publish(&mut publish, dst) {
            Ok(packet_bytes) => {
                if publish.packet_id.is_some() {
                    open.next_seq = open.next_seq.saturating_add(1);
                }
                Ok(Sent {
                    packet_id: publish.packet_id,
                    packet_bytes,
                })
            }
            Err(error) => {
                if let Some(packet_id) = publish.packet_id {
                    open.window.abandon(packet_id);
                }
                Err(error.into())
            }
        }
    }

    /// Writes any other packet in the connection's version and within the client's limits.
    ///
    /// # Errors
    ///
    /// [`EncodeError`]; nothing was written then.
    pub fn write(&self, packet: &Packet, dst: &mut BytesMut) -> Result<usize, EncodeError> {
        self.encoder().encode(packet, dst)
    }

    /// Something is due: the violation to close with, if the time has really come.
    #[must_use]
    pub fn on_timeout(&self, now: Instant) -> Option<Violation> {
        match &self.phase {
            Phase::AwaitConnect { deadline } if now >= *deadline => Some(Violation::ConnectTimeout),
            Phase::Connected(open) if open.keep_alive.is_expired(now) => {
                Some(Violation::KeepAliveTimeout)
            }
            Phase::AwaitConnect { .. }
            | Phase::Deciding(_)
            | Phase::Connected(_)
            | Phase::Closing => None,
        }
    }

    /// When to call [`on_timeout`](Self::on_timeout); moves with every packet.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        match &self.phase {
            Phase::AwaitConnect { deadline } => Some(*deadline),
            Phase::Connected(open) => open.keep_alive.deadline(),
            Phase::Deciding(_) | Phase::Closing => None,
        }
    }

    /// Version of the connection, once CONNECT told it.
    #[must_use]
    pub const fn version(&self) -> Option<Version> {
        self.decoder.answer_version()
    }

    /// What the client wants, once CONNECT told it and until the connection closes.
    #[must_use]
    pub fn peer(&self) -> Option<&Peer> {
        match &self.phase {
            Phase::Deciding(peer) => Some(peer),
            Phase::Connected(open) => Some(&open.peer),
            Phase::AwaitConnect { .. } | Phase::Closing => None,
        }
    }

    /// What the listener offers.
    #[must_use]
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Messages of QoS 1 and 2 that the client has not finished.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        match &self.phase {
            Phase::Connected(open) => open.window.in_flight(),
            Phase::AwaitConnect { .. } | Phase::Deciding(_) | Phase::Closing => 0,
        }
    }

    /// Whether [`publish`](Self::publish) would take a message of QoS 1 or 2 now.
    #[must_use]
    pub fn window_is_open(&self) -> bool {
        matches!(&self.phase, Phase::Connected(open) if !open.window.is_full())
    }

    /// Messages of the client that we have not acknowledged. 3.1.1 has no quota, so a driver stops reading here when
    /// it is too many.
    #[must_use]
    pub fn unacknowledged(&self) -> usize {
        match &self.phase {
            Phase::Connected(open) => open.quota.open(),
            Phase::AwaitConnect { .. } | Phase::Deciding(_) | Phase::Closing => 0,
        }
    }

    /// Name of the state, for logs and the transition table.
    #[must_use]
    pub const fn state(&self) -> &'static str {
        match self.phase {
            Phase::AwaitConnect { .. } => "await-connect",
            Phase::Deciding(_) => "deciding",
            Phase::Connected(_) => "connected",
            Phase::Closing => "closing",
        }
    }

    fn encoder(&self) -> Encoder {
        match &self.phase {
            Phase::Connected(open) => open.encoder,
            Phase::Deciding(peer) => encoder_for(peer),
            Phase::AwaitConnect { .. } | Phase::Closing => {
                Encoder::new(self.decoder.answer_version().unwrap_or(Version::V311))
            }
        }
    }
}

impl Open {
    fn new(peer: Peer, terms: &Terms, now: Instant) -> Self {
        let receive_maximum = peer.version.is_v5().then_some(terms.receive_maximum.get());
        let keep_alive = if peer.keep_alive_secs == 0 && !peer.version.is_v5() {
            KeepAlive::with_idle_max(0, terms.idle_max, now)
        } else {
            KeepAlive::new(peer.keep_alive_secs, now)
        };
        Self {
            peer,
            encoder: encoder_for(&peer),
            keep_alive,
            inbound_aliases: InboundAliases::new(terms.topic_alias_maximum),
            outbound_aliases: OutboundAliases::new(peer.topic_alias_maximum),
            quota: InboundQuota::new(receive_maximum),
            window: OutboundWindow::new(peer.send_window),
            next_seq: 0,
        }
    }

    fn on_packet(&mut self, packet: Packet, terms: &Terms) -> Result<Event, Violation> {
        let packet_type = packet.packet_type();
        match packet {
            Packet::Publish(publish) => self.on_publish(publish, terms),
            Packet::PubAck(ack) => {
                let release = self.window.on_puback(ack.packet_id);
                Ok(self.released(packet_type, &ack, release))
            }
            Packet::PubRec(ack) => {
                let release = self.window.on_pubrec(ack.packet_id, ack.reason);
                Ok(self.released(packet_type, &ack, release))
            }
            Packet::PubComp(ack) => {
                let release = self.window.on_pubcomp(ack.packet_id);
                Ok(self.released(packet_type, &ack, release))
            }
            Packet::PubRel(ack) => {
                // Never a close: a client may release what a former life of ours knew. [mqtt 3.2]
                let known = self.quota.release(ack.packet_id);
                Ok(Event::Answer(Packet::PubComp(Ack::new(
                    ack.packet_id,
                    self.found(known),
                ))))
            }
            Packet::Subscribe(subscribe) => Ok(Event::Subscribe(subscribe)),
            Packet::Unsubscribe(unsubscribe) => Ok(Event::Unsubscribe(unsubscribe)),
            Packet::Pingreq => Ok(Event::Answer(Packet::Pingresp)),
            Packet::Disconnect(disconnect) => {
                let raised = disconnect
                    .properties
                    .session_expiry_secs
                    .unwrap_or_default()
                    > 0;
                if raised && self.peer.session_expiry_secs == 0 {
                    return Err(Violation::SessionExpiryRaised);
                }
                Ok(Event::Disconnect(disconnect))
            }
            Packet::Auth(_) => Err(Violation::UnexpectedAuth),
            Packet::Connect(_) => Err(Violation::SecondConnect),
            Packet::Connack(_) | Packet::Suback(_) | Packet::Unsuback(_) | Packet::Pingresp => {
                Err(Violation::WrongDirection {
                    packet: packet_type,
                })
            }
        }
    }

    fn on_publish(&mut self, mut publish: Publish, terms: &Terms) -> Result<Event, Violation> {
        terms.judge_publish(&publish)?;
        let packet_id = publish.packet_id;
        let judged = self
            .inbound_aliases
            .resolve(&mut publish, |topic| terms.judge_topic(topic))
            .and_then(|()| terms.judge_user_properties(&publish));
        if let Err(violation) = judged {
            return refuse(violation, packet_id);
        }
        if let Some(packet_id) = packet_id {
            match self.quota.admit(packet_id) {
                Admitted::New => {}
                // A 3.1.1 client that repeats itself is simply heard again. [mqtt 3.4]
                Admitted::InUse if !self.peer.version.is_v5() => {}
                Admitted::InUse => {
                    return refuse(Violation::PacketIdInUse { packet_id }, Some(packet_id));
                }
                Admitted::Exceeded { max } => {
                    return Err(Violation::ReceiveMaximumExceeded { max });
                }
            }
        }
        Ok(Event::Publish(publish))
    }

    fn released(&self, packet: PacketType, ack: &Ack, release: Release) -> Event {
        let packet_id = ack.packet_id;
        match release {
            Release::Finished => Event::Acknowledged {
                packet_id,
                reason: ack.reason,
            },
            Release::SendPubrel => {
                Event::Answer(Packet::PubRel(Ack::new(packet_id, ReasonCode::Success)))
            }
            // An unknown PUBREC still gets its PUBREL, or its sender would never let go. [mqtt 3.2]
            Release::Unknown if packet == PacketType::PubRec && !ack.reason.is_error() => {
                Event::Answer(Packet::PubRel(Ack::new(packet_id, self.found(false))))
            }
            Release::Unknown => Event::Unmatched { packet, packet_id },
        }
    }

    const fn found(&self, known: bool) -> ReasonCode {
        if known || !self.peer.version.is_v5() {
            ReasonCode::Success
        } else {
            ReasonCode::PacketIdentifierNotFound
        }
    }

    fn write_publish(
        &mut self,
        publish: &mut Publish,
        dst: &mut BytesMut,
    ) -> Result<usize, EncodeError> {
        let Some(applied) = self.outbound_aliases.apply(publish) else {
            return self.encoder.encode_publish(publish, dst);
        };
        match self.encoder.encode_publish(publish, dst) {
            Err(EncodeError::TooLarge { .. }) => {
                // The alias itself takes three bytes; without it the message may fit.
                self.outbound_aliases.revert(applied, publish);
                self.encoder.encode_publish(publish, dst)
            }
            Err(error) => {
                self.outbound_aliases.revert(applied, publish);
                Err(error)
            }
            Ok(written) => Ok(written),
        }
    }
}

/// A violation that reaches one message becomes an event; any other ends the connection.
fn refuse(violation: Violation, packet_id: Option<PacketId>) -> Result<Event, Violation> {
    match violation.reach() {
        crate::codec::Reach::Message => Ok(Event::PublishRefused {
            packet_id,
            violation: violation.about(packet_id),
        }),
        crate::codec::Reach::Subscription | crate::codec::Reach::Connection => Err(violation),
    }
}

/// The reason, where the packet may carry it.
fn legal(reason: ReasonCode, packet: PacketType) -> ReasonCode {
    if reason.may_stand_in(packet, Role::Server) {
        reason
    } else {
        ReasonCode::UnspecifiedError
    }
}

const fn encoder_for(peer: &Peer) -> Encoder {
    Encoder {
        version: peer.version,
        peer_max_packet_bytes: peer.max_packet_bytes,
        problem_information: peer.problem_information,
    }
}
