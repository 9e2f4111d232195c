//! A cursor over one whole packet body that cannot read past it.

use bytes::{Buf, Bytes};

use super::{PacketId, PacketType, Role, Utf8Bytes, Version, Violation, text, varint};

/// What the packet decoders need to know about the connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context {
    pub(super) role: Role,
    pub(super) version: Version,
}

impl Context {
    /// The role of whoever sent what we decode.
    pub(super) const fn sender(&self) -> Role {
        match self.role {
            Role::Server => Role::Client,
            Role::Client => Role::Server,
        }
    }
}

#[derive(Debug)]
pub(super) struct Reader {
    frame: Bytes,
    position: usize,
    /// Reads stop here: the end of the frame, or of the property block that is open.
    end: usize,
    in_properties: bool,
    strict: bool,
}

impl Reader {
    pub(super) fn new(frame: Bytes, strict: bool) -> Self {
        let end = frame.len();
        Self {
            frame,
            position: 0,
            end,
            in_properties: false,
            strict,
        }
    }

    pub(super) const fn left(&self) -> usize {
        self.end.saturating_sub(self.position)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.left() == 0
    }

    pub(super) const fn position(&self) -> usize {
        self.position
    }

    fn short(&self, wanted_bytes: usize) -> Violation {
        let left_bytes = self.left();
        if self.in_properties {
            Violation::PropertyLength {
                wanted_bytes,
                left_bytes,
            }
        } else {
            Violation::Truncated {
                wanted_bytes,
                left_bytes,
            }
        }
    }

    #[inline]
    fn take(&mut self, count: usize) -> Result<&[u8], Violation> {
        if count > self.left() {
            return Err(self.short(count));
        }
        let start = self.position;
        self.position = start.saturating_add(count);
        Ok(self.frame.get(start..self.position).unwrap_or_default())
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8, Violation> {
        match *self.take(1)? {
            [byte] => Ok(byte),
            _ => Err(self.short(1)),
        }
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16, Violation> {
        match *self.take(2)? {
            [a, b] => Ok(u16::from_be_bytes([a, b])),
            _ => Err(self.short(2)),
        }
    }

    pub(super) fn u32(&mut self) -> Result<u32, Violation> {
        match *self.take(4)? {
            [a, b, c, d] => Ok(u32::from_be_bytes([a, b, c, d])),
            _ => Err(self.short(4)),
        }
    }

    #[inline]
    pub(super) fn varint(&mut self) -> Result<u32, Violation> {
        let rest = self.frame.get(self.position..self.end).unwrap_or_default();
        let Some((value, taken)) = varint::decode(rest)? else {
            return Err(self.short(rest.len().saturating_add(1)));
        };
        self.position = self.position.saturating_add(taken);
        Ok(value)
    }

    pub(super) fn packet_id(&mut self, packet: PacketType) -> Result<PacketId, Violation> {
        PacketId::new(self.u16()?).ok_or(Violation::PacketIdZero { packet })
    }

    /// Two-byte length, then that many bytes, as a slice of the frame. [MQTT5 1.5.6]
    pub(super) fn binary(&mut self) -> Result<Bytes, Violation> {
        let count = usize::from(self.u16()?);
        let start = self.position;
        self.take(count)?;
        Ok(self.slice(start, self.position))
    }

    /// Two-byte length, then legal text. [MQTT5 1.5.4]
    #[inline]
    pub(super) fn text(&mut self) -> Result<Utf8Bytes, Violation> {
        let start = self.skip_text()?;
        Ok(Utf8Bytes::trusted(self.slice(start, self.position)))
    }

    /// Checks a text and steps over it; returns where its first character stands.
    #[inline]
    pub(super) fn skip_text(&mut self) -> Result<usize, Violation> {
        let count = usize::from(self.u16()?);
        let start = self.position;
        let strict = self.strict;
        text::check(self.take(count)?, strict)?;
        Ok(start)
    }

    /// A part of the frame that was walked over already.
    #[inline]
    pub(super) fn slice(&self, from: usize, to: usize) -> Bytes {
        if from >= to {
            // An empty slice must not keep the read buffer alive.
            return Bytes::new();
        }
        self.frame.slice(from..to)
    }

    pub(super) fn walked(&self, from: usize, to: usize) -> &[u8] {
        self.frame.get(from..to).unwrap_or_default()
    }

    /// Opens a property block: reads end with it until [`close`](Self::close).
    #[inline]
    pub(super) fn open(&mut self) -> Result<(), Violation> {
        let count = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
        if count > self.left() {
            return Err(Violation::PropertyLength {
                wanted_bytes: count,
                left_bytes: self.left(),
            });
        }
        self.end = self.position.saturating_add(count);
        self.in_properties = true;
        Ok(())
    }

    /// Back to the whole frame.
    pub(super) fn close(&mut self) {
        self.end = self.frame.len();
        self.in_properties = false;
    }

    /// Everything that is left, without another reference to the frame.
    #[inline]
    pub(super) fn into_rest(mut self) -> Bytes {
        if self.is_empty() {
            return Bytes::new();
        }
        self.frame.advance(self.position);
        self.frame
    }

    /// All fields are read: nothing may follow.
    pub(super) const fn finish(&self) -> Result<(), Violation> {
        match self.left() {
            0 => Ok(()),
            extra_bytes => Err(Violation::TrailingBytes { extra_bytes }),
        }
    }
}
