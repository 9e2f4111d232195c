//! What happened in a test: time, side, frame. Printed when the test fails.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A shared record of one test; clones write into the same one.
///
/// # Limits
/// The last [`Transcript::MAX_ENTRIES`] entries are kept, each cut at [`Transcript::MAX_FRAME_BYTES`].
#[derive(Clone)]
pub struct Transcript {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    begun: Instant,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    kept: VecDeque<Entry>,
    forgotten: u64,
}

/// One line of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Since the transcript began.
    pub at: Duration,
    /// Who did it.
    pub side: String,
    /// What it was.
    pub frame: String,
}

impl Transcript {
    /// Entries kept.
    pub const MAX_ENTRIES: usize = 20_000;
    /// Bytes kept of one entry.
    pub const MAX_FRAME_BYTES: usize = 4096;

    /// An empty transcript; `name` is its heading.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let inner = Inner {
            name: name.into(),
            begun: Instant::now(),
            entries: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Writes text down.
    pub fn note(&self, side: &str, frame: impl Into<String>) {
        let mut frame: String = frame.into();
        if frame.len() > Self::MAX_FRAME_BYTES {
            let mut end = Self::MAX_FRAME_BYTES;
            while !frame.is_char_boundary(end) {
                end -= 1;
            }
            frame.truncate(end);
            frame.push('…');
        }
        let mut entries = self.lock();
        if entries.kept.len() >= Self::MAX_ENTRIES {
            entries.kept.pop_front();
            entries.forgotten += 1;
        }
        // Read under the lock, so that times rise in the order of the entries.
        let at = self.inner.begun.elapsed();
        entries.kept.push_back(Entry {
            at,
            side: side.to_owned(),
            frame,
        });
    }

    /// Writes bytes down as hex.
    pub fn bytes(&self, side: &str, bytes: &[u8]) {
        let shown = &bytes[..bytes.len().min((Self::MAX_FRAME_BYTES - 64) / 3)];
        let hex: Vec<String> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
        let more = if shown.len() < bytes.len() {
            format!(" … {} bytes", bytes.len())
        } else {
            String::new()
        };
        self.note(side, format!("{}{more}", hex.join(" ")));
    }

    /// Every entry that is kept.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        self.lock().kept.iter().cloned().collect()
    }

    /// The frames of one side, in order.
    #[must_use]
    pub fn frames(&self, side: &str) -> Vec<String> {
        self.lock()
            .kept
            .iter()
            .filter(|entry| entry.side == side)
            .map(|entry| entry.frame.clone())
            .collect()
    }

    /// The first frame that `wanted` takes, of any side.
    #[must_use]
    pub fn find(&self, wanted: impl Fn(&Entry) -> bool) -> Option<Entry> {
        self.lock().kept.iter().find(|entry| wanted(entry)).cloned()
    }

    /// Prints the transcript when the test that holds this guard panics.
    #[must_use = "it prints when it is dropped while the test panics"]
    pub fn print_on_failure(&self) -> PrintOnFailure {
        PrintOnFailure(self.clone())
    }

    #[expect(
        clippy::print_stderr,
        reason = "a failing test shows what happened on the test's own output"
    )]
    pub(crate) fn print_if_panicking(&self) {
        if std::thread::panicking() {
            eprintln!("{self}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.inner
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.lock();
        writeln!(f, "--- transcript of {} ---", self.inner.name)?;
        if entries.forgotten > 0 {
            writeln!(f, "({} earlier entries are gone)", entries.forgotten)?;
        }
        for Entry { at, side, frame } in &entries.kept {
            writeln!(
                f,
                "{:>10.3} ms  {side:<12} {frame}",
                at.as_secs_f64() * 1000.0
            )?;
        }
        write!(f, "--- end of {} ---", self.inner.name)
    }
}

impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcript")
            .field("name", &self.inner.name)
            .field("entries", &self.lock().kept.len())
            .finish()
    }
}

/// Prints its transcript when it is dropped while a test panics.
#[derive(Debug)]
pub struct PrintOnFailure(Transcript);

impl Drop for PrintOnFailure {
    fn drop(&mut self) {
        self.0.print_if_panicking();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_shows_time_side_and_frame() {
        let transcript = Transcript::new("a test");
        transcript.note("client", "CONNECT");
        tokio::time::advance(Duration::from_millis(1500)).await;
        transcript.bytes("server", &[0x20, 0x02, 0xff]);
        assert_eq!(
            transcript.to_string(),
            "--- transcript of a test ---\n     0.000 ms  client       CONNECT\n  1500.000 ms  server       \
             20 02 ff\n--- end of a test ---"
        );
        assert_eq!(transcript.frames("server"), ["20 02 ff"]);
    }

    #[test]
    fn it_is_bounded() {
        let transcript = Transcript::new("bounded");
        for number in 0..Transcript::MAX_ENTRIES + 3 {
            transcript.note("a", number.to_string());
        }
        assert_eq!(transcript.entries().len(), Transcript::MAX_ENTRIES);
        assert_eq!(transcript.entries()[0].frame, "3");
        assert!(
            transcript
                .to_string()
                .contains("(3 earlier entries are gone)")
        );
        transcript.note("b", "é".repeat(Transcript::MAX_FRAME_BYTES));
        assert!(transcript.frames("b")[0].len() <= Transcript::MAX_FRAME_BYTES + '…'.len_utf8());
        transcript.bytes("c", &vec![7; 1 << 20]);
        assert!(transcript.frames("c")[0].ends_with(" … 1048576 bytes"));
    }
}
