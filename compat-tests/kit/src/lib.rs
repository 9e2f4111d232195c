//! Test kit: processes that die on drop, relays that break things, transcripts, certificates, one load generator.
//!
//! It knows weida's words and no adapter, so adapters may use it in their tests. Everything here listens on loopback, takes
//! its ports from the system, and is gone when its value is dropped.
//!
//! | Need | Use |
//! | --- | --- |
//! | run a real server or a command of ours | [`Process`], [`bin`] |
//! | wait for something | [`eventually`] |
//! | a port nobody else has | [`FreePort`] |
//! | a bad network | [`TcpRelay`], [`UdpRelay`] |
//! | see what happened | [`Transcript`] |
//! | certificates | [`TestCa`] |
//! | measure, ours and theirs alike | [`load`] |

pub mod certs;
pub mod load;
pub mod ports;
pub mod process;
pub mod relay;
pub mod transcript;
mod wait;

pub use certs::{TestCa, TestCert};
pub use ports::FreePort;
pub use process::{MissingBin, Process, ProcessBuilder, Ready, Signal, SpawnError, bin};
pub use relay::{Direction, TcpRelay, UdpRelay};
pub use transcript::Transcript;
pub use wait::{eventually, eventually_some};
