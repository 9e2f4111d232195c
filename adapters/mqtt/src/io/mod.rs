//! Sockets: accept loop, TLS, one driver per connection. Floor 4; knows no route and no weida.

mod acks;
mod admit;
mod close;
mod driver;
mod gate;
mod host;
mod intake;
mod listener;
mod proxy;
mod rate;
mod read;
mod stream;
mod tls;
mod write;

pub(crate) use acks::{Refused, Verdict};
pub(crate) use gate::Gate;
pub(crate) use host::{Finisher, Host, terms};
pub(crate) use intake::{Intake, Intakes};
pub(crate) use listener::Listener;
pub(crate) use tls::server_config;
