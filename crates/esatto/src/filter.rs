//! Which categories a `TrackEventConfig` enables (`docs/spec/track-event.md` §5).

use esatto_schema::TrackEventConfig;

/// The tags that are off unless a config speaks of tags.
const DEFAULT_DISABLED_TAGS: [&[u8]; 2] = [b"slow", b"debug"];

/// How a pattern is compared; the passes run in this order and the first decisive rule wins.
#[derive(Clone, Copy)]
enum Pass {
    /// The pattern equals the name.
    Exact,
    /// The pattern ends in `*` and the rest begins the name.
    Prefix,
    /// The pattern is `*`.
    Wildcard,
}

/// True if `config` enables a category of this name with these tags.
///
/// Three passes (exact names, prefixes, `*`); in each: enabled categories, disabled categories, disabled tags, enabled tags. What
/// nothing decides is on.
pub(crate) fn enables(config: &TrackEventConfig, name: &str, tags: &[&str]) -> bool {
    let implicit = name.starts_with("disabled-by-default-").then_some("slow");
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
    fn an_enabled_wildcard_leaves_slow_ones_off() {
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
}
