//! `[[route]]`: two ends, what they can promise each other, and the bounds in between. `[gateway.md 2.3, 8]`

mod ends;
mod promise;
mod stack;

use std::sync::Arc;

use weida_bridge::{Direction, Route, RouteId};

use super::super::report::{Report, nearest};
use super::super::tree::Origin;
use super::super::valid::{Limits, RouteConfig};
use super::listen::Built;
use super::view::View;

pub(super) use ends::mqtt_filter;

/// A route and where it stands.
#[derive(Debug, Clone)]
pub(super) struct BuiltRoute {
    pub(super) config: RouteConfig,
    pub(super) at: Origin,
    pub(super) path: String,
    pub(super) allow_cycle: bool,
    /// The topic template as written.
    pub(super) template: String,
}

pub(super) fn routes(
    root: &View<'_>,
    listen: &[Built],
    limits: &Limits,
    report: &mut Report,
) -> Vec<BuiltRoute> {
    let mut taken = Vec::new();
    let mut built = Vec::new();
    for view in root.tables("route") {
        let name = view.name("route", &mut taken, report);
        if let Some(route) = route(&view, name, listen, limits, report) {
            built.push(route);
        }
    }
    shared_paths(&built, report);
    built
}

fn route(
    view: &View<'_>,
    name: Option<Arc<str>>,
    listen: &[Built],
    limits: &Limits,
    report: &mut Report,
) -> Option<BuiltRoute> {
    let ends = ends::ends(view, listen, report);
    let template_text = view.table("to").and_then(|to| to.text("topic"));
    let template = template_text.map_or("{topic}", |it| it.text).to_owned();
    let topic = ends
        .as_ref()
        .and_then(|ends| ends::template(view, ends, listen, report));
    let promise = ends
        .as_ref()
        .and_then(|ends| promise::promise(view, ends, report));
    let stack = stack::stack(view, ends.as_ref(), report);
    let (ends, topic, promise) = (ends?, topic?, promise?);
    let timeout = view
        .duration("timeout")
        .or_else(|| promise.default_timeout(&ends));
    let route = Route {
        id: RouteId::new(&name?),
        direction: if ends.ingress {
            Direction::Ingress
        } else {
            Direction::Egress
        },
        pattern: ends.pattern,
        delivery: promise.delivery,
        ack_on: promise.ack_on,
        topic,
        labels: view.bool("labels").unwrap_or(false),
        retain: stack::retain(view),
        max_message_bytes: view
            .bytes("max_message_bytes")
            .unwrap_or(limits.max_message_bytes),
        timeout,
        loss: promise.losses(&ends),
    };
    let config = RouteConfig {
        route,
        weida: ends.weida,
        foreign: ends.foreign,
        conditions: stack.conditions,
        transform: stack.transform,
        overflow: stack.overflow,
        attempt_timeout: stack.attempt_timeout,
        in_flight: view.int("in_flight").unwrap_or(256),
        buffer: stack.buffer,
        retry: stack.retry,
        max_pending_replies: view.int("max_pending_replies").unwrap_or(4096),
        idempotent: view.bool("idempotent").unwrap_or(false),
        max_hops: view.int("max_hops").unwrap_or(4),
        dead_letter: stack.dead_letter,
    };
    Some(BuiltRoute {
        config,
        at: view.at.clone(),
        path: view.path.clone(),
        allow_cycle: view.bool("allow_cycle").unwrap_or(false),
        template,
    })
}

/// One pattern per bound path; pull and reply have one taker each, publish may be shared. `[gateway.md 2.3]`
fn shared_paths(built: &[BuiltRoute], report: &mut Report) {
    use super::super::valid::WeidaEnd::Bind;
    use weida_bridge::Pattern;

    for (index, second) in built.iter().enumerate() {
        let Bind { path } = &second.config.weida else {
            continue;
        };
        let first = built[..index].iter().find(|it| match &it.config.weida {
            Bind { path: other } => other == path,
            super::super::valid::WeidaEnd::Dial { .. } => false,
        });
        let Some(first) = first else { continue };
        let (one, other) = (first.config.route.pattern, second.config.route.pattern);
        let (first_id, path) = (first.config.route.id.as_str(), path.as_str());
        if one != other {
            let message = format!("{path} is bound by route `{first_id}` with another pattern");
            let help = "one path has one pattern: choose another path".to_owned();
            report.error("E034", &second.at, &second.path, message, help);
        } else if one != Pattern::Publish {
            let message = format!("{path} is taken by route `{first_id}` already");
            let help =
                "a pushed message or a request goes to one route: choose another path".to_owned();
            report.error("E034", &second.at, &second.path, message, help);
        }
    }
}

/// Every `listen` of a route or grant names a listener of the file. A listener that is refused for another reason is
/// not missing: its own finding is enough.
pub(super) fn references(root: &View<'_>, report: &mut Report) {
    let listeners = root.tables("listen");
    let known: Vec<&str> = listeners
        .iter()
        .filter_map(|it| it.text("name"))
        .map(|it| it.text)
        .collect();
    let routes = root.tables("route");
    let ends = routes
        .iter()
        .flat_map(|it| [it.table("from"), it.table("to")])
        .flatten();
    for view in ends.chain(root.tables("grant")) {
        let Some(name) = view.text("listen").filter(|it| !known.contains(&it.text)) else {
            continue;
        };
        let help = match nearest(name.text, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => "there is no `[[listen]]`".to_owned(),
            None => format!("there are: {}", known.join(", ")),
        };
        let message = format!("there is no listener `{}`", name.text);
        report.error("E030", name.at, &view.key_path("listen"), message, help);
    }
}
