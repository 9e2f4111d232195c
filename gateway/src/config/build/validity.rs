//! When a certificate ends: the one field of X.509 that the check needs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `notAfter` of a DER certificate; none when its shape is not that of a certificate. `[RFC 5280 4.1]`
///
/// ```text
/// Certificate = SEQ { tbs = SEQ { [0] version?, serial, algorithm, issuer, SEQ { notBefore, notAfter }, ... }, ... }
/// ```
pub(super) fn not_after(der: &[u8]) -> Option<SystemTime> {
    let (certificate, _) = element(der, 0x30)?;
    let (tbs, _) = element(certificate, 0x30)?;
    let mut rest = match element(tbs, 0xa0) {
        Some((_, rest)) => rest,
        None => tbs,
    };
    for tag in [0x02, 0x30, 0x30] {
        (_, rest) = element(rest, tag)?;
    }
    let (validity, _) = element(rest, 0x30)?;
    let (_, rest) = time(validity)?;
    time(rest).map(|(end, _)| end)
}

/// The content of the first element, which has this tag, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, bytes) = bytes.split_first()?;
    if found != tag {
        return None;
    }
    let (&first, mut bytes) = bytes.split_first()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 {
            return None;
        }
        let (digits, rest) = bytes.split_at_checked(count)?;
        length = digits
            .iter()
            .fold(0, |sum, digit| (sum << 8) | usize::from(*digit));
        bytes = rest;
    }
    bytes.split_at_checked(length)
}

/// A `UTCTime` (`YYMMDDHHMMSSZ`) or `GeneralizedTime` (`YYYYMMDDHHMMSSZ`).
fn time(bytes: &[u8]) -> Option<(SystemTime, &[u8])> {
    let (year, text, rest) = if let Some((text, rest)) = element(bytes, 0x17) {
        let year = number(text.get(..2)?)?;
        (
            if year < 50 { 2000 + year } else { 1900 + year },
            text.get(2..)?,
            rest,
        )
    } else {
        let (text, rest) = element(bytes, 0x18)?;
        (number(text.get(..4)?)?, text.get(4..)?, rest)
    };
    let field = |at: usize| number(text.get(at..at + 2)?);
    let days = days_since_1970(year, field(0)?, field(2)?)?;
    let seconds = days * 86_400 + field(4)? * 3600 + field(6)? * 60 + field(8)?;
    Some((UNIX_EPOCH + Duration::from_secs(seconds), rest))
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |sum, digit| {
        digit
            .is_ascii_digit()
            .then(|| sum * 10 + u64::from(digit - b'0'))
    })
}

/// Days of the Gregorian calendar; none before 1970 or for a month that doesn't exist.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years start in March, so that the leap day is the last of its year.
    let (year, month) = if month < 3 {
        (year - 1, month + 9)
    } else {
        (year, month - 3)
    };
    let leaps = year / 4 - year / 100 + year / 400;
    let since_zero = year * 365 + leaps + (month * 153 + 2) / 5 + day - 1;
    since_zero.checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_is_right() {
        assert_eq!(days_since_1970(1970, 1, 1), Some(0));
        assert_eq!(days_since_1970(2000, 2, 29), Some(11_016));
        assert_eq!(days_since_1970(2024, 3, 1), Some(19_783));
        assert_eq!(days_since_1970(2026, 13, 1), None);
        assert_eq!(days_since_1970(1969, 12, 31), None);
    }

    #[test]
    fn both_spellings_of_a_time_are_read() {
        let utc = b"\x17\x0d240301000000Z";
        let general = b"\x18\x0f20240301000000Z";
        let expected = UNIX_EPOCH + Duration::from_secs(19_783 * 86_400);
        assert_eq!(time(utc).unwrap().0, expected);
        assert_eq!(time(general).unwrap().0, expected);
    }

    #[test]
    fn a_cut_certificate_is_no_certificate() {
        let identity = weida_identity();
        assert!(not_after(&identity).is_some());
        for end in 0..identity.len() {
            assert_eq!(not_after(&identity[..end]), None, "{end} bytes");
        }
    }

    fn weida_identity() -> Vec<u8> {
        // Outer headers, then a version, a serial, two empty sequences and a validity of two UTC times.
        let mut validity = vec![0x30, 30];
        validity.extend(b"\x17\x0d200101000000Z\x17\x0d300101000000Z");
        let mut tbs = vec![0xa0, 3, 2, 1, 2, 2, 1, 1, 0x30, 0, 0x30, 0];
        tbs.extend(validity);
        let mut inner = vec![0x30, u8::try_from(tbs.len()).unwrap()];
        inner.extend(tbs);
        let mut outer = vec![0x30, u8::try_from(inner.len()).unwrap()];
        outer.extend(inner);
        outer
    }
}
