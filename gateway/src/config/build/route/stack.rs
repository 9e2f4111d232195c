//! The bounds of a route's service stack. `[gateway.md 9]`

use std::time::Duration;

use weida_bridge::{Pattern, RetainPolicy};

use super::super::super::report::Report;
use super::super::super::valid::{Buffer, Condition, DeadLetter, Overflow, Retry, Transform};
use super::super::view::View;
use super::ends::Ends;

/// What stands between the two ends.
#[derive(Debug, Clone)]
pub(super) struct Stack {
    pub(super) conditions: Vec<Condition>,
    pub(super) transform: Transform,
    pub(super) overflow: Overflow,
    pub(super) attempt_timeout: Duration,
    pub(super) buffer: Buffer,
    pub(super) retry: Retry,
    pub(super) dead_letter: DeadLetter,
}

pub(super) fn stack(view: &View<'_>, ends: Option<&Ends>, report: &mut Report) -> Stack {
    let attempt_timeout = view
        .duration("attempt_timeout")
        .unwrap_or(Duration::from_secs(2));
    if let Some(timeout) = view.duration("timeout")
        && view.has("attempt_timeout")
        && attempt_timeout > timeout
    {
        let message = "one try may last longer than the whole message";
        let help = "`attempt_timeout` is at most `timeout`".to_owned();
        let at = view.at("attempt_timeout");
        report.error("E041", at, &view.key_path("attempt_timeout"), message, help);
    }
    Stack {
        conditions: conditions(view, report),
        transform: transform(view, report),
        overflow: overflow(view, ends, report),
        attempt_timeout,
        buffer: buffer(view),
        retry: retry(view, report),
        dead_letter: dead_letter(view),
    }
}

pub(super) fn retain(view: &View<'_>) -> RetainPolicy {
    match view.text("retain").map(|it| it.text) {
        Some("strip") => RetainPolicy::Strip,
        Some("never-forward") => RetainPolicy::NeverForward,
        _ => RetainPolicy::AsPublished,
    }
}

fn conditions(view: &View<'_>, report: &mut Report) -> Vec<Condition> {
    let mut conditions = Vec::new();
    for condition in view.tables("where") {
        let before = conditions.len();
        if let Some(text) = condition.text("content_type") {
            conditions.push(Condition::ContentType(text.text.to_owned()));
        }
        if let Some(bytes) = condition.bytes("max_payload") {
            conditions.push(Condition::MaxPayloadBytes(bytes));
        }
        let known = ["content_type", "max_payload"]
            .iter()
            .any(|key| condition.has(key));
        if conditions.len() == before && !known {
            let help = "`content_type` or `max_payload`".to_owned();
            report.error(
                "E009",
                condition.at,
                &condition.path,
                "this condition asks for nothing",
                help,
            );
        }
    }
    conditions
}

fn transform(view: &View<'_>, report: &mut Report) -> Transform {
    let set = view.table_or_empty("set");
    let mut meta = Vec::new();
    for (name, value) in set.pairs("meta") {
        if reserved(name) {
            let message =
                format!("{name:?} is a reserved name: a protocol would read meaning into it");
            let help = "reserved: names starting with `mqtt.` `amqp.` `nats.` `zmq.` `gateway.` `weida-` `x-weida-`";
            report.error(
                "E011",
                value.at,
                &set.key_path("meta"),
                message,
                help.to_owned(),
            );
        }
        meta.push((Box::from(name), Box::from(value.text)));
    }
    if meta.len() > 32 {
        let message = format!("{} entries of metadata, 32 cross a route", meta.len());
        report.error(
            "E007",
            set.key_at("meta"),
            &set.key_path("meta"),
            message,
            None,
        );
    }
    Transform {
        content_type: set.text("content_type").map(|it| it.text.to_owned()),
        meta,
        drop_meta: set
            .list("drop_meta")
            .into_iter()
            .map(|it| it.text.into())
            .collect(),
    }
}

/// Names that adapters give a meaning to. `[gateway.md 8.3]`
fn reserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "mqtt.", "amqp.", "nats.", "zmq.", "gateway.", "weida-", "x-weida-",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}

fn overflow(view: &View<'_>, ends: Option<&Ends>, report: &mut Report) -> Overflow {
    let overflow = match view.text("overflow").map(|it| it.text) {
        Some("reject") => Overflow::Reject,
        Some("drop-newest") => Overflow::DropNewest,
        Some("drop-oldest") => Overflow::DropOldest,
        _ => Overflow::Block,
    };
    let (at, path) = (view.at("overflow"), view.key_path("overflow"));
    let drops = matches!(overflow, Overflow::DropNewest | Overflow::DropOldest);
    let at_most_once = view
        .text("delivery")
        .is_some_and(|it| it.text == "at-most-once");
    if drops && !at_most_once {
        let message = "a route that drops when it is full can't be at-least-once";
        let help =
            "`overflow = \"block\"` or `\"reject\"`, or `delivery = \"at-most-once\"`".to_owned();
        report.error("E040", at, &path, message, help);
    }
    if overflow == Overflow::Reject && ends.is_some_and(|it| it.pattern == Pattern::Subscribe) {
        let message = "nobody hears a refusal: a weida publisher doesn't wait for an answer";
        let help = "`\"block\"`, `\"drop-newest\"` or `\"drop-oldest\"`".to_owned();
        report.error("E040", at, &path, message, help);
    }
    overflow
}

fn buffer(view: &View<'_>) -> Buffer {
    let view = view.table_or_empty("buffer");
    let default = Buffer::default();
    Buffer {
        messages: view.int("messages").unwrap_or(default.messages),
        bytes: view.bytes("bytes").unwrap_or(default.bytes),
    }
}

fn retry(view: &View<'_>, report: &mut Report) -> Retry {
    let view = view.table_or_empty("retry");
    let default = Retry::default();
    #[expect(clippy::cast_possible_truncation, reason = "a share between 0 and 10")]
    let ratio = view.float("budget_ratio").map(|it| it as f32);
    let retry = Retry {
        budget_ratio: ratio.unwrap_or(default.budget_ratio),
        min_per_second: view.int("min_per_second").unwrap_or(default.min_per_second),
        window: view.duration("window").unwrap_or(default.window),
        backoff_min: view.duration("backoff_min").unwrap_or(default.backoff_min),
        backoff_max: view.duration("backoff_max").unwrap_or(default.backoff_max),
    };
    if retry.backoff_min > retry.backoff_max {
        let key = if view.has("backoff_min") {
            "backoff_min"
        } else {
            "backoff_max"
        };
        let message = "`backoff_min` is longer than `backoff_max`";
        report.error("E041", view.at(key), &view.key_path(key), message, None);
    }
    retry
}

fn dead_letter(view: &View<'_>) -> DeadLetter {
    let view = view.table_or_empty("dead_letter");
    let default = DeadLetter::default();
    DeadLetter {
        max_attempts: view.int("max_attempts").unwrap_or(default.max_attempts),
        ..default
    }
}
