//! `[[listen]]`: addresses, authentication, TLS, groups.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::super::report::Report;
use super::super::tree::Origin;
use super::super::valid::{
    AuthMethod, ClientAuth, KeepAliveZero, LabelPolicy, LegacyRefusal, Limits, Listen, ListenKind,
    MqttListen, QueueFull, ServerTls, WeidaListen,
};
use super::view::{Text, View};
use super::{Folder, files};

/// A listener and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Built {
    pub(super) listen: Listen,
    pub(super) at: Origin,
    pub(super) max_sessions_at: Option<Origin>,
}

impl Built {
    pub(super) fn max_sessions(&self) -> usize {
        match &self.listen.kind {
            ListenKind::Mqtt(mqtt) => mqtt.max_sessions,
            ListenKind::Weida(_) => 0,
        }
    }
}

pub(super) fn listeners(
    root: &View<'_>,
    folder: &Folder<'_>,
    limits: &Limits,
    report: &mut Report,
) -> Vec<Built> {
    let mut taken = Vec::new();
    let mut built: Vec<Built> = Vec::new();
    for view in root.tables("listen") {
        let name = view.name("listener", &mut taken, report);
        let protocol = view.need("protocol", "`weida` or `mqtt`", report);
        if protocol.is_some_and(|it| !matches!(it.text, "weida" | "mqtt")) {
            continue;
        }
        let bind_text = view.need("bind", "the address: `bind = \"127.0.0.1:1883\"`", report);
        let bind = bind_text.and_then(|text| bind(text, &view.key_path("bind"), report));
        let kind = match protocol.map(|it| it.text) {
            Some("weida") => weida(&view, bind, limits),
            Some("mqtt") => mqtt(&view, name.as_ref(), bind, folder, limits, report),
            _ => None,
        };
        let (Some(name), Some(kind), Some(text)) = (name, kind, bind_text) else {
            continue;
        };
        let listen = Listen { name, kind };
        if let Some(other) = built.iter().find(|it| same_socket(&it.listen, &listen)) {
            let message = format!(
                "{} is bound by listener `{}` too",
                text.text, other.listen.name
            );
            report.error("E021", text.at, &view.key_path("bind"), message, None);
        }
        built.push(Built {
            listen,
            at: view.at.clone(),
            max_sessions_at: view
                .has("max_sessions")
                .then(|| view.at("max_sessions").clone()),
        });
    }
    if !root.has("listen") {
        let help = "add at least one `[[listen]]`".to_owned();
        report.error("E009", root.at, "listen", "nothing listens", help);
    }
    groups(&built, report);
    built
}

/// Reads `HOST:PORT`; HOST is an IP address or `localhost`, so that a name server never decides what is exposed.
pub(super) fn bind(text: Text<'_>, path: &str, report: &mut Report) -> Option<SocketAddr> {
    if text.text.starts_with("unix:") {
        let message = "Unix sockets are not available in this version";
        report.error(
            "E004",
            text.at,
            path,
            message,
            "bind an IP address".to_owned(),
        );
        return None;
    }
    let local = text
        .text
        .strip_prefix("localhost:")
        .and_then(|port| port.parse().ok());
    let address = local
        .map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
        .or_else(|| text.text.parse().ok());
    if address.is_none() {
        let message = format!("{:?} is no address to bind", text.text);
        let help =
            "`127.0.0.1:1883`, `0.0.0.0:1883`, `[::1]:1883`; host names are not looked up here"
                .to_owned();
        report.error("E020", text.at, path, message, help);
    }
    address
}

fn same_socket(a: &Listen, b: &Listen) -> bool {
    let (one, other) = (a.bind(), b.bind());
    a.protocol() == b.protocol()
        && one.port() != 0
        && one.port() == other.port()
        && (one.ip() == other.ip()
            || (one.is_ipv4() == other.is_ipv4()
                && (one.ip().is_unspecified() || other.ip().is_unspecified())))
}

fn weida(view: &View<'_>, bind: Option<SocketAddr>, limits: &Limits) -> Option<ListenKind> {
    Some(ListenKind::Weida(WeidaListen {
        bind: bind?,
        require_client_identity: view.bool("require_client_identity").unwrap_or(true),
        max_message_bytes: view
            .bytes("max_message_bytes")
            .unwrap_or(limits.max_message_bytes),
    }))
}

fn mqtt(
    view: &View<'_>,
    name: Option<&Arc<str>>,
    bind: Option<SocketAddr>,
    folder: &Folder<'_>,
    limits: &Limits,
    report: &mut Report,
) -> Option<ListenKind> {
    let tls = view.table("tls");
    let server_tls = tls.as_ref().and_then(|it| server_tls(it, folder, report));
    let auth = auth(
        view,
        bind,
        tls.as_ref().map(|_| server_tls.as_ref()),
        report,
    );
    let own = view.table_or_empty("mqtt");
    let group = own
        .text("group")
        .map(|it| Arc::from(it.text))
        .or_else(|| name.cloned())?;
    let max_sessions = view.int("max_sessions").unwrap_or(10_000);
    Some(ListenKind::Mqtt(Box::new(MqttListen {
        bind: bind?,
        tls: server_tls,
        auth,
        max_sessions: if view.has("max_sessions") {
            max_sessions
        } else {
            max_sessions.min(limits.max_sessions)
        },
        max_message_bytes: view
            .bytes("max_message_bytes")
            .unwrap_or(limits.max_message_bytes),
        keep_alive_max: view
            .duration("keep_alive_max")
            .unwrap_or(Duration::from_secs(1200)),
        keep_alive_zero: match own.text("keep_alive_zero").map(|it| it.text) {
            Some("allow") => KeepAliveZero::Allow,
            _ => KeepAliveZero::Replace,
        },
        idle_max: own
            .duration("idle_max")
            .unwrap_or(Duration::from_secs(3600)),
        handshake_timeout: view
            .duration("handshake_timeout")
            .unwrap_or(Duration::from_secs(5)),
        legacy_refusal: match view.text("legacy_refusal").map(|it| it.text) {
            Some("swallow") => LegacyRefusal::Swallow,
            _ => LegacyRefusal::Close,
        },
        label_policy: match view.text("label_policy").map(|it| it.text) {
            Some("any") => LabelPolicy::Any,
            _ => LabelPolicy::OnePrincipal,
        },
        group,
        routes_only: own.bool("routes_only").unwrap_or(false),
        queue_messages: own.int("queue_messages").unwrap_or(1000),
        queue_bytes: own.bytes("queue_bytes").unwrap_or(8 * 1024 * 1024),
        queue_full: match own.text("queue_full").map(|it| it.text) {
            Some("drop-oldest") => QueueFull::DropOldest,
            Some("end-session") => QueueFull::EndSession,
            _ => QueueFull::DropNewest,
        },
        receive_maximum: own.int("receive_maximum").unwrap_or(64),
        max_inflight_out: own.int("max_inflight_out").unwrap_or(64),
        topic_alias_max: own.int("topic_alias_max").unwrap_or(16),
        max_topic_bytes: own.int("max_topic_bytes").unwrap_or(1024),
        max_levels: own.int("max_levels").unwrap_or(32),
        max_client_id_bytes: own.int("max_client_id_bytes").unwrap_or(128),
        write_stall: own
            .duration("write_stall")
            .unwrap_or(Duration::from_secs(30)),
        auth_cache: own
            .duration("auth_cache")
            .unwrap_or(Duration::from_secs(600)),
    })))
}

/// `tls`: none when absent, `Some(None)` when present and broken.
fn auth(
    view: &View<'_>,
    bind: Option<SocketAddr>,
    tls: Option<Option<&ServerTls>>,
    report: &mut Report,
) -> Vec<AuthMethod> {
    let path = view.key_path("auth");
    let mut methods = Vec::new();
    for word in view.list("auth") {
        let method = match word.text {
            "client-cert" => AuthMethod::ClientCert,
            "password" => AuthMethod::Password,
            "anonymous" => AuthMethod::Anonymous,
            _ => continue,
        };
        if methods.contains(&method) {
            report.error(
                "E010",
                word.at,
                &path,
                format!("{:?} stands twice in `auth`", word.text),
                None,
            );
            continue;
        }
        methods.push(method);
        if method == AuthMethod::ClientCert
            && tls.is_none_or(|it| it.is_some_and(|it| it.client_ca_file.is_none()))
        {
            let help = "add `client_ca_file` to `tls`".to_owned();
            report.error(
                "E028",
                word.at,
                &path,
                "nothing can prove a client certificate here",
                help,
            );
        }
        let beyond = bind.is_some_and(|it| !it.ip().is_loopback());
        let allowed = view.bool("allow_plaintext_password").unwrap_or(false);
        if method == AuthMethod::Password && tls.is_none() && beyond && !allowed {
            report.error(
                "E023",
                word.at,
                &path,
                "passwords would cross the network in clear text",
                "add `tls`, bind to loopback, or say `allow_plaintext_password = true`".to_owned(),
            );
        }
    }
    if view.is_empty_list("auth") {
        report.error(
            "E022",
            view.at("auth"),
            &path,
            "`auth` is empty: nobody could connect, and nobody is let in unasked",
            "`auth = [\"password\"]`, `[\"client-cert\"]`, or spell out `[\"anonymous\"]`"
                .to_owned(),
        );
    }
    methods
}

fn server_tls(view: &View<'_>, folder: &Folder<'_>, report: &mut Report) -> Option<ServerTls> {
    let cert = view.need("cert_file", "the PEM chain of this listener", report);
    let key = view.need("key_file", "the PEM key of that chain", report);
    let ca = view.text("client_ca_file");
    if let Some(ca) = ca {
        files::certificates(
            &folder.path(ca.text),
            ca.at,
            &view.key_path("client_ca_file"),
            report,
        );
    }
    let client_auth = match view.text("client_auth").map(|it| it.text) {
        Some("none") => ClientAuth::None,
        Some("optional") => ClientAuth::Optional,
        Some("required") => ClientAuth::Required,
        _ if ca.is_some() => ClientAuth::Optional,
        _ => ClientAuth::None,
    };
    if client_auth != ClientAuth::None && ca.is_none() {
        let help = "add `client_ca_file`: without it no certificate can be judged".to_owned();
        let at = view.at("client_auth");
        report.error(
            "E028",
            at,
            &view.key_path("client_auth"),
            "no authority for client certificates",
            help,
        );
    }
    let (cert_file, key_file) = (folder.path(cert?.text), folder.path(key?.text));
    files::private(&key_file, key?.at, &view.key_path("key_file"), report);
    files::pair(
        &cert_file,
        &key_file,
        (view, "cert_file"),
        (view, "key_file"),
        report,
    );
    Some(ServerTls {
        cert_file,
        key_file,
        client_ca_file: ca.map(|it| folder.path(it.text)),
        client_auth,
    })
}

/// A stored or live session must mean the same on every listener of its group. `[mqtt R7]`
fn groups(built: &[Built], report: &mut Report) {
    for (index, second) in built.iter().enumerate() {
        let ListenKind::Mqtt(b) = &second.listen.kind else {
            continue;
        };
        let first = built[..index].iter().find_map(|it| match &it.listen.kind {
            ListenKind::Mqtt(a) if a.group == b.group => Some((&it.listen.name, a)),
            ListenKind::Mqtt(_) | ListenKind::Weida(_) => None,
        });
        let Some((name, a)) = first else { continue };
        let differs = [
            ("label_policy", a.label_policy != b.label_policy),
            ("mqtt.routes_only", a.routes_only != b.routes_only),
        ];
        for (key, _) in differs.iter().filter(|(_, differs)| *differs) {
            let message = format!(
                "`{key}` differs from listener `{name}` of the same group `{}`",
                b.group
            );
            let help = "a session moves between the listeners of a group: make them equal, or name another group";
            let path = format!("listen.{}", second.listen.name);
            report.error("E029", &second.at, &path, message, help.to_owned());
        }
    }
}
