//! Matches the committed list of claimed requirements to the tests that ran.
//!
//! A requirement is a row of a specification table, written as the test names write it: `s8_2`, `wire_r31`, `cn_4`. It may stand
//! in the name of the module around the tests, where one body runs in several roles.
//! A test claims a row when the row stands in its name, bounded by `_`, `::` or the end: the row `s8_2` is claimed by
//! `s8_2_identity_comes_from_the_transport` and not by `s8_21_nothing_is_retained`. A row whose test is named otherwise says which
//! test it means: `done_when_1 = scenario::mqtt_to_weida`.

use std::collections::BTreeMap;

use quick_junit::{Report, TestCaseStatus};

/// One test may stand for at most this many rows; a test that claims more proves none of them closely.
pub const MAX_ROWS_PER_TEST: usize = 5;

/// One claimed requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The row as test names write it.
    pub row: String,
    /// The end of the full name of the test that proves it, where the row does not stand in the name.
    pub test: Option<String>,
}

/// What is wrong with a run, one line each; empty when every claim holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Claimed rows.
    pub rows: usize,
    /// Tests that passed in this run.
    pub tests: usize,
    /// Rows that no passing test claims.
    pub untested: Vec<String>,
    /// Tests that claim more than [`MAX_ROWS_PER_TEST`] rows, with their number.
    pub overloaded: Vec<(String, usize)>,
}

impl Verdict {
    /// True when every claim holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.untested.is_empty() && self.overloaded.is_empty()
    }
}

/// Why the inputs could not be judged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CoverageError {
    /// A line of the list is neither a row nor `row = test`.
    #[error(
        "line {line}: '{text}' is not a row: use lower-case words joined by '_', or 'row = test'"
    )]
    BadLine {
        /// Line number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// A row stands twice in the list.
    #[error("line {line}: row '{row}' is claimed twice")]
    Twice {
        /// Line number of the second one.
        line: usize,
        /// The row.
        row: String,
    },
    /// The list claims nothing.
    #[error("the list claims no row")]
    Empty,
    /// The report of the test run cannot be read.
    #[error("the test report cannot be read")]
    Report(#[from] quick_junit::DeserializeError),
}

/// Reads the list. `#` starts a comment.
///
/// # Errors
///
/// [`CoverageError::BadLine`], [`CoverageError::Twice`] and [`CoverageError::Empty`].
pub fn parse_claims(list: &str) -> Result<Vec<Claim>, CoverageError> {
    let mut seen = BTreeMap::new();
    let mut claims = Vec::new();
    for (index, text) in list.lines().enumerate() {
        let line = index + 1;
        let content = text.split('#').next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        let (row, test) = match content.split_once('=') {
            Some((row, test)) => (row.trim(), Some(test.trim().to_owned())),
            None => (content, None),
        };
        let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        if row.is_empty() || !row.bytes().all(legal) || test.as_deref() == Some("") {
            return Err(CoverageError::BadLine {
                line,
                text: text.to_owned(),
            });
        }
        if seen.insert(row.to_owned(), line).is_some() {
            return Err(CoverageError::Twice {
                line,
                row: row.to_owned(),
            });
        }
        claims.push(Claim {
            row: row.to_owned(),
            test,
        });
    }
    if claims.is_empty() {
        Err(CoverageError::Empty)
    } else {
        Ok(claims)
    }
}

/// Full names of the tests that ran and passed, out of a JUnit report.
///
/// # Errors
///
/// [`CoverageError::Report`].
pub fn passed_tests(junit: &str) -> Result<Vec<String>, CoverageError> {
    let report = Report::deserialize_from_str(junit)?;
    let mut names = Vec::new();
    for suite in &report.test_suites {
        for case in &suite.test_cases {
            if matches!(case.status, TestCaseStatus::Success { .. }) {
                names.push(format!("{}::{}", suite.name.as_str(), case.name.as_str()));
            }
        }
    }
    Ok(names)
}

/// Judges the run.
#[must_use]
pub fn judge(claims: &[Claim], passed: &[String]) -> Verdict {
    let mut verdict = Verdict {
        rows: claims.len(),
        tests: passed.len(),
        ..Verdict::default()
    };
    let mut claimed_by: BTreeMap<&str, usize> = BTreeMap::new();
    for claim in claims {
        let mut found = false;
        for name in passed {
            let hit = match &claim.test {
                Some(test) => ends_at_boundary(name, test),
                None => claims_row(name, &claim.row),
            };
            if hit {
                found = true;
                *claimed_by.entry(name).or_default() += 1;
            }
        }
        if !found {
            verdict.untested.push(claim.row.clone());
        }
    }
    verdict.overloaded = claimed_by
        .into_iter()
        .filter(|(_, rows)| *rows > MAX_ROWS_PER_TEST)
        .map(|(name, rows)| (name.to_owned(), rows))
        .collect();
    verdict
}

/// Whether `row` stands in the name of the test or of a module around it, bounded on both sides.
fn claims_row(name: &str, row: &str) -> bool {
    name.split("::").any(|segment| stands_in(segment, row))
}

fn stands_in(segment: &str, row: &str) -> bool {
    let mut from = 0;
    while let Some(at) = segment[from..].find(row) {
        let start = from + at;
        let end = start + row.len();
        let bounded_left = start == 0 || segment.as_bytes()[start - 1] == b'_';
        let bounded_right = end == segment.len() || segment.as_bytes()[end] == b'_';
        if bounded_left && bounded_right {
            return true;
        }
        from = start + 1;
    }
    false
}

fn ends_at_boundary(name: &str, test: &str) -> bool {
    name.strip_suffix(test)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_row_is_claimed_by_the_name_of_a_test_that_passed() {
        let claims = parse_claims("s8_2\nwire_r3 # a comment\n").unwrap();
        let passed = names(&["weida::s8_2_from_the_transport::server", "p::wire_r3"]);
        assert!(judge(&claims, &passed).holds());
    }

    #[test]
    fn a_longer_number_does_not_claim_a_shorter_one() {
        let claims = parse_claims("s8_2").unwrap();
        let passed = names(&["t::s8_21_nothing_is_retained", "t::xs8_2", "s8_22::other"]);
        assert_eq!(judge(&claims, &passed).untested, ["s8_2"]);
    }

    #[test]
    fn one_test_cannot_stand_for_six_rows() {
        let claims = parse_claims("a_1\na_2\na_3\na_4\na_5\na_6").unwrap();
        let passed = names(&["t::a_1_a_2_a_3_a_4_a_5_a_6"]);
        let verdict = judge(&claims, &passed);
        assert!(verdict.untested.is_empty());
        assert_eq!(
            verdict.overloaded,
            [("t::a_1_a_2_a_3_a_4_a_5_a_6".to_owned(), 6)]
        );
        assert!(judge(&claims[..5], &passed).holds());
    }

    #[test]
    fn a_named_test_proves_its_row_only_when_it_ran() {
        let claims = parse_claims("done_when_1 = scenario::crosses").unwrap();
        assert!(judge(&claims, &names(&["compat::scenario::crosses"])).holds());
        assert!(!judge(&claims, &names(&["compat::scenario::not_crosses"])).holds());
        assert!(!judge(&claims, &names(&["compat::other"])).holds());
    }

    #[test]
    fn skipped_and_failed_tests_prove_nothing() {
        let junit = r#"<?xml version="1.0" encoding="UTF-8"?>
            <testsuites name="run" tests="3" failures="1" errors="0">
              <testsuite name="kit" tests="3" disabled="1" errors="0" failures="1">
                <testcase name="a_1_passes" classname="kit"></testcase>
                <testcase name="a_2_fails" classname="kit"><failure type="x"/></testcase>
                <testcase name="a_3_skipped" classname="kit"><skipped/></testcase>
              </testsuite>
            </testsuites>"#;
        assert_eq!(passed_tests(junit).unwrap(), ["kit::a_1_passes"]);
    }

    #[test]
    fn a_broken_list_is_refused_with_its_line() {
        let error = parse_claims("s8_2\nS8-3\n").unwrap_err();
        assert!(matches!(error, CoverageError::BadLine { line: 2, .. }));
        let error = parse_claims("s8_2\n\ns8_2\n").unwrap_err();
        assert!(matches!(error, CoverageError::Twice { line: 3, .. }));
        assert!(matches!(
            parse_claims("# nothing\n").unwrap_err(),
            CoverageError::Empty
        ));
    }
}
