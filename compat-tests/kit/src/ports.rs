//! Ports from the system, kept until they are needed.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

/// A loopback port that is held for TCP and UDP until it is released to a process that cannot be given port 0.
///
/// Between release and the other's bind the system does not hand it out again soon, because it counts upward through its
/// range; a server that can take port 0 and say which one it got is still the better choice.
#[derive(Debug)]
pub struct FreePort {
    tcp: TcpListener,
    udp: UdpSocket,
}

impl FreePort {
    /// Takes a port that is free for both protocols.
    ///
    /// # Errors
    /// When the system has no port left, or the two protocols never agree.
    pub fn take() -> io::Result<Self> {
        let mut last = io::Error::other("no attempt");
        for _ in 0..16 {
            let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            match UdpSocket::bind(tcp.local_addr()?) {
                Ok(udp) => return Ok(Self { tcp, udp }),
                Err(taken) => last = taken,
            }
        }
        Err(last)
    }

    /// The number.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn port(&self) -> io::Result<u16> {
        self.addr().map(|addr| addr.port())
    }

    /// The loopback address with that port.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Lets it go and says which one it was.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn release(self) -> io::Result<SocketAddr> {
        let addr = self.addr();
        drop((self.tcp, self.udp));
        addr
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_held_for_both_protocols_until_released() {
        let port = FreePort::take().unwrap();
        let addr = port.addr().unwrap();
        assert!(TcpListener::bind(addr).is_err());
        assert!(UdpSocket::bind(addr).is_err());
        assert_eq!(port.release().unwrap(), addr);
        assert!(TcpListener::bind(addr).is_ok());
        assert!(UdpSocket::bind(addr).is_ok());
    }

    #[test]
    fn two_held_ports_differ() {
        let (one, two) = (FreePort::take().unwrap(), FreePort::take().unwrap());
        assert_ne!(one.port().unwrap(), two.port().unwrap());
    }
}
