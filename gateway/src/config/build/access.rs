//! `[[credential]]` and `[[grant]]`, and what they mean together with listeners and routes.

use std::sync::Arc;

use super::super::report::Report;
use super::super::tree::Origin;
use super::super::valid::{
    Allow, AuthMethod, Credential, Glob, Grant, ListenKind, Rate, WeidaEnd, Who,
};
use super::listen::Built;
use super::route::BuiltRoute;
use super::view::{Text, View};
use super::{Folder, files};
use crate::config::passwd;

/// Reads every password file once, so that a bad line is found before the start. `[mqtt 9.1]`
pub(super) fn credentials(
    root: &View<'_>,
    folder: &Folder<'_>,
    report: &mut Report,
) -> Vec<(Credential, Origin)> {
    let mut built = Vec::new();
    for view in root.tables("credential") {
        let Some(file) = view.need("file", "the file that `weida-gateway passwd` edits", report)
        else {
            continue;
        };
        let (path, key) = (folder.path(file.text), view.key_path("file"));
        if let Some(bytes) = files::read(&path, file.at, &key, report) {
            files::private(&path, file.at, &key, report);
            if let Err(error) = passwd::File::parse(&bytes) {
                let help = "edit it with `weida-gateway passwd`".to_owned();
                report.error(
                    "E052",
                    file.at,
                    &key,
                    format!("{}: {error}", path.display()),
                    help,
                );
            }
        }
        built.push((Credential { file: path }, view.at.clone()));
    }
    built
}

pub(super) fn grants(root: &View<'_>, listen: &[Built], report: &mut Report) -> Vec<Grant> {
    let mut grants = Vec::new();
    for view in root.tables("grant") {
        if !view.has("who") {
            view.need(
                "who",
                "whom the grant is about: `who = [\"user:alice\"]`",
                report,
            );
        } else if view.list("who").is_empty() {
            report.error(
                "E050",
                view.at("who"),
                &view.key_path("who"),
                "`who` names nobody",
                None,
            );
        }
        let who: Vec<Who> = view
            .list("who")
            .into_iter()
            .filter_map(|text| who(text, &view, report))
            .collect();
        let listener = view.text("listen");
        let on = listener.and_then(|name| listen.iter().find(|it| *it.listen.name == *name.text));
        let kinds: Vec<&str> = match (listener, on) {
            (Some(_), Some(it)) => vec![it.listen.protocol()],
            (Some(_), None) => Vec::new(),
            (None, _) => listen.iter().map(|it| it.listen.protocol()).collect(),
        };
        let mut allow = |key: &str| -> Vec<Allow> {
            view.list(key)
                .into_iter()
                .filter(|text| pattern(*text, key, &kinds, &view, report))
                .map(|text| Allow::new(text.text))
                .collect()
        };
        let (publish, subscribe) = (allow("publish"), allow("subscribe"));
        let (deny_publish, deny_subscribe) = (allow("deny_publish"), allow("deny_subscribe"));
        let will = view.has("will").then(|| allow("will"));
        let client_id = view.has("client_id").then(|| {
            view.list("client_id")
                .into_iter()
                .map(|it| it.text.into())
                .collect()
        });
        if kinds == ["weida"] {
            for key in [
                "deny_publish",
                "deny_subscribe",
                "will",
                "client_id",
                "rate",
            ] {
                if view.has(key) {
                    let message = format!("`{key}` means nothing on a weida listener");
                    report.error("E051", view.key_at(key), &view.key_path(key), message, None);
                }
            }
        }
        per_peer_limits(&view, &who, on, listen, report);
        grants.push(Grant {
            who,
            listen: listener.map(|it| Arc::from(it.text)),
            publish,
            deny_publish,
            subscribe,
            deny_subscribe,
            will,
            client_id,
            rate: rate(&view),
        });
    }
    grants
}

fn rate(view: &View<'_>) -> Option<Rate> {
    let view = view.table("rate")?;
    let messages_per_second = view.int("messages_per_second");
    let bytes_per_second = view.bytes("bytes_per_second").map(|it| it as u64);
    let any = messages_per_second.is_some() || bytes_per_second.is_some();
    any.then_some(Rate {
        messages_per_second,
        bytes_per_second,
    })
}

/// Per-peer limits need peers that can be told apart. `[weida S8-12]`
fn per_peer_limits(
    view: &View<'_>,
    who: &[Who],
    on: Option<&Built>,
    listen: &[Built],
    report: &mut Report,
) {
    if !view.has("rate") {
        return;
    }
    let about_peers = who
        .iter()
        .any(|it| matches!(it, Who::Anonymous | Who::AnyPeer | Who::Peer(_)));
    let named = on.map(std::slice::from_ref).unwrap_or(&[]);
    let candidates = if view.has("listen") { named } else { listen };
    let anonymous = candidates.iter().find(|it| match &it.listen.kind {
        ListenKind::Weida(weida) => !weida.require_client_identity,
        ListenKind::Mqtt(_) => false,
    });
    if let Some(binding) = anonymous
        && about_peers
    {
        let message = format!(
            "a limit per peer on `{}`, whose peers need not prove who they are",
            binding.listen.name
        );
        let help = "set `require_client_identity = true` on that listener".to_owned();
        report.error(
            "E024",
            view.key_at("rate"),
            &view.key_path("rate"),
            message,
            help,
        );
    }
}

fn who(text: Text<'_>, view: &View<'_>, report: &mut Report) -> Option<Who> {
    let path = view.key_path("who");
    let known = parse_who(text.text);
    if known.is_none() {
        match text.text.split_once(':') {
            Some((kind @ ("curve-key" | "uid"), _)) => {
                let message = format!("`{kind}:` is not available in this version");
                report.error("E004", text.at, &path, message, None);
            }
            _ => {
                let message = format!("{:?} names nobody", text.text);
                let help = "`user:NAME`, `cert:HEX`, `cert-subject:CN=NAME`, `peer:sha256:HEX`, `peer:*` or `anonymous`";
                report.error("E050", text.at, &path, message, help.to_owned());
            }
        }
    }
    known
}

fn parse_who(text: &str) -> Option<Who> {
    match text.split_once(':') {
        None if text == "anonymous" => Some(Who::Anonymous),
        Some(("user", name)) if !name.is_empty() => Some(Who::User(Glob::parse(name))),
        Some(("cert", hash)) if is_hex(hash) => Some(Who::Cert(Glob::parse(hash))),
        Some(("cert-subject", name)) if !name.is_empty() => {
            Some(Who::CertSubject(Glob::parse(name)))
        }
        Some(("peer", "*")) => Some(Who::AnyPeer),
        Some(("peer", key)) => key.parse().ok().map(Who::Peer),
        _ => None,
    }
}

/// Lower-case hexadecimal, whole (64 digits) or the beginning of one followed by `*`.
fn is_hex(text: &str) -> bool {
    let hex = |text: &str| {
        text.bytes()
            .all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
    };
    match text.strip_suffix('*') {
        Some(head) => head.len() < 64 && hex(head),
        None => text.len() == 64 && hex(text),
    }
}

/// A pattern in the syntax of the listeners the grant holds on.
fn pattern(
    text: Text<'_>,
    key: &str,
    kinds: &[&str],
    view: &View<'_>,
    report: &mut Report,
) -> bool {
    let path = view.key_path(key);
    let weida = text.text == "*" || weida_core::validate_endpoint_path(text.text).is_ok();
    let mqtt = super::route::mqtt_filter(text.text);
    let fits = |kind: &&str| {
        if *kind == "weida" {
            weida
        } else {
            mqtt.is_ok()
        }
    };
    if kinds.is_empty() || kinds.iter().any(fits) {
        return true;
    }
    let (message, help) = match (kinds.contains(&"mqtt"), mqtt) {
        (true, Err(reason)) => (format!("{:?} is no MQTT filter: {reason}", text.text), None),
        _ => (
            format!("{:?} is no weida path", text.text),
            Some("a path starts with `/`; `*` alone allows every path".to_owned()),
        ),
    };
    report.error("E051", text.at, &path, message, help);
    false
}

/// What grants, listeners and routes mean together.
pub(super) fn cross(
    root: &View<'_>,
    listen: &[Built],
    credentials: &[(Credential, Origin)],
    routes: &[BuiltRoute],
    report: &mut Report,
) {
    let grants = root.tables("grant");
    for built in listen {
        let ListenKind::Mqtt(mqtt) = &built.listen.kind else {
            continue;
        };
        if mqtt.auth.contains(&AuthMethod::Password) && credentials.is_empty() {
            let path = format!("listen.{}.auth", built.listen.name);
            let help =
                "add `[[credential]]` with `file`, then `weida-gateway passwd set NAME`".to_owned();
            report.error(
                "E022",
                &built.at,
                &path,
                "no password could be right: there is no `[[credential]]`",
                help,
            );
        }
    }
    for view in &grants {
        let on: Vec<&Built> = match view.text("listen") {
            Some(name) => listen
                .iter()
                .filter(|it| *it.listen.name == *name.text)
                .collect(),
            None => listen.iter().collect(),
        };
        if on.is_empty() {
            continue;
        }
        for text in view.list("who") {
            let kind = text.text.split(':').next().unwrap_or_default();
            if parse_who(text.text).is_none() {
                continue;
            }
            if !on.iter().any(|it| could_be(kind, it)) {
                let message = format!(
                    "nobody can be {:?} there: this grant matches nothing",
                    text.text
                );
                let help = reason_nobody(kind, &on);
                report.warn("W010", text.at, &view.key_path("who"), message, help);
            }
        }
        // A route that is refused may be the one that binds the path.
        if routes.len() == root.tables("route").len() {
            unbound_paths(view, &on, routes, report);
        }
    }
    for built in listen {
        let any = grants.iter().any(|view| {
            view.text("listen")
                .is_none_or(|name| *name.text == *built.listen.name)
        });
        if !any {
            let path = format!("listen.{}", built.listen.name);
            let message = format!(
                "no grant holds on `{}`: everything is denied there",
                built.listen.name
            );
            let help = "add a `[[grant]]`".to_owned();
            report.warn("W012", &built.at, &path, message, help);
        }
    }
    equal_grants(&grants, listen, report);
}

/// Whether somebody like that can exist on the listener.
fn could_be(kind: &str, on: &Built) -> bool {
    match &on.listen.kind {
        ListenKind::Weida(weida) => match kind {
            "peer" => true,
            "anonymous" => !weida.require_client_identity,
            _ => false,
        },
        ListenKind::Mqtt(mqtt) => match kind {
            "user" => mqtt.auth.contains(&AuthMethod::Password),
            "cert" | "cert-subject" => mqtt.auth.contains(&AuthMethod::ClientCert),
            "anonymous" => mqtt.auth.contains(&AuthMethod::Anonymous),
            _ => false,
        },
    }
}

fn reason_nobody(kind: &str, on: &[&Built]) -> Option<String> {
    let names: Vec<&str> = on.iter().map(|it| &*it.listen.name).collect();
    let names = names.join("`, `");
    match kind {
        "user" => Some(format!("`{names}` accepts no passwords")),
        "cert" | "cert-subject" => Some(format!("`{names}` accepts no client certificates")),
        "anonymous" => Some(format!("`{names}` lets nobody in unasked")),
        "peer" => Some(format!("`{names}` is no weida listener")),
        _ => None,
    }
}

/// A path in a grant on a weida listener that no route binds lets nobody do anything.
fn unbound_paths(view: &View<'_>, on: &[&Built], routes: &[BuiltRoute], report: &mut Report) {
    if view.text("listen").is_none() || on.iter().any(|it| it.listen.protocol() != "weida") {
        return;
    }
    for (key, publishes) in [("publish", false), ("subscribe", true)] {
        for text in view
            .list(key)
            .into_iter()
            .filter(|it| it.text.starts_with('/'))
        {
            let bound = routes.iter().any(|it| match &it.config.weida {
                WeidaEnd::Bind { path } => {
                    path.as_str() == text.text
                        && (it.config.route.pattern == weida_bridge::Pattern::Publish) == publishes
                }
                WeidaEnd::Dial { .. } => false,
            });
            if !bound {
                let verb = if publishes {
                    "publishes at"
                } else {
                    "takes anything at"
                };
                let message = format!("no route {verb} {}", text.text);
                report.warn("W010", text.at, &view.key_path(key), message, None);
            }
        }
    }
}

/// Listeners of one group have equal grants, else a session would change its rights by moving. `[mqtt R7]`
fn equal_grants(grants: &[View<'_>], listen: &[Built], report: &mut Report) {
    let on = |name: &str| -> Vec<usize> {
        (0..grants.len())
            .filter(|index| {
                grants[*index]
                    .text("listen")
                    .is_none_or(|it| it.text == name)
            })
            .collect()
    };
    for (index, second) in listen.iter().enumerate() {
        let ListenKind::Mqtt(b) = &second.listen.kind else {
            continue;
        };
        let first = listen[..index].iter().find(|it| match &it.listen.kind {
            ListenKind::Mqtt(a) => a.group == b.group,
            ListenKind::Weida(_) => false,
        });
        let Some(first) = first else { continue };
        if on(&first.listen.name) != on(&second.listen.name) {
            let message = format!(
                "`{}` and `{}` share group `{}` and have different grants",
                first.listen.name, second.listen.name, b.group
            );
            let help = "leave `listen` out of those grants, or name another group".to_owned();
            let path = format!("listen.{}", second.listen.name);
            report.error("E029", &second.at, &path, message, help);
        }
    }
}
