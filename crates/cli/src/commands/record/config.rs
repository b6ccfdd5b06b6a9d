//! Config of a recording, from the options of `esatto record`.

use core::time::Duration;

use esatto_probes::presets;
use esatto_schema::TraceConfig;
use esatto_schema::trace_config::buffer_config::FillPolicy;
use esatto_schema::trace_config::trigger_config::{Trigger, TriggerMode};
use esatto_schema::trace_config::{IncrementalStateConfig, TriggerConfig};

use crate::args::{OnTrigger, Record};
use crate::category_patterns::track_events;
use crate::failure::Failure;
use crate::recording_session::Transfer;
use crate::ring_size::resize;
use crate::service_connection::address;
use crate::{machine_sources, trace_config};

/// Time between two writes of a private service into its file.
const PRIVATE_WRITE_PERIOD_MS: u32 = 500;
/// Time between two writes of a service into the file of a long recording.
const WRITE_PERIOD_MS: u32 = 2500;
/// Time between two flushes of a long recording.
const FLUSH_PERIOD_MS: u32 = 5000;
/// Longest time for which a ring may lack names that it has lost.
const CLEAR_PERIOD_MS: u32 = 1000;
/// Longest wait for a trigger, if the user says nothing else.
const TRIGGER_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Time after a trigger that is still recorded.
const STOP_DELAY_MS: u32 = 1000;

/// Returns the config that the options ask for. `is_service` tells that this command is about to
/// become the service of the machine.
pub(super) fn config(args: &Record, is_service: bool) -> Result<TraceConfig, Failure> {
    let mut config = match (&args.config, &args.preset) {
        (Some(path), _) => trace_config::from_file(path)?,
        (None, Some(preset)) => trace_config::preset(preset, args.all_categories)?,
        (None, None) if is_service || args.command.is_empty() && machine_sources::are_offered(&address()?) => {
            trace_config::preset(presets::DEFAULT, args.all_categories)?
        }
        (None, None) => trace_config::track_events(args.all_categories),
    };
    trace_config::check(&config)?;
    if trace_config::waits_for_its_program(&config) {
        let why = "with `deferred_start`, a session waits until its program starts it, and `record` starts at once";
        let failure = Failure::new("cannot use the config", why);
        return Err(failure.hint("leave it out; `--at` names a later start"));
    }
    if !args.category.is_empty() {
        trace_config::set_track_events(&mut config, &track_events(&args.category));
    }
    if let Some(ring_kb) = args.ring_kb {
        resize(&mut config, ring_kb);
    }
    if args.keeps_ring() {
        config.buffers.iter_mut().for_each(|buffer| buffer.fill_policy = Some(FillPolicy::RING_BUFFER));
        // Perfetto's service does not ask for names again when a ring has lost them.
        config.incremental_state_config = Some(IncrementalStateConfig {
            clear_period_ms: Some(CLEAR_PERIOD_MS),
            ..IncrementalStateConfig::default()
        });
    }
    if args.long.is_some() {
        config.write_into_file = Some(true);
        config.flush_period_ms = Some(FLUSH_PERIOD_MS);
        config.max_file_size_bytes = args.max_size_kb.map(|kb| u64::from(kb) << 10);
        if args.command.is_empty() {
            config.file_write_period_ms = Some(WRITE_PERIOD_MS);
        }
    }
    if !args.command.is_empty() && config.write_into_file == Some(true) {
        // The service ends with this program, so what it has not written is lost if both are
        // killed. By default it writes every 5 s.
        config.file_write_period_ms.get_or_insert(PRIVATE_WRITE_PERIOD_MS);
    }
    if args.trigger.is_empty() {
        trace_config::complete(&mut config, args.time)?;
    } else {
        config.trigger_config = Some(triggers(args));
        trace_config::complete(&mut config, None)?;
    }
    if args.at.is_some() {
        defer(&mut config)?;
    }
    Ok(config)
}

/// Lets the service prepare the recording, and start it at a further call.
fn defer(config: &mut TraceConfig) -> Result<(), Failure> {
    use crate::missing_trigger::MissingTrigger;

    if MissingTrigger::mode(config) == Some(TriggerMode::START_TRACING) {
        let why = "a trigger starts the recording, so no time of the clock can";
        return Err(Failure::new("--at is not possible", why).hint("leave out --at, or the trigger that starts"));
    }
    config.deferred_start = Some(true);
    Ok(())
}

fn triggers(args: &Record) -> TriggerConfig {
    let ms = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    let (mode, stop_delay_ms, timeout) = match args.on_trigger {
        OnTrigger::Stop => (TriggerMode::STOP_TRACING, STOP_DELAY_MS, args.time),
        OnTrigger::Snapshot => (TriggerMode::CLONE_SNAPSHOT, STOP_DELAY_MS, args.time),
        // The recording lasts so long; 0 is without end.
        OnTrigger::Start => (TriggerMode::START_TRACING, args.time.map_or(0, ms), None),
    };
    let trigger = |name: &String| Trigger {
        name: Some(name.as_str().into()),
        stop_delay_ms: Some(stop_delay_ms),
        ..Trigger::default()
    };
    TriggerConfig {
        trigger_mode: Some(mode),
        triggers: args.trigger.iter().map(trigger).collect(),
        trigger_timeout_ms: Some(ms(timeout.unwrap_or(TRIGGER_TIMEOUT))),
        ..TriggerConfig::default()
    }
}

/// Returns the way of the trace into the file.
pub(super) fn transfer(config: &TraceConfig, args: &Record) -> Transfer {
    if config.write_into_file == Some(true) {
        Transfer::ByService
    } else if args.config.is_some() || args.keeps_ring() {
        Transfer::AtEnd
    } else {
        Transfer::Drain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser as _;

    fn parsed(args: &[&str]) -> Record {
        // With a command, no service is asked.
        let cli = Cli::parse_from(["esatto", "record"].iter().chain(args).chain(&["--", "app"]));
        let Command::Record(record) = cli.command else { panic!("not a record") };
        record
    }

    fn of(args: &[&str]) -> (TraceConfig, Transfer) {
        let args = parsed(args);
        let config = config(&args, false).unwrap_or_else(|failure| panic!("{failure}"));
        let transfer = transfer(&config, &args);
        (config, transfer)
    }

    #[test]
    fn each_way_to_record_has_its_transfer() {
        assert_eq!(of(&[]).1, Transfer::Drain);
        assert_eq!(of(&["--ring", "1M"]).1, Transfer::AtEnd);
        assert_eq!(of(&["--trigger", "x"]).1, Transfer::AtEnd);
        assert_eq!(of(&["--trigger", "x", "--on-trigger", "start"]).1, Transfer::Drain);
        assert_eq!(of(&["--long", "x"]).1, Transfer::ByService);
        let dir = crate::private_service::Folder::create().unwrap();
        let path = dir.path().join("my.cfg");
        std::fs::write(&path, "data_sources { config { name: 'track_event' } }").unwrap();
        assert_eq!(of(&["-c", path.to_str().unwrap()]).1, Transfer::AtEnd);
    }

    #[test]
    fn a_ring_is_shared_by_the_buffers() {
        for preset in presets::ALL {
            let config = of(&["--preset", preset.name, "--ring", "8M"]).0;
            let total: u32 = config.buffers.iter().filter_map(|buffer| buffer.size_kb).sum();
            assert!((8000..=8192 + 64).contains(&total), "{}: {total}", preset.name);
        }
        assert_eq!(of(&["--ring", "64M"]).0.buffers[0].size_kb, Some(64 << 10));
    }

    #[test]
    fn categories_replace_those_of_the_preset() {
        for args in [&["--category", "net,db.*"][..], &["--preset", "sched", "--category", "net", "--category", "db.*"]]
        {
            let config = of(args).0;
            let events: Vec<_> = config
                .data_sources
                .iter()
                .filter_map(|source| source.config.as_deref()?.track_event_config.as_deref())
                .collect();
            assert_eq!(events.len(), 1, "{args:?}");
            assert_eq!((events[0].enabled_categories.len(), events[0].disabled_categories.len()), (2, 1), "{args:?}");
        }
        let events = track_events(&["-db.rows".to_owned(), "tag:slow".to_owned()]);
        assert_eq!(events.enabled_categories, ["*"]);
        assert_eq!((events.disabled_categories, events.enabled_tags), (vec!["db.rows".into()], vec!["slow".into()]));
        assert_eq!(events.disabled_tags, ["debug"]);
    }

    #[test]
    fn the_time_means_what_the_trigger_makes_of_it() {
        let of = |effect: &str| {
            let config = of(&["--trigger", "a", "--trigger", "b", "--on-trigger", effect, "-t", "5s"]).0;
            assert_eq!(config.duration_ms, None);
            let triggers = config.trigger_config.unwrap();
            assert_eq!(triggers.triggers.len(), 2);
            (triggers.trigger_timeout_ms, triggers.triggers[1].stop_delay_ms)
        };
        assert_eq!((of("stop"), of("snapshot")), ((Some(5000), Some(1000)), (Some(5000), Some(1000))));
        assert_eq!(of("start"), (Some(86_400_000), Some(5000)));
    }

    #[test]
    fn a_trigger_and_the_clock_cannot_both_start() {
        let args = parsed(&["--trigger", "x", "--on-trigger", "start", "--at", "/1s"]);
        assert!(config(&args, false).unwrap_err().to_string().contains("a trigger starts the recording"));
        assert_eq!(of(&["--trigger", "x", "--at", "/1s"]).0.deferred_start, Some(true));
    }
}
