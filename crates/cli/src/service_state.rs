//! Programs that are connected to a service, and what they offer (`docs/spec/service.md` §24).

use esatto_protozero::{Owned as _, ProtoString};
use esatto_schema::tracing_service_state::DataSource;
use esatto_schema::{QueryServiceStateResponseReader, TracingServiceState};

/// Programs of a service. It collects the answers to several queries, so it also holds programs
/// that have disconnected between them.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    pub(crate) programs: Vec<Program>,
    /// The last answer, as far as it has arrived.
    pub(crate) answer: Vec<u8>,
}

/// A producer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) id: i32,
    pub(crate) name: String,
    pub(crate) pid: i32,
    pub(crate) uid: i32,
    pub(crate) sdk: String,
    /// Name of its machine; empty if it is that of the service.
    pub(crate) machine: String,
    pub(crate) sources: Vec<Source>,
}

/// A data source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) categories: Vec<Category>,
}

/// A category of track events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Category {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) tags: Vec<String>,
}

impl Programs {
    /// Takes a part of an answer to QueryServiceState.
    pub(crate) fn add_part(&mut self, body: &[u8], is_last: bool) {
        if let Some(state) = QueryServiceStateResponseReader::new(body).service_state() {
            self.answer.extend_from_slice(state.as_bytes());
        }
        if is_last {
            let answer = core::mem::take(&mut self.answer);
            if let Ok(state) = TracingServiceState::decode(&answer) {
                self.add(state);
            }
        }
    }

    fn add(&mut self, state: TracingServiceState) {
        // A service may use the number of a producer again, so its entries follow it.
        let mut at = Vec::new();
        for producer in state.producers {
            let program = Program {
                id: producer.id.unwrap_or(0),
                name: text(producer.name.as_ref()),
                pid: producer.pid.unwrap_or(0),
                uid: producer.uid.unwrap_or(0),
                sdk: text(producer.sdk_version.as_ref()),
                machine: text(producer.machine_name.as_ref()),
                sources: Vec::new(),
            };
            let is_same =
                |known: &Program| (known.id, known.pid, &known.name) == (program.id, program.pid, &program.name);
            let known = self.programs.iter().position(is_same);
            at.push((program.id, known.unwrap_or(self.programs.len())));
            if known.is_none() {
                self.programs.push(program);
            }
        }
        for source in state.data_sources {
            let id = source.producer_id.unwrap_or(0);
            if let Some(&(_, at)) = at.iter().find(|(producer, _)| *producer == id) {
                self.programs[at].offer(source);
            }
        }
    }

    /// Returns the names of all data sources, sorted.
    pub(crate) fn source_names(&self) -> Vec<&str> {
        sorted(self.programs.iter().flat_map(|program| &program.sources).map(|source| source.name.as_str()))
    }
}

impl Program {
    fn offer(&mut self, source: DataSource) {
        let Some(descriptor) = source.ds_descriptor else { return };
        let events = descriptor.track_event_descriptor.as_ref();
        let categories = events.into_iter().flat_map(|events| &events.available_categories).map(|category| Category {
            name: text(category.name.as_ref()),
            description: text(category.description.as_ref()),
            tags: category.tags.iter().map(|tag| text(Some(tag))).collect(),
        });
        let source = Source { name: text(descriptor.name.as_ref()), categories: categories.collect() };
        match self.sources.iter_mut().find(|known| known.name == source.name) {
            Some(known) => known.merge(source),
            None => self.sources.push(source),
        }
    }

    /// Returns the data source of this name.
    pub(crate) fn source(&self, name: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.name == name)
    }
}

impl Source {
    fn merge(&mut self, other: Self) {
        for category in other.categories {
            if !self.categories.iter().any(|known| known.name == category.name) {
                self.categories.push(category);
            }
        }
    }
}

/// Returns the names in order, each once.
pub(crate) fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn text(text: Option<&ProtoString>) -> String {
    text.map_or_else(String::new, |text| String::from_utf8_lossy(text.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_schema::tracing_service_state::Producer;
    use esatto_schema::{DataSourceDescriptor, TrackEventCategory, TrackEventDescriptor};

    pub(crate) fn state(program: &str, id: i32, categories: &[&str]) -> TracingServiceState {
        let category = |name: &&str| TrackEventCategory { name: Some((*name).into()), ..TrackEventCategory::default() };
        let events = TrackEventDescriptor {
            available_categories: categories.iter().map(category).collect(),
            ..TrackEventDescriptor::default()
        };
        let descriptor = DataSourceDescriptor {
            name: Some("track_event".into()),
            track_event_descriptor: Some(events),
            ..DataSourceDescriptor::default()
        };
        TracingServiceState {
            producers: vec![Producer { id: Some(id), name: Some(program.into()), ..Producer::default() }],
            data_sources: vec![DataSource {
                ds_descriptor: Some(descriptor.into()),
                producer_id: Some(id),
                ..DataSource::default()
            }],
            ..TracingServiceState::default()
        }
    }

    #[test]
    fn programs_of_several_answers_are_collected() {
        let mut programs = Programs::default();
        programs.add(state("a", 1, &["x"]));
        programs.add(state("a", 1, &["x", "y"]));
        programs.add(state("b", 2, &["z"]));
        assert_eq!(programs.programs.len(), 2);
        let names = |at: usize| {
            let categories = &programs.programs[at].source("track_event").unwrap().categories;
            categories.iter().map(|category| category.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!((names(0), names(1)), (vec!["x".to_owned(), "y".to_owned()], vec!["z".to_owned()]));
        assert_eq!(programs.source_names(), ["track_event"]);
    }
}
