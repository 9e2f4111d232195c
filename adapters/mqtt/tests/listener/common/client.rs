//! A client that sends and expects packets or bytes, and does nothing by itself.

use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU32};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use weida_mqtt::codec::{
    Ack, ClientId, Connack, Connect, Decoded, Decoder, Disconnect, Encoder, Limits, Packet,
    PacketId, Password, Publish, PublishProperties, QoS, ReasonCode, Suback, Subscribe,
    SubscribeOptions, SubscribeProperties, TopicFilter, TopicName, Unsuback, Unsubscribe, UserName,
    UserProperties, Utf8Bytes, Version, Will, WillProperties,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// What a CONNECT says.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) connect: Connect,
}

impl Options {
    pub(crate) fn v5(id: &str) -> Self {
        Self::new(Version::V5, id)
    }

    pub(crate) fn v4(id: &str) -> Self {
        Self::new(Version::V311, id)
    }

    pub(crate) fn new(version: Version, id: &str) -> Self {
        let mut connect = Connect::new(version, ClientId::parse(id).unwrap());
        connect.keep_alive_secs = 60;
        Self { connect }
    }

    pub(crate) fn login(mut self, user: &str, password: &str) -> Self {
        self.connect.user_name = Some(UserName::parse(user).unwrap());
        self.connect.password = Some(Password::new(Bytes::copy_from_slice(password.as_bytes())));
        self
    }

    pub(crate) fn keep_alive(mut self, secs: u16) -> Self {
        self.connect.keep_alive_secs = secs;
        self
    }

    pub(crate) fn not_clean(mut self) -> Self {
        self.connect.clean_start = false;
        self
    }

    pub(crate) fn expiry(mut self, secs: u32) -> Self {
        self.connect.properties.session_expiry_secs = Some(secs);
        self
    }

    pub(crate) fn receive_maximum(mut self, count: u16) -> Self {
        self.connect.properties.receive_maximum = NonZeroU16::new(count);
        self
    }

    pub(crate) fn max_packet(mut self, bytes: u32) -> Self {
        self.connect.properties.maximum_packet_bytes = NonZeroU32::new(bytes);
        self
    }

    pub(crate) fn aliases(mut self, count: u16) -> Self {
        self.connect.properties.topic_alias_maximum = Some(count);
        self
    }

    pub(crate) fn will(mut self, topic: &str, payload: &str, delay_secs: Option<u32>) -> Self {
        let properties = WillProperties {
            delay_secs,
            ..WillProperties::default()
        };
        self.connect.will = Some(Will {
            topic: TopicName::parse(topic).unwrap(),
            payload: Bytes::copy_from_slice(payload.as_bytes()),
            qos: QoS::AtLeastOnce,
            retain: false,
            properties,
        });
        self
    }
}

/// One connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    pub(crate) connack: Option<Connack>,
    decoder: Decoder,
    encoder: Encoder,
    input: BytesMut,
    next_id: u16,
}

impl Client {
    /// Connects and is let in.
    pub(crate) async fn connect(addr: SocketAddr, options: Options) -> Self {
        let mut client = Self::try_connect(addr, options).await;
        let connack = client.connack.take().expect("an answer to CONNECT");
        assert_eq!(connack.reason, ReasonCode::Success);
        client.connack = Some(connack);
        client
    }

    /// Connects and takes whatever answer comes, or none.
    pub(crate) async fn try_connect(addr: SocketAddr, options: Options) -> Self {
        let mut client = Self::open(addr, options.connect.version).await;
        client
            .send(&Packet::Connect(Box::new(options.connect)))
            .await;
        client.connack = match client.next().await {
            Some(Packet::Connack(connack)) => Some(*connack),
            None => None,
            Some(other) => panic!("expected CONNACK, got {other:?}"),
        };
        client
    }

    /// Only TCP.
    pub(crate) async fn open(addr: SocketAddr, version: Version) -> Self {
        let stream = TcpStream::connect(addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            connack: None,
            decoder: Decoder::client(version, Limits::default()),
            encoder: Encoder::new(version),
            input: BytesMut::new(),
            next_id: 1,
        }
    }

    pub(crate) fn refusal(&self) -> Option<ReasonCode> {
        self.connack.as_ref().map(|connack| connack.reason)
    }

    pub(crate) async fn send(&mut self, packet: &Packet) {
        let mut bytes = BytesMut::new();
        self.encoder.encode(packet, &mut bytes).unwrap();
        self.send_raw(&bytes).await;
    }

    /// Writes bytes; the other side may be gone already.
    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        let _: std::io::Result<()> = self.stream.write_all(bytes).await;
    }

    /// Hex with spaces, as in the tables of the specification.
    pub(crate) async fn send_hex(&mut self, hex: &str) {
        let digits: String = hex.split_whitespace().collect();
        let bytes: Vec<u8> = (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
            .collect();
        self.send_raw(&bytes).await;
    }

    /// The next packet; `None` when the other side closed.
    pub(crate) async fn next(&mut self) -> Option<Packet> {
        timeout(PATIENCE, self.next_unbounded())
            .await
            .expect("nothing came")
    }

    async fn next_unbounded(&mut self) -> Option<Packet> {
        loop {
            if let Decoded::Packet(packet) = self.decoder.decode(&mut self.input).unwrap() {
                return Some(packet);
            }
            match self.stream.read_buf(&mut self.input).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Asserts that nothing comes for a while.
    pub(crate) async fn silent_for(&mut self, duration: Duration) {
        if let Ok(came) = timeout(duration, self.next_unbounded()).await {
            panic!("expected silence, got {came:?}");
        }
    }

    /// The reason in DISCONNECT, then the close; `None` = closed without a word.
    pub(crate) async fn closed(&mut self) -> Option<ReasonCode> {
        let mut reason = None;
        loop {
            match self.next().await {
                None => return reason,
                Some(Packet::Disconnect(disconnect)) => reason = Some(disconnect.reason),
                Some(Packet::Connack(connack)) => reason = Some(connack.reason),
                Some(_) => {}
            }
        }
    }

    pub(crate) async fn ping(&mut self) {
        self.send(&Packet::Pingreq).await;
        loop {
            match self.next().await {
                Some(Packet::Pingresp) => return,
                Some(Packet::Publish(_)) => {}
                other => panic!("expected PINGRESP, got {other:?}"),
            }
        }
    }

    pub(crate) fn id(&mut self) -> PacketId {
        let id = PacketId::new(self.next_id).unwrap();
        self.next_id = self.next_id.wrapping_add(1).max(1);
        id
    }

    pub(crate) async fn subscribe(&mut self, filter: &str, qos: QoS) -> ReasonCode {
        self.subscribe_with(
            filter,
            SubscribeOptions::new(qos),
            SubscribeProperties::default(),
        )
        .await
    }

    pub(crate) async fn subscribe_with(
        &mut self,
        filter: &str,
        options: SubscribeOptions,
        properties: SubscribeProperties,
    ) -> ReasonCode {
        let packet_id = self.id();
        let filter = TopicFilter::parse(filter).unwrap();
        let filters = std::iter::once((filter, options)).collect();
        self.send(&Packet::Subscribe(Subscribe {
            packet_id,
            properties,
            filters,
        }))
        .await;
        self.suback().await.codes[0]
    }

    pub(crate) async fn suback(&mut self) -> Suback {
        match self.next().await {
            Some(Packet::Suback(suback)) => suback,
            other => panic!("expected SUBACK, got {other:?}"),
        }
    }

    pub(crate) async fn unsubscribe(&mut self, filters: &[&str]) -> Unsuback {
        let packet_id = self.id();
        let filters = filters
            .iter()
            .map(|filter| TopicFilter::parse(filter).unwrap())
            .collect();
        let user_properties = UserProperties::default();
        self.send(&Packet::Unsubscribe(Unsubscribe {
            packet_id,
            user_properties,
            filters,
        }))
        .await;
        match self.next().await {
            Some(Packet::Unsuback(unsuback)) => unsuback,
            other => panic!("expected UNSUBACK, got {other:?}"),
        }
    }

    /// Sends a publish and returns its identifier.
    pub(crate) async fn publish(
        &mut self,
        topic: &str,
        payload: &[u8],
        qos: QoS,
    ) -> Option<PacketId> {
        let publish = message(topic, payload, qos);
        self.publish_with(publish).await
    }

    pub(crate) async fn publish_with(&mut self, mut publish: Publish) -> Option<PacketId> {
        if publish.qos != QoS::AtMostOnce && publish.packet_id.is_none() {
            publish.packet_id = Some(self.id());
        }
        let packet_id = publish.packet_id;
        self.send(&Packet::Publish(publish)).await;
        packet_id
    }

    /// Publishes at QoS 1 and returns the code of the PUBACK.
    pub(crate) async fn publish_acked(&mut self, topic: &str, payload: &[u8]) -> ReasonCode {
        let id = self
            .publish(topic, payload, QoS::AtLeastOnce)
            .await
            .unwrap();
        let (acked, reason) = self.puback().await;
        assert_eq!(acked, id);
        reason
    }

    pub(crate) async fn puback(&mut self) -> (PacketId, ReasonCode) {
        match self.next().await {
            Some(Packet::PubAck(ack)) => (ack.packet_id, ack.reason),
            other => panic!("expected PUBACK, got {other:?}"),
        }
    }

    /// The next publish; a QoS 1 one is not acknowledged.
    pub(crate) async fn message(&mut self) -> Publish {
        match self.next().await {
            Some(Packet::Publish(publish)) => publish,
            other => panic!("expected PUBLISH, got {other:?}"),
        }
    }

    pub(crate) async fn acknowledge(&mut self, publish: &Publish) {
        if let Some(packet_id) = publish.packet_id {
            self.send(&Packet::PubAck(Ack::new(packet_id, ReasonCode::Success)))
                .await;
        }
    }

    pub(crate) async fn disconnect(&mut self, reason: ReasonCode) {
        self.send(&Packet::Disconnect(Disconnect::new(reason)))
            .await;
    }
}

pub(crate) fn message(topic: &str, payload: &[u8], qos: QoS) -> Publish {
    Publish {
        qos,
        topic: TopicName::parse(topic).unwrap(),
        payload: Bytes::copy_from_slice(payload),
        properties: PublishProperties::default(),
        ..Publish::default()
    }
}

pub(crate) fn user_properties(pairs: &[(&str, &str)]) -> UserProperties {
    let mut properties = UserProperties::default();
    for (name, value) in pairs {
        let text = |text: &str| Utf8Bytes::parse(text).unwrap();
        properties.push(&text(name), &text(value));
    }
    properties
}
