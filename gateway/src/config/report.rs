//! Findings about a configuration, shown all at once. `[gateway.md 2.1]`
//!
//! ```text
//! gateway.toml:4:1: error[E003]: unknown key `bnid`
//!    4 | bnid = "127.0.0.1:1883"
//!      | ^^^^
//!    = help: did you mean `bind`?
//! ```

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;

use super::tree::Origin;

/// Texts of the files that were read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    files: Vec<(PathBuf, String)>,
}

impl Sources {
    pub(crate) fn add(&mut self, path: PathBuf, text: String) -> usize {
        self.files.push((path, text));
        self.files.len() - 1
    }

    pub(crate) fn text(&self, file: usize) -> &str {
        self.files.get(file).map_or("", |(_, text)| text)
    }

    fn name(&self, file: usize) -> String {
        self.files
            .get(file)
            .map_or_else(String::new, |(path, _)| path.display().to_string())
    }
}

/// Whether a finding stops the process from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It does.
    Error,
    /// It doesn't; `check --strict` makes it an error.
    Warning,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable code: `E003`, `W001`; listed in `docs/configuration.md`.
    pub code: &'static str,
    /// Error or warning.
    pub severity: Severity,
    /// File, or `$NAME` of an environment variable; empty for the whole configuration.
    pub file: String,
    /// 1-based line, 0 without one.
    pub line: usize,
    /// 1-based column in characters, 0 without one.
    pub col: usize,
    /// Key path: `route.in.to.pattern`; empty for the whole configuration.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    #[serde(skip)]
    excerpt: Option<Excerpt>,
}

/// The source line a finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    line: String,
    before: String,
    carets: usize,
}

/// Everything found in one configuration, in the order of files and lines.
#[derive(Debug, Clone, Default)]
pub struct Report {
    sources: Sources,
    findings: Vec<Finding>,
}

impl Report {
    /// What was found.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether any finding is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }

    /// How many errors and warnings.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let errors = self
            .findings
            .iter()
            .filter(|it| it.severity == Severity::Error)
            .count();
        (errors, self.findings.len() - errors)
    }

    /// Turns warnings into errors.
    #[must_use]
    pub fn strict(mut self) -> Self {
        for finding in &mut self.findings {
            finding.severity = Severity::Error;
        }
        self
    }

    /// For people: a block per finding, with colours when asked for.
    #[must_use]
    pub fn to_text(&self, colours: bool) -> String {
        let mut out = String::new();
        for finding in &self.findings {
            finding.write_text(&mut out, &Paint { on: colours });
        }
        out
    }

    /// For scripts: an array of `{code, severity, file, line, col, path, message, help}`.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.findings)
            .expect("strings and numbers always become JSON")
    }

    pub(crate) fn add_source(&mut self, path: PathBuf, text: String) -> usize {
        self.sources.add(path, text)
    }

    pub(crate) fn error(
        &mut self,
        code: &'static str,
        at: &Origin,
        path: &str,
        message: impl Into<String>,
        help: impl Into<Option<String>>,
    ) {
        self.push(code, Severity::Error, at, path, message.into(), help.into());
    }

    pub(crate) fn warn(
        &mut self,
        code: &'static str,
        at: &Origin,
        path: &str,
        message: impl Into<String>,
        help: impl Into<Option<String>>,
    ) {
        self.push(
            code,
            Severity::Warning,
            at,
            path,
            message.into(),
            help.into(),
        );
    }

    /// A finding about a key whose value must not be repeated: the excerpt ends after the key.
    pub(crate) fn about_secret(
        &mut self,
        code: &'static str,
        severity: Severity,
        at: &Origin,
        path: &str,
        message: impl Into<String>,
        help: impl Into<Option<String>>,
    ) {
        let before = self.findings.len();
        self.push(code, severity, at, path, message.into(), help.into());
        for finding in &mut self.findings[before..] {
            if let Some(excerpt) = &mut finding.excerpt {
                let shown = excerpt.before.chars().count() + excerpt.carets;
                excerpt.line = excerpt.line.chars().take(shown).collect::<String>() + " = [hidden]";
            }
        }
    }

    fn push(
        &mut self,
        code: &'static str,
        severity: Severity,
        at: &Origin,
        path: &str,
        message: String,
        help: Option<String>,
    ) {
        let (file, line, col, excerpt) = match at {
            Origin::File { file, span } => {
                let (line, col, excerpt) = locate(self.sources.text(*file), span.start, span.end);
                (self.sources.name(*file), line, col, Some(excerpt))
            }
            Origin::Env(name) => (format!("${name}"), 0, 0, None),
            Origin::Whole => {
                let name = if self.sources.files.is_empty() {
                    String::new()
                } else {
                    self.sources.name(0)
                };
                (name, 0, 0, None)
            }
        };
        let path = path.to_owned();
        let finding = Finding {
            code,
            severity,
            file,
            line,
            col,
            path,
            message,
            help,
            excerpt,
        };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Puts findings into the order in which a person meets them.
    pub(crate) fn sort(&mut self) {
        let order: Vec<String> = self
            .sources
            .files
            .iter()
            .map(|(path, _)| path.display().to_string())
            .collect();
        self.findings.sort_by_key(|finding| {
            let file = order
                .iter()
                .position(|name| *name == finding.file)
                .unwrap_or(order.len());
            (file, finding.line, finding.col)
        });
    }
}

impl Finding {
    fn write_text(&self, out: &mut String, paint: &Paint) {
        let word = match self.severity {
            Severity::Error => paint.red(&format!("error[{}]", self.code)),
            Severity::Warning => paint.yellow(&format!("warning[{}]", self.code)),
        };
        let place = match (self.file.is_empty(), self.line) {
            (true, _) => String::new(),
            (false, 0) => format!("{}: ", self.file),
            (false, line) => format!("{}:{line}:{}: ", self.file, self.col),
        };
        // Writing to a string cannot fail.
        let _: std::fmt::Result = writeln!(out, "{}{word}: {}", paint.bold(&place), self.message);
        if let Some(Excerpt {
            line,
            before,
            carets,
        }) = &self.excerpt
        {
            let mark = paint.red(&"^".repeat(*carets));
            let _: std::fmt::Result = writeln!(out, "{:>5} | {line}", self.line);
            let _: std::fmt::Result = writeln!(out, "      | {before}{mark}");
        }
        if let Some(help) = &self.help {
            let _: std::fmt::Result = writeln!(out, "      = {} {help}", paint.bold("help:"));
        }
    }
}

/// Colours, or none.
struct Paint {
    on: bool,
}

impl Paint {
    fn wrap(&self, code: &str, text: &str) -> String {
        if self.on && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    fn red(&self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    fn yellow(&self, text: &str) -> String {
        self.wrap("1;33", text)
    }

    fn bold(&self, text: &str) -> String {
        self.wrap("1", text)
    }
}

/// Line, column and source line of the bytes `start..end`; control characters of the file never reach a terminal.
fn locate(text: &str, start: usize, end: usize) -> (usize, usize, Excerpt) {
    let start = floor(text, start);
    let end = floor(text, end).max(start);
    let head = &text[..start];
    let line_start = head.rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let line = head.matches('\n').count() + 1;
    let col = text[line_start..start].chars().count() + 1;
    let visible = |text: &str| -> String {
        text.chars()
            .map(|c| {
                if c.is_control() && c != '\t' {
                    '\u{fffd}'
                } else {
                    c
                }
            })
            .collect()
    };
    let carets = text[start..end.min(line_end)].chars().count().max(1);
    let before = text[line_start..start]
        .chars()
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    let line_text = text[line_start..line_end].trim_end_matches('\r');
    (
        line,
        col,
        Excerpt {
            line: visible(line_text),
            before,
            carets,
        },
    )
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The word of `known` nearest to `word`, when it is at most two edits away.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 2 && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_points_at_its_characters() {
        let (line, col, excerpt) = locate("a = 1\nä = \"x\"\r\nb = 2", 11, 14);
        assert_eq!((line, col), (2, 5));
        assert_eq!(excerpt.line, "ä = \"x\"");
        assert_eq!((excerpt.before.as_str(), excerpt.carets), ("    ", 3));
    }

    #[test]
    fn places_outside_the_text_do_not_panic() {
        for text in ["", "a", "ä"] {
            for start in 0..4 {
                for end in 0..4 {
                    locate(text, start, end);
                }
            }
        }
    }

    #[test]
    fn a_control_character_is_not_repeated_on_a_terminal() {
        assert!(!locate("x = \"\x1b[2J\"", 0, 1).2.line.contains('\x1b'));
    }

    #[test]
    fn suggestions_are_near() {
        assert_eq!(nearest("bnid", ["bind", "name"]), Some("bind"));
        assert_eq!(nearest("colour", ["bind", "name"]), None);
        assert_eq!(
            nearest("x", ["to"]),
            None,
            "two letters replaced is another word"
        );
    }
}
