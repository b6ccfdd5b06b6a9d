//! Configs of recordings: that of the user, or the default one.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;
use std::sync::OnceLock;

use esatto_inputs::is_trace_of_service;
use esatto_protozero::{Fields, Owned as _};
use esatto_schema::trace_config::buffer_config::FillPolicy;
use esatto_schema::trace_config::trigger_config::TriggerMode;
use esatto_schema::trace_config::{BufferConfig, DataSource, IncrementalStateConfig, WriteFlushMode};
use esatto_schema::{DataSourceConfig, TraceConfig, TrackEventConfig};
use esatto_trace::escape::Line;
use prost_reflect::{DescriptorPool, MessageDescriptor};

use crate::failure::{Attempt as _, Failure};
use crate::missing_trigger::MissingTrigger;
use crate::shell_word::ShellWord;

/// Longest text of a config.
const MAX_TEXT_BYTES: u64 = 16 << 20;

/// Buffer of a session that is read all the time: for the data between two readings, plus some
/// seconds.
const BUFFER_KB: u32 = 64 * 1024;
/// Longest part of a killed process's last events that may be missing.
const FLUSH_PERIOD_MS: u32 = 1000;
/// Time between two flushes of a session that the service writes into a file.
const FILE_FLUSH_PERIOD_MS: u32 = 5000;
/// Longest time after a loss until names and tracks are known again.
const CLEAR_PERIOD_MS: u32 = 5000;

/// Returns a config that records the track events of all programs, like Perfetto's own default:
/// without the categories that are tagged `slow` or `debug`, unless all are wanted.
pub(crate) fn track_events(all_categories: bool) -> TraceConfig {
    let tags = vec!["slow".into(), "debug".into()];
    let (enabled_tags, disabled_tags) = if all_categories { (tags, Vec::new()) } else { (Vec::new(), tags) };
    let events = TrackEventConfig {
        // Programs on the C library record only what is enabled by name, and have no disabled tags
        // of their own. `esatto::track_events` makes the same lists: startup tracing with its
        // config is for this session.
        enabled_categories: vec!["*".into()],
        enabled_tags,
        disabled_tags,
        ..TrackEventConfig::default()
    };
    TraceConfig {
        buffers: vec![BufferConfig {
            size_kb: Some(BUFFER_KB),
            fill_policy: Some(FillPolicy::RING_BUFFER),
            ..BufferConfig::default()
        }],
        data_sources: vec![DataSource {
            config: Some(
                DataSourceConfig {
                    name: Some("track_event".into()),
                    track_event_config: Some(events.into()),
                    ..DataSourceConfig::default()
                }
                .into(),
            ),
            ..DataSource::default()
        }],
        flush_period_ms: Some(FLUSH_PERIOD_MS),
        incremental_state_config: Some(IncrementalStateConfig {
            clear_period_ms: Some(CLEAR_PERIOD_MS),
            ..IncrementalStateConfig::default()
        }),
        ..TraceConfig::default()
    }
}

/// Returns the config of a preset.
pub(crate) fn preset(name: &str, all_categories: bool) -> Result<TraceConfig, Failure> {
    let preset = esatto_probes::presets::find(name).ok_or_else(|| Failure::new("cannot use the preset", name))?;
    let mut config = from_text(preset.name, preset.text.as_bytes())?;
    if all_categories {
        let events = track_events(true).data_sources.into_iter().next().and_then(|source| source.config);
        if let Some(events) = events.and_then(|events| events.track_event_config) {
            set_track_events(&mut config, &events);
        }
    }
    Ok(config)
}

/// Sets which track events a config records.
pub(crate) fn set_track_events(config: &mut TraceConfig, events: &TrackEventConfig) {
    for its in config.data_sources.iter_mut().filter_map(|source| source.config.as_mut()) {
        if its.name.as_ref().is_some_and(|name| name.as_bytes() == b"track_event") {
            its.track_event_config = Some(events.clone().into());
        }
    }
}

/// Reads a config; `-` is standard input. It is in text format, in which every mistake is reported
/// with its place, or encoded.
pub(crate) fn from_file(path: &Path) -> Result<TraceConfig, Failure> {
    let text = content(path)?;
    let name = Line(path.display()).to_string();
    let config = match is_too_long(&text) {
        true => Err(too_long(path)),
        false if is_text(&text) => return from_text(&name, &text),
        false => from_encoding(&name, &text),
    };
    if config.as_ref().map_or(true, |config| config.data_sources.is_empty()) && is_trace_of_service(&text) {
        let word = ShellWord::new(path);
        let hint = format!("-c takes a config, -o the trace; `esatto info {word}` shows what the trace contains");
        return Err(Failure::new(format!("cannot use the config {name}"), "it is a trace").hint(hint));
    }
    config
}

/// Reads a config, or a little more than its greatest length; `-` is standard input.
pub(crate) fn content(path: &Path) -> Result<Vec<u8>, Failure> {
    let what = || format!("cannot read the config {}", path.display());
    let mut text = Vec::new();
    if path.as_os_str() == "-" {
        std::io::stdin().take(MAX_TEXT_BYTES + 1).read_to_end(&mut text).attempt(what)?;
    } else {
        let file = std::fs::File::open(path).attempt(what)?;
        file.take(MAX_TEXT_BYTES + 1).read_to_end(&mut text).attempt(what)?;
    }
    Ok(text)
}

/// Returns whether the file has more than its [`content`].
pub(crate) fn is_too_long(content: &[u8]) -> bool {
    content.len() as u64 > MAX_TEXT_BYTES
}

pub(crate) fn too_long(path: &Path) -> Failure {
    Failure::new(format!("cannot read the config {}", path.display()), "it has more than 16 MiB")
}

/// Returns whether a file is a config, in text format or encoded.
pub(crate) fn is_config(path: &Path) -> bool {
    // Other files, such as pipes, cannot be read again.
    path.is_file() && from_file(path).is_ok_and(|config| !config.data_sources.is_empty())
}

/// Returns whether the content of a file is text. Each encoded config has control characters.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    let is_readable = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
    // Text in a foreign encoding gets the errors of the parser.
    !bytes.iter().any(|&byte| byte.is_ascii() && !is_readable(byte.into()))
}

/// Decodes a config, as `perfetto -c` takes it.
fn from_encoding(name: &str, bytes: &[u8]) -> Result<TraceConfig, Failure> {
    let failure = || {
        Failure::new(format!("cannot use the config {name}"), "it is neither text nor an encoded TraceConfig")
            .hint("write it in protobuf's text format: docs/reference/config.md")
    };
    let config = TraceConfig::decode(bytes).map_err(|_| failure())?;
    // Other files may look like fields that no version has.
    if config.buffers.is_empty() && config.data_sources.is_empty() { Err(failure()) } else { Ok(config) }
}

/// File of the schema that defines `TraceConfig`.
const TRACE_CONFIG_FILE: &[u8] = b"protos/perfetto/config/trace_config.proto";

/// Returns a `FileDescriptorSet` with one file of another set, and all files that it imports.
fn files_with_imports(set: &'static [u8], root: &'static [u8]) -> Vec<u8> {
    // A FileDescriptorSet has files (1). Each has a name (1) and imports (3).
    let texts = |file: &'static [u8], number: u32| {
        Fields::new(file).filter(move |field| field.id == number).map(|field| field.as_bytes())
    };
    let files: BTreeMap<&[u8], &'static [u8]> =
        texts(set, 1).filter_map(|file| Some((texts(file, 1).next()?, file))).collect();
    let mut wanted = BTreeSet::new();
    let mut left = vec![root];
    while let Some(name) = left.pop() {
        if let Some(file) = files.get(name).filter(|_| wanted.insert(name)) {
            left.extend(texts(file, 3));
        }
    }
    let mut out = Vec::new();
    for name in wanted {
        let file = files.get(name).copied().unwrap_or_default();
        // Field 1 with a length.
        out.push(0x0a);
        let mut length = file.len();
        while length >= 0x80 {
            out.push(u8::try_from(length & 0x7f).unwrap_or(0) | 0x80);
            length >>= 7;
        }
        out.push(u8::try_from(length).unwrap_or(0));
        out.extend_from_slice(file);
    }
    out
}

/// The descriptor of `TraceConfig`.
pub(crate) fn message() -> Result<MessageDescriptor, Failure> {
    // To decode the schema takes milliseconds, and the whole one would take ten times as long.
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    message_of(&POOL, "perfetto.protos.TraceConfig", || {
        DescriptorPool::decode(&*files_with_imports(esatto_schema::FILE_DESCRIPTOR_SET, TRACE_CONFIG_FILE))
    })
}

/// The descriptor of a message of the whole schema, by its full name.
pub(crate) fn schema_message(name: &str) -> Result<MessageDescriptor, Failure> {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    message_of(&POOL, name, || DescriptorPool::decode(esatto_schema::FILE_DESCRIPTOR_SET))
}

fn message_of(
    pool: &OnceLock<DescriptorPool>,
    name: &str,
    load: impl FnOnce() -> Result<DescriptorPool, prost_reflect::DescriptorError>,
) -> Result<MessageDescriptor, Failure> {
    let what = "cannot load the built-in schema";
    if pool.get().is_none() {
        let loaded = load().attempt(|| what.to_owned())?;
        let _ = pool.set(loaded);
    }
    let message = pool.get().and_then(|pool| pool.get_message_by_name(name));
    message.ok_or_else(|| Failure::new(what, format!("it has no {name}")))
}

fn from_text(name: &str, text: &[u8]) -> Result<TraceConfig, Failure> {
    let parser = esatto_text_format::Parser::new(message()?).file_name(name);
    let encoded = parser.parse(text).map_err(|errors| {
        // No field of the text format begins like an object of JSON.
        if text.trim_ascii_start().starts_with(b"{") {
            let word = ShellWord::new(name);
            let hint = format!("`esatto config convert {word} --to text -o CONFIG.cfg` makes a text of it");
            return Failure::new(format!("cannot use the config {name}"), "it is JSON, not text or binary").hint(hint);
        }
        let noun = if errors.len() == 1 { "mistake" } else { "mistakes" };
        Failure::list(format!("the config has {} {noun}", errors.len()), errors)
    })?;
    if encoded.is_empty() {
        return Err(Failure::new("the config is empty", "it would record nothing")
            .hint("leave out -c to record all track events"));
    }
    TraceConfig::decode(&encoded).map_err(|_| Failure::new("cannot use the config", "its encoding is broken"))
}

/// Fills in the fields that every client sets (`docs/spec/cli.md` §5), and the time if the command
/// line has one.
pub(crate) fn complete(config: &mut TraceConfig, time: Option<Duration>) -> Result<(), Failure> {
    if let Some(time) = time {
        if MissingTrigger::mode(config).is_some() {
            let timeout = config.trigger_config.as_ref().and_then(|triggers| triggers.trigger_timeout_ms);
            let timeout = timeout.map_or_else(String::new, |ms| format!(", here {ms} ms"));
            return Err(Failure::new("-t is not possible", "the config has triggers, which end the recording").hint(
                format!("trigger_timeout_ms in its trigger_config is the longest time for which it waits{timeout}"),
            ));
        }
        // `-t` accepts no more than 32 bits of milliseconds.
        config.duration_ms = Some(u32::try_from(time.as_millis()).unwrap_or(u32::MAX));
    }
    if config.trace_uuid_msb.unwrap_or(0) == 0 && config.trace_uuid_lsb.unwrap_or(0) == 0 {
        config.trace_uuid_msb = Some(random()?);
        config.trace_uuid_lsb = Some(random()?);
    }
    Ok(())
}

/// Refuses configs that record nothing, whichever programs there are.
pub(crate) fn check(config: &TraceConfig) -> Result<(), Failure> {
    match refusal(config) {
        None => Ok(()),
        Some(Refusal { why, remedy, .. }) => Err(Failure::new("cannot use the config", why).hint(remedy)),
    }
}

/// Returns whether a session with this config starts only when its program asks for it.
pub(crate) fn waits_for_its_program(config: &TraceConfig) -> bool {
    let mode = config.trigger_config.as_ref().and_then(|config| config.trigger_mode);
    config.deferred_start == Some(true) && mode != Some(TriggerMode::START_TRACING)
}

/// Bytes of the largest config that a service takes: it travels in one message
/// (`docs/spec/service.md`, bounds).
const LARGEST_BYTES: usize = 131_039;

/// Refuses configs that do not fit into a message to the service.
pub(crate) fn check_size(config: &TraceConfig) -> Result<(), Failure> {
    let size = config.encode().len();
    if size <= LARGEST_BYTES {
        return Ok(());
    }
    let why = format!("encoded it has {size} bytes, and a service takes at most {LARGEST_BYTES}, one message");
    Err(Failure::new("cannot use the config", why).hint(
        "use patterns such as \"sched/*\" in place of long lists, or record with several smaller configs at once",
    ))
}

/// Reason why a config records nothing, whichever programs there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// Path of the field that is wrong; empty if one is missing.
    pub(crate) field: &'static str,
    pub(crate) why: &'static str,
    pub(crate) remedy: &'static str,
}

pub(crate) fn refusal(config: &TraceConfig) -> Option<Refusal> {
    if config.data_sources.is_empty() && !config.activate_triggers.is_empty() {
        return Some(Refusal {
            field: "activate_triggers[0]",
            why: "it has only activate_triggers, and `record` sends no triggers",
            remedy: "a program sends them with `Tracing::activate_triggers`, or Perfetto's client with \
                     `perfetto --txt -c CONFIG`",
        });
    }
    if config.data_sources.is_empty() {
        return Some(Refusal {
            field: "",
            why: "it has no data_sources",
            remedy: "add for instance `data_sources { config { name: \"track_event\" } }`",
        });
    }
    let has_triggers = config.trigger_config.as_ref().map(|config| !config.triggers.is_empty())?;
    match (has_triggers, MissingTrigger::mode(config)) {
        (true, None) => Some(Refusal {
            field: "trigger_config",
            why: "its trigger_config has triggers, but no trigger_mode: no trigger could end the recording",
            remedy: "add `trigger_mode: STOP_TRACING`, START_TRACING or CLONE_SNAPSHOT to it",
        }),
        (false, Some(_)) => Some(Refusal {
            field: "trigger_config",
            why: "its trigger_config has a mode, but no triggers",
            remedy: "add for instance `triggers { name: \"slow_frame\" }` to it",
        }),
        _ => None,
    }
}

/// Returns a line for each group of fields of the config that have no effect.
pub(crate) fn warnings(config: &TraceConfig) -> Vec<String> {
    let lone = lone_fields(config);
    let verb = if lone.len() == 1 { "has" } else { "have" };
    let lone = (!lone.is_empty())
        .then(|| format!("{} {verb} no effect: the config lacks `write_into_file: true`.", lone.join(", ")));
    lone.into_iter().chain(period_warning(config)).chain(discard_warning(config)).collect()
}

/// Returns a line about the first buffer that ends a recording into a file early: the service reads
/// it again and again, but with DISCARD it takes its size only once.
fn discard_warning(config: &TraceConfig) -> Option<String> {
    let index = discarding_buffers_of_file(config).next()?;
    Some(format!(
        "Buffer {index} has the fill policy DISCARD: after its size was written once, nothing more gets into the file. \
         Use `fill_policy: RING_BUFFER` with write_into_file."
    ))
}

/// Returns the indices of the buffers that the service writes into a file, and that stop when they
/// are full.
pub(crate) fn discarding_buffers_of_file(config: &TraceConfig) -> impl Iterator<Item = usize> + '_ {
    let is_in_file = config.write_into_file == Some(true);
    let buffers = config.buffers.iter().enumerate().filter(move |(_, buffer)| is_in_file && discards(buffer));
    buffers.map(|(index, _)| index)
}

/// Returns whether a buffer keeps its oldest data when it is full, and drops the newer ones.
pub(crate) fn discards(buffer: &BufferConfig) -> bool {
    buffer.fill_policy == Some(FillPolicy::DISCARD)
}

/// Returns the names of fields that need `write_into_file`, if the config lacks it.
pub(crate) fn lone_fields(config: &TraceConfig) -> Vec<&'static str> {
    let is_set = [
        ("output_path", config.output_path.as_ref().is_some_and(|path| !path.is_empty())),
        ("file_write_period_ms", config.file_write_period_ms.unwrap_or(0) > 0),
        ("max_file_size_bytes", config.max_file_size_bytes.unwrap_or(0) > 0),
    ];
    let is_lone = config.write_into_file != Some(true);
    is_set.into_iter().filter(|(_, is_set)| *is_set && is_lone).map(|(name, _)| name).collect()
}

/// Returns a line about a flush period if the service flushes less often (`docs/spec/service.md`
/// §12).
pub(crate) fn period_warning(config: &TraceConfig) -> Option<String> {
    let period_ms = config.flush_period_ms.filter(|&ms| ms != 0 && config.write_into_file == Some(true))?;
    let write_period_ms = config.file_write_period_ms.filter(|&ms| ms != 0).unwrap_or(FILE_FLUSH_PERIOD_MS);
    let used_ms = match config.write_flush_mode {
        Some(WriteFlushMode::WRITE_FLUSH_DISABLED) => period_ms,
        Some(WriteFlushMode::WRITE_FLUSH_ENABLED) => write_period_ms,
        _ => write_period_ms.max(FILE_FLUSH_PERIOD_MS),
    };
    (used_ms > period_ms).then(|| {
        format!(
            "flush_period_ms has no effect: with write_into_file, the service flushes every {used_ms} ms. To flush more \
             often, add `write_flush_mode: WRITE_FLUSH_DISABLED` to the config."
        )
    })
}

fn random() -> Result<i64, Failure> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .attempt(|| "cannot get random bytes".to_owned())?;
    Ok(i64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_config_is_told_from_a_trace() {
        // A timestamp and a sequence.
        assert!(is_trace_of_service(&[0x0a, 4, 0x40, 7, 0x50, 1]));
        assert!(!is_trace_of_service(&track_events(false).encode()));
    }

    #[test]
    fn all_presets_are_configs() {
        for preset in esatto_probes::presets::ALL {
            let config =
                super::preset(preset.name, true).unwrap_or_else(|failure| panic!("{}: {failure}", preset.name));
            check(&config).unwrap();
            assert!(warnings(&config).is_empty(), "{}", preset.name);
            assert!(crate::machine_sources::are_in(&config), "{}", preset.name);
            let encoded = config.encode();
            let has = |text: &[u8]| encoded.windows(text.len()).any(|part| part == text);
            assert!(
                has(b"task/task_newtask") && has(b"task/task_rename"),
                "each thread has its process: {}",
                preset.name
            );
            assert!(has(b"linux.process_stats") && has(b"track_event"), "{}", preset.name);
        }
    }

    #[test]
    fn a_config_that_is_too_long_is_refused() {
        let dir = crate::private_service::Folder::create().unwrap();
        let path = dir.path().join("long.cfg");
        // The end would be cut without a word.
        let text = ["duration_ms: 1\n", &" ".repeat(16 << 20), "no_such_field: 1"].concat();
        std::fs::write(&path, text).unwrap();
        assert!(from_file(&path).unwrap_err().to_string().contains("more than 16 MiB"));
    }

    #[test]
    fn a_config_in_text_format_is_read() {
        let text = b"buffers { size_kb: 1024 } data_sources { config { name: 'track_event' } } duration_ms: 7";
        let mut config = from_text("x", text).unwrap();
        assert_eq!(config.buffers[0].size_kb, Some(1024));
        assert_eq!(config.duration_ms, Some(7));
        complete(&mut config, Some(Duration::from_secs(2))).unwrap();
        assert_eq!(config.duration_ms, Some(2000));
        assert_ne!(config.trace_uuid_msb, None);
    }

    #[test]
    fn an_encoded_config_is_read_and_other_files_are_refused_in_one_line() {
        let config = track_events(false);
        assert!(!is_text(&config.encode()));
        assert_eq!(from_encoding("x", &config.encode()).unwrap(), config);
        for other in [&b"\x7fELF\x02\x01\x01\0\0"[..], b"\0\0\0", b"\x1f\x8b\x08"] {
            assert!(!is_text(other));
            let failure = from_encoding("x", other).unwrap_err().to_string();
            assert!(failure.contains("neither text nor") && !failure.contains('\n'), "{failure}");
        }
        assert!(is_text("# Größe\nduration_ms: 7\r\n\t".as_bytes()));
    }

    #[test]
    fn a_flush_period_that_the_service_does_not_keep_is_told() {
        let warns = |text: &str| {
            let text = format!("write_into_file: true {text}");
            period_warning(&from_text("x", text.as_bytes()).unwrap()).is_some()
        };
        assert!(warns("flush_period_ms: 100"));
        assert!(warns("flush_period_ms: 5000 file_write_period_ms: 60000"));
        assert!(warns("flush_period_ms: 4000 write_flush_mode: WRITE_FLUSH_ENABLED"));
        assert!(!warns("flush_period_ms: 30000 file_write_period_ms: 2500"));
        assert!(!warns("flush_period_ms: 5000 file_write_period_ms: 100"));
        assert!(!warns("flush_period_ms: 100 write_flush_mode: WRITE_FLUSH_DISABLED"));
        assert!(!warns("") && warnings(&track_events(false)).is_empty());
    }

    #[test]
    fn fields_of_a_file_need_one() {
        let warnings = |text: &str| warnings(&from_text("x", text.as_bytes()).unwrap());
        let fields = "output_path: '/tmp/x' max_file_size_bytes: 7 ";
        let line = "output_path, max_file_size_bytes have no effect: the config lacks `write_into_file: true`.";
        assert_eq!(warnings(fields), [line]);
        assert!(warnings(&format!("{fields}write_into_file: true")).is_empty());
    }

    #[test]
    fn a_file_needs_buffers_that_go_on() {
        let warnings = |text: &str| warnings(&from_text("x", text.as_bytes()).unwrap());
        let buffers = "buffers { size_kb: 64 } buffers { size_kb: 64 fill_policy: DISCARD } ";
        assert!(warnings(buffers).is_empty());
        let found = warnings(&format!("{buffers} write_into_file: true"));
        assert!(found.len() == 1 && found[0].starts_with("Buffer 1 has the fill policy DISCARD"), "{found:?}");
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        let failure = from_text("my.cfg", b"buffers {\n  size_kbb: 1024\n}").unwrap_err().to_string();
        assert!(
            failure.contains("1 mistake") && failure.contains("my.cfg:2:3") && failure.contains("size_kb"),
            "{failure}"
        );
        assert!(from_text("x", b"# nothing").unwrap_err().to_string().contains("empty"));
    }
}
