//! The standard `process_*` series, read from `/proc/self`; on other systems there are none.

use super::page::{Page, Value};

/// Whatever the system tells; a value that cannot be read is left out rather than shown as 0.
pub(super) fn page() -> Page {
    let mut page = Page::default();
    let mut gauge = |name, help, value: Option<f64>| {
        if let Some(value) = value {
            page.add(name, help, &[], Value::Gauge(value));
        }
    };
    let stat = std::fs::read_to_string("/proc/self/stat").ok();
    let stat = stat.as_deref().and_then(Stat::parse);
    gauge(
        "process_resident_memory_bytes",
        "Resident memory size in bytes",
        resident_bytes(),
    );
    gauge(
        "process_threads",
        "Number of threads",
        stat.map(|stat| stat.threads),
    );
    gauge(
        "process_open_fds",
        "Number of open file descriptors",
        open_files(),
    );
    gauge(
        "process_max_fds",
        "Maximum number of open file descriptors",
        max_files(),
    );
    if let Some(stat) = stat {
        page.add(
            "process_cpu_seconds_total",
            "User and system time spent, in whole seconds",
            &[],
            Value::Counter(stat.cpu_ticks / TICKS_PER_SECOND),
        );
    }
    page
}

/// The kernel's unit in `/proc` is fixed for user space.
const TICKS_PER_SECOND: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Stat {
    cpu_ticks: u64,
    threads: f64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The command may hold spaces and parentheses; the fields begin behind its last one.
        let mut fields = text.rsplit_once(") ")?.1.split(' ');
        let user: u64 = fields.nth(11)?.parse().ok()?;
        let system: u64 = fields.next()?.parse().ok()?;
        let threads = fields.nth(4)?.parse().ok()?;
        Some(Self {
            cpu_ticks: user + system,
            threads,
        })
    }
}

fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a count of descriptors is small"
)]
fn open_files() -> Option<f64> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as f64)
}

fn max_files() -> Option<f64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_parentheses_is_skipped() {
        let text = "7 (a) b (c)) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 9 0 1 2 3";
        assert_eq!(
            Stat::parse(text),
            Some(Stat {
                cpu_ticks: 200,
                threads: 9.0
            })
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn gateway_6_this_process_shows() {
        assert!(resident_bytes().unwrap() > 0.0);
        assert!(open_files().unwrap() >= 3.0);
        assert!(max_files().unwrap() >= open_files().unwrap());
    }
}
