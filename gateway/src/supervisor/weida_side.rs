//! The weida runtime as the configuration wants it: identity, trust, bounds, bindings.

use std::sync::Arc;

use weida::{Binding, ClientTls, ClientTrust, Identity, Runtime, RuntimeConfig, ServerTls, Trust};

use crate::config::Config;
use crate::config::valid::{self, TrustEntry};
use crate::fabric::GatewayFabric;
use crate::state::Bound;

/// Who we are and whom we accept, for both directions.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    identity: Identity,
    trust: Trust,
}

impl Terms {
    pub(super) fn new(config: &valid::Identity, identity: Identity) -> Self {
        let trust = config
            .trust
            .iter()
            .fold(Trust::by_address(), |trust, entry| match entry {
                TrustEntry::Pin(key) => trust.and_pin(*key),
                TrustEntry::Anchors(file) => trust.and_anchor_file(file),
            });
        Self { identity, trust }
    }

    /// How we dial: as ourselves, whom the address or the trust list names.
    pub(super) fn client(&self) -> ClientTls {
        ClientTls::new(self.trust.clone()).with_identity(self.identity.clone())
    }

    /// How we are dialled. An empty trust list lets in any key that is proved: the grants decide then.
    fn server(&self, listen: &valid::WeidaListen) -> ServerTls {
        let identity = self.identity.clone();
        if !listen.require_client_identity {
            return identity.into();
        }
        let trust = if self.trust.is_empty() {
            ClientTrust::AnyKey
        } else {
            self.trust.clone().into()
        };
        ServerTls::new(identity).require_client(trust)
    }
}

/// A runtime on the current reactor.
pub(super) fn runtime(_config: &Config) -> Result<Runtime, weida::Error> {
    Runtime::new(RuntimeConfig::default())
}

/// A weida listener that cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("listener {name:?} cannot bind {address}")]
pub(super) struct BindError {
    name: Arc<str>,
    address: std::net::SocketAddr,
    source: weida::Error,
}

/// Binds every weida listener; everything behind them is registered already.
pub(super) async fn bind(
    config: &Config,
    fabric: &GatewayFabric,
    terms: &Terms,
) -> Result<(Vec<Bound>, Vec<(Arc<str>, Binding)>), BindError> {
    let (mut bound, mut bindings) = (Vec::new(), Vec::new());
    for ((name, listen), side) in config.weida_listeners().zip(fabric.sides()) {
        let binding = side
            .listener
            .bind_quic(listen.bind, terms.server(listen))
            .await;
        let binding = binding.map_err(|source| BindError {
            name: name.clone(),
            address: listen.bind,
            source,
        })?;
        bound.push(Bound {
            name: name.clone(),
            protocol: "weida",
            address: binding.local_addr(),
        });
        bindings.push((name.clone(), binding));
    }
    Ok((bound, bindings))
}
