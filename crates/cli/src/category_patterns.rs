//! Patterns of categories on the command line: `net`, `db.*`, `tag:slow` and `-db.rows`.

use esatto_schema::TrackEventConfig;

/// Checks a pattern.
pub(crate) fn parse(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("tag:").or_else(|| text.strip_prefix('-')).unwrap_or(text);
    if text.starts_with("-tag:") {
        return Err("a tag cannot be left out; without `tag:NAME`, those with the tag slow or debug are".to_owned());
    }
    match name.trim_end_matches('*').contains('*') {
        _ if name.is_empty() => Err("expected a name, as in net, db.*, tag:slow or -db.rows".to_owned()),
        true => Err("a * is possible only at the end of a pattern".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// Returns why a pattern has no effect beside the others, if there is one: of two patterns that
/// match a category, the one that enables it decides (`docs/reference/config.md`).
pub(crate) fn without_effect(patterns: &[String]) -> Option<String> {
    let prefix = |pattern: &str| pattern.strip_suffix('*').map(str::to_owned);
    let is_enabling = |pattern: &&String| !pattern.starts_with('-') && !pattern.starts_with("tag:");
    patterns.iter().find_map(|pattern| {
        let excluded = prefix(pattern.strip_prefix('-')?)?;
        // An enabled `*` is less exact than a pattern that is longer.
        let hides = |enabled: &String| {
            let beginning = prefix(enabled)?;
            (excluded.starts_with(&beginning) && (!beginning.is_empty() || excluded.is_empty()))
                .then(|| enabled.clone())
        };
        let enabled = patterns.iter().filter(is_enabling).find_map(hides)?;
        Some(format!(
            "{pattern} leaves nothing out beside {enabled}: of two patterns, the one that enables decides; name the \
             categories to leave out in full"
        ))
    })
}

/// Returns the config of track events that these patterns ask for, as all ways to record have it
/// (`docs/reference/config.md`).
pub(crate) fn track_events(patterns: &[String]) -> TrackEventConfig {
    let of = |prefix: &'static str| patterns.iter().filter_map(move |pattern| pattern.strip_prefix(prefix));
    let named = patterns.iter().filter(|pattern| !pattern.starts_with('-') && !pattern.starts_with("tag:"));
    let mut named = named.map(String::as_str).peekable();
    let mut config = esatto::SessionConfig::new().without_categories(of("-")).tags(of("tag:"));
    if named.peek().is_some() {
        config = config.categories(named);
    }
    let source = config.trace_config().data_sources.first().and_then(|source| source.config.as_deref());
    source.and_then(|source| source.track_event_config.as_deref().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_others_hide_are_found() {
        let why = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
            without_effect(&patterns)
        };
        for patterns in [
            &["net", "db.*"][..],
            &["-db.*"],
            &["*", "-db.*"],
            &["db.*", "-db.rows"],
            &["db.*", "-d*"],
            &["net", "-db.*"],
            &["tag:*", "-db.*"],
        ] {
            assert_eq!(why(patterns), None, "{patterns:?}");
        }
        for patterns in [&["d*", "-db.*"][..], &["-db.*", "net", "db.*"], &["*", "-*"]] {
            let told = why(patterns).unwrap();
            assert!(told.contains(" leaves nothing out beside ") && told.contains("in full"), "{told}");
        }
        assert!(why(&["d*", "-db.*"]).unwrap().starts_with("-db.* leaves nothing out beside d*: "));
    }
}
