//! Combinations of options that make no sense (`docs/spec/cli.md` §4).

use esatto_schema::TraceConfig;

use super::options::{Background, Format, Options};

/// Checks the options themselves.
///
/// # Errors
///
/// A line that names the first wrong combination.
pub(crate) fn check_options(options: &Options) -> Result<(), String> {
    let attaches = options.attach.is_some() || options.is_detached.is_some();
    let queries = options.query.is_some();
    let saves = options.save_for_bugreport || options.save_all_for_bugreport;
    let is_light = options.light_mode.is_used();
    let has_config = options.config.is_some() || is_light;
    let acts_on_sessions = attaches || queries || options.save_all_for_bugreport;
    let rules = [
        (
            queries && (attaches || options.detach.is_some() || options.background.is_some()),
            "--query cannot be combined with any other argument",
        ),
        (options.is_long && !queries, "--long can only be used with --query"),
        (attaches && options.detach.is_some(), "--attach and --detach are mutually exclusive"),
        (options.has_two_formats, "--txt and --txt-lossy are mutually exclusive"),
        (options.detach.is_some() && options.background.is_some(), "--detach and --background are mutually exclusive"),
        (options.stop && !attaches, "--stop is supported only in combination with --attach"),
        (
            saves
                && (attaches
                    || options.detach.is_some()
                    || queries
                    || is_light
                    || options.background == Some(Background::WhenStarted)),
            "--save-for-bugreport cannot be combined with any other argument",
        ),
        (
            options.clone_id.is_some() && options.clone_name.is_some(),
            "--clone and --clone-by-name are mutually exclusive",
        ),
        (options.clone_for_bugreport && !options.clones(), "--clone-for-bugreport requires --clone or --clone-by-name"),
        (acts_on_sessions && has_config, "Cannot specify a trace config with this option"),
        (
            options.config.is_some() && is_light,
            "Cannot specify both -c/--config and any of --time, --size, --buffer, --app, ATRACE_CAT, FTRACE_EVENT",
        ),
        (options.format != Format::Encoded && options.config.is_none(), "--txt and --txt-lossy need -c/--config"),
        (acts_on_sessions && options.out.is_some(), "Can't pass an --out file with this option"),
    ];
    rules.into_iter().find(|(is_broken, _)| *is_broken).map_or(Ok(()), |(_, text)| Err(text.to_owned()))
}

/// Checks the options of a recording with its config.
///
/// # Errors
///
/// A line that names the first wrong combination.
pub(crate) fn check_config(options: &Options, config: &TraceConfig) -> Result<(), String> {
    let delay = config.cmd_trace_start_delay.as_ref();
    let uploads = config
        .incident_report_config
        .as_ref()
        .is_some_and(|report| report.destination_package.as_ref().is_some_and(|package| !package.is_empty()))
        || config
            .android_report_config
            .as_ref()
            .is_some_and(|report| report.reporter_service_package.as_ref().is_some_and(|package| !package.is_empty()));
    if delay.is_some_and(|delay| delay.min_delay_ms.is_some() != delay.max_delay_ms.is_some()) {
        return Err("cmd_trace_start_delay needs both min_delay_ms and max_delay_ms".to_owned());
    }
    if delay.is_some_and(|delay| delay.min_delay_ms > delay.max_delay_ms) {
        return Err("cmd_trace_start_delay has a min_delay_ms above its max_delay_ms".to_owned());
    }
    if uploads {
        return Err("the config asks for an upload of the trace, which is only supported on Android".to_owned());
    }
    let output_path = path_of(config);
    if let Some(path) = &output_path {
        if options.out.is_some() {
            return Err("Can't pass --out if the config has an output_path".to_owned());
        }
        if std::fs::symlink_metadata(path).is_ok() {
            return Err(format!("The output_path {path:?} of the config exists already; choose another name"));
        }
    }
    if options.out.is_none() && output_path.is_none() {
        return Err("--out is required".to_owned());
    }
    if options.detach.is_some() && !config.write_into_file.unwrap_or(false) {
        return Err("TraceConfig's write_into_file must be true when using --detach".to_owned());
    }
    Ok(())
}

/// Returns the file that the service is to create.
pub(crate) fn path_of(config: &TraceConfig) -> Option<std::path::PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = config.output_path.as_ref().filter(|path| !path.is_empty())?;
    Some(std::ffi::OsStr::from_bytes(path.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::super::options::Request;
    use super::*;

    fn options(line: &str) -> Options {
        match Options::parse(line.split_whitespace().map(Into::into)) {
            Ok(Request::Run(options)) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn said(line: &str) -> String {
        check_options(&options(line)).err().unwrap_or_default()
    }

    #[test]
    fn each_rule_has_its_line() {
        for (line, want) in [
            ("--query --attach k", "--query cannot be combined"),
            ("--query -d", "--query cannot be combined"),
            ("--long", "--long can only"),
            ("--attach k --detach k", "--attach and --detach"),
            ("-c f --txt --txt-lossy", "--txt and --txt-lossy are"),
            ("--detach k -d -c f", "--detach and --background"),
            ("--stop -c f", "--stop is supported only"),
            ("--save-for-bugreport -t 1s", "--save-for-bugreport cannot"),
            ("--save-all-for-bugreport -D", "--save-for-bugreport cannot"),
            ("--clone 1 --clone-by-name n", "--clone and --clone-by-name"),
            ("--clone-for-bugreport", "--clone-for-bugreport requires"),
            ("--attach k -t 1s", "Cannot specify a trace config"),
            ("-c f -t 1s", "Cannot specify both"),
            ("--query -o x", "Can't pass an --out file"),
            ("--is_detached k --stop", ""),
            ("--query-raw", ""),
            ("-c f --txt -o x -D", ""),
            ("--save-for-bugreport -o x", ""),
        ] {
            let said = said(line);
            assert!(said.starts_with(want) && said.is_empty() == want.is_empty(), "{line}: {said}");
        }
    }

    #[test]
    fn the_config_decides_who_makes_the_file() {
        let said = |line: &str, config: TraceConfig| check_config(&options(line), &config).err().unwrap_or_default();
        let plain = TraceConfig::default;
        assert_eq!(said("-c f -o x", plain()), "");
        assert_eq!(said("-c f", plain()), "--out is required");
        let own = |path: &str| TraceConfig { output_path: Some(path.into()), ..plain() };
        assert_eq!(said("-c f", own("/nowhere/at/all")), "");
        assert!(said("-c f -o x", own("/nowhere/at/all")).starts_with("Can't pass --out"));
        assert!(said("-c f", own("/")).contains("exists already"));
        assert!(said("-c f --detach k -o x", plain()).starts_with("TraceConfig's write_into_file"));
        let file = TraceConfig { write_into_file: Some(true), ..plain() };
        assert_eq!(said("-c f --detach k -o x", file), "");
    }
}
