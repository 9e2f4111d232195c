//! Text for whoever called: results on stdout, everything else on stderr.

use std::fmt::Display;
use std::io::Write as _;

use super::{FAILED, OK};
use crate::config::Report;
use crate::logging::colours;

/// Prints one line of result; a reader that went away is the caller's wish.
pub(super) fn out(line: impl Display) -> u8 {
    out_bytes(format!("{line}\n").as_bytes())
}

/// Prints a result as it is.
pub(super) fn out_bytes(bytes: &[u8]) -> u8 {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => OK,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => OK,
        Err(_) => FAILED,
    }
}

/// Prints one line for a person.
pub(super) fn note(line: impl Display) {
    // Nobody is left to tell when stderr is gone.
    let _: std::io::Result<()> = writeln!(std::io::stderr().lock(), "{line}");
}

/// Prints `error: ...` with every cause, and returns the exit code of a failed command.
pub(super) fn fail(error: &dyn std::error::Error) -> u8 {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    fail_with(text)
}

/// Prints `error: ...`, and returns the exit code of a failed command.
pub(super) fn fail_with(text: impl Display) -> u8 {
    let word = if colours() {
        "\x1b[1;31merror:\x1b[0m"
    } else {
        "error:"
    };
    note(format!("{word} {text}"));
    FAILED
}

/// Prints findings and how many there are.
pub(super) fn report(report: &Report) {
    let text = report.to_text(colours());
    let mut stderr = std::io::stderr().lock();
    // Nobody is left to tell when stderr is gone.
    let _: std::io::Result<()> = stderr.write_all(text.as_bytes());
    let (errors, warnings) = report.counts();
    if errors + warnings > 0 {
        let _: std::io::Result<()> = writeln!(stderr, "{}", counted(errors, warnings));
    }
}

/// `2 errors, 1 warning`.
pub(super) fn counted(errors: usize, warnings: usize) -> String {
    let plural =
        |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    match (errors, warnings) {
        (errors, 0) => plural(errors, "error"),
        (0, warnings) => plural(warnings, "warning"),
        (errors, warnings) => format!(
            "{}, {}",
            plural(errors, "error"),
            plural(warnings, "warning")
        ),
    }
}
