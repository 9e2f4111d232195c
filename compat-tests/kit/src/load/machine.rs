//! Where a number was measured.

use std::fmt;
use std::fs;
use std::process::Command;

/// The machine, its load before the run, and the commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Processors this process may use.
    pub cpus: usize,
    /// Name of the processor.
    pub cpu: String,
    /// Memory, in bytes; 0 when unknown.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// Load average of the last minute, five and fifteen.
    pub load: [f64; 3],
    /// Short commit, with `+` when the tree has changes; empty outside a repository.
    pub commit: String,
    /// True without debug assertions.
    pub release: bool,
}

impl Machine {
    /// Looks around.
    #[must_use]
    pub fn look() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let value_of = |text: &str, key: &str| {
            let line = text.lines().find(|line| line.starts_with(key));
            line.and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim().to_owned())
        };
        let memory = value_of(&read("/proc/meminfo"), "MemTotal");
        let memory_kib: u64 = memory
            .and_then(|text| text.split(' ').next()?.parse().ok())
            .unwrap_or(0);
        let mut load = [0.0; 3];
        for (slot, word) in load.iter_mut().zip(read("/proc/loadavg").split(' ')) {
            *slot = word.parse().unwrap_or(0.0);
        }
        Self {
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            cpu: value_of(&read("/proc/cpuinfo"), "model name")
                .unwrap_or_else(|| "unknown".to_owned()),
            memory_bytes: memory_kib * 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load,
            commit: commit(),
            release: !cfg!(debug_assertions),
        }
    }

    /// For a report file.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "cpus": self.cpus,
            "cpu": self.cpu,
            "memory_bytes": self.memory_bytes,
            "kernel": self.kernel,
            "load": self.load,
            "commit": self.commit,
            "release": self.release,
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} x {}, {} MiB, Linux {}, load {:.2} {:.2} {:.2}, commit {}, {} build",
            self.cpus,
            self.cpu,
            self.memory_bytes >> 20,
            self.kernel,
            self.load[0],
            self.load[1],
            self.load[2],
            if self.commit.is_empty() {
                "unknown"
            } else {
                &self.commit
            },
            if self.release { "release" } else { "debug" },
        )
    }
}

fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git")
            .args(args)
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else {
        return String::new();
    };
    let dirty =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|out| !out.is_empty());
    commit + if dirty { "+" } else { "" }
}
