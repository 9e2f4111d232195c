//! The admin address: `/livez`, `/readyz`, `/metrics` and `/api/v1/status` (`gateway.md` 4).
//!
//! It runs on a thread of its own with its own little runtime, so a flood of requests cannot slow messages down, and a
//! busy data path cannot make the process look dead.
//!
//! # Limits
//! 64 connections at once, 1 request each; one more is answered 503. A request has 2 s to arrive, a connection
//! 30 s to live. Bodies are not read.

mod door;
mod pages;
mod token;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::door::Door;
use self::token::Token;
use crate::config::valid;
use crate::state::State;

/// Connections at once.
const MAX_CONNECTIONS: usize = 64;
/// Longest life of one connection.
const CONNECTION_LIFE: Duration = Duration::from_secs(30);
/// How long the thread may finish answers after its stop.
const STOP_PATIENCE: Duration = Duration::from_millis(500);

/// The running admin server.
#[derive(Debug)]
pub struct Admin {
    address: SocketAddr,
    stop: CancellationToken,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// The admin address cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("admin cannot listen on {address}")]
pub struct AdminError {
    /// Where it should have listened.
    pub address: SocketAddr,
    /// What the system said.
    pub source: std::io::Error,
}

impl Admin {
    /// Binds the address and serves it.
    ///
    /// # Errors
    /// When the address cannot be bound or no thread can be had.
    pub fn start(config: &valid::Admin, state: Arc<State>) -> Result<Self, AdminError> {
        let failed = |source| AdminError {
            address: config.bind,
            source,
        };
        let listener = std::net::TcpListener::bind(config.bind).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let router = router(config, state);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("admin".into())
            .spawn(move || runtime.block_on(serve(listener, router, stopped)))
            .map_err(failed)?;
        Ok(Self {
            address,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // Bounded by STOP_PATIENCE.
            let _: Result<(), _> = thread.join();
        }
    }
}

fn router(config: &valid::Admin, state: Arc<State>) -> Router {
    let token = config.token.as_ref().map(Token::new);
    let probes = Router::new()
        .route("/livez", get(pages::livez))
        .route("/readyz", get(pages::readyz))
        .route("/metrics", get(pages::metrics));
    let probes = match &token {
        Some(token) if config.metrics_auth => token.guard(probes),
        _ => probes,
    };
    let api = Router::new().route("/api/v1/status", get(pages::status));
    let api = match &token {
        Some(token) => token.guard(api),
        None => api,
    };
    probes.merge(api).with_state(state)
}

async fn serve(listener: std::net::TcpListener, router: Router, stop: CancellationToken) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            warn!(code = "ADM001", err = %error, "the admin address is not served");
            return;
        }
    };
    let door = Door::new(listener, MAX_CONNECTIONS, CONNECTION_LIFE);
    let stopped = stop.clone().cancelled_owned();
    let server = axum::serve(door, router).with_graceful_shutdown(stopped);
    let bounded = async {
        stop.cancelled().await;
        tokio::time::sleep(STOP_PATIENCE).await;
    };
    tokio::select! {
        // It never ends by itself; accept errors are waited out in the door.
        _ended = server.into_future() => {}
        () = bounded => {}
    }
}

#[cfg(test)]
mod tests;
