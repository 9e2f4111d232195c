//! PROXY protocol version 2: the address that a trusted balancer speaks for. [gateway 2.5]
//!
//! Read only from listed addresses; anybody else's bytes are MQTT or nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::{Buf, BytesMut};

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Most bytes of addresses and extensions that are read.
const MAX_BODY_BYTES: usize = 536;

/// What the bytes in front of a connection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    /// So many bytes more are needed at least.
    NeedMore(usize),
    /// The balancer speaks for this client; the header was taken off.
    Client(SocketAddr),
    /// The balancer speaks for itself (a health check); the header was taken off.
    Itself,
    /// Not a PROXY v2 header.
    Malformed,
}

/// Takes a complete header off the front of `bytes`.
pub(crate) fn take(bytes: &mut BytesMut) -> Header {
    let seen = bytes.len().min(SIGNATURE.len());
    if bytes[..seen] != SIGNATURE[..seen] {
        return Header::Malformed;
    }
    let Some(head) = bytes.get(..16) else {
        return Header::NeedMore(16 - bytes.len());
    };
    let (version_command, family) = (head[12], head[13]);
    let length = usize::from(u16::from_be_bytes([head[14], head[15]]));
    if version_command >> 4 != 2 || length > MAX_BODY_BYTES {
        return Header::Malformed;
    }
    if bytes.len() < 16 + length {
        return Header::NeedMore(16 + length - bytes.len());
    }
    let header = bytes.split_to(16 + length);
    let mut body = &header[16..];
    match (version_command & 0x0f, family) {
        (0, _) => Header::Itself,
        (1, 0x11) if body.len() >= 12 => {
            let source = Ipv4Addr::from(body.get_u32());
            body.advance(4);
            Header::Client(SocketAddr::new(IpAddr::V4(source), body.get_u16()))
        }
        (1, 0x21) if body.len() >= 36 => {
            let source = Ipv6Addr::from(body.get_u128());
            body.advance(16);
            Header::Client(SocketAddr::new(IpAddr::V6(source), body.get_u16()))
        }
        _ => Header::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4() -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([
            0x21, 0x11, 0, 12, 192, 0, 2, 7, 10, 0, 0, 1, 0xc3, 0x50, 0x07, 0x5b,
        ]);
        bytes
    }

    #[test]
    fn a_header_is_taken_off_and_the_rest_stays() {
        let mut bytes = BytesMut::from(&v4()[..]);
        bytes.extend_from_slice(b"\x10");
        assert_eq!(
            take(&mut bytes),
            Header::Client("192.0.2.7:50000".parse().unwrap())
        );
        assert_eq!(&bytes[..], b"\x10");
    }

    #[test]
    fn every_prefix_needs_more() {
        let whole = v4();
        for end in 0..whole.len() {
            let mut bytes = BytesMut::from(&whole[..end]);
            assert!(
                matches!(take(&mut bytes), Header::NeedMore(more) if more > 0),
                "{end}"
            );
        }
    }

    #[test]
    fn health_checks_and_nonsense() {
        let mut local = v4();
        local[12] = 0x20;
        assert_eq!(take(&mut BytesMut::from(&local[..])), Header::Itself);
        for at in [0, 11, 12, 13] {
            let mut odd = v4();
            odd[at] ^= 0x40;
            assert_eq!(
                take(&mut BytesMut::from(&odd[..])),
                Header::Malformed,
                "byte {at}"
            );
        }
        let mut long = v4();
        long[14] = 0xff;
        assert_eq!(take(&mut BytesMut::from(&long[..])), Header::Malformed);
        assert_eq!(
            take(&mut BytesMut::from(&b"\x10\x0c"[..])),
            Header::Malformed,
            "mqtt"
        );
    }
}
