//! Refuses a configuration that cannot be honoured, all reasons at once. [mqtt 14]

use std::collections::HashSet;
use std::path::PathBuf;

use weida_bridge::{AckOn, DeliveryClass, Direction, Pattern};

use super::{AuthMethod, ClientAuth, Config, EgressRoute, IngressRoute, ListenerConfig};

/// A configuration that cannot be honoured, with every reason found.
#[derive(Debug, thiserror::Error)]
#[error("{} problem(s) in the MQTT configuration, first: {}", refused.len(), first(refused))]
pub struct ConfigError {
    /// Every reason, in the order of the configuration. Never empty.
    pub refused: Vec<Refused>,
}

fn first(refused: &[Refused]) -> String {
    refused
        .first()
        .map_or_else(String::new, ToString::to_string)
}

impl From<Refused> for ConfigError {
    fn from(refused: Refused) -> Self {
        Self {
            refused: vec![refused],
        }
    }
}

/// One reason why a configuration is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Nothing to serve.
    #[error("no listener")]
    NoListener,
    /// Names are unique.
    #[error("listener {name:?} is defined twice")]
    DuplicateListener {
        /// The name.
        name: Box<str>,
    },
    /// Route names are unique over both directions.
    #[error("route {name:?} is defined twice")]
    DuplicateRoute {
        /// The name.
        name: Box<str>,
    },
    /// A route or grant names a listener that is not there.
    #[error("{by}: no MQTT listener is called {listener:?}")]
    UnknownListener {
        /// What names it.
        by: Box<str>,
        /// The missing name.
        listener: Box<str>,
    },
    /// A value outside the range that the protocol or this version can honour.
    #[error("{at}: {got} is outside {min}..={max}")]
    OutOfRange {
        /// Which key.
        at: Box<str>,
        /// The value.
        got: u64,
        /// Smallest legal value.
        min: u64,
        /// Largest legal value.
        max: u64,
    },
    /// Nobody could log in. [mqtt 14 R6]
    #[error("listener {listener:?}: auth is empty; spell out \"anonymous\" to allow everybody")]
    NoAuth {
        /// The listener.
        listener: Box<str>,
    },
    /// A password would cross a network in clear. [mqtt 14 R6]
    #[error(
        "listener {listener:?}: password without TLS off loopback; add tls or allow_plaintext_password"
    )]
    PlaintextPassword {
        /// The listener.
        listener: Box<str>,
    },
    /// Certificates are asked for and never shown. [mqtt 9.1]
    #[error(
        "listener {listener:?}: auth \"client-cert\" needs tls with client_auth and client_ca_file"
    )]
    CertificateWithoutTls {
        /// The listener.
        listener: Box<str>,
    },
    /// A password listener without a file has no users.
    #[error("listener {listener:?}: auth \"password\" needs a credential file of its tenant")]
    NoCredentials {
        /// The listener.
        listener: Box<str>,
    },
    /// Listeners of one group mean one session by one key. [mqtt 14 R7]
    #[error("listeners {first:?} and {second:?} of one group differ in {what}")]
    GroupDiffers {
        /// One listener.
        first: Box<str>,
        /// Another of the same group.
        second: Box<str>,
        /// Which key.
        what: &'static str,
    },
    /// A feature of a later version. [issue 2 item 14]
    #[error("{at}: not available in this version")]
    NotAvailable {
        /// Which key.
        at: Box<str>,
    },
    /// The route stands in the wrong list or asks for a pattern of the other direction.
    #[error("route {route:?}: pattern does not fit a route in this direction")]
    WrongPattern {
        /// The route.
        route: Box<str>,
    },
    /// A level its destination cannot give. [mqtt 14 R2, gateway 8]
    #[error("route {route:?}: ack_on cannot be reached here: {why}")]
    AckOn {
        /// The route.
        route: Box<str>,
        /// Which rule.
        why: &'static str,
    },
    /// A shared filter has no meaning on a route. [mqtt 14 R5]
    #[error("route {route:?}: a route filter may not be shared")]
    SharedFilter {
        /// The route.
        route: Box<str>,
    },
    /// Request and reply routes never wait for ever. [reconciled R6]
    #[error("route {route:?}: timeout may not be off on a request or reply route")]
    NoTimeout {
        /// The route.
        route: Box<str>,
    },
    /// The fabric does not know the route.
    #[error("route {route:?}: the fabric refuses it")]
    Fabric {
        /// The route.
        route: Box<str>,
        /// Its own words.
        #[source]
        source: weida_bridge::FabricError,
    },
    /// A password file that cannot be trusted. [mqtt 9.1]
    #[error("password file {}", path.display())]
    Password {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: crate::auth::PasswordFileError,
    },
    /// A certificate, key or CRL that cannot be used.
    #[error("tls of listener {listener:?}")]
    Tls {
        /// The listener.
        listener: Box<str>,
        /// What is wrong with it.
        #[source]
        source: crate::error::TlsError,
    },
}

impl Config {
    /// Refuses what cannot be honoured without opening or reading anything.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with every reason.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut refused = Vec::new();
        self.check_listeners(&mut refused);
        self.check_groups(&mut refused);
        self.check_routes(&mut refused);
        self.check_limits(&mut refused);
        for grant in &self.grants {
            if let Some(listen) = &grant.listen {
                self.known("grant", listen, &mut refused);
            }
        }
        if refused.is_empty() {
            Ok(())
        } else {
            Err(ConfigError { refused })
        }
    }

    /// The listener called `name`.
    pub(crate) fn listener(&self, name: &str) -> Option<&ListenerConfig> {
        self.listeners
            .iter()
            .find(|listener| &*listener.name == name)
    }

    fn known(&self, by: &str, listener: &str, refused: &mut Vec<Refused>) {
        if self.listener(listener).is_none() {
            refused.push(Refused::UnknownListener {
                by: by.into(),
                listener: listener.into(),
            });
        }
    }

    fn check_listeners(&self, refused: &mut Vec<Refused>) {
        if self.listeners.is_empty() {
            refused.push(Refused::NoListener);
        }
        let mut names = HashSet::new();
        for listener in &self.listeners {
            let name = || listener.name.clone();
            if !names.insert(&listener.name) {
                refused.push(Refused::DuplicateListener { name: name() });
            }
            if listener.auth.is_empty() {
                refused.push(Refused::NoAuth { listener: name() });
            }
            let password = listener.auth.contains(&AuthMethod::Password);
            let open = listener.tls.is_none() && !listener.bind.ip().is_loopback();
            if password && open && !listener.allow_plaintext_password {
                refused.push(Refused::PlaintextPassword { listener: name() });
            }
            if password
                && !self
                    .credentials
                    .iter()
                    .any(|file| file.tenant == listener.tenant)
            {
                refused.push(Refused::NoCredentials { listener: name() });
            }
            let shows = listener.tls.as_ref().is_some_and(|tls| {
                tls.client_auth != ClientAuth::None && tls.client_ca_file.is_some()
            });
            let asked = listener
                .tls
                .as_ref()
                .is_some_and(|t| t.client_auth != ClientAuth::None);
            if (listener.auth.contains(&AuthMethod::ClientCert) || asked) && !shows {
                refused.push(Refused::CertificateWithoutTls { listener: name() });
            }
            listener.check_ranges(refused);
        }
    }

    fn check_groups(&self, refused: &mut Vec<Refused>) {
        for (at, second) in self.listeners.iter().enumerate() {
            let same = |l: &&ListenerConfig| l.group == second.group && l.tenant == second.tenant;
            let Some(first) = self.listeners[..at].iter().find(same) else {
                continue;
            };
            let mut differs = |what| {
                refused.push(Refused::GroupDiffers {
                    first: first.name.clone(),
                    second: second.name.clone(),
                    what,
                });
            };
            if first.label_policy != second.label_policy {
                differs("label_policy");
            }
            if self.grants_of(&first.name) != self.grants_of(&second.name) {
                differs("grants");
            }
        }
    }

    /// Positions of the grants that hold on `listener`.
    fn grants_of(&self, listener: &str) -> Vec<usize> {
        let holds = |listen: &Option<Box<str>>| listen.as_deref().is_none_or(|l| l == listener);
        let all = self.grants.iter().enumerate();
        all.filter(|(_, grant)| holds(&grant.listen))
            .map(|(at, _)| at)
            .collect()
    }

    fn check_routes(&self, refused: &mut Vec<Refused>) {
        let mut names = HashSet::new();
        for route in &self.ingress {
            let name = route.route.id.as_str();
            if !names.insert(name.to_owned()) {
                refused.push(Refused::DuplicateRoute { name: name.into() });
            }
            self.known(name, &route.listener, refused);
            route.check(refused);
        }
        for route in &self.egress {
            let name = route.route.id.as_str();
            if !names.insert(name.to_owned()) {
                refused.push(Refused::DuplicateRoute { name: name.into() });
            }
            self.known(name, &route.listener, refused);
            route.check(refused);
        }
    }

    fn check_limits(&self, refused: &mut Vec<Refused>) {
        let limits = &self.limits;
        let mut at_least_one = |at: &str, got: usize| range(at, got as u64, 1, u64::MAX, refused);
        at_least_one("limits.max_sessions", limits.max_sessions);
        at_least_one(
            "limits.max_connections_per_ip",
            limits.max_connections_per_ip,
        );
        at_least_one(
            "limits.max_sessions_per_principal",
            limits.max_sessions_per_principal,
        );
        at_least_one(
            "limits.max_filters_per_session",
            limits.max_filters_per_session,
        );
        at_least_one(
            "limits.max_filters_per_packet",
            limits.max_filters_per_packet,
        );
        at_least_one("limits.max_filters_total", limits.max_filters_total);
        at_least_one("limits.auth_queue", limits.auth_queue);
        at_least_one("limits.max_handshakes", limits.max_handshakes);
        at_least_one(
            "limits.new_connections_per_second",
            limits.new_connections_per_second as usize,
        );
        range("limits.max_hops", limits.max_hops as u64, 1, 16, refused);
    }
}

impl ListenerConfig {
    fn check_ranges(&self, refused: &mut Vec<Refused>) {
        let at = |key: &str| format!("listen.{}.{key}", self.name);
        let mut check = |key: &str, got: u64, min, max| range(&at(key), got, min, max, refused);
        check("max_sessions", self.max_sessions as u64, 1, u64::MAX);
        check(
            "max_message_bytes",
            self.max_message_bytes as u64,
            1024,
            256 << 20,
        );
        check("receive_maximum", self.receive_maximum.into(), 1, 65_535);
        check("max_inflight_out", self.max_inflight_out.into(), 1, 65_534);
        check("max_topic_bytes", self.max_topic_bytes as u64, 1, 65_535);
        check("max_levels", self.max_levels as u64, 1, 128);
        check(
            "max_client_id_bytes",
            self.max_client_id_bytes as u64,
            23,
            65_535,
        );
        check("queue_messages", self.queue.messages as u64, 1, 1 << 24);
        check("queue_bytes", self.queue.bytes as u64, 1024, 1 << 40);
        check(
            "write_buffer_bytes",
            self.queue.write_buffer_bytes as u64,
            4096,
            1 << 30,
        );
        check("keep_alive_max", self.keep_alive_max.as_secs(), 1, 65_535);
        check(
            "handshake_timeout_ms",
            millis(self.handshake_timeout),
            1,
            u64::MAX,
        );
        if self.max_qos > 1 {
            refused.push(Refused::NotAvailable {
                at: at("max_qos = 2").into(),
            });
        }
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn range(at: &str, got: u64, min: u64, max: u64, refused: &mut Vec<Refused>) {
    if !(min..=max).contains(&got) {
        refused.push(Refused::OutOfRange {
            at: at.into(),
            got,
            min,
            max,
        });
    }
}

impl IngressRoute {
    fn check(&self, refused: &mut Vec<Refused>) {
        let route = || Box::<str>::from(self.route.id.as_str());
        let (pattern, ack_on) = (self.route.pattern, self.route.ack_on);
        if self.route.direction != Direction::Ingress
            || !matches!(pattern, Pattern::Publish | Pattern::Push | Pattern::Request)
        {
            refused.push(Refused::WrongPattern { route: route() });
        }
        if self.filter.is_shared() {
            refused.push(Refused::SharedFilter { route: route() });
        }
        let mut cannot = |why| {
            refused.push(Refused::AckOn {
                route: route(),
                why,
            })
        };
        if pattern == Pattern::Publish && ack_on != AckOn::Sent {
            cannot("a weida fan-out gives sent and no more");
        }
        if pattern != Pattern::Request && ack_on == AckOn::Reply {
            cannot("only a request route has a reply");
        }
        if self.route.delivery == DeliveryClass::AtLeastOnce && ack_on == AckOn::Sent {
            cannot("at-least-once needs at least receipt");
        }
        if pattern == Pattern::Request && self.route.timeout.is_none() {
            refused.push(Refused::NoTimeout { route: route() });
        }
        if self.qos_cap > 1 {
            refused.push(Refused::NotAvailable {
                at: format!("route.{}.from.qos = 2", self.route.id).into(),
            });
        }
    }
}

impl EgressRoute {
    fn check(&self, refused: &mut Vec<Refused>) {
        let route = || Box::<str>::from(self.route.id.as_str());
        let (pattern, ack_on) = (self.route.pattern, self.route.ack_on);
        if self.route.direction != Direction::Egress
            || !matches!(pattern, Pattern::Subscribe | Pattern::Pull | Pattern::Reply)
        {
            refused.push(Refused::WrongPattern { route: route() });
        }
        if pattern != Pattern::Reply {
            if !matches!(ack_on, AckOn::Sent | AckOn::Receipt) {
                refused.push(Refused::AckOn {
                    route: route(),
                    why: "sessions without a store give receipt and no more",
                });
            }
            if ack_on == AckOn::Receipt && self.qos == 0 {
                refused.push(Refused::AckOn {
                    route: route(),
                    why: "QoS 0 is never acknowledged",
                });
            }
        } else if self.route.timeout.is_none() {
            refused.push(Refused::NoTimeout { route: route() });
        }
        let at = |key: &str| format!("route.{}.{key}", self.route.id).into();
        if self.qos > 1 {
            refused.push(Refused::NotAvailable {
                at: at("to.qos = 2"),
            });
        }
        if self.retain {
            refused.push(Refused::NotAvailable {
                at: at("to.retain"),
            });
        }
        range(
            &format!("route.{}.in_flight", self.route.id),
            self.in_flight as u64,
            1,
            65_536,
            refused,
        );
    }
}
