//! Cycles of the route graph that a message could run around in. `[gateway.md 8.2, rule 1]`
//!
//! Nodes are listener groups and paths bound here; a route is an edge. An edge can follow another when what the first one
//! writes may be what the second one reads.

use weida_bridge::names::{Space, WEIDA};
use weida_mqtt::MQTT;

use super::super::report::Report;
use super::super::valid::{ForeignEnd, ListenKind, WeidaEnd};
use super::listen::Built;
use super::route::BuiltRoute;
use super::view::View;

/// Where a message stands between two routes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    /// The clients of a listener group.
    Group(String),
    /// A path bound on this gateway.
    Path(String),
    /// Somewhere else: nothing is known.
    Elsewhere,
}

/// One level of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Level {
    Is(String),
    Any,
    Rest,
}

struct Edge<'a> {
    route: &'a BuiltRoute,
    from: Node,
    reads: Vec<Level>,
    to: Node,
    writes: Vec<Level>,
}

pub(super) fn cycles(
    root: &View<'_>,
    listen: &[Built],
    routes: &[BuiltRoute],
    report: &mut Report,
) {
    let _: &View<'_> = root;
    let edges: Vec<Edge<'_>> = routes.iter().map(|route| edge(route, listen)).collect();
    let mut told: Vec<Vec<usize>> = Vec::new();
    for start in 0..edges.len() {
        let mut path = vec![start];
        walk(&edges, &mut path, &mut told);
    }
    for cycle in told {
        if cycle.iter().any(|index| edges[*index].route.allow_cycle) {
            continue;
        }
        let names: Vec<&str> = cycle
            .iter()
            .map(|index| edges[*index].route.config.route.id.as_str())
            .collect();
        let last = edges[*cycle.iter().max().unwrap_or(&0)].route;
        let message = format!(
            "messages would run in a circle: {} -> {}",
            names.join(" -> "),
            names[0]
        );
        let help = "make the names disjoint, or say `allow_cycle = true` on one of them (`max_hops` then ends it)";
        report.error("E039", &last.at, &last.path, message, help.to_owned());
    }
}

/// Depth first; every circle is told once, from its first route in file order.
fn walk(edges: &[Edge<'_>], path: &mut Vec<usize>, told: &mut Vec<Vec<usize>>) {
    // Longer circles than this need as many routes between the same two sides; the bound keeps the check quick.
    const LONGEST: usize = 6;
    let (Some(&first), Some(&last)) = (path.first(), path.last()) else {
        return;
    };
    for next in first..edges.len() {
        if !follows(&edges[last], &edges[next]) {
            continue;
        }
        if next == first {
            told.push(path.clone());
        } else if !path.contains(&next) && path.len() < LONGEST && told.len() < 64 {
            path.push(next);
            walk(edges, path, told);
            path.pop();
        }
    }
}

fn follows(one: &Edge<'_>, other: &Edge<'_>) -> bool {
    one.to == other.from && one.to != Node::Elsewhere && overlap(&one.writes, &other.reads)
}

fn edge<'a>(route: &'a BuiltRoute, listen: &[Built]) -> Edge<'a> {
    let config = &route.config;
    let ForeignEnd::Mqtt(mqtt) = &config.foreign;
    let group = listen
        .iter()
        .find_map(|it| match &it.listen.kind {
            ListenKind::Mqtt(kind) if it.listen.name == mqtt.listen => Some(kind.group.to_string()),
            ListenKind::Mqtt(_) | ListenKind::Weida(_) => None,
        })
        .map_or(Node::Elsewhere, Node::Group);
    let weida = match &config.weida {
        WeidaEnd::Bind { path } => Node::Path(path.as_str().to_owned()),
        WeidaEnd::Dial { address, .. } if is_own(&address.host, address.port, listen) => {
            Node::Path(address.path.clone())
        }
        WeidaEnd::Dial { .. } => Node::Elsewhere,
    };
    if let Some(filter) = &mqtt.filter {
        let reads = levels(filter, &MQTT);
        let writes = written(&route.template, &reads, &WEIDA);
        Edge {
            route,
            from: group,
            reads,
            to: weida,
            writes,
        }
    } else {
        let filter = match &config.weida {
            WeidaEnd::Dial { filter, .. } => filter.as_str(),
            WeidaEnd::Bind { .. } => "#",
        };
        let reads = levels(filter, &WEIDA);
        let writes = written(&route.template, &reads, &MQTT);
        Edge {
            route,
            from: weida,
            reads,
            to: group,
            writes,
        }
    }
}

/// Whether an address is one of our own bindings, as far as the text tells.
fn is_own(host: &str, port: Option<u16>, listen: &[Built]) -> bool {
    let port = port.unwrap_or(weida_core::DEFAULT_PORT);
    let ip: Option<std::net::IpAddr> = host.parse().ok();
    let local = host == "localhost" || ip.is_some_and(|ip| ip.is_loopback());
    listen.iter().any(|it| match &it.listen.kind {
        ListenKind::Weida(weida) => {
            weida.bind.port() == port
                && (Some(weida.bind.ip()) == ip
                    || (local
                        && (weida.bind.ip().is_loopback() || weida.bind.ip().is_unspecified())))
        }
        ListenKind::Mqtt(_) => false,
    })
}

/// A filter as levels; literal levels are decoded, so that both spaces compare.
fn levels(filter: &str, space: &Space) -> Vec<Level> {
    let (one, separator) = if space.separator() == '/' {
        ("+", '/')
    } else {
        ("*", '.')
    };
    filter
        .split(separator)
        .map(|level| match level {
            "#" => Level::Rest,
            level if level == one => Level::Any,
            level => {
                let mut decoded = String::new();
                space.decode(level, &mut decoded);
                Level::Is(decoded)
            }
        })
        .collect()
}

/// What a template may write, given what its source reads. Unknown parts widen, they never narrow.
fn written(template: &str, reads: &[Level], space: &Space) -> Vec<Level> {
    let mut out = Vec::new();
    for segment in template.split(space.separator()) {
        match segment {
            "{topic}" => out.extend(reads.iter().cloned()),
            "{rest}" => out.push(Level::Rest),
            text if text.contains('{') => out.push(Level::Any),
            text => {
                let mut decoded = String::new();
                space.decode(text, &mut decoded);
                out.push(Level::Is(decoded));
            }
        }
    }
    if let Some(at) = out.iter().position(|level| *level == Level::Rest) {
        out.truncate(at + 1);
    }
    out
}

/// Whether some name matches both patterns. `[MQTT5 4.7.2]`: a wildcard at the start never takes a name that starts with `$`.
fn overlap(a: &[Level], b: &[Level]) -> bool {
    let system =
        |level: Option<&Level>| matches!(level, Some(Level::Is(text)) if text.starts_with('$'));
    let wild = |level: Option<&Level>| matches!(level, Some(Level::Any | Level::Rest));
    if (system(a.first()) && wild(b.first())) || (system(b.first()) && wild(a.first())) {
        return false;
    }
    meet(a, b)
}

fn meet(a: &[Level], b: &[Level]) -> bool {
    match (a, b) {
        ([Level::Rest, ..], _) | (_, [Level::Rest, ..]) => true,
        ([], []) => true,
        ([], _) | (_, []) => false,
        ([Level::Is(x), a @ ..], [Level::Is(y), b @ ..]) => x == y && meet(a, b),
        ([_, a @ ..], [_, b @ ..]) => meet(a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mqtt(filter: &str) -> Vec<Level> {
        levels(filter, &MQTT)
    }

    #[test]
    fn overlap_is_symmetric_and_exact() {
        for (a, b, expected) in [
            ("#", "a/b", true),
            ("a/#", "a", true),
            ("a/#", "b/#", false),
            ("+/b", "a/+", true),
            ("a/+", "a", false),
            ("a/+/c", "a/b/d", false),
            ("#", "$SYS/x", false),
            ("+/x", "$SYS/x", false),
            ("$SYS/#", "$SYS/x", true),
        ] {
            assert_eq!(overlap(&mqtt(a), &mqtt(b)), expected, "{a} {b}");
            assert_eq!(overlap(&mqtt(b), &mqtt(a)), expected, "{b} {a}");
        }
    }

    #[test]
    fn names_of_both_spaces_compare_decoded() {
        assert!(overlap(&mqtt("v1.0/x"), &levels("v1%2E0.x", &WEIDA)));
    }

    #[test]
    fn a_template_writes_what_its_source_reads() {
        let reads = levels("plant.*.#", &WEIDA);
        assert_eq!(written("{topic}", &reads, &MQTT), reads);
        assert_eq!(written("out/{1}/{rest}", &reads, &MQTT), mqtt("out/+/#"));
        assert_eq!(written("out/x{1}y", &reads, &MQTT), mqtt("out/+"));
    }
}
