//! REPORT: one side's view of the QUIC path, a head and then records. [wire 8.8]
//!
//! ```text
//! +------------------+------------------------------+
//! | length, varint   | CBOR map, at most 256 bytes  |   until FIN
//! +------------------+------------------------------+
//! ```

use super::{FrameHeader, Out, count};
use crate::{
    caps,
    cbor::{Reader, Writer},
    error::{DecodeError, EncodeError},
    frame::Decoded,
    varint,
};

/// The head: an empty map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportHead;

/// One record. A key the peer left out reads 0, and a 0 is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathRecord {
    /// Key 0: smoothed round trip, µs.
    pub rtt_us: u64,
    /// Key 1: smallest round trip, µs.
    pub min_rtt_us: u64,
    /// Key 2: congestion window, bytes.
    pub cwnd: u64,
    /// Key 3: congestion events.
    pub congestion_events: u64,
    /// Key 4: packets lost.
    pub lost_packets: u64,
    /// Key 5: bytes lost.
    pub lost_bytes: u64,
    /// Key 6: packets sent.
    pub sent_packets: u64,
    /// Key 7: largest UDP payload the path carries, bytes.
    pub current_mtu: u64,
    /// Key 8: UDP datagrams sent.
    pub tx_datagrams: u64,
    /// Key 9: bytes in them.
    pub tx_bytes: u64,
    /// Key 10: UDP datagrams received.
    pub rx_datagrams: u64,
    /// Key 11: bytes in them.
    pub rx_bytes: u64,
}

impl ReportHead {
    /// Reads a head; every key is unknown and skipped.
    ///
    /// # Errors
    ///
    /// [`DecodeError`], a violation.
    pub fn decode(header: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(header);
        let mut keys = reader.header_map()?;
        while let Some(key) = reader.key(&mut keys)? {
            reader.skip(key)?;
        }
        reader.end()?;
        Ok(Self)
    }
}

impl FrameHeader for ReportHead {
    fn check(&self) -> Result<(), EncodeError> {
        Ok(())
    }

    fn write<B: Out>(&self, out: &mut B) {
        Writer::new(out).map(0);
    }
}

impl PathRecord {
    /// Appends length and map. Twelve keys stay far below the cap of 256 bytes.
    pub fn encode<B: Out>(&self, out: &mut B) {
        let values = self.values();
        let start = out.as_ref().len();
        out.put_u8(0);
        let mut map = Writer::new(out);
        map.map(count(&values.map(|value| value > 0)));
        for (key, value) in (0..).zip(values) {
            if value > 0 {
                map.uint_key(key, value);
            }
        }
        let len = out.as_ref().len().saturating_sub(start).saturating_sub(1);
        // At most 1 + 12 * 10 bytes: two bytes of length are enough.
        if len > 0x3F {
            out.put_u8(0);
            if let Some(tail) = out.as_mut().get_mut(start.saturating_add(1)..) {
                tail.copy_within(..len, 1);
            }
        }
        if let Some(mut slot) = out.as_mut().get_mut(start..) {
            let _: Result<(), EncodeError> = varint::encode_varint(len as u64, &mut slot); // < 256
        }
    }

    /// Reads one record off the front of `input`.
    ///
    /// At FIN the answer [`Decoded::NeedMore`] on a non-empty rest is
    /// [`DecodeError::EndInsideRecord`].
    ///
    /// # Errors
    ///
    /// [`DecodeError::RecordTooLong`] before any of the map is there, or what is wrong in the map.
    pub fn decode(input: &[u8]) -> Result<Decoded<Self>, DecodeError> {
        let (got_bytes, at) = match varint::decode_varint(input) {
            // A record is at least two bytes.
            Decoded::NeedMore(bytes) => return Ok(Decoded::NeedMore(bytes.saturating_add(1))),
            Decoded::Value { value, consumed } => (value, consumed),
        };
        let len = usize::try_from(got_bytes)
            .ok()
            .filter(|len| *len <= caps::MAX_PATH_RECORD_BYTES)
            .ok_or(DecodeError::RecordTooLong {
                got_bytes,
                max_bytes: caps::MAX_PATH_RECORD_BYTES,
            })?;
        let rest = input.get(at..).unwrap_or_default();
        let Some(map) = rest.get(..len) else {
            return Ok(Decoded::NeedMore(len.saturating_sub(rest.len())));
        };
        Ok(Decoded::Value {
            value: Self::decode_map(map)?,
            consumed: at.saturating_add(len),
        })
    }

    fn decode_map(map: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(map);
        let mut keys = reader.header_map()?;
        let mut record = Self::default();
        while let Some(key) = reader.key(&mut keys)? {
            match record.slot(key) {
                Some(slot) => *slot = reader.uint(key)?,
                None => reader.skip(key)?,
            }
        }
        reader.end()?;
        Ok(record)
    }

    /// Values in key order.
    const fn values(&self) -> [u64; 12] {
        [
            self.rtt_us,
            self.min_rtt_us,
            self.cwnd,
            self.congestion_events,
            self.lost_packets,
            self.lost_bytes,
            self.sent_packets,
            self.current_mtu,
            self.tx_datagrams,
            self.tx_bytes,
            self.rx_datagrams,
            self.rx_bytes,
        ]
    }

    const fn slot(&mut self, key: u64) -> Option<&mut u64> {
        Some(match key {
            0 => &mut self.rtt_us,
            1 => &mut self.min_rtt_us,
            2 => &mut self.cwnd,
            3 => &mut self.congestion_events,
            4 => &mut self.lost_packets,
            5 => &mut self.lost_bytes,
            6 => &mut self.sent_packets,
            7 => &mut self.current_mtu,
            8 => &mut self.tx_datagrams,
            9 => &mut self.tx_bytes,
            10 => &mut self.rx_datagrams,
            11 => &mut self.rx_bytes,
            _ => return None,
        })
    }
}
