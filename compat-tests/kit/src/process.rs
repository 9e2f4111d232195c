//! Real processes: started ready, recorded, and gone on drop.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::transcript::Transcript;
use crate::wait::{eventually, eventually_some};

mod binary;

pub use binary::{MissingBin, bin};

/// A running child with its output recorded. Dropping it sends SIGTERM, waits, sends SIGKILL to that very process, and
/// waits again: afterwards its pid is gone.
///
/// Its working directory is a temporary one of its own unless another was given. When a test panics, its transcript is
/// printed.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    readers: Vec<JoinHandle<()>>,
    transcript: Transcript,
    grace: Duration,
    dir: Option<tempfile::TempDir>,
    cwd: PathBuf,
}

/// How to start a process. Made by [`Process::builder`].
#[must_use]
pub struct ProcessBuilder {
    program: OsString,
    args: Vec<OsString>,
    envs: Vec<(OsString, OsString)>,
    cwd: Option<PathBuf>,
    ready: Ready,
    ready_within: Duration,
    grace: Duration,
}

/// When a started process counts as ready.
pub enum Ready {
    /// At once.
    Started,
    /// A line of stdout or stderr holds this text.
    Line(String),
    /// A TCP connect succeeds.
    Port(SocketAddr),
    /// The check says so; it sees what was printed so far.
    Check(Box<dyn FnMut(&Transcript) -> bool + Send>),
}

impl Process {
    /// Starts to describe a process; arguments go in as they are, no shell reads them.
    pub fn builder(program: impl AsRef<OsStr>) -> ProcessBuilder {
        ProcessBuilder {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            envs: Vec::new(),
            cwd: None,
            ready: Ready::Started,
            ready_within: Duration::from_secs(10),
            grace: Duration::from_secs(3),
        }
    }

    /// Its process id. Valid while this value lives: the process is reaped only here.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its working directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.cwd
    }

    /// What it printed, with sides `out` and `err`.
    #[must_use]
    pub const fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The lines of its stdout so far.
    #[must_use]
    pub fn stdout(&self) -> Vec<String> {
        self.transcript.frames(OUT)
    }

    /// The lines of its stderr so far.
    #[must_use]
    pub fn stderr(&self) -> Vec<String> {
        self.transcript.frames(ERR)
    }

    /// The first line, of either output, that holds `text`; `None` when there is none within the time.
    pub async fn line(&self, text: &str, within: Duration) -> Option<String> {
        eventually_some(
            || {
                let found = self
                    .transcript
                    .find(|entry| entry.side != KIT && entry.frame.contains(text));
                std::future::ready(found.map(|entry| entry.frame))
            },
            within,
        )
        .await
    }

    /// Writes to its stdin.
    ///
    /// # Errors
    /// When it was closed, by us or by the process.
    pub fn write_stdin(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        stdin.write_all(bytes)?;
        stdin.flush()
    }

    /// Closes its stdin.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Sends a signal to this very process.
    ///
    /// # Errors
    /// When it ended already, or the signal cannot be sent.
    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        if self.child.try_wait()?.is_some() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the process ended before the signal",
            ));
        }
        self.transcript.note(KIT, format!("SIG{}", signal.name()));
        // Not reaped yet, so the pid cannot be somebody else's. The shell has `kill` built in everywhere.
        let sent = Command::new("/bin/sh")
            .args([
                "-c",
                r#"kill -s "$1" "$2""#,
                "kill",
                signal.name(),
                &self.pid().to_string(),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        if sent.success() {
            Ok(())
        } else {
            Err(io::Error::other("the signal was not sent"))
        }
    }

    /// Its exit status once it ended; `None` when it runs on after the time.
    ///
    /// # Errors
    /// When the system cannot say.
    pub async fn wait(&mut self, within: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait()? {
                self.join_readers();
                return Ok(Some(status));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// True while it runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it to end with SIGTERM and waits; SIGKILL after `within`. The status says which of the two ended it.
    ///
    /// # Errors
    /// When it ended before, or cannot be signalled.
    pub async fn stop(&mut self, within: Duration) -> io::Result<ExitStatus> {
        self.signal(Signal::Term)?;
        if let Some(status) = self.wait(within).await? {
            return Ok(status);
        }
        self.kill()
    }

    /// Ends it with SIGKILL.
    ///
    /// # Errors
    /// When the system cannot say how it ended.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        self.transcript.note(KIT, "SIGKILL");
        self.child.kill()?;
        let status = self.child.wait()?;
        self.join_readers();
        Ok(status)
    }

    /// The largest resident set it ever had, in bytes.
    ///
    /// # Errors
    /// When the system does not say; after it ended it never does.
    pub fn peak_resident_bytes(&self) -> io::Result<u64> {
        self.status_kib("VmHWM:").map(|kib| kib * 1024)
    }

    /// The resident set it has now, in bytes.
    ///
    /// # Errors
    /// As [`peak_resident_bytes`](Self::peak_resident_bytes).
    pub fn resident_bytes(&self) -> io::Result<u64> {
        self.status_kib("VmRSS:").map(|kib| kib * 1024)
    }

    fn status_kib(&self, key: &str) -> io::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse().ok())
            .ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::NotFound,
                    "the process has no memory any more",
                )
            })
    }

    fn join_readers(&mut self) {
        for reader in self.readers.drain(..) {
            // A grandchild may hold the pipe open; its output is not worth hanging for.
            let waited = Duration::from_millis(500);
            let mut left = waited.as_millis() / POLL.as_millis();
            while !reader.is_finished() && left > 0 {
                std::thread::park_timeout(POLL);
                left -= 1;
            }
            if reader.is_finished() {
                let _: Result<(), _> = reader.join(); // a reader that panicked has nothing more to say
            }
        }
    }

    fn end(&mut self) {
        self.stdin = None;
        if matches!(self.child.try_wait(), Ok(None)) && self.signal(Signal::Term).is_ok() {
            let _: io::Result<()> = self.signal(Signal::Cont); // a frozen process hears SIGTERM only when it goes on
            let mut left = self.grace.as_millis() / POLL.as_millis();
            while left > 0 && matches!(self.child.try_wait(), Ok(None)) {
                std::thread::park_timeout(POLL);
                left -= 1;
            }
        }
        let _: io::Result<()> = self.child.kill(); // ended already, or ends now
        let _: io::Result<ExitStatus> = self.child.wait();
        self.join_readers();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
        self.transcript.print_if_panicking();
        if let Some(dir) = self.dir.take()
            && let Err(left) = dir.close()
        {
            self.transcript
                .note(KIT, format!("its directory stays: {left}"));
        }
    }
}

impl ProcessBuilder {
    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable of its environment, which is ours otherwise.
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.envs
            .push((key.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets its working directory instead of a temporary one.
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cwd = Some(dir.into());
        self
    }

    /// When it counts as ready; by default at once.
    pub fn ready(mut self, ready: Ready) -> Self {
        self.ready = ready;
        self
    }

    /// How long it may take to become ready; 10 s by default.
    pub fn ready_within(mut self, within: Duration) -> Self {
        self.ready_within = within;
        self
    }

    /// How long it has between SIGTERM and SIGKILL on drop; 3 s by default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// [`SpawnError`]; what the process printed is in its text.
    ///
    /// # Cancel safety
    /// Dropped before it is done, the process is ended.
    pub async fn spawn(self) -> Result<Process, SpawnError> {
        let name = Path::new(&self.program)
            .file_name()
            .map_or_else(|| self.program.to_string_lossy(), OsStr::to_string_lossy)
            .into_owned();
        let start = |source| SpawnError::Start {
            program: name.clone(),
            source,
        };
        let dir = match self.cwd {
            Some(_) => None,
            None => Some(
                tempfile::Builder::new()
                    .prefix("weida-kit-")
                    .tempdir()
                    .map_err(start)?,
            ),
        };
        let cwd = match (&self.cwd, &dir) {
            (Some(cwd), _) => cwd.clone(),
            (None, Some(dir)) => dir.path().to_owned(),
            (None, None) => PathBuf::from("."),
        };
        let transcript = Transcript::new(&name);
        let mut child = Command::new(&self.program)
            .args(&self.args)
            .envs(self.envs)
            .current_dir(&cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(start)?;
        let stdin = child.stdin.take();
        let mut readers = Vec::new();
        readers.extend(
            child
                .stdout
                .take()
                .map(|pipe| record(pipe, OUT, transcript.clone())),
        );
        readers.extend(
            child
                .stderr
                .take()
                .map(|pipe| record(pipe, ERR, transcript.clone())),
        );
        transcript.note(KIT, format!("pid {}", child.id()));
        let mut process = Process {
            name,
            child,
            stdin,
            readers,
            transcript,
            grace: self.grace,
            dir,
            cwd,
        };
        process.become_ready(self.ready, self.ready_within).await?;
        Ok(process)
    }
}

impl Process {
    async fn become_ready(&mut self, mut ready: Ready, within: Duration) -> Result<(), SpawnError> {
        let deadline = Instant::now() + within;
        loop {
            let is_ready = match &mut ready {
                Ready::Started => true,
                Ready::Line(text) => self
                    .transcript
                    .find(|entry| entry.side != KIT && entry.frame.contains(&*text))
                    .is_some(),
                Ready::Port(addr) => TcpStream::connect(*addr).await.is_ok(),
                Ready::Check(check) => check(&self.transcript),
            };
            if is_ready {
                return Ok(());
            }
            let text = || self.transcript.to_string();
            if let Ok(Some(status)) = self.child.try_wait() {
                self.join_readers();
                let (program, transcript) = (self.name.clone(), self.transcript.to_string());
                return Err(SpawnError::Ended {
                    program,
                    status,
                    transcript,
                });
            }
            if Instant::now() >= deadline {
                return Err(SpawnError::NotReady {
                    program: self.name.clone(),
                    within,
                    transcript: text(),
                });
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

impl fmt::Debug for ProcessBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessBuilder")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started => f.write_str("Started"),
            Self::Line(text) => f.debug_tuple("Line").field(text).finish(),
            Self::Port(addr) => f.debug_tuple("Port").field(addr).finish(),
            Self::Check(_) => f.write_str("Check"),
        }
    }
}

/// A signal of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Please end.
    Term,
    /// As Ctrl-C.
    Int,
    /// Reload.
    Hup,
    /// End with a dump.
    Quit,
    /// Freeze.
    Stop,
    /// Go on.
    Cont,
    /// End now.
    Kill,
}

impl Signal {
    const fn name(self) -> &'static str {
        match self {
            Self::Term => "TERM",
            Self::Int => "INT",
            Self::Hup => "HUP",
            Self::Quit => "QUIT",
            Self::Stop => "STOP",
            Self::Cont => "CONT",
            Self::Kill => "KILL",
        }
    }
}

/// A process that did not become ready.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// It could not be started; not installed, most often.
    #[error("{program} cannot be started")]
    Start {
        /// File name of the program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// It ended before it was ready.
    #[error("{program} ended before it was ready: {status}\n{transcript}")]
    Ended {
        /// File name of the program.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// What it printed.
        transcript: String,
    },
    /// It runs and is not ready; it was ended.
    #[error("{program} is not ready after {within:?}\n{transcript}")]
    NotReady {
        /// File name of the program.
        program: String,
        /// The time it had.
        within: Duration,
        /// What it printed.
        transcript: String,
    },
}

fn record(
    pipe: impl Read + Send + 'static,
    side: &'static str,
    transcript: Transcript,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut lines = BufReader::new(pipe);
        let mut line = Vec::new();
        // Bounded per line: a process that never ends one must not fill our memory.
        while let Ok(1..) = lines.by_ref().take(64 * 1024).read_until(b'\n', &mut line) {
            let text = String::from_utf8_lossy(&line);
            transcript.note(side, text.trim_end_matches(['\n', '\r']));
            line.clear();
        }
    })
}

/// Waits until no process with this pid is there; for tests that an end was an end.
#[must_use = "it says whether the process is gone"]
pub async fn is_gone(pid: u32, within: Duration) -> bool {
    eventually(|| !Path::new(&format!("/proc/{pid}")).exists(), within).await
}

const OUT: &str = "out";
const ERR: &str = "err";
const KIT: &str = "kit";
const POLL: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
