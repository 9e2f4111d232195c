//! Relays between a client and a server that break the network on purpose, seeded and steerable while a test runs.

mod dice;
mod tcp;
mod udp;

pub use dice::{Dice, Fate};
pub use tcp::{TcpFaults, TcpRelay};
pub use udp::{UdpCounts, UdpFaults, UdpRelay};

/// One of the two ways through a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Client to server.
    Up,
    /// Server to client.
    Down,
}

impl Direction {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Up, Self::Down];

    const fn index(self) -> usize {
        self as usize
    }
}
