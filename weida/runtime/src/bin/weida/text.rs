//! Text that somebody else chose, made safe for a terminal.

use std::fmt;

/// Prints with control characters escaped, so that a topic cannot move the cursor or retitle the window.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            // Bidirectional controls reorder what follows them on screen.
            let reorders = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            if c.is_control() || reorders {
                write!(f, "{}", c.escape_unicode())?;
            } else {
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Escaped;

    #[test]
    fn cli_3_escape_sequences_are_printed_escaped() {
        assert_eq!(Escaped("plant.7.ä").to_string(), "plant.7.ä");
        assert_eq!(
            Escaped("a\u{1b}]0;owned\u{7}").to_string(),
            "a\\u{1b}]0;owned\\u{7}"
        );
        assert_eq!(Escaped("a\nb\u{202e}c").to_string(), "a\\u{a}b\\u{202e}c");
    }
}
