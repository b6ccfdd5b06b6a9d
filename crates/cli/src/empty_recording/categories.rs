//! Categories of track events that a config names, and those that programs have.

use esatto_schema::TrackEventConfig;
use esatto_schema::trace_config::DataSource;

use super::{EmptyRecording, Names, TRACK_EVENT, name_of, or_close};
use crate::producer_filter::ProducerFilter;
use crate::service_state::{Category, Program, sorted};

impl EmptyRecording<'_> {
    /// Returns which of the config's categories no known program has. There may be other events.
    pub(crate) fn unknown_categories(&self) -> Option<String> {
        if !self.programs.is_known || self.programs.omitted > 0 {
            return None;
        }
        let of_events = |source: &&DataSource| name_of(source) == TRACK_EVENT;
        let mut unknown: Vec<String> = Vec::new();
        for source in self.config.data_sources.iter().filter(of_events) {
            let filter = ProducerFilter::of(source, self.config);
            let programs = self.programs.programs.iter().filter(|program| filter.accepts(program));
            let known: Vec<&Category> = categories(programs).collect();
            let names = sorted(known.iter().map(|category| category.name.as_str()));
            unknown.extend(unknown_categories(&event_config(source), names));
            unknown.extend(unknown_tags(&event_config(source), &known));
        }
        unknown.dedup();
        (!unknown.is_empty()).then(|| unknown.join("; "))
    }

    /// Returns why a config enables no category of programs that offer track events.
    pub(super) fn reason_of_categories(&self, config: &TrackEventConfig, known: &[&Category]) -> Option<String> {
        let unknown = unknown_categories(config, sorted(known.iter().map(|category| category.name.as_str())));
        if unknown.is_some() {
            return unknown;
        }
        if known.is_empty() || known.iter().any(|category| enables(config, category)) {
            let is_bare = config.enabled_categories.is_empty() && config.enabled_tags.is_empty();
            return is_bare.then(|| {
                "the config enables no category by name, and then programs on Perfetto's C library record nothing; \
                 add `track_event_config { enabled_categories: \"*\" }`"
                    .to_owned()
            });
        }
        let names_all = config.enabled_categories.iter().any(|pattern| pattern.as_bytes() == b"*");
        let hint = if self.is_default && names_all {
            "record with --all-categories"
        } else if self.is_default {
            "name them in --category, or their tags as in --category tag:slow"
        } else {
            "name them in enabled_categories, or their tags in enabled_tags"
        };
        let tagged = known.iter().map(|category| match &category.tags[..] {
            [] => category.name.clone(),
            tags => format!("{} ({})", category.name, tags.join(", ")),
        });
        let tagged: Vec<String> = tagged.collect();
        let names = Names(sorted(tagged.iter().map(String::as_str)));
        Some(format!("no category of the programs is enabled; {hint}. Known are: {names}"))
    }
}

/// Returns the categories that programs announce.
pub(super) fn categories<'a>(programs: impl Iterator<Item = &'a Program>) -> impl Iterator<Item = &'a Category> {
    programs.filter_map(|program| program.source(TRACK_EVENT)).flat_map(|source| &source.categories)
}

/// Returns the part of a data source's config about track events.
pub(super) fn event_config(source: &DataSource) -> TrackEventConfig {
    let config = source.config.as_ref().and_then(|config| config.track_event_config.as_deref());
    config.cloned().unwrap_or_default()
}

/// Returns whether a config of track events enables a category.
pub(super) fn enables(config: &TrackEventConfig, category: &Category) -> bool {
    let tags: Vec<&str> = category.tags.iter().map(String::as_str).collect();
    esatto::raw::enables(config, &category.name, &tags)
}

/// Returns which categories of a config have no known name.
fn unknown_categories(config: &TrackEventConfig, names: Vec<&str>) -> Option<String> {
    let patterns = config.enabled_categories.iter().map(|name| String::from_utf8_lossy(name.as_bytes()));
    // Programs also have categories that they make while they run, and do not announce.
    let unknown: Vec<String> = patterns
        .filter(|pattern| !names.iter().any(|name| matches(pattern, name)))
        .map(|pattern| or_close(&pattern, &names))
        .collect();
    let is_told = !unknown.is_empty() && !names.is_empty();
    is_told.then(|| format!("no category matches {}. Known are: {}", unknown.join(", "), Names(names)))
}

/// Returns which tags of a config no known category has. Each config may name those that are off by
/// default.
fn unknown_tags(config: &TrackEventConfig, known: &[&Category]) -> Option<String> {
    let tags = sorted(known.iter().flat_map(|category| &category.tags).map(String::as_str));
    let wanted = config.enabled_tags.iter().map(|tag| String::from_utf8_lossy(tag.as_bytes()));
    let unknown: Vec<String> = wanted
        .filter(|tag| !["slow", "debug"].contains(&&**tag) && !tags.iter().any(|known| matches(tag, known)))
        .map(|tag| or_close(&tag, &tags))
        .collect();
    let is_told = !unknown.is_empty() && !known.is_empty();
    is_told.then(|| format!("no category has the tag {}. Known tags are: {}", unknown.join(", "), Names(tags)))
}

/// Returns whether a pattern of categories matches a name.
fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}
