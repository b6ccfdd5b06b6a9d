//! The rules by which a `TrackEventConfig` enables categories (`docs/spec/track-event.md` §5).

use esatto_schema::TrackEventConfig;

use super::{Category, Role};

/// The tags that are off unless a config names tags.
const DEFAULT_DISABLED_TAGS: [&[u8]; 2] = [b"slow", b"debug"];

/// The way of comparing a pattern. The passes run in this order, and the first rule that matches
/// decides.
#[derive(Clone, Copy)]
enum Pass {
    /// The pattern equals the name.
    Exact,
    /// The pattern ends in `*` and the rest begins the name.
    Prefix,
    /// The pattern is `*`.
    Wildcard,
}

/// A category made at run time whose name begins with this counts as tagged [`IMPLICIT_TAG`]. Other
/// categories declare their tags.
const IMPLICIT_PREFIX: &str = "disabled-by-default-";
const IMPLICIT_TAG: &str = "slow";

/// Returns whether `config` enables a category. For a group, one of its members suffices.
pub(crate) fn enables(config: &TrackEventConfig, category: &'static Category) -> bool {
    category.members().any(|member| {
        if let Some(foreign) = member.foreign_side() {
            return foreign.role() == Role::Any || enables_foreign(config, member.name(), member.tags());
        }
        enables_one(config, member.name(), member.tags(), implicit_tag(member))
    })
}

fn implicit_tag(category: &Category) -> Option<&'static str> {
    (category.is_dynamic() && category.name().starts_with(IMPLICIT_PREFIX)).then_some(IMPLICIT_TAG)
}

/// Returns the tags because of which `config` does not enable a category that it would otherwise
/// enable.
#[cfg(feature = "in-process")]
pub(crate) fn tags_in_the_way(config: &TrackEventConfig, category: &'static Category) -> Vec<&'static str> {
    // An empty list would stand for the tags that are off by default.
    let no_tag = vec!["\0".into()];
    let lenient = TrackEventConfig { disabled_tags: no_tag, ..config.clone() };
    if enables(config, category) || !enables(&lenient, category) {
        return Vec::new();
    }
    let is_off = |tag: &&str| match config.disabled_tags.is_empty() {
        true => DEFAULT_DISABLED_TAGS.contains(&tag.as_bytes()),
        false => config.disabled_tags.iter().any(|pattern| covers(pattern.as_bytes(), tag)),
    };
    category
        .members()
        .flat_map(|member| member.tags().iter().copied().chain(implicit_tag(member)))
        .filter(is_off)
        .collect()
}

/// Applies the rules of the C library: passes for exact names, prefixes and `*`. Each checks
/// enabled categories, enabled tags, disabled categories, disabled tags. A category that no rule
/// matches is off.
///
/// Perfetto's C library has one pass for the last two. Then nothing can leave out `db.*` beside an
/// enabled `*`.
pub(crate) fn enables_foreign(config: &TrackEventConfig, name: &str, tags: &[&str]) -> bool {
    let is_exact = |pattern: &[u8], text: &str| pattern == text.as_bytes();
    let begins = |pattern: &[u8], text: &str| {
        let star = pattern.iter().position(|&byte| byte == b'*').filter(|star| *star > 0);
        star.is_some_and(|star| text.as_bytes().starts_with(&pattern[..star]))
    };
    let is_all = |pattern: &[u8], _: &str| pattern.first() == Some(&b'*');
    for matches in [&is_exact as &dyn Fn(&[u8], &str) -> bool, &begins, &is_all] {
        let name_in = |patterns: &[esatto_protozero::ProtoString]| patterns.iter().any(|p| matches(p, name));
        let tag_in = |patterns: &[esatto_protozero::ProtoString]| {
            tags.iter().any(|tag| patterns.iter().any(|p| matches(p, tag)))
        };
        if name_in(&config.enabled_categories) || tag_in(&config.enabled_tags) {
            return true;
        }
        if name_in(&config.disabled_categories) || tag_in(&config.disabled_tags) {
            return false;
        }
    }
    false
}

/// Applies three passes (exact names, prefixes, `*`). Each checks enabled categories, disabled
/// categories, disabled tags, enabled tags. A category that no rule matches is on.
pub(crate) fn enables_one(config: &TrackEventConfig, name: &str, tags: &[&str], implicit: Option<&str>) -> bool {
    let tags = || tags.iter().copied().chain(implicit);
    for pass in [Pass::Exact, Pass::Prefix, Pass::Wildcard] {
        let names = |patterns: &[esatto_protozero::ProtoString]| patterns.iter().any(|p| matches(p, name, pass));
        let any_tag = |patterns: &[esatto_protozero::ProtoString]| {
            tags().any(|tag| patterns.iter().any(|p| matches(p, tag, pass)))
        };
        if names(&config.enabled_categories) {
            return true;
        }
        if names(&config.disabled_categories) {
            return false;
        }
        let disabled = if config.disabled_tags.is_empty() && config.enabled_tags.is_empty() {
            tags().any(|tag| DEFAULT_DISABLED_TAGS.contains(&tag.as_bytes()))
        } else {
            any_tag(&config.disabled_tags)
        };
        if disabled {
            return false;
        }
        if any_tag(&config.enabled_tags) {
            return true;
        }
    }
    true
}

/// Returns whether a pattern matches a name or a tag in any pass.
#[cfg(feature = "in-process")]
pub(crate) fn covers(pattern: &[u8], text: &str) -> bool {
    [Pass::Exact, Pass::Prefix, Pass::Wildcard].into_iter().any(|pass| matches(pattern, text, pass))
}

fn matches(pattern: &[u8], text: &str, pass: Pass) -> bool {
    match (pass, pattern.strip_suffix(b"*")) {
        (_, None) => pattern == text.as_bytes(),
        (Pass::Exact, _) => false,
        (Pass::Prefix, Some(prefix)) => !prefix.is_empty() && text.as_bytes().starts_with(prefix),
        (Pass::Wildcard, Some(prefix)) => prefix.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enables(config: &TrackEventConfig, name: &str, tags: &[&str]) -> bool {
        enables_one(config, name, tags, None)
    }

    fn config(enabled: &[&str], disabled: &[&str], enabled_tags: &[&str], disabled_tags: &[&str]) -> TrackEventConfig {
        let strings = |texts: &[&str]| texts.iter().map(|&t| t.into()).collect();
        TrackEventConfig {
            enabled_categories: strings(enabled),
            disabled_categories: strings(disabled),
            enabled_tags: strings(enabled_tags),
            disabled_tags: strings(disabled_tags),
            ..TrackEventConfig::default()
        }
    }

    #[test]
    fn an_empty_config_enables_all_but_slow_and_debug() {
        let c = config(&[], &[], &[], &[]);
        assert!(enables(&c, "a", &[]));
        assert!(enables(&c, "a", &["fast"]));
        assert!(!enables(&c, "a", &["slow"]));
        assert!(!enables(&c, "a", &["x", "debug"]));
    }

    #[test]
    fn an_enabled_wildcard_leaves_slow_categories_off() {
        let c = config(&["*"], &["*"], &[], &[]);
        assert!(enables(&c, "a", &[]), "with both wildcards enabled wins");
        assert!(!enables(&c, "a", &["slow"]));
    }

    #[test]
    fn an_exact_name_beats_every_tag() {
        let c = config(&["a"], &["*"], &[], &["slow", "x"]);
        assert!(enables(&c, "a", &["slow", "x"]));
        assert!(!enables(&c, "b", &[]));
    }

    #[test]
    fn earlier_passes_win() {
        let c = config(&["net*"], &["net.raw"], &[], &[]);
        assert!(enables(&c, "net.tcp", &[]));
        assert!(!enables(&c, "net.raw", &[]));
        let c = config(&["net.raw"], &["net*"], &[], &[]);
        assert!(enables(&c, "net.raw", &[]));
        assert!(!enables(&c, "net.tcp", &[]));
        assert!(enables(&c, "disk", &[]), "nothing matched: on");
    }

    #[test]
    fn tags_switch_categories() {
        let c = config(&[], &["*"], &["t*"], &[]);
        assert!(enables(&c, "a", &["tagged"]), "a tag prefix comes before the wildcard");
        assert!(!enables(&c, "a", &[]));
        let c = config(&[], &[], &[], &["x"]);
        assert!(enables(&c, "a", &["slow"]), "an explicit list replaces the default one");
        assert!(!enables(&c, "a", &["x"]));
    }

    #[test]
    fn only_a_star_at_the_end_is_a_wildcard() {
        let c = config(&["a*b", "*c"], &["*"], &[], &[]);
        assert!(enables(&c, "a*b", &[]) && enables(&c, "*c", &[]), "a star elsewhere is a star");
        assert!(!enables(&c, "aXb", &[]) && !enables(&c, "Xc", &[]));
    }

    #[test]
    fn an_exactly_disabled_tag_beats_a_prefix_of_a_name() {
        let c = config(&["net*"], &[], &["net.*"], &["raw"]);
        assert!(!enables(&c, "net.tcp", &["raw"]));
        let c = config(&["net.tcp"], &[], &[], &["raw"]);
        assert!(enables(&c, "net.tcp", &["raw"]));
        let c = config(&[], &["net*"], &["tcp"], &[]);
        assert!(enables(&c, "net.tcp", &["tcp"]), "an exactly enabled tag comes before a prefix");
    }

    #[test]
    fn enabled_tags_replace_the_default_list() {
        let c = config(&[], &[], &["x"], &[]);
        assert!(enables(&c, "a", &["slow"]), "nothing says that it is off");
        let c = config(&[], &["*"], &["slow"], &[]);
        assert!(enables(&c, "a", &["slow"]) && !enables(&c, "a", &["debug"]));
    }

    #[test]
    fn only_names_made_at_run_time_have_an_implicit_tag() {
        static DECLARED: Category = Category::new("disabled-by-default-declared");
        let c = config(&[], &[], &[], &[]);
        assert!(super::enables(&c, &DECLARED));
        assert!(!super::enables(&c, Category::dynamic("disabled-by-default-dynamic")));
        assert!(super::enables(&c, Category::dynamic("dynamic")));
        let c = config(&["disabled-by-default-*"], &[], &[], &[]);
        assert!(!super::enables(&c, Category::dynamic("disabled-by-default-dynamic")), "the tag is an exact match");
        let c = config(&["disabled-by-default-*"], &["*"], &["fast"], &[]);
        assert!(
            super::enables(&c, Category::dynamic("disabled-by-default-dynamic")),
            "no default list: a prefix enables"
        );
    }

    #[cfg(feature = "in-process")]
    #[test]
    fn tags_in_the_way_are_found() {
        static SLOW: Category = Category::new("filter::tests::slow").with_tags(&["x", "slow"]);
        static PLAIN: Category = Category::new("filter::tests::plain");
        static ONLY_SLOW: Category = Category::group(&[&SLOW]);
        let none: [&str; 0] = [];
        let c = config(&[], &[], &[], &[]);
        assert_eq!(tags_in_the_way(&c, &SLOW), ["slow"]);
        assert_eq!(tags_in_the_way(&c, &ONLY_SLOW), ["slow"]);
        assert_eq!(tags_in_the_way(&c, &PLAIN), none);
        let dynamic = Category::dynamic("disabled-by-default-in-the-way");
        assert_eq!(tags_in_the_way(&c, dynamic), ["slow"]);
        let c = config(&["*"], &["*"], &[], &["x*"]);
        assert_eq!(tags_in_the_way(&c, &SLOW), ["x"]);
        let c = config(&["other"], &["*"], &[], &["slow"]);
        assert_eq!(tags_in_the_way(&c, &SLOW), none, "its name is not enabled");
        let c = config(&["filter::tests::slow"], &["*"], &[], &["slow"]);
        assert_eq!(tags_in_the_way(&c, &SLOW), none, "it is on");
    }

    #[test]
    fn the_c_library_has_other_rules() {
        let foreign = |config: &TrackEventConfig, name: &str, tags: &[&str]| enables_foreign(config, name, tags);
        assert!(!foreign(&config(&[], &[], &[], &[]), "a", &[]), "off unless something says on");
        assert!(
            foreign(&config(&["*"], &["*"], &[], &[]), "a", &["slow"]),
            "enabled comes first; slow is a tag like any other"
        );
        assert!(!foreign(&config(&["*"], &["a"], &[], &[]), "a", &[]), "an exact name comes before a pattern");
        let without = config(&["*"], &["db.*"], &[], &[]);
        assert!(foreign(&without, "net", &[]) && !foreign(&without, "db.rows", &[]), "a prefix comes before all");
        assert!(foreign(&config(&["d*"], &["db.*"], &[], &[]), "db.rows", &[]), "of two prefixes, the enabled one");
        assert!(foreign(&config(&["*"], &[], &[], &["t*"]), "a", &["u"]));
        assert!(!foreign(&config(&["*"], &[], &[], &["t*"]), "a", &["tag"]));
        assert!(foreign(&config(&["a*"], &["a"], &["t"], &[]), "a", &["t"]), "enabled tags come before disabled names");
        assert!(foreign(&config(&["a*b"], &[], &[], &[]), "aXc", &[]), "the pattern ends at the star");
        assert!(!foreign(&config(&["a*"], &[], &[], &["t"]), "a", &["t"]));
    }

    #[test]
    fn a_group_is_on_if_one_of_its_members_is() {
        static FAST: Category = Category::new("filter::tests::fast");
        static SLOW: Category = Category::new("filter::tests::slow").with_tags(&["slow"]);
        static BOTH: Category = Category::group(&[&FAST, &SLOW]);
        static ONLY_SLOW: Category = Category::group(&[&SLOW]);
        let c = config(&[], &[], &[], &[]);
        assert!(super::enables(&c, &BOTH));
        assert!(!super::enables(&c, &ONLY_SLOW), "off by its tag, and not on again by its name");
        let c = config(&["filter::tests::slow"], &["*"], &[], &[]);
        assert!(super::enables(&c, &BOTH) && super::enables(&c, &ONLY_SLOW) && !super::enables(&c, &FAST));
    }
}
