//! Filters across spaces, and what is left to check after them [gateway 2.4] [weida-runtime 22.4].

use super::{NameError, Space};

/// A filter of the target space that matches at least everything the original matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cover {
    /// The filter, in the target's spelling.
    pub filter: String,
    /// What the subscriber still has to do with each copy.
    pub obligation: Obligation,
}

/// What is left to do when a filter could only be widened.
///
/// Ordered by how much is left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obligation {
    /// Nothing: both match the same names.
    None,
    /// Drop the name that ends where the rest wildcard begins.
    DropParent,
    /// Match every copy again with the original.
    Refilter,
}

impl Space {
    /// Spells a filter in `target` and says whether it became wider.
    ///
    /// # Errors
    /// As [`filter_to`](Self::filter_to).
    pub fn cover(&self, target: &Self, filter: &str) -> Result<Cover, NameError> {
        self.check_result(filter)?;
        if filter.is_empty() {
            return self.cover_empty(target, self.empty_filter_is_all);
        }
        let mut out = String::with_capacity(filter.len() + 8);
        let mut obligation = Obligation::None;
        let mut segments = self.split(filter).peekable();
        while let Some(segment) = segments.next() {
            if self.one == Some(segment) {
                out.push_str(target.one.ok_or(NameError::NoWildcard)?);
            } else if self.rest == Some(segment) {
                if segments.peek().is_some() {
                    return Err(NameError::RestNotLast);
                }
                obligation = obligation.max(self.cover_rest(target, &mut out)?);
            } else {
                obligation = obligation.max(self.cover_literal(target, segment, &mut out)?);
            }
            if segments.peek().is_some() {
                out.push(target.separator());
            }
        }
        if out.is_empty() {
            return self.cover_empty(target, false);
        }
        target.check_result(&out)?;
        Ok(Cover {
            filter: out,
            obligation,
        })
    }

    /// Covers every name that starts with the bytes of `prefix`, for a source that subscribes by prefix.
    ///
    /// A prefix that ends at a separator covers exactly its children; any other one is widened to the enclosing
    /// separator.
    ///
    /// # Errors
    /// As [`filter_to`](Self::filter_to).
    pub fn prefix_cover(&self, target: &Self, prefix: &str) -> Result<Cover, NameError> {
        let rest = target.rest.ok_or(NameError::NoWildcard)?;
        let border = prefix.rfind(self.separator()).map_or(0, |at| at + 1);
        let obligation = match (prefix.len(), prefix.len() - border) {
            (0, _) => Obligation::None,
            (_, 0) => Obligation::DropParent,
            _ => Obligation::Refilter,
        };
        let mut out = String::with_capacity(prefix.len() + 8);
        if border > 0 {
            for segment in self.split(&prefix[..border - 1]) {
                self.cross(target, segment, &mut out);
                out.push(target.separator());
            }
        }
        out.push_str(rest);
        target.check_result(&out)?;
        Ok(Cover {
            filter: out,
            obligation,
        })
    }

    fn cover_rest(&self, target: &Self, out: &mut String) -> Result<Obligation, NameError> {
        let rest = target.rest.ok_or(NameError::NoWildcard)?;
        let misses_parent = self.rest_takes_none && !target.rest_takes_none && !out.is_empty();
        if misses_parent {
            // One level up, the target's wildcard takes the parent too, and its siblings with it.
            let above = out[..out.len() - 1]
                .rfind(target.separator())
                .map_or(0, |at| at + 1);
            out.truncate(above);
        }
        out.push_str(rest);
        Ok(
            match (
                misses_parent,
                self.rest_takes_none || !target.rest_takes_none,
            ) {
                (true, _) => Obligation::Refilter,
                (false, true) => Obligation::None,
                (false, false) => Obligation::DropParent,
            },
        )
    }

    fn cover_literal(
        &self,
        target: &Self,
        segment: &str,
        out: &mut String,
    ) -> Result<Obligation, NameError> {
        let wild = |space: &Self, text: &str| {
            space.wildcards_alone
                && [space.one, space.rest]
                    .iter()
                    .flatten()
                    .any(|word| text.contains(word))
        };
        if wild(self, segment) {
            return Err(NameError::WildcardInSegment);
        }
        if let Some(byte) = segment.bytes().find(|byte| self.is_reserved(*byte)) {
            return Err(NameError::Reserved { byte });
        }
        let start = out.len();
        self.cross(target, segment, out);
        // A name may hold a wildcard's own spelling where a filter cannot: one level wider is the narrowest that has it.
        let reads_as_wildcard = [target.one, target.rest].contains(&Some(&out[start..]));
        if reads_as_wildcard || wild(target, &out[start..]) {
            out.truncate(start);
            out.push_str(target.one.ok_or(NameError::NoWildcard)?);
            return Ok(Obligation::Refilter);
        }
        Ok(Obligation::None)
    }

    /// The empty filter, or one that comes out empty where that would mean every name.
    fn cover_empty(&self, target: &Self, meaning_all: bool) -> Result<Cover, NameError> {
        let (wildcard, obligation) = if meaning_all {
            (target.rest, Obligation::None)
        } else if target.empty_filter_is_all {
            // The empty name alone cannot be asked for there; one segment is the narrowest filter that has it.
            (target.one, Obligation::Refilter)
        } else {
            let mut filter = String::new();
            target.encode("", &mut filter);
            target.check_result(&filter)?;
            return Ok(Cover {
                filter,
                obligation: Obligation::None,
            });
        };
        let filter = wildcard.ok_or(NameError::NoWildcard)?.to_owned();
        Ok(Cover { filter, obligation })
    }
}
