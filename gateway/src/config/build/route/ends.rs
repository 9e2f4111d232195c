//! The two ends of a route: which listener, which path or URL, which names.

use std::sync::Arc;

use weida_bridge::Pattern;
use weida_bridge::names::{Space, Template, WEIDA};
use weida_core::{EndpointAddr, EndpointPath, Filter};
use weida_mqtt::MQTT;
use weida_mqtt::codec::TopicFilter;

use super::super::super::report::Report;
use super::super::super::valid::{
    AuthMethod, ForeignEnd, ListenKind, MqttEnd, MqttReply, WeidaEnd,
};
use super::super::listen::Built;
use super::super::view::{Text, View};

/// Both ends, before anything is promised.
#[derive(Debug, Clone)]
pub(super) struct Ends {
    pub(super) ingress: bool,
    pub(super) pattern: Pattern,
    pub(super) weida: WeidaEnd,
    pub(super) foreign: ForeignEnd,
}

impl Ends {
    pub(super) fn mqtt(&self) -> &MqttEnd {
        let ForeignEnd::Mqtt(mqtt) = &self.foreign;
        mqtt
    }

    /// The filter whose wildcards a template reads, in its space.
    fn source_filter(&self) -> (&'static Space, &str) {
        match (&self.weida, self.ingress) {
            (_, true) => (&MQTT, self.mqtt().filter.as_deref().unwrap_or("#")),
            (WeidaEnd::Dial { filter, .. }, false) => (&WEIDA, filter.as_str()),
            // What is pushed or requested carries any topic.
            (WeidaEnd::Bind { .. }, false) => (&WEIDA, "#"),
        }
    }
}

pub(super) fn ends(view: &View<'_>, listen: &[Built], report: &mut Report) -> Option<Ends> {
    for (key, what) in [
        ("from", "the source of the route"),
        ("to", "the destination of the route"),
    ] {
        if !view.has(key) {
            super::super::super::schema::missing(view.at, &view.path, key, what, report);
        }
    }
    let (from, to) = (view.table("from")?, view.table("to")?);
    for end in [&from, &to] {
        if end.has("weida") && end.has("listen") {
            let message = "an end is `listen` or `weida`, not both";
            report.error("E031", end.at, &end.path, message, None);
            return None;
        }
        let later = ["broker", "socket"].iter().any(|key| end.has(key));
        if !end.has("weida") && !end.has("listen") {
            if !later {
                let help = "`listen = \"NAME\"` or `weida = \"/path\"`".to_owned();
                report.error("E031", end.at, &end.path, "this end names nothing", help);
            }
            return None;
        }
    }
    let ingress = match (from.has("weida"), to.has("weida")) {
        (false, true) => true,
        (true, false) => false,
        (true, true) => {
            let message = "both ends are weida: weida peers can talk to each other directly";
            report.error("E031", view.key_at("to"), &to.path, message, None);
            return None;
        }
        (false, false) => {
            let message = "a route from MQTT to MQTT is not available in this version";
            let help = "clients of one listener reach each other without a route".to_owned();
            report.error("E004", view.key_at("to"), &to.path, message, help);
            return None;
        }
    };
    let (foreign_view, weida_view) = if ingress { (&from, &to) } else { (&to, &from) };
    let foreign = mqtt(foreign_view, ingress, listen, report);
    let weida = weida(weida_view, ingress, listen, report);
    let (mut foreign, (pattern, weida)) = (foreign?, weida?);
    if let Some(reply) = foreign_view.text("reply") {
        if pattern != Pattern::Reply {
            let message = "`reply` belongs to a route from pattern \"reply\"";
            report.error(
                "E031",
                foreign_view.key_at("reply"),
                &foreign_view.key_path("reply"),
                message,
                None,
            );
        } else if reply.text == "none" {
            foreign.reply = Some(MqttReply::None);
        }
    }
    if pattern == Pattern::Reply && foreign.reply.is_none() {
        foreign.reply = Some(MqttReply::ResponseTopic);
    }
    Some(Ends {
        ingress,
        pattern,
        weida,
        foreign: ForeignEnd::Mqtt(foreign),
    })
}

fn mqtt(view: &View<'_>, ingress: bool, listen: &[Built], report: &mut Report) -> Option<MqttEnd> {
    let name = view.text("listen")?;
    let path = view.key_path("listen");
    match listen
        .iter()
        .find(|it| *it.listen.name == *name.text)
        .map(|it| &it.listen.kind)
    {
        None => return None,
        Some(ListenKind::Weida(_)) => {
            let message = format!("`{}` is a weida listener", name.text);
            let help = "a weida end is a path or a URL: `weida = \"/path\"`".to_owned();
            report.error("E031", name.at, &path, message, help);
            return None;
        }
        Some(ListenKind::Mqtt(_)) => {}
    }
    if view.has("pattern") {
        let message = "`pattern` belongs to the weida end of a route";
        report.error(
            "E031",
            view.key_at("pattern"),
            &view.key_path("pattern"),
            message,
            None,
        );
    }
    let qos: u8 = view.int("qos").unwrap_or(1);
    if qos == 2 {
        let message = "`qos = 2` is not available in this version";
        let help = "across a route QoS 2 would be at-least-once anyway: `qos = 1`".to_owned();
        report.error("E004", view.at("qos"), &view.key_path("qos"), message, help);
    }
    let mut filter = None;
    if ingress {
        let text = view.need(
            "filter",
            "the MQTT filter of this source: `filter = \"plant/#\"`",
            report,
        )?;
        let path = view.key_path("filter");
        if text.text.starts_with("$share/") {
            let help =
                "a route takes every matching message once; leave `$share/GROUP/` out".to_owned();
            report.error(
                "E042",
                text.at,
                &path,
                "a shared subscription has no meaning in a route",
                help,
            );
            return None;
        }
        if let Err(reason) = mqtt_filter(text.text) {
            let message = format!("{:?} is no MQTT filter: {reason}", text.text);
            report.error("E035", text.at, &path, message, None);
            return None;
        }
        filter = Some(text.text.to_owned());
    }
    Some(MqttEnd {
        listen: Arc::from(name.text),
        filter,
        qos: qos.min(1),
        reply: None,
    })
}

fn weida(
    view: &View<'_>,
    ingress: bool,
    listen: &[Built],
    report: &mut Report,
) -> Option<(Pattern, WeidaEnd)> {
    let choices = if ingress {
        "publish, push or request"
    } else {
        "subscribe, pull or reply"
    };
    let pattern = match view.need("pattern", choices, report)?.text {
        "publish" => Pattern::Publish,
        "push" => Pattern::Push,
        "request" => Pattern::Request,
        "subscribe" => Pattern::Subscribe,
        "pull" => Pattern::Pull,
        "reply" => Pattern::Reply,
        _ => return None,
    };
    if view.has("qos") {
        let message = "`qos` belongs to the MQTT end of a route";
        report.error(
            "E031",
            view.key_at("qos"),
            &view.key_path("qos"),
            message,
            None,
        );
    }
    let text = view.text("weida")?;
    let path = view.key_path("weida");
    let binds = matches!(pattern, Pattern::Publish | Pattern::Pull | Pattern::Reply);
    if text.text.contains(['{', '}']) {
        let help = "the name of a message travels as its topic: use `topic`".to_owned();
        report.error("E036", text.at, &path, "a path is never a template", help);
        return None;
    }
    if text.text.starts_with('/') != binds
        && (text.text.starts_with('/') || text.text.contains("://"))
    {
        return form(text, pattern, binds, &path, report);
    }
    if binds {
        bound(view, text, pattern, listen, report)
    } else {
        dialled(view, text, pattern, report)
    }
}

/// A path where a URL belongs, or the other way round. `[reconciled R3]`
fn form(
    text: Text<'_>,
    pattern: Pattern,
    binds: bool,
    path: &str,
    report: &mut Report,
) -> Option<(Pattern, WeidaEnd)> {
    let (message, help) = if binds {
        (
            format!(
                "pattern \"{}\" binds a path here, this is a URL",
                word(pattern)
            ),
            match pattern {
                Pattern::Publish => {
                    "write the path alone; to dial a peer use \"push\" or \"request\""
                }
                _ => "write the path alone; to dial a publisher use \"subscribe\"",
            },
        )
    } else {
        (
            format!("pattern \"{}\" dials a URL, this is a path", word(pattern)),
            match pattern {
                Pattern::Subscribe => {
                    "write `weida://HOST:PORT/path`; to be dialled use \"pull\" or \"reply\""
                }
                _ => "write `weida://HOST:PORT/path`; to be dialled use \"publish\"",
            },
        )
    };
    report.error("E032", text.at, path, message, help.to_owned());
    None
}

fn bound(
    view: &View<'_>,
    text: Text<'_>,
    pattern: Pattern,
    listen: &[Built],
    report: &mut Report,
) -> Option<(Pattern, WeidaEnd)> {
    let key = view.key_path("weida");
    let path = match EndpointPath::new(text.text.to_owned()) {
        Ok(path) => path,
        Err(error) => {
            let help = "a path starts with `/`: `weida = \"/mqtt\"`".to_owned();
            report.error(
                "E032",
                text.at,
                &key,
                format!("{:?} is no path: {error}", text.text),
                help,
            );
            return None;
        }
    };
    if !listen
        .iter()
        .any(|it| matches!(it.listen.kind, ListenKind::Weida(_)))
    {
        let help = "add `[[listen]]` with `protocol = \"weida\"`".to_owned();
        let message = format!(
            "{} is bound on no listener: there is no weida one",
            text.text
        );
        report.error("E033", text.at, &key, message, help);
    }
    if view.has("filter") {
        let message = format!("`filter` has no meaning with pattern \"{}\"", word(pattern));
        let help = "filter by `where`, or dial a publisher with \"subscribe\"".to_owned();
        report.error(
            "E031",
            view.key_at("filter"),
            &view.key_path("filter"),
            message,
            help,
        );
    }
    Some((pattern, WeidaEnd::Bind { path }))
}

fn dialled(
    view: &View<'_>,
    text: Text<'_>,
    pattern: Pattern,
    report: &mut Report,
) -> Option<(Pattern, WeidaEnd)> {
    let key = view.key_path("weida");
    let scheme = text.text.split("://").next().unwrap_or_default();
    if text.text.contains("://") && scheme != weida_core::SCHEME {
        let known = ["weida+unix", "weida+inproc", "unix", "inproc"].contains(&scheme)
            || scheme == weida_core::SCHEME_UNIX
            || scheme == weida_core::SCHEME_INPROC;
        let (code, what) = if known {
            ("E004", "is not available in this version")
        } else {
            ("E032", "is no weida scheme")
        };
        let help = "`weida://HOST:PORT/path`".to_owned();
        report.error(
            code,
            text.at,
            &key,
            format!("the scheme `{scheme}` {what}"),
            help,
        );
        return None;
    }
    let address = match EndpointAddr::parse(text.text) {
        Ok(address) => address,
        Err(error) => {
            let help = "`weida://HOST:PORT/path` or `weida://sha256:HEX@HOST:PORT/path`".to_owned();
            report.error(
                "E032",
                text.at,
                &key,
                format!("{:?} is no address: {error}", text.text),
                help,
            );
            return None;
        }
    };
    let mut filter = Filter::new("#").ok()?;
    if let Some(wanted) = view.text("filter") {
        if pattern == Pattern::Subscribe {
            match Filter::new(wanted.text.to_owned()) {
                Ok(good) => filter = good,
                Err(error) => {
                    let message = format!("{:?} is no weida filter: {error}", wanted.text);
                    let help = "`.` separates, `*` is one segment, a last `#` the rest".to_owned();
                    report.error("E035", wanted.at, &view.key_path("filter"), message, help);
                }
            }
        } else {
            let message = format!("`filter` has no meaning with pattern \"{}\"", word(pattern));
            report.error(
                "E031",
                view.key_at("filter"),
                &view.key_path("filter"),
                message,
                None,
            );
        }
    }
    Some((pattern, WeidaEnd::Dial { address, filter }))
}

/// The topic template of the destination, checked against what the source can fill in.
pub(super) fn template(
    view: &View<'_>,
    ends: &Ends,
    listen: &[Built],
    report: &mut Report,
) -> Option<Template> {
    let to = view.table("to")?;
    let text = to.text("topic");
    let (at, path) = (to.at("topic"), to.key_path("topic"));
    let written = text.map_or("{topic}", |it| it.text);
    if written.is_empty() {
        let help = "leave `topic` out for the name of the source".to_owned();
        report.error("E036", at, &path, "an empty template names nothing", help);
        return None;
    }
    let space: &Space = if ends.ingress { &WEIDA } else { &MQTT };
    let template = match Template::parse(written, space) {
        Ok(template) => template,
        Err(error) => {
            let help = "`{topic}`, `{1}`, `{rest}`, `{user}`, `{meta.NAME}` between literal text"
                .to_owned();
            report.error(
                "E036",
                at,
                &path,
                format!("{written:?} is no template: {error}"),
                help,
            );
            return None;
        }
    };
    if template.uses_tenant() {
        report.error(
            "E004",
            at,
            &path,
            "`{tenant}` is not available in this version",
            None,
        );
        return None;
    }
    let (source, filter) = ends.source_filter();
    let problem = match template.check_source(source, filter) {
        Err(error) => Some(error.to_string()),
        Ok(()) if !template.uses_user() => None,
        Ok(()) if !ends.ingress => Some("`{user}`: nobody logs in at a weida source".to_owned()),
        Ok(()) => anonymous_only(&ends.mqtt().listen, listen)
            .then(|| format!("`{{user}}`: nobody logs in at `{}`", ends.mqtt().listen)),
    };
    if let Some(problem) = problem {
        let message = format!("{written:?} can never be filled in: {problem}");
        report.error("E036", at, &path, message, None);
        return None;
    }
    Some(template)
}

fn anonymous_only(listener: &str, listen: &[Built]) -> bool {
    listen.iter().any(|it| match &it.listen.kind {
        ListenKind::Mqtt(mqtt) => {
            *it.listen.name == *listener && mqtt.auth == [AuthMethod::Anonymous]
        }
        ListenKind::Weida(_) => false,
    })
}

/// The word of a pattern in the file.
pub(super) fn word(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Publish => "publish",
        Pattern::Push => "push",
        Pattern::Request => "request",
        Pattern::Subscribe => "subscribe",
        Pattern::Pull => "pull",
        Pattern::Reply => "reply",
    }
}

/// Whether the text is an MQTT filter. `[MQTT5 4.7]`
pub(in super::super) fn mqtt_filter(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        return Err("it is empty");
    }
    if text.len() > 65_535 {
        return Err("it is longer than 65 535 bytes");
    }
    if text.contains('\0') {
        return Err("it contains NUL");
    }
    let mut levels = text.split('/').peekable();
    while let Some(level) = levels.next() {
        if level == "#" && levels.peek().is_some() {
            return Err("`#` stands only at the end");
        }
        if level.len() > 1 && level.contains(['#', '+']) {
            return Err("a wildcard is a whole level");
        }
    }
    // The codec has the last word: what it would refuse from a client must not stand in a file.
    TopicFilter::parse(text)
        .map(drop)
        .map_err(|_| "no client could send it")
}
