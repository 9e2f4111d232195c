//! Durations and sizes as the file writes them: always with a unit. `[gateway.md 2.1]`

use std::time::Duration;

/// Why a text is no duration or size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnitError {
    /// A number alone.
    #[error("the unit is missing")]
    Missing,
    /// Not a number followed by a known unit.
    #[error("not a {0}")]
    Malformed(&'static str),
    /// More than 64 bits hold.
    #[error("too large")]
    TooLarge,
}

/// Reads `250ms`, `8s`, `2m`, `1h`, `7d`, also joined: `1h 30m`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    if text.parse::<f64>().is_ok() {
        return Err(UnitError::Missing);
    }
    humantime::parse_duration(text).map_err(|error| match error {
        humantime::DurationError::NumberOverflow => UnitError::TooLarge,
        _ => UnitError::Malformed("duration"),
    })
}

/// Reads `64B`, `64KiB`, `8MiB`, `2GiB`; `KB`, `MB`, `GB` are powers of 1000.
pub(crate) fn parse_size(text: &str) -> Result<u64, UnitError> {
    let text = text.trim();
    if text.parse::<f64>().is_ok() {
        return Err(UnitError::Missing);
    }
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| {
        if digits == 0 {
            UnitError::Malformed("size")
        } else {
            UnitError::TooLarge
        }
    })?;
    let factor = match unit.trim() {
        "B" => 1,
        "KB" | "kB" => 1000,
        "KiB" => bytesize::KIB,
        "MB" => bytesize::MB,
        "MiB" => bytesize::MIB,
        "GB" => bytesize::GB,
        "GiB" => bytesize::GIB,
        "TiB" => bytesize::TIB,
        _ => return Err(UnitError::Malformed("size")),
    };
    number.checked_mul(factor).ok_or(UnitError::TooLarge)
}

/// `8s`, `250ms`, `1h 30m`.
pub(crate) fn show_duration(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

/// `64KiB`, `1MiB`, or bytes when no binary unit divides it.
pub(crate) fn show_size(bytes: u64) -> String {
    for (factor, unit) in [
        (bytesize::GIB, "GiB"),
        (bytesize::MIB, "MiB"),
        (bytesize::KIB, "KiB"),
    ] {
        if bytes >= factor && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    format!("{bytes}B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("0s"), Ok(Duration::ZERO));
        for bare in ["8", "0", "1.5"] {
            assert_eq!(parse_duration(bare), Err(UnitError::Missing), "{bare}");
        }
        for odd in ["", "eight", "8 seks", "-8s", "s"] {
            assert_eq!(
                parse_duration(odd),
                Err(UnitError::Malformed("duration")),
                "{odd:?}"
            );
        }
    }

    #[test]
    fn sizes_need_a_unit_and_know_both_kinds() {
        assert_eq!(parse_size("64KiB"), Ok(65_536));
        assert_eq!(parse_size("64KB"), Ok(64_000));
        assert_eq!(parse_size("2 GiB"), Ok(2 << 30));
        assert_eq!(parse_size("0B"), Ok(0));
        assert_eq!(parse_size("1048576"), Err(UnitError::Missing));
        assert_eq!(
            parse_size("99999999999999999999MiB"),
            Err(UnitError::TooLarge)
        );
        assert_eq!(parse_size("99999999999999TiB"), Err(UnitError::TooLarge));
        for odd in ["", "KiB", "1.5MiB", "1 Mio", "1kib", "-1B"] {
            assert_eq!(
                parse_size(odd),
                Err(UnitError::Malformed("size")),
                "{odd:?}"
            );
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for bytes in [0, 1, 1000, 1024, 65_536, 1 << 20, 3 << 30] {
            assert_eq!(parse_size(&show_size(bytes)), Ok(bytes));
        }
        let time = Duration::from_millis(3_723_004);
        assert_eq!(parse_duration(&show_duration(time)), Ok(time));
    }
}
