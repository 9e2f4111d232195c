//! The MQTT listeners of the process: the checked configuration in the adapter's own words, and the adapter's life.
//!
//! Nothing is decided here. A listener, route, grant or limit is handed over as the check left it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::error;
use weida_bridge::{Direction, Fabric, GatewayId, MemoryStore, RouteId, Scope, Store};
use weida_mqtt::MqttAdapter;
use weida_mqtt::config as mqtt;
use weida_mqtt::metrics::{Kind, ListenerMetrics};

use crate::config::Config;
use crate::config::valid::{self, ForeignEnd, RouteConfig, WeidaEnd};
use crate::fabric::GatewayFabric;
use crate::metrics::Value;
use crate::state::{AdapterSample, Bound, State};

/// Rows that the adapter may keep: one per session; this version keeps none beyond its connection.
const MAX_STORED: u64 = 20_000;
/// Their bytes.
const MAX_STORED_BYTES: u64 = 64 << 20;

/// Binds and serves every MQTT listener in `adapters`; one that ends by itself cancels `failed`.
///
/// # Errors
/// What the adapter refuses, or the address that cannot be bound, in one line.
pub(crate) async fn serve(
    config: &Config,
    fabric: &Arc<GatewayFabric>,
    own: GatewayId,
    state: &Arc<State>,
    adapters: &mut Scope,
    failed: &CancellationToken,
) -> Result<Vec<Bound>, String> {
    if config.mqtt_listeners().next().is_none() {
        return Ok(Vec::new());
    }
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(MAX_STORED, MAX_STORED_BYTES));
    let seam: Arc<dyn Fabric> = Arc::clone(fabric) as Arc<dyn Fabric>;
    let translated = translate(config, own)?;
    let adapter = MqttAdapter::new(translated, seam, store).map_err(|refused| line(&refused))?;
    let adapter = adapter.bind().await.map_err(|error| line(&error))?;
    let bound = adapter
        .local_addrs()
        .into_iter()
        .map(|bound| Bound {
            name: bound.listener.as_ref().into(),
            protocol: "mqtt",
            address: bound.addr,
        })
        .collect();
    let counters = adapter.metrics();
    state.set_adapters(move || samples(&counters));
    let (stop, failed) = (adapters.token().clone(), failed.clone());
    adapters.spawn(async move {
        let ended = adapter.run(stop.clone()).await;
        if let Err(error) = &ended {
            error!(code = "MQT001", err = %line(error), "mqtt ended");
        }
        if !stop.is_cancelled() {
            failed.cancel();
        }
    });
    Ok(bound)
}

fn line(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        line.push_str(": ");
        line.push_str(&cause.to_string());
        source = cause.source();
    }
    line
}

/// Every series of the listeners: the general ones and MQTT's own (`gateway.md` 6, `mqtt.md` 16).
#[expect(
    clippy::cast_precision_loss,
    reason = "gauges are read by people and alerts"
)]
fn samples(counters: &[(Arc<str>, Arc<ListenerMetrics>)]) -> Vec<AdapterSample> {
    let samples = counters
        .iter()
        .flat_map(|(listener, metrics)| metrics.snapshot(listener));
    samples
        .map(|sample| AdapterSample {
            value: match sample.kind {
                Kind::Counter => Value::Counter(sample.value),
                Kind::Gauge => Value::Gauge(sample.value as f64),
            },
            name: sample.name,
            labels: sample.labels,
        })
        .collect()
}

fn translate(config: &Config, own: GatewayId) -> Result<mqtt::Config, String> {
    let mut ingress = Vec::new();
    let mut egress = Vec::new();
    for route in &config.routes {
        match route.route.direction {
            Direction::Ingress => ingress.push(ingress_route(route)?),
            Direction::Egress => egress.push(egress_route(route)),
        }
    }
    let limits = &config.limits;
    Ok(mqtt::Config {
        listeners: config
            .mqtt_listeners()
            .map(|(name, listen)| listener(name, listen))
            .collect(),
        ingress,
        egress,
        grants: config
            .grants
            .iter()
            .filter(|grant| concerns(config, grant))
            .map(grant)
            .collect::<Result<_, _>>()?,
        credentials: config
            .credentials
            .iter()
            .map(|credential| mqtt::CredentialFile {
                path: credential.file.clone(),
                tenant: None,
            })
            .collect(),
        limits: mqtt::Limits {
            max_sessions: limits.max_sessions,
            max_connections_per_ip: limits.max_connections_per_ip,
            new_connections_per_second: limits.new_connections_per_second,
            per_ip_exempt_loopback: true,
            max_filters_per_session: limits.max_filters_per_session,
            max_filters_total: limits.max_filters_total,
            max_meta_entries: limits.max_meta_entries,
            max_meta_bytes: limits.max_meta_bytes,
            max_hops: config
                .routes
                .iter()
                .map(|it| usize::from(it.max_hops))
                .max()
                .unwrap_or(4),
            ..mqtt::Limits::default()
        },
        gateway_id: own.0,
        drain_timeout: config.gateway.drain_timeout,
    })
}

fn listener(name: &str, listen: &valid::MqttListen) -> mqtt::ListenerConfig {
    mqtt::ListenerConfig {
        tls: listen.tls.as_ref().map(|tls| mqtt::TlsConfig {
            cert_file: tls.cert_file.clone(),
            key_file: tls.key_file.clone(),
            client_ca_file: tls.client_ca_file.clone(),
            client_crl_file: None,
            client_auth: match tls.client_auth {
                valid::ClientAuth::None => mqtt::ClientAuth::None,
                valid::ClientAuth::Optional => mqtt::ClientAuth::Optional,
                valid::ClientAuth::Required => mqtt::ClientAuth::Required,
            },
        }),
        auth: listen
            .auth
            .iter()
            .map(|method| match method {
                valid::AuthMethod::ClientCert => mqtt::AuthMethod::ClientCert,
                valid::AuthMethod::Password => mqtt::AuthMethod::Password,
                valid::AuthMethod::Anonymous => mqtt::AuthMethod::Anonymous,
            })
            .collect(),
        group: (*listen.group).into(),
        routes_only: listen.routes_only,
        max_sessions: listen.max_sessions,
        max_message_bytes: listen.max_message_bytes,
        keep_alive_max: listen.keep_alive_max,
        keep_alive_zero: match listen.keep_alive_zero {
            valid::KeepAliveZero::Replace => mqtt::KeepAliveZero::Replace,
            valid::KeepAliveZero::Allow => mqtt::KeepAliveZero::Allow,
        },
        idle_max: listen.idle_max,
        handshake_timeout: listen.handshake_timeout,
        legacy_refusal: match listen.legacy_refusal {
            valid::LegacyRefusal::Close => mqtt::LegacyRefusal::Close,
            valid::LegacyRefusal::Swallow => mqtt::LegacyRefusal::Swallow,
        },
        label_policy: match listen.label_policy {
            valid::LabelPolicy::OnePrincipal => mqtt::LabelPolicy::OnePrincipal,
            valid::LabelPolicy::Any => mqtt::LabelPolicy::Any,
        },
        // The check has refused what may not be: here it is either behind TLS, on loopback, or spelled out.
        allow_plaintext_password: true,
        queue: mqtt::QueueLimits {
            messages: listen.queue_messages,
            bytes: listen.queue_bytes,
            full: match listen.queue_full {
                valid::QueueFull::DropNewest => mqtt::QueueFull::DropNewest,
                valid::QueueFull::DropOldest => mqtt::QueueFull::DropOldest,
                valid::QueueFull::EndSession => mqtt::QueueFull::EndSession,
            },
            ..mqtt::QueueLimits::default()
        },
        receive_maximum: listen.receive_maximum,
        max_inflight_out: listen.max_inflight_out,
        topic_alias_max: listen.topic_alias_max,
        max_topic_bytes: listen.max_topic_bytes,
        max_levels: listen.max_levels,
        max_client_id_bytes: listen.max_client_id_bytes,
        write_stall: listen.write_stall,
        auth_cache: listen.auth_cache,
        ..mqtt::ListenerConfig::new(name, listen.bind)
    }
}

fn ingress_route(route: &RouteConfig) -> Result<mqtt::IngressRoute, String> {
    let ForeignEnd::Mqtt(end) = &route.foreign;
    let wanted = end.filter.as_deref().unwrap_or("#");
    let filter = mqtt::TopicFilter::parse(wanted)
        .map_err(|error| at(&route.route.id, &format!("filter {wanted:?}: {error}")))?;
    Ok(mqtt::IngressRoute {
        qos_cap: end.qos,
        max_pending_replies: route.max_pending_replies,
        ..mqtt::IngressRoute::new(route.route.clone(), &end.listen, filter)
    })
}

fn egress_route(route: &RouteConfig) -> mqtt::EgressRoute {
    let ForeignEnd::Mqtt(end) = &route.foreign;
    let filter = match &route.weida {
        WeidaEnd::Dial { filter, .. } => filter.as_str(),
        WeidaEnd::Bind { .. } => "#",
    };
    mqtt::EgressRoute {
        filter: filter.into(),
        qos: end.qos,
        reply: match end.reply {
            Some(valid::MqttReply::None) => mqtt::ReplyMode::None,
            Some(valid::MqttReply::ResponseTopic) | None => mqtt::ReplyMode::ResponseTopic,
        },
        max_pending_replies: route.max_pending_replies,
        attempt_timeout: route.attempt_timeout,
        in_flight: route.in_flight,
        ..mqtt::EgressRoute::new(route.route.clone(), &end.listen)
    }
}

fn at(route: &RouteId, what: &str) -> String {
    format!("route {route}: {what}")
}

/// Whether a grant may hold on an MQTT listener; one of a weida listener speaks of paths, which are no filters.
fn concerns(config: &Config, grant: &valid::Grant) -> bool {
    config
        .mqtt_listeners()
        .any(|(name, _)| grant.holds_on(name))
}

fn grant(grant: &valid::Grant) -> Result<mqtt::Grant, String> {
    let filters = |allowed: &[valid::Allow]| {
        allowed
            .iter()
            .map(|allow| {
                mqtt::GrantFilter::parse(allow.as_str())
                    .map_err(|error| format!("grant {:?}: {error}", allow.as_str()))
            })
            .collect::<Result<Vec<_>, _>>()
    };
    Ok(mqtt::Grant {
        who: grant
            .who
            .iter()
            .filter_map(who)
            .map(|text| mqtt::Who::new(&text))
            .collect(),
        listen: grant.listen.as_deref().map(Into::into),
        publish: filters(&grant.publish)?,
        deny_publish: filters(&grant.deny_publish)?,
        subscribe: filters(&grant.subscribe)?,
        deny_subscribe: filters(&grant.deny_subscribe)?,
        will: grant.will.as_deref().map(filters).transpose()?,
        client_id: grant
            .client_id
            .as_ref()
            .map(|ids| ids.iter().map(|id| mqtt::Glob::new(id)).collect()),
        rate: grant.rate.map(|rate| mqtt::PublishRate {
            messages_per_second: rate.messages_per_second.unwrap_or(0),
            bytes_per_second: rate.bytes_per_second.unwrap_or(0),
        }),
        ..mqtt::Grant::default()
    })
}

/// The principals a `who` names, as the adapter spells them; a weida peer is none.
fn who(who: &valid::Who) -> Option<String> {
    let text = |class: &str, glob: &valid::Glob| {
        let (text, prefix) = glob.parts();
        format!("{class}:{text}{}", if prefix { "*" } else { "" })
    };
    match who {
        valid::Who::User(glob) => Some(text("user", glob)),
        valid::Who::Cert(glob) => Some(text("cert", glob)),
        valid::Who::CertSubject(glob) => Some(text("cert-subject", glob)),
        valid::Who::Anonymous => Some("anonymous".to_owned()),
        valid::Who::Peer(_) | valid::Who::AnyPeer => None,
    }
}
