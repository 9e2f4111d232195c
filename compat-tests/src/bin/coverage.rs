//! `coverage LIST JUNIT`: fails when a claimed requirement has no test that passed in this run.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command talks to its terminal"
)]

use std::process::ExitCode;

use weida_compat_tests::coverage::{
    CoverageError, MAX_ROWS_PER_TEST, judge, parse_claims, passed_tests,
};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(list), Some(junit), None) = (arguments.next(), arguments.next(), arguments.next())
    else {
        eprintln!("usage: coverage LIST JUNIT");
        return ExitCode::from(2);
    };
    match run(&list, &junit) {
        Ok(holds) => ExitCode::from(u8::from(!holds)),
        Err(error) => {
            eprintln!("coverage: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(list: &str, junit: &str) -> Result<bool, Box<dyn std::error::Error>> {
    let read =
        |path: &str| std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let claims =
        parse_claims(&read(list)?).map_err(|error: CoverageError| format!("{list}: {error}"))?;
    let passed = passed_tests(&read(junit)?)?;
    let verdict = judge(&claims, &passed);
    for row in &verdict.untested {
        println!("untested: {row}");
    }
    for (test, rows) in &verdict.overloaded {
        println!("overloaded: {test} claims {rows} rows, at most {MAX_ROWS_PER_TEST}");
    }
    println!(
        "{} rows claimed, {} tests passed, {} rows untested",
        verdict.rows,
        verdict.tests,
        verdict.untested.len()
    );
    Ok(verdict.holds())
}
