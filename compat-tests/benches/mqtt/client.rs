//! A bare MQTT 3.1.1 client that costs as little as possible: the same bytes for every broker that is measured.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;

/// Bytes written at once at most.
const BATCH_BYTES: usize = 16 * 1024;
/// Read size.
const READ_BYTES: usize = 64 * 1024;

/// What has arrived; whoever is paced by it waits here instead of spinning on a core that the broker needs.
#[derive(Default)]
pub(crate) struct Arrived {
    count: AtomicU64,
    more: Notify,
}

impl Arrived {
    pub(crate) fn add(&self, count: u64) {
        if count > 0 {
            self.count.fetch_add(count, Ordering::Release);
            self.more.notify_one();
        }
    }

    pub(crate) fn get(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    pub(crate) fn reset(&self) {
        self.count.store(0, Ordering::Release);
    }

    /// Waits until at least `count` have arrived.
    pub(crate) async fn reach(&self, count: u64) {
        while self.get() < count {
            self.more.notified().await;
        }
    }
}

/// The sending half of a connection.
pub(crate) struct Publisher {
    stream: OwnedWriteHalf,
    batch: BytesMut,
    topic: &'static str,
    next_id: u16,
}

/// Connects; the other half is where PUBACKs come back.
pub(crate) async fn publisher(
    address: SocketAddr,
    topic: &'static str,
) -> io::Result<(Publisher, OwnedReadHalf)> {
    let (reading, writing) = connect(address, "bench-publisher").await?;
    Ok((
        Publisher {
            stream: writing,
            batch: BytesMut::with_capacity(2 * BATCH_BYTES),
            topic,
            next_id: 0,
        },
        reading,
    ))
}

impl Publisher {
    /// Adds one PUBLISH to the batch; QoS 1 when `acknowledged`.
    pub(crate) fn queue(&mut self, payload: &[u8], acknowledged: bool) {
        let length = 2 + self.topic.len() + payload.len() + if acknowledged { 2 } else { 0 };
        self.batch.put_u8(if acknowledged { 0x32 } else { 0x30 });
        put_length(&mut self.batch, length);
        self.batch.put_u16(self.topic.len() as u16);
        self.batch.put_slice(self.topic.as_bytes());
        if acknowledged {
            self.next_id = self.next_id.checked_add(1).unwrap_or(1);
            self.batch.put_u16(self.next_id);
        }
        self.batch.put_slice(payload);
    }

    /// Writes a full batch, or whatever there is when `now`.
    pub(crate) async fn flush(&mut self, now: bool) -> io::Result<()> {
        if !self.batch.is_empty() && (now || self.batch.len() >= BATCH_BYTES) {
            self.stream.write_all(&self.batch).await?;
            self.batch.clear();
        }
        Ok(())
    }
}

/// Subscribes to everything with this QoS and returns when the SUBACK is there.
pub(crate) async fn subscriber(
    address: SocketAddr,
    qos: u8,
) -> io::Result<(OwnedReadHalf, OwnedWriteHalf)> {
    let (mut reading, mut writing) = connect(address, "bench-subscriber").await?;
    writing.write_all(&[0x82, 6, 0, 1, 0, 1, b'#', qos]).await?;
    let mut suback = [0; 5];
    reading.read_exact(&mut suback).await?;
    if suback[0] != 0x90 || suback[4] > 2 {
        return Err(io::Error::other(format!("refused: {suback:?}")));
    }
    Ok((reading, writing))
}

/// Counts packets of one type until the connection ends; acknowledges QoS 1 publishes in batches.
pub(crate) async fn count(
    mut reading: OwnedReadHalf,
    mut writing: Option<OwnedWriteHalf>,
    kind: u8,
    counter: Arc<Arrived>,
) {
    let mut buffer = BytesMut::with_capacity(2 * READ_BYTES);
    let mut acks = BytesMut::new();
    loop {
        buffer.reserve(READ_BYTES);
        match reading.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let mut seen = 0;
        while let Some((head, length)) = whole(&buffer) {
            let first = buffer[0];
            if first >> 4 == kind {
                seen += 1;
                if kind == 3 && first & 6 == 2 {
                    let topic = usize::from(u16::from_be_bytes([buffer[head], buffer[head + 1]]));
                    let id = &buffer[head + 2 + topic..head + 4 + topic];
                    acks.put_slice(&[0x40, 2, id[0], id[1]]);
                }
            }
            buffer.advance(head + length);
        }
        counter.add(seen);
        if let Some(writing) = &mut writing
            && !acks.is_empty()
        {
            if writing.write_all(&acks).await.is_err() {
                return;
            }
            acks.clear();
        }
    }
}

/// Length of the fixed header and of the rest, when the whole packet is there.
fn whole(buffer: &[u8]) -> Option<(usize, usize)> {
    let mut length = 0;
    for (index, byte) in buffer.get(1..)?.iter().take(4).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let head = index + 2;
            return (buffer.len() >= head + length).then_some((head, length));
        }
    }
    None
}

async fn connect(
    address: SocketAddr,
    client_id: &str,
) -> io::Result<(OwnedReadHalf, OwnedWriteHalf)> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut reading, mut writing) = stream.into_split();
    let mut packet = BytesMut::new();
    packet.put_u8(0x10);
    put_length(&mut packet, 12 + client_id.len());
    packet.put_slice(b"\x00\x04MQTT\x04\x02\x00\x00");
    packet.put_u16(client_id.len() as u16);
    packet.put_slice(client_id.as_bytes());
    writing.write_all(&packet).await?;
    let mut connack = [0; 4];
    reading.read_exact(&mut connack).await?;
    if connack != [0x20, 2, 0, 0] {
        return Err(io::Error::other(format!("refused: {connack:?}")));
    }
    Ok((reading, writing))
}

fn put_length(buffer: &mut BytesMut, mut length: usize) {
    loop {
        let byte = (length & 0x7f) as u8;
        length >>= 7;
        if length == 0 {
            return buffer.put_u8(byte);
        }
        buffer.put_u8(byte | 0x80);
    }
}
