//! Under which key a per-host ceiling counts a remote address.

use std::net::{IpAddr, Ipv6Addr};

/// How a per-host ceiling counts the peer at one address. Built by [`host_key`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostKey {
    /// The IPv4 address, or the IPv6 address with its low 64 bits cleared. Count under this.
    pub key: IpAddr,
    /// Whether the peer is this machine itself; whether to count it then is the caller's choice.
    pub loopback: bool,
}

/// The key for a peer at `ip`.
///
/// An IPv6 host is routed a whole `/64` and picks the rest itself, so it is counted by that prefix;
/// a v4-mapped address is the IPv4 host it maps.
pub fn host_key(ip: IpAddr) -> HostKey {
    let canonical = ip.to_canonical();
    let key = match canonical {
        IpAddr::V4(_) => canonical,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
    };
    HostKey {
        key,
        loopback: canonical.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_is_one_key() {
        let key = |text: &str| host_key(text.parse().unwrap());
        assert_eq!(key("2001:db8::1").key, key("2001:db8::ffff:1").key);
        assert_ne!(key("2001:db8:0:1::1").key, key("2001:db8:0:2::1").key);
        assert_eq!(key("::ffff:192.0.2.1").key, key("192.0.2.1").key);
        assert!(
            key("::ffff:127.0.0.1").loopback && key("::1").loopback && key("127.1.2.3").loopback
        );
        assert!(!key("::2").loopback);
    }
}
