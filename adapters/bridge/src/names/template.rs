//! Templates: how a route builds the destination's name [gateway 2.3].
//!
//! A template is a segment list of the destination space. Its literal text is native spelling; what placeholders put in is
//! one segment each (`{topic}` and `{rest}`: several), spelled once, so no value can bring a separator or a wildcard.

use std::fmt;

use super::{NameError, Space};
use crate::envelope::Meta;

/// A parsed name template of one destination space.
///
/// | Placeholder | Stands for |
/// | --- | --- |
/// | `{topic}` | every segment of the source name |
/// | `{1}`, `{2}` … | what the first, second … one-segment wildcard matched |
/// | `{rest}` | the segments that the rest wildcard matched, maybe none |
/// | `{meta.NAME}` | the first header of that name |
/// | `{user}` | the authenticated login |
/// | `{tenant}` | the tenant of the session |
///
/// `{{` and `}}` are literal braces.
///
/// ```
/// use weida_bridge::names::{Captures, Space, Template, WEIDA};
///
/// let slashes = Space::new('/').one("+").rest("#").reserve("+#\0").refuse_empty();
/// let template = Template::parse("site.{1}.{rest}", &WEIDA)?;
/// let name = template.render(&Captures::new(&slashes, "plant/+/#", "plant/7.1/temp/a"))?;
/// assert_eq!(name, "site.7%2E1.temp.a");
/// assert!(Template::parse("site.*", &WEIDA).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    space: Space,
    text: Box<str>,
    segments: Vec<Segment>,
}

impl Template {
    /// Most segments of a template.
    pub const MAX_SEGMENTS: usize = 64;

    /// Parses a template of the destination space `space` and checks what can be checked without a message.
    ///
    /// # Errors
    /// [`TemplateError`] for a malformed template, and for one whose literal text alone makes a name that the space
    /// refuses.
    pub fn parse(text: &str, space: &Space) -> Result<Self, TemplateError> {
        let mut parser = Parser {
            space,
            segments: Vec::new(),
            parts: Vec::new(),
            literal: String::new(),
        };
        parser.run(text)?;
        let segments = parser.segments;
        let template = Self {
            space: *space,
            text: text.into(),
            segments,
        };
        template.check_literals()?;
        Ok(template)
    }

    /// The template `{topic}`: the name of the source, respelled.
    #[must_use]
    pub fn identity(space: &Space) -> Self {
        Self {
            space: *space,
            text: "{topic}".into(),
            segments: vec![Segment::Topic],
        }
    }

    /// True for the template `{topic}`.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        matches!(*self.segments, [Segment::Topic])
    }

    /// The template as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The space whose names it builds.
    #[must_use]
    pub const fn space(&self) -> &Space {
        &self.space
    }

    /// The highest `{n}` it uses; 0 without any.
    #[must_use]
    pub fn highest_capture(&self) -> usize {
        self.parts()
            .map(|part| match part {
                Part::One(index) => *index,
                Part::Literal(_) | Part::Meta(_) | Part::User | Part::Tenant => 0,
            })
            .max()
            .unwrap_or(0)
    }

    /// True when it uses `{rest}`.
    #[must_use]
    pub fn uses_rest(&self) -> bool {
        self.segments
            .iter()
            .any(|segment| matches!(segment, Segment::Rest))
    }

    /// True when it uses `{user}`, so that the route needs an authenticated login.
    #[must_use]
    pub fn uses_user(&self) -> bool {
        self.parts().any(|part| matches!(part, Part::User))
    }

    /// True when it uses `{tenant}`.
    #[must_use]
    pub fn uses_tenant(&self) -> bool {
        self.parts().any(|part| matches!(part, Part::Tenant))
    }

    /// True when every message gets the same name.
    #[must_use]
    pub fn is_static(&self) -> bool {
        self.segments.iter().all(Segment::is_literal)
    }

    /// Checks the placeholders against the filter of the route's source.
    ///
    /// # Errors
    /// [`TemplateError::NoSuchCapture`] or [`TemplateError::NoRest`] when the filter captures too little.
    pub fn check_source(&self, source: &Space, filter: &str) -> Result<(), TemplateError> {
        let wildcards = source
            .split(filter)
            .filter(|segment| source.one == Some(*segment))
            .count();
        let has_rest = source
            .split(filter)
            .next_back()
            .is_some_and(|last| source.rest == Some(last))
            || (filter.is_empty() && source.empty_filter_is_all);
        let highest = self.highest_capture();
        if highest > wildcards {
            return Err(TemplateError::NoSuchCapture {
                index: highest,
                wildcards,
            });
        }
        if self.uses_rest() && !has_rest {
            return Err(TemplateError::NoRest);
        }
        Ok(())
    }

    /// Builds the name for one message.
    ///
    /// # Errors
    /// As [`Space::name_to`]; [`NameError::Missing`] for a placeholder this message has nothing for, and
    /// [`NameError::Empty`] when no segment is left.
    pub fn render(&self, captures: &Captures<'_>) -> Result<String, NameError> {
        if self.is_identity() {
            return captures.source.name_to(&self.space, captures.name);
        }
        captures.source.check_name(captures.name)?;
        let mut out = String::with_capacity(self.text.len() + captures.name.len());
        let mut segments = 0usize;
        let mut meaning = String::new();
        for segment in &self.segments {
            match segment {
                Segment::Topic => self.push_all(captures, captures.name, &mut out, &mut segments),
                Segment::Rest => {
                    if let Some(rest) = captures.rest()? {
                        self.push_all(captures, rest, &mut out, &mut segments);
                    }
                }
                Segment::Parts(parts) => {
                    meaning.clear();
                    for part in parts {
                        part.append(captures, &mut meaning)?;
                    }
                    self.separate(&mut out, &mut segments);
                    self.space.encode(&meaning, &mut out);
                }
            }
        }
        if segments == 0 {
            return Err(NameError::Empty);
        }
        self.space.check_result(&out)?;
        Ok(out)
    }

    fn push_all(
        &self,
        captures: &Captures<'_>,
        name: &str,
        out: &mut String,
        segments: &mut usize,
    ) {
        for segment in captures.source.split(name) {
            self.separate(out, segments);
            captures.source.cross(&self.space, segment, out);
        }
    }

    fn separate(&self, out: &mut String, segments: &mut usize) {
        if *segments > 0 {
            out.push(self.space.separator());
        }
        *segments += 1;
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.segments.iter().flat_map(|segment| match segment {
            Segment::Parts(parts) => &**parts,
            Segment::Topic | Segment::Rest => &[],
        })
    }

    fn check_literals(&self) -> Result<(), TemplateError> {
        let mut spelled = String::new();
        for (at, segment) in self.segments.iter().enumerate() {
            if at > 0 {
                spelled.push(self.space.separator());
            }
            if let Segment::Parts(parts) = segment {
                let mut meaning = String::new();
                for part in parts {
                    if let Part::Literal(text) = part {
                        meaning.push_str(text);
                    }
                }
                self.space.encode(&meaning, &mut spelled);
            }
        }
        if self.is_static() || spelled.len() > self.space.max_bytes {
            self.space
                .check_result(&spelled)
                .map_err(TemplateError::Name)?;
        }
        Ok(())
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What one message offers to a template: its name, the filter it matched, and who sent it.
#[derive(Debug, Clone, Copy)]
pub struct Captures<'a> {
    source: &'a Space,
    filter: &'a str,
    name: &'a str,
    meta: Option<&'a Meta>,
    user: Option<&'a str>,
    tenant: Option<&'a str>,
}

impl<'a> Captures<'a> {
    /// A name of `source` and the filter that matched it; nothing is copied.
    #[must_use]
    pub const fn new(source: &'a Space, filter: &'a str, name: &'a str) -> Self {
        Self {
            source,
            filter,
            name,
            meta: None,
            user: None,
            tenant: None,
        }
    }

    /// Adds the headers that `{meta.NAME}` reads.
    #[must_use]
    pub const fn meta(mut self, meta: &'a Meta) -> Self {
        self.meta = Some(meta);
        self
    }

    /// Adds the authenticated login. Never a foreign id.
    #[must_use]
    pub const fn user(mut self, user: Option<&'a str>) -> Self {
        self.user = user;
        self
    }

    /// Adds the tenant.
    #[must_use]
    pub const fn tenant(mut self, tenant: Option<&'a str>) -> Self {
        self.tenant = tenant;
        self
    }

    /// Appends the meaning of what the `index`-th one-segment wildcard matched, counted from 1.
    fn one(&self, index: usize, out: &mut String) -> Result<(), NameError> {
        let wanted = self.source.one.ok_or(NameError::Missing { what: "n" })?;
        let mut seen = 0;
        for (pattern, segment) in self
            .source
            .split(self.filter)
            .zip(self.source.split(self.name))
        {
            if pattern == wanted {
                seen += 1;
                if seen == index {
                    self.source.decode(segment, out);
                    return Ok(());
                }
            }
        }
        Err(NameError::Missing { what: "n" })
    }

    /// What the rest wildcard matched: `None` for no segment at all.
    fn rest(&self) -> Result<Option<&'a str>, NameError> {
        if self.filter.is_empty() && self.source.empty_filter_is_all {
            return Ok(Some(self.name));
        }
        let before = self.source.split(self.filter).count() - 1;
        if self.source.rest.is_none()
            || self.source.split(self.filter).next_back() != self.source.rest
        {
            return Err(NameError::Missing { what: "rest" });
        }
        let mut left = self.name;
        for at in 0..before {
            match left.find(self.source.separator()) {
                Some(end) => left = &left[end + 1..],
                None if at + 1 == before => return Ok(None),
                None => return Err(NameError::Missing { what: "rest" }),
            }
        }
        Ok(Some(left))
    }
}

/// A template that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// `{` without `}`, or `}` without `{`.
    #[error("a brace at byte {at} has no partner")]
    Brace {
        /// Byte offset in the template.
        at: usize,
    },
    /// A word in braces that means nothing.
    #[error("{{{word}}} is not a placeholder")]
    Unknown {
        /// What stands in the braces.
        word: String,
    },
    /// `{topic}` or `{rest}` with text beside it in one segment.
    #[error("{{{word}}} stands for several segments and must be one alone")]
    NotAlone {
        /// The placeholder.
        word: &'static str,
    },
    /// Literal text with a wildcard or with a byte that no name can hold.
    #[error("the literal segment {segment:?} cannot stand in a name")]
    Literal {
        /// The segment as written.
        segment: String,
    },
    /// More segments than [`Template::MAX_SEGMENTS`].
    #[error("more than {max} segments")]
    TooManySegments {
        /// The bound.
        max: usize,
    },
    /// The literal text alone makes no name of the space.
    #[error("the template makes no usable name")]
    Name(#[source] NameError),
    /// `{n}` with a larger n than the source filter has wildcards.
    #[error("{{{index}}} is used, the source filter has {wildcards} one-segment wildcards")]
    NoSuchCapture {
        /// The placeholder's number.
        index: usize,
        /// How many the filter has.
        wildcards: usize,
    },
    /// `{rest}` without a rest wildcard in the source filter.
    #[error("{{rest}} is used, the source filter does not end in a wildcard for the rest")]
    NoRest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Topic,
    Rest,
    Parts(Vec<Part>),
}

impl Segment {
    fn is_literal(&self) -> bool {
        match self {
            Self::Parts(parts) => parts.iter().all(|part| matches!(part, Part::Literal(_))),
            Self::Topic | Self::Rest => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// What the literal text means, not how it is spelled.
    Literal(Box<str>),
    One(usize),
    Meta(Box<str>),
    User,
    Tenant,
}

impl Part {
    fn append(&self, captures: &Captures<'_>, out: &mut String) -> Result<(), NameError> {
        let missing = |what| move || NameError::Missing { what };
        match self {
            Self::Literal(text) => out.push_str(text),
            Self::One(index) => captures.one(*index, out)?,
            Self::Meta(name) => {
                let value = captures.meta.and_then(|meta| meta.get(name));
                out.push_str(value.ok_or_else(missing("meta"))?);
            }
            Self::User => out.push_str(captures.user.ok_or_else(missing("user"))?),
            Self::Tenant => out.push_str(captures.tenant.ok_or_else(missing("tenant"))?),
        }
        Ok(())
    }
}

/// Cuts the text into segments; `parts` and `literal` are the segment in the making.
struct Parser<'s> {
    space: &'s Space,
    segments: Vec<Segment>,
    parts: Vec<RawPart>,
    literal: String,
}

enum RawPart {
    Literal(String),
    Value(Part),
    Several(&'static str, Segment),
}

impl Parser<'_> {
    fn run(&mut self, text: &str) -> Result<(), TemplateError> {
        let mut chars = text.char_indices().peekable();
        while let Some((at, char)) = chars.next() {
            match char {
                '{' | '}' if chars.peek().is_some_and(|(_, next)| *next == char) => {
                    chars.next();
                    self.literal.push(char);
                }
                '{' => {
                    let end = text[at..].find('}').ok_or(TemplateError::Brace { at })? + at;
                    self.placeholder(&text[at + 1..end])?;
                    while chars.next_if(|(next, _)| *next <= end).is_some() {}
                }
                '}' => return Err(TemplateError::Brace { at }),
                char if char == self.space.separator() => self.end_segment()?,
                char => self.literal.push(char),
            }
        }
        self.end_segment()
    }

    fn placeholder(&mut self, word: &str) -> Result<(), TemplateError> {
        self.end_literal();
        let unknown = || TemplateError::Unknown {
            word: word.to_owned(),
        };
        let part = match word {
            "topic" => RawPart::Several("topic", Segment::Topic),
            "rest" => RawPart::Several("rest", Segment::Rest),
            "user" => RawPart::Value(Part::User),
            "tenant" => RawPart::Value(Part::Tenant),
            _ => match word.strip_prefix("meta.") {
                Some(name) if !name.is_empty() && !name.contains('{') => {
                    RawPart::Value(Part::Meta(name.into()))
                }
                Some(_) => return Err(unknown()),
                None => {
                    let plain =
                        word.bytes().all(|byte| byte.is_ascii_digit()) && !word.starts_with('0');
                    let index = word
                        .parse::<usize>()
                        .ok()
                        .filter(|_| plain)
                        .ok_or_else(unknown)?;
                    RawPart::Value(Part::One(index))
                }
            },
        };
        self.parts.push(part);
        Ok(())
    }

    fn end_literal(&mut self) {
        if !self.literal.is_empty() {
            self.parts
                .push(RawPart::Literal(std::mem::take(&mut self.literal)));
        }
    }

    fn end_segment(&mut self) -> Result<(), TemplateError> {
        self.end_literal();
        if self.segments.len() >= Template::MAX_SEGMENTS {
            return Err(TemplateError::TooManySegments {
                max: Template::MAX_SEGMENTS,
            });
        }
        let raw = std::mem::take(&mut self.parts);
        let alone = raw.len() <= 1;
        let mut parts = Vec::with_capacity(raw.len());
        for part in raw {
            match part {
                RawPart::Several(_, segment) if alone => {
                    self.segments.push(segment);
                    return Ok(());
                }
                RawPart::Several(word, _) => return Err(TemplateError::NotAlone { word }),
                RawPart::Value(part) => parts.push(part),
                RawPart::Literal(text) => {
                    parts.push(Part::Literal(self.literal_meaning(text, alone)?))
                }
            }
        }
        self.segments.push(Segment::Parts(parts));
        Ok(())
    }

    fn literal_meaning(&self, text: String, whole: bool) -> Result<Box<str>, TemplateError> {
        let space = self.space;
        let wildcard =
            whole && (space.one == Some(text.as_str()) || space.rest == Some(text.as_str()));
        if wildcard || text.bytes().any(|byte| space.is_reserved(byte)) {
            return Err(TemplateError::Literal { segment: text });
        }
        let mut meaning = String::with_capacity(text.len());
        if whole {
            space.decode(&text, &mut meaning);
        } else {
            space.decode_part(&text, false, &mut meaning);
        }
        Ok(meaning.into())
    }
}
