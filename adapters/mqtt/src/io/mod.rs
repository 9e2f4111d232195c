//! Sockets: accept loop, TLS, one driver per connection. Floor 4; knows no route and no weida.

mod gate;
mod proxy;
mod tls;
