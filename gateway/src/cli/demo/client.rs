//! The smallest MQTT 5 client that can show a message: connect, subscribe, publish, receive.

use std::io;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use weida_mqtt::codec::{
    Ack, ClientId, Connect, Decoded, Decoder, Disconnect, EncodeError, Encoder, Limits, Packet,
    PacketId, Publish, QoS, ReasonCode, Subscribe, SubscribeFilters, SubscribeOptions,
    SubscribeProperties, TopicFilter, TopicName, Version, Violation,
};

/// One connection.
pub(super) struct Client {
    stream: TcpStream,
    decoder: Decoder,
    encoder: Encoder,
    received: BytesMut,
}

/// Why the client could not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// The connection failed or ended.
    #[error("the connection failed")]
    Io(#[from] io::Error),
    /// The server sent what MQTT does not allow.
    #[error("the server broke the protocol")]
    Violation(#[from] Violation),
    /// A packet of ours could not be written.
    #[error("a packet can't be written")]
    Encode(#[from] EncodeError),
    /// The server said no.
    #[error("the server refused: {0}")]
    Refused(String),
}

impl Client {
    pub(super) async fn connect(server: SocketAddr, id: &str) -> Result<Self, ClientError> {
        let mut client = Self {
            stream: TcpStream::connect(server).await?,
            decoder: Decoder::client(Version::V5, Limits::default()),
            encoder: Encoder::new(Version::V5),
            received: BytesMut::new(),
        };
        let id = ClientId::parse(id).map_err(refused)?;
        client
            .send(&Packet::Connect(Box::new(Connect::new(Version::V5, id))))
            .await?;
        match client.next().await? {
            Packet::Connack(connack) if !connack.reason.is_error() => Ok(client),
            other => Err(refused(format!("{other:?}"))),
        }
    }

    /// Subscribes and waits for the answer.
    pub(super) async fn subscribe(&mut self, filter: &str) -> Result<(), ClientError> {
        let filter = TopicFilter::parse(filter).map_err(refused)?;
        let options = SubscribeOptions::new(QoS::AtLeastOnce);
        self.send(&Packet::Subscribe(Subscribe {
            packet_id: packet_id()?,
            properties: SubscribeProperties::default(),
            filters: SubscribeFilters::from_iter([(filter, options)]),
        }))
        .await?;
        loop {
            match self.next().await? {
                Packet::Suback(suback) if suback.codes.iter().all(|it| !it.is_error()) => {
                    return Ok(());
                }
                Packet::Suback(suback) => return Err(refused(format!("{suback:?}"))),
                // Acknowledgements of publishes that nobody waited for.
                _ => {}
            }
        }
    }

    /// Publishes at QoS 0; whether it arrived, the other side says.
    pub(super) async fn publish(
        &mut self,
        topic: &str,
        body: &'static str,
    ) -> Result<(), ClientError> {
        self.send(&Packet::Publish(Publish {
            topic: TopicName::parse(topic).map_err(refused)?,
            payload: Bytes::from_static(body.as_bytes()),
            ..Publish::default()
        }))
        .await
    }

    /// Topic and payload of the next message.
    pub(super) async fn next_message(&mut self) -> Result<(String, String), ClientError> {
        loop {
            let Packet::Publish(publish) = self.next().await? else {
                continue;
            };
            if let Some(packet_id) = publish.packet_id {
                self.send(&Packet::PubAck(Ack::new(packet_id, ReasonCode::Success)))
                    .await?;
            }
            let payload = String::from_utf8_lossy(&publish.payload).into_owned();
            return Ok((publish.topic.as_str().to_owned(), payload));
        }
    }

    pub(super) async fn disconnect(mut self) -> Result<(), ClientError> {
        self.send(&Packet::Disconnect(Disconnect::default()))
            .await?;
        self.stream.shutdown().await?;
        Ok(())
    }

    async fn send(&mut self, packet: &Packet) -> Result<(), ClientError> {
        let mut bytes = BytesMut::new();
        self.encoder.encode(packet, &mut bytes)?;
        self.stream.write_all(&bytes).await?;
        Ok(())
    }

    /// The next packet. Bounded by the decoder's limits.
    async fn next(&mut self) -> Result<Packet, ClientError> {
        loop {
            match self.decoder.decode(&mut self.received)? {
                Decoded::Packet(packet) => return Ok(packet),
                Decoded::NeedMore(_) => {}
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }
}

fn packet_id() -> Result<PacketId, ClientError> {
    PacketId::new(1).ok_or_else(|| refused("packet id 0"))
}

fn refused(why: impl ToString) -> ClientError {
    ClientError::Refused(why.to_string())
}
