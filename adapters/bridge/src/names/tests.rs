//! Golden vectors and laws. The foreign spaces are data of these tests alone; each adapter brings its own.

use proptest::prelude::*;

use super::*;

const MQTT: Space = Space::new('/')
    .one("+")
    .rest("#")
    .reserve("+#\0")
    .refuse_empty()
    .max_bytes(65_535);
const NATS: Space = Space::new('.')
    .one("*")
    .rest(">")
    .rest_needs_one()
    .reserve(
        "\0\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\
         \x18\x19\x1a\x1b\x1c\x1d\x1e\x1f \x7f",
    )
    .reserve_whole(&["*", ">"])
    .refuse_empty()
    .spell_empty();
const AMQP: Space = Space::new('.').one("*").rest("#").max_bytes(255);
const ZMQ: Space = Space::new('.');

const SPACES: [&Space; 5] = [&WEIDA, &MQTT, &NATS, &AMQP, &ZMQ];

/// Checks `name` of `source` against its spelling in `target`, and the way back.
fn check(source: &Space, name: &str, target: &Space, spelled: &str) {
    assert_eq!(
        source.name_to(target, name).as_deref(),
        Ok(spelled),
        "{name:?} there"
    );
    assert_eq!(
        target.name_to(source, spelled).as_deref(),
        Ok(name),
        "{spelled:?} back"
    );
    assert!(
        source.is_canonical(name) && target.is_canonical(spelled),
        "{name:?} {spelled:?}"
    );
}

#[test]
fn mqtt_10_golden_vectors() {
    let rows = [
        ("a/b/c", "a.b.c"),
        ("/a//b/", ".a..b."),
        ("/", "."),
        ("spBv1.0/G/NDATA/n 1", "spBv1%2E0.G.NDATA.n 1"),
        ("a/*/b", "a.%2A.b"),
        ("a/x*y", "a.x*y"),
        ("100%/x", "100%.x"),
        ("a/%2E", "a.%252E"),
        ("a/%252E", "a.%25252E"),
        ("a/%41", "a.%41"),
        ("a/A", "a.A"),
        ("a/%2Fb", "a./b"),
        ("$SYS/x", "$SYS.x"),
        ("ä/💡", "ä.💡"),
    ];
    for (mqtt, weida) in rows {
        check(&MQTT, mqtt, &WEIDA, weida);
    }
}

#[test]
fn mqtt_10_a_raw_wildcard_segment_is_the_single_respelling() {
    for (raw, spelled, mqtt) in [
        ("a.*", "a.%2A", "a/*"),
        ("#", "%23", "%23"),
        ("*.b", "%2A.b", "*/b"),
    ] {
        assert_eq!(WEIDA.name_to(&MQTT, raw).as_deref(), Ok(mqtt));
        assert_eq!(MQTT.name_to(&WEIDA, mqtt).as_deref(), Ok(spelled));
        assert!(!WEIDA.is_canonical(raw));
        assert!(WEIDA.is_canonical(spelled));
    }
    assert!(WEIDA.is_canonical("a.x*y") && WEIDA.is_canonical("a.b"));
}

/// Checks a row of three names, each with the other two.
fn check_row(source: &Space, name: &str, others: [(&Space, &str); 3]) {
    for (target, spelled) in others {
        if spelled == "bad_name" {
            let refused = source.name_to(target, name).unwrap_err();
            assert_eq!(refused.cause(), DropCause::BadName, "{name:?}");
        } else {
            check(source, name, target, spelled);
        }
    }
}

#[test]
fn reconciled_2_golden_vectors_of_amqp_keys() {
    let rows = [
        (
            "orders.eu.new",
            "orders.eu.new",
            "orders/eu/new",
            "orders.eu.new",
        ),
        ("", "", "bad_name", "%%"),
        ("a..b", "a..b", "a//b", "a.%%.b"),
        (".a.", ".a.", "/a/", "%%.a.%%"),
        ("a.*", "a.%2A", "a/*", "a.%2A"),
        ("a.#.b", "a.%23.b", "a/%23/b", "a.#.b"),
        ("a.%2E", "a.%2E", "a/.", "a.%2E"),
        ("a.%2A", "a.%252A", "a/%2A", "a.%252A"),
        ("a.%252E", "a.%252E", "a/%2E", "a.%252E"),
        ("orders/new", "orders/new", "orders%2Fnew", "orders/new"),
        ("a.x+y", "a.x+y", "a/x%2By", "a.x+y"),
        ("100%.a b", "100%.a b", "100%/a b", "100%.a%20b"),
        ("a.>", "a.>", "a/>", "a.%3E"),
        ("a.%%", "a.%%", "a/%%", "a.%25%"),
    ];
    for (amqp, weida, mqtt, nats) in rows {
        check_row(&AMQP, amqp, [(&WEIDA, weida), (&MQTT, mqtt), (&NATS, nats)]);
    }
}

#[test]
fn reconciled_2_golden_vectors_of_nats_subjects() {
    let rows = [
        ("a.b.c", "a.b.c", "a/b/c", "a.b.c"),
        ("a.b*c", "a.b*c", "a/b*c", "a.b*c"),
        ("a.%2E", "a.%2E", "a/.", "a.%2E"),
        ("a.%2A", "a.%2A", "a/*", "a.*"),
        ("a.%2Ax", "a.%2Ax", "a/%2Ax", "a.%2Ax"),
        ("a.%20b", "a. b", "a/ b", "a. b"),
        ("a.%%.b", "a..b", "a//b", "a..b"),
        ("%%", "", "bad_name", ""),
        ("a.%25%.b", "a.%%.b", "a/%%/b", "a.%%.b"),
        ("a.%2525%", "a.%25%", "a/%25%", "a.%25%"),
        ("a.#", "a.%23", "a/%23", "a.#"),
        ("a./x", "a./x", "a/%2Fx", "a./x"),
        ("a.%2e", "a.%2e", "a/%2e", "a.%2e"),
        ("a.%252E", "a.%252E", "a/%2E", "a.%252E"),
        ("a.%3E", "a.>", "a/>", "a.>"),
        ("a.%253E", "a.%3E", "a/%3E", "a.%3E"),
    ];
    for (nats, weida, mqtt, amqp) in rows {
        check_row(&NATS, nats, [(&WEIDA, weida), (&MQTT, mqtt), (&AMQP, amqp)]);
    }
}

#[test]
fn reconciled_2_golden_vectors_of_zeromq_topics() {
    let rows = [
        (
            "ticks.EUR/USD",
            "ticks.EUR/USD",
            "ticks/EUR%2FUSD",
            "ticks.EUR/USD",
        ),
        ("ticks", "ticks", "ticks", "ticks"),
        ("", "", "bad_name", "%%"),
        ("ticks..x", "ticks..x", "ticks//x", "ticks.%%.x"),
        ("a.*", "a.%2A", "a/*", "a.%2A"),
        ("a.#", "a.%23", "a/%23", "a.#"),
        ("a.*b", "a.*b", "a/*b", "a.*b"),
        ("a.%2E", "a.%2E", "a/.", "a.%2E"),
        ("a.%2A", "a.%252A", "a/%2A", "a.%252A"),
        ("a b", "a b", "a b", "a%20b"),
    ];
    for (zmq, weida, mqtt, nats) in rows {
        check_row(&ZMQ, zmq, [(&WEIDA, weida), (&MQTT, mqtt), (&NATS, nats)]);
    }
}

#[test]
fn reconciled_2_lengths_are_bounded_on_both_sides() {
    let fits = "x".repeat(256);
    assert!(MQTT.name_to(&WEIDA, &fits).is_ok());
    // One dot costs two more bytes in its spelling.
    let long = format!("{}.", "x".repeat(255));
    let refused = MQTT.name_to(&WEIDA, &long).unwrap_err();
    assert_eq!(
        refused,
        NameError::TooLong {
            got_bytes: 258,
            max_bytes: 256
        }
    );
    assert_eq!(refused.cause(), DropCause::NameTooLong);
    assert!(AMQP.name_to(&WEIDA, &"x".repeat(255)).is_ok());
    let refused = WEIDA.name_to(&AMQP, &fits).unwrap_err();
    assert_eq!(
        refused,
        NameError::TooLong {
            got_bytes: 256,
            max_bytes: 255
        }
    );
}

#[test]
fn names_with_bytes_their_space_cannot_hold_are_bad_names() {
    assert!(MQTT.name_to(&WEIDA, "a/b").is_ok());
    for bad in ["a/+", "a/b#", "a\0b", ""] {
        assert_eq!(
            MQTT.name_to(&WEIDA, bad).unwrap_err().cause(),
            DropCause::BadName,
            "{bad:?}"
        );
    }
    assert_eq!(
        NATS.name_to(&WEIDA, "a b"),
        Err(NameError::Reserved { byte: b' ' })
    );
}

#[test]
fn reconciled_2_prefixes_become_filters() {
    let rows = [
        ("", "#", Obligation::None),
        ("ticks.", "ticks.#", Obligation::DropParent),
        ("ticks.E", "ticks.#", Obligation::Refilter),
        ("tic", "#", Obligation::Refilter),
        ("a.*.", "a.%2A.#", Obligation::DropParent),
    ];
    for (prefix, filter, obligation) in rows {
        let cover = ZMQ.prefix_cover(&WEIDA, prefix).unwrap();
        assert_eq!(
            (&*cover.filter, cover.obligation),
            (filter, obligation),
            "{prefix:?}"
        );
    }
    assert_eq!(WEIDA.prefix_cover(&ZMQ, "a."), Err(NameError::NoWildcard));
}

/// The table of filter translations. [weida-runtime 22.4]
#[test]
fn weida_runtime_22_4_filters_and_their_obligations() {
    let rows: &[(&Space, &str, &Space, &str, Obligation)] = &[
        (&MQTT, "+/temp", &WEIDA, "*.temp", Obligation::None),
        (&MQTT, "plant/#", &WEIDA, "plant.#", Obligation::None),
        (&MQTT, "#", &WEIDA, "#", Obligation::None),
        (&MQTT, "a/*/b", &WEIDA, "a.%2A.b", Obligation::None),
        (&MQTT, "v1.0/+", &WEIDA, "v1%2E0.*", Obligation::None),
        // weida names hold `x*y`, its filters cannot: one level wider, matched again here.
        (&MQTT, "a/x*y/b", &WEIDA, "a.*.b", Obligation::Refilter),
        (&NATS, "a.*", &WEIDA, "a.*", Obligation::None),
        (&NATS, "a.>", &WEIDA, "a.#", Obligation::DropParent),
        (&NATS, ">", &WEIDA, "#", Obligation::DropParent),
        (&AMQP, "a.*.#", &WEIDA, "a.*.#", Obligation::None),
        (&AMQP, "", &WEIDA, "*", Obligation::Refilter),
        (&AMQP, "", &NATS, "%%", Obligation::None),
        // The empty name has a spelling here; as a weida filter that spelling would mean every name.
        (&NATS, "%%", &WEIDA, "*", Obligation::Refilter),
        (&NATS, "%%", &AMQP, "", Obligation::None),
        (&WEIDA, "", &MQTT, "#", Obligation::None),
        (&WEIDA, "a.*.b", &MQTT, "a/+/b", Obligation::None),
        (&WEIDA, "a.%2A", &MQTT, "a/*", Obligation::None),
        (&WEIDA, "a.+", &MQTT, "a/%2B", Obligation::None),
        // Names of the target hold a lone `*` or `#`, its filters would take them for wildcards.
        (&WEIDA, "a.%2A.b", &AMQP, "a.*.b", Obligation::Refilter),
        (&WEIDA, "a.%23", &AMQP, "a.*", Obligation::Refilter),
        (&WEIDA, "x.a.#", &NATS, "x.>", Obligation::Refilter),
        (&WEIDA, "a.#", &NATS, ">", Obligation::Refilter),
        (&WEIDA, "#", &NATS, ">", Obligation::None),
    ];
    for (source, filter, target, expected, obligation) in rows {
        let cover = source.cover(target, filter).unwrap();
        assert_eq!(
            (&*cover.filter, cover.obligation),
            (*expected, *obligation),
            "{filter:?}"
        );
        assert_eq!(source.filter_to(target, filter).as_deref(), Ok(*expected));
    }
}

#[test]
fn filters_that_cannot_cross_are_refused() {
    assert!(AMQP.filter_to(&WEIDA, "a.#").is_ok());
    assert_eq!(AMQP.filter_to(&WEIDA, "a.#.b"), Err(NameError::RestNotLast));
    assert_eq!(
        MQTT.filter_to(&WEIDA, "a/b+"),
        Err(NameError::Reserved { byte: b'+' })
    );
    assert_eq!(MQTT.filter_to(&WEIDA, ""), Err(NameError::Empty));
    assert_eq!(
        WEIDA.filter_to(&MQTT, "a.x*"),
        Err(NameError::WildcardInSegment)
    );
    assert_eq!(WEIDA.filter_to(&ZMQ, "a.*"), Err(NameError::NoWildcard));
    let refused = MQTT.filter_to(&WEIDA, &"x/".repeat(200)).unwrap_err();
    assert_eq!(
        refused,
        NameError::TooLong {
            got_bytes: 400,
            max_bytes: 256
        }
    );
}

/// The matcher against the table of the wire. [wire 12]
#[test]
fn wire_12_matches_table() {
    let rows: &[(&str, &[&str], &[&str])] = &[
        ("px.*", &["px.eur", "px.", "px.*"], &["px", "px.eur.x"]),
        ("px.#", &["px", "px.", "px.eur", "px.a.b"], &["pxx"]),
        ("px.", &["px."], &["px.eur", "px"]),
        ("a.b", &["a.b"], &["a.b.", "a.b.c", "A.b"]),
        ("*.#", &["", "a", "a.b"], &[]),
        ("*", &["", "a"], &["a.b"]),
        ("a.*.c", &["a.b.c", "a..c"], &["a.c"]),
        ("", &["", "a", "a.b"], &[]),
        ("#", &["", "a", "a.b"], &[]),
    ];
    for (filter, hits, misses) in rows {
        for name in *hits {
            assert!(WEIDA.matches(filter, name), "{filter:?} {name:?}");
        }
        for name in *misses {
            assert!(!WEIDA.matches(filter, name), "{filter:?} {name:?}");
        }
    }
    assert!(NATS.matches("a.>", "a.b") && !NATS.matches("a.>", "a"));
}

/// Text made mostly of what the rules are about.
fn tricky_text(separator: char) -> impl Strategy<Value = String> {
    let pieces: Vec<String> = [
        "%", "2", "5", "25", "%25", "2E", "2F", "2A", "23", "3E", "20", "00", "2B", "2e", "%2E",
        "%252E", "%2A", "*", "#", "+", ">", "/", " ", "\0", "\x7f", "%%", "a", "é", "💡", "$",
    ]
    .iter()
    .map(|piece| (*piece).to_owned())
    .chain([separator.to_string(), separator.to_string()])
    .collect();
    prop_oneof![
        4 => prop::collection::vec(prop::sample::select(pieces), 0..9).prop_map(|parts| parts.concat()),
        1 => any::<String>(),
    ]
}

/// A segment of a space: tricky text without its raw reserved bytes.
fn segment_of(space: &'static Space) -> impl Strategy<Value = String> {
    tricky_text('.')
        .prop_map(move |text| text.chars().filter(|char| !space.holds_no(*char)).collect())
}

impl Space {
    fn holds_no(&self, char: char) -> bool {
        u8::try_from(char).is_ok_and(|byte| self.is_reserved(byte))
    }

    fn encoded(&self, segment: &str) -> String {
        let mut out = String::new();
        self.encode(segment, &mut out);
        out
    }

    fn decoded(&self, segment: &str) -> String {
        let mut out = String::new();
        self.decode(segment, &mut out);
        out
    }

    /// Valid unbounded variant, so that the law is about spelling alone.
    fn unbounded(&self) -> Self {
        self.max_bytes(usize::MAX)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// decode(encode(x)) = x for any text, in every space, and what is spelled holds no raw reserved byte.
    #[test]
    fn d17b_reading_undoes_spelling(text in tricky_text('.')) {
        for space in SPACES {
            let spelled = space.encoded(&text);
            prop_assert_eq!(space.decoded(&spelled), &*text, "{:?} as {}", space, spelled);
            prop_assert!(space.is_canonical(&spelled));
            prop_assert!(!spelled.contains(space.separator()));
        }
    }

    /// encode(decode(y)) = y for every segment that is spelled as its space spells.
    #[test]
    fn d17b_spelling_undoes_reading(at in 0..SPACES.len(), text in tricky_text('.')) {
        let space = SPACES[at];
        let segment: String = text.chars().filter(|char| !space.holds_no(*char)).collect();
        if space.is_canonical(&segment) {
            prop_assert_eq!(space.encoded(&space.decoded(&segment)), segment);
        }
    }

    /// Two names that differ stay different on every other side, and each comes back as it was.
    #[test]
    fn d17b_names_cross_and_come_back(
        (from, to) in (0..SPACES.len(), 0..SPACES.len()),
        parts in prop::collection::vec(tricky_text('.'), 1..5),
    ) {
        let (source, target) = (SPACES[from].unbounded(), SPACES[to].unbounded());
        let name = parts.iter().map(|part| source.encoded(part)).collect::<Vec<_>>()
            .join(&source.separator().to_string());
        if let Ok(there) = source.name_to(&target, &name) {
            prop_assert_eq!(target.name_to(&source, &there), Ok(name), "{}", there);
            prop_assert_eq!(target.split(&there).count(), parts.len());
        } else {
            prop_assert!(name.is_empty() || parts == [""]);
        }
    }

    /// The foreign matcher says what the weida matcher on the mapped pair says, after what the cover left to do.
    #[test]
    fn mqtt_10_matchers_agree(
        (from, to) in (0..SPACES.len(), 0..SPACES.len()),
        filter in prop::collection::vec(prop_oneof![
            Just(None), segment_of(&MQTT).prop_map(Some), "[ab*]{0,2}".prop_map(Some)], 1..4),
        ends_in_rest in any::<bool>(),
        name in prop::collection::vec("[ab*]{0,2}", 1..5),
        name_follows_filter in any::<bool>(),
    ) {
        let (source, target) = (SPACES[from].unbounded(), SPACES[to].unbounded());
        let (Some(one), Some(rest)) = (source.one, source.rest) else { return Ok(()) };
        let separator = source.separator().to_string();
        let mut levels: Vec<_> = filter.iter().map(|level| match level {
            None => one.to_owned(),
            Some(text) => source.encoded(text),
        }).collect();
        let followed = levels.iter().map(|level| if level == one { "q".to_owned() } else { level.clone() });
        let name = if name_follows_filter {
            followed.collect::<Vec<_>>().join(&separator)
        } else {
            name.iter().map(|part| source.encoded(part)).collect::<Vec<_>>().join(&separator)
        };
        if ends_in_rest {
            levels.push(rest.to_owned());
        }
        let filter = levels.join(&separator);
        let (Ok(cover), Ok(mapped)) = (source.cover(&target, &filter), source.name_to(&target, &name)) else {
            return Ok(());
        };
        let here = source.matches(&filter, &name);
        let there = target.matches(&cover.filter, &mapped);
        match cover.obligation {
            Obligation::None => prop_assert_eq!(here, there, "{} {} -> {} {}", filter, name, cover.filter, mapped),
            Obligation::DropParent | Obligation::Refilter => {
                prop_assert!(!here || there, "{} {} -> {} {}", filter, name, cover.filter, mapped);
            }
        }
        if cover.obligation == Obligation::DropParent && there && !here {
            // The one name too many is the parent itself: the filter without its rest.
            let parent: Vec<_> = levels[..levels.len() - 1].to_vec();
            prop_assert!(!parent.is_empty() && source.matches(&parent.join(&separator), &name));
        }
    }

    /// Nothing a stranger writes as a name or filter panics.
    #[test]
    fn arbitrary_text_never_panics(text in tricky_text('/'), filter in tricky_text('.')) {
        for source in SPACES {
            let _: bool = source.matches(&filter, &text);
            for target in SPACES {
                let _: Result<String, NameError> = source.name_to(target, &text);
                let _: Result<Cover, NameError> = source.cover(target, &filter);
                let _: Result<Cover, NameError> = source.prefix_cover(target, &text);
            }
            if let Ok(template) = Template::parse(&text, source) {
                let _: Result<String, NameError> = template.render(&Captures::new(&MQTT, &filter, &text));
            }
        }
    }
}

// === templates ===

fn render(
    template: &str,
    to: &Space,
    from: &Space,
    filter: &str,
    name: &str,
) -> Result<String, NameError> {
    let template = Template::parse(template, to).unwrap();
    template.check_source(from, filter).unwrap();
    assert!(from.matches(filter, name));
    template.render(&Captures::new(from, filter, name))
}

#[test]
fn gateway_2_3_templates_render() {
    let rows = [
        ("{topic}", "plant/#", "plant/7.1/t", "plant.7%2E1.t"),
        ("{rest}", "plant/#", "plant/7/t", "7.t"),
        ("x.{rest}", "plant/#", "plant", "x"),
        ("x.{rest}", "plant/#", "plant/", "x."),
        ("x.{rest}.y", "#", "a/b", "x.a.b.y"),
        ("site.{2}.{1}", "+/+/t", "a/b/t", "site.b.a"),
        ("dev-{1}", "+", "7.1", "dev-7%2E1"),
        ("{1}{1}", "+", "a", "aa"),
        ("fix.v1%2E0", "+", "a", "fix.v1%2E0"),
        ("{{{1}}}", "+", "a", "{a}"),
        ("{1}", "+", "*", "%2A"),
        ("a{1}", "+", "*", "a*"),
    ];
    for (template, filter, name, expected) in rows {
        assert_eq!(
            render(template, &WEIDA, &MQTT, filter, name).as_deref(),
            Ok(expected),
            "{template}"
        );
    }
}

#[test]
fn gateway_2_3_a_value_cannot_bring_a_separator_or_a_wildcard() {
    let mut meta = crate::Meta::new();
    meta.push("site", "a.b/c").unwrap();
    meta.push("star", "#").unwrap();
    let captures = Captures::new(&WEIDA, "#", "x")
        .meta(&meta)
        .user(Some("ann/+"));
    let render = |template: &str| Template::parse(template, &MQTT).unwrap().render(&captures);
    assert_eq!(render("p/{meta.site}").as_deref(), Ok("p/a.b%2Fc"));
    assert_eq!(render("p/{meta.star}").as_deref(), Ok("p/%23"));
    assert_eq!(render("p/{user}").as_deref(), Ok("p/ann%2F%2B"));
    assert_eq!(
        render("p/{tenant}"),
        Err(NameError::Missing { what: "tenant" })
    );
    assert_eq!(
        render("p/{meta.none}"),
        Err(NameError::Missing { what: "meta" })
    );
    assert_eq!(
        NameError::Missing { what: "meta" }.cause(),
        DropCause::BadName
    );
}

#[test]
fn gateway_2_3_a_template_without_a_segment_left_is_a_bad_name() {
    assert_eq!(
        render("{rest}", &WEIDA, &MQTT, "plant/#", "plant"),
        Err(NameError::Empty)
    );
    assert_eq!(
        render("{rest}", &MQTT, &WEIDA, "plant.#", "plant."),
        Err(NameError::Empty)
    );
    assert_eq!(
        render("{topic}", &MQTT, &WEIDA, "#", ""),
        Err(NameError::Empty)
    );
    assert_eq!(render("{topic}", &WEIDA, &AMQP, "#", "").as_deref(), Ok(""));
}

#[test]
fn gateway_2_3_static_checks() {
    let error = |text: &str| Template::parse(text, &MQTT).unwrap_err().to_string();
    assert!(Template::parse("a/b", &MQTT).unwrap().is_static());
    assert_eq!(error("a/{1"), "a brace at byte 2 has no partner");
    assert_eq!(error("a}b"), "a brace at byte 1 has no partner");
    for word in ["", "0", "01", "+1", "x", "meta.", "99999999999999999999999"] {
        assert_eq!(
            error(&format!("a/{{{word}}}")),
            format!("{{{word}}} is not a placeholder")
        );
    }
    assert_eq!(
        error("a/x{rest}"),
        "{rest} stands for several segments and must be one alone"
    );
    assert_eq!(
        error("{topic}x/b"),
        "{topic} stands for several segments and must be one alone"
    );
    assert_eq!(
        error("a/+/b"),
        r##"the literal segment "+" cannot stand in a name"##
    );
    assert_eq!(
        error("a/b#"),
        r##"the literal segment "b#" cannot stand in a name"##
    );
    assert_eq!(error(""), "the template makes no usable name");
    assert_eq!(error(&"a/".repeat(64)), "more than 64 segments");
    let refused = Template::parse("a.*", &WEIDA).unwrap_err();
    assert!(matches!(refused, TemplateError::Literal { segment } if segment == "*"));
    let long = Template::parse(&"x".repeat(257), &WEIDA).unwrap_err();
    assert_eq!(
        long,
        TemplateError::Name(NameError::TooLong {
            got_bytes: 257,
            max_bytes: 256
        })
    );
}

#[test]
fn gateway_2_3_placeholders_are_checked_against_the_source_filter() {
    let check = |template: &str, filter: &str| {
        Template::parse(template, &WEIDA)
            .unwrap()
            .check_source(&MQTT, filter)
    };
    assert_eq!(check("{2}", "a/+/+"), Ok(()));
    assert_eq!(
        check("{3}", "a/+/+"),
        Err(TemplateError::NoSuchCapture {
            index: 3,
            wildcards: 2
        })
    );
    assert_eq!(check("{rest}", "a/#"), Ok(()));
    assert_eq!(check("{rest}", "a/+"), Err(TemplateError::NoRest));
    assert_eq!(check("{topic}", "a/b"), Ok(()));
}

#[test]
fn the_identity_template_is_known() {
    assert!(Template::parse("{topic}", &WEIDA).unwrap().is_identity());
    assert_eq!(
        Template::parse("{topic}", &WEIDA).unwrap(),
        Template::identity(&WEIDA)
    );
    assert!(!Template::parse("x.{topic}", &WEIDA).unwrap().is_identity());
    let template = Template::parse("{1}.{user}.{tenant}.{rest}", &WEIDA).unwrap();
    assert_eq!(template.highest_capture(), 1);
    assert!(template.uses_user() && template.uses_tenant() && template.uses_rest());
    assert!(!template.is_static());
    assert_eq!(template.to_string(), "{1}.{user}.{tenant}.{rest}");
}
