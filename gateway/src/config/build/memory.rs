//! The most memory that clients may make this configuration hold. `[gateway.md 10] [mqtt 8.1]`

use super::super::report::Report;
use super::super::units::show_size;
use super::super::valid::{ListenKind, MqttListen};
use super::listen::Built;
use super::route::BuiltRoute;
use super::view::View;

/// Bytes waiting for the socket of one connection. `[mqtt 8.1]`
const WRITE_BUFFER_BYTES: u64 = 256 * 1024;

/// Refuses bounds that were spelled out and together exceed the memory of this machine.
///
/// Defaults are not judged: they describe what one session may take, not what a site has. `[reconciled R2]`
pub(super) fn check(
    root: &View<'_>,
    listen: &[Built],
    routes: &[BuiltRoute],
    allow_overcommit: bool,
    report: &mut Report,
) {
    let Some(memory) = machine_memory().filter(|_| !allow_overcommit) else {
        return;
    };
    let buffers: u64 = routes.iter().map(|it| it.config.buffer.bytes as u64).sum();
    for view in root.tables("listen") {
        let Some(name) = view.text("name") else {
            continue;
        };
        let own = view.table_or_empty("mqtt");
        if !view.has("max_sessions") || !own.has("queue_bytes") {
            continue;
        }
        let found = listen.iter().find(|it| *it.listen.name == *name.text);
        let Some(ListenKind::Mqtt(mqtt)) = found.map(|it| &it.listen.kind) else {
            continue;
        };
        let worst = worst_case(mqtt).saturating_add(buffers);
        if worst > memory {
            let message = format!(
                "{} sessions with {} each may hold {}, this machine has {}",
                mqtt.max_sessions,
                show_size(mqtt.queue_bytes as u64),
                about(worst),
                about(memory),
            );
            let help = "lower `max_sessions` or `mqtt.queue_bytes`, or pass `--allow-overcommit`"
                .to_owned();
            report.error(
                "E071",
                own.at("queue_bytes"),
                &own.key_path("queue_bytes"),
                message,
                help,
            );
        }
    }
}

/// Sessions times what one may hold: its queue, its write buffer and one message being read.
pub(super) fn worst_case(mqtt: &MqttListen) -> u64 {
    let one = (mqtt.queue_bytes as u64)
        .saturating_add(WRITE_BUFFER_BYTES)
        .saturating_add(mqtt.max_message_bytes as u64);
    one.saturating_mul(mqtt.max_sessions as u64)
}

pub(super) fn about(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => show_size(bytes),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

/// The limit of the control group, else the memory of the machine.
fn machine_memory() -> Option<u64> {
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok());
    let total = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("MemTotal:"))?;
            line.trim()
                .trim_end_matches("kB")
                .trim()
                .parse::<u64>()
                .ok()?
                .checked_mul(1024)
        });
    match (group, total) {
        (Some(group), Some(total)) => Some(group.min(total)),
        (group, total) => group.or(total),
    }
}
