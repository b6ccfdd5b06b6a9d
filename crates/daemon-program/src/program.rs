//! [`Program`]: a daemon as its command line knows it.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::command_line::{self, Known};
use crate::process::print;
use crate::{Verbosity, background};

const VERSION: &str = concat!("Esatto v", env!("CARGO_PKG_VERSION"), "\n");

/// A daemon as its command line knows it. The value has the settings that the options make.
///
/// All daemons have the options `--background`, `--log-level`, `--verbose`, `--version` and
/// `--help`.
pub trait Program: Default {
    /// Name of the executable.
    const NAME: &'static str;
    /// Help, in which `NAME [OPTIONS]` is the usage.
    const HELP: &'static str;
    /// Meaning of an option that other daemons do not have.
    type Meaning: Copy + 'static;
    /// These options.
    const OPTIONS: &'static [Known<Self::Meaning>];

    /// Sets what an option means. The value is empty for an option that takes none.
    ///
    /// # Errors
    ///
    /// A line that names the option and the mistake.
    fn set(&mut self, option: Self::Meaning, value: String) -> Result<(), String>;

    /// Serves until it is stopped, or does what else the settings say.
    ///
    /// # Errors
    ///
    /// A line that says what failed.
    fn run(self, start: &Start<'_>) -> Result<ExitCode, String>;
}

/// The command that started a daemon, and the options that all daemons have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Start<'a> {
    /// The user's command, such as `esatto traced`.
    pub command: &'a str,
    /// Level of the log.
    pub verbosity: Verbosity,
    /// True if the user wants his terminal back.
    pub background: bool,
}

/// Command that the arguments stand for.
#[derive(Debug, PartialEq, Eq)]
enum Invocation<'a, P> {
    Run(P, Start<'a>),
    Version,
    Help,
}

#[derive(Clone, Copy)]
enum Meaning<T> {
    Background,
    Help,
    LogLevel,
    Verbose,
    Version,
    /// An option of this daemon.
    Own(T),
}

impl Start<'_> {
    /// Starts the process that serves, if the user wants his terminal back and this is not yet that
    /// process. Then returns the exit code of this one.
    ///
    /// # Errors
    ///
    /// A line that says why it cannot be started.
    pub fn in_background(&self) -> Result<Option<ExitCode>, String> {
        if !self.background || background::is_child() {
            return Ok(None);
        }
        background::start().map(Some).map_err(|e| format!("cannot start in the background: {e}"))
    }
}

/// Runs a daemon with these arguments, without the program name. `command` is how the user started
/// it; the help and the errors name it. An error is one line on stderr.
#[expect(clippy::print_stderr, reason = "all that `main` does")]
pub fn run<P: Program>(command: &str, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    try_run::<P>(command, args).unwrap_or_else(|line| {
        eprintln!("{command}: {line}");
        ExitCode::FAILURE
    })
}

/// Returns the help of a daemon that the user starts by this command.
pub fn help<P: Program>(command: &str) -> String {
    P::HELP.replace(&format!("{} [OPTIONS]", P::NAME), &format!("{command} [OPTIONS]"))
}

/// Parses the arguments of a daemon, without running it.
///
/// # Errors
///
/// A line that names the mistake, or that the arguments ask for help or the version.
pub fn parse<P: Program>(args: impl IntoIterator<Item = OsString>) -> Result<(P, Start<'static>), String> {
    match Invocation::parse(P::NAME, args)? {
        Invocation::Run(program, start) => Ok((program, start)),
        Invocation::Version => Err(VERSION.to_owned()),
        Invocation::Help => Err(help::<P>(P::NAME)),
    }
}

fn try_run<P: Program>(command: &str, args: impl IntoIterator<Item = OsString>) -> Result<ExitCode, String> {
    let invocation = Invocation::<P>::parse(command, args).map_err(|line| format!("{line} (see {command} --help)"))?;
    match invocation {
        Invocation::Help => print(&help::<P>(command)),
        Invocation::Version => print(VERSION),
        Invocation::Run(program, start) => program.run(&start),
    }
}

impl<'a, P: Program> Invocation<'a, P> {
    fn parse(command: &'a str, args: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut start = Start { command, verbosity: Verbosity::default(), background: false };
        let mut program = P::default();
        for (meaning, value) in command_line::parse(args, &options(P::OPTIONS))? {
            let value = value.unwrap_or_default();
            match meaning {
                Meaning::Help => return Ok(Self::Help),
                Meaning::Version => return Ok(Self::Version),
                Meaning::Background => start.background = true,
                Meaning::Verbose => start.verbosity.raise(),
                Meaning::LogLevel => start.verbosity = Verbosity::parse(&value)?,
                Meaning::Own(option) => program.set(option, value)?,
            }
        }
        Ok(Self::Run(program, start))
    }
}

/// Returns the options of all daemons, and these.
fn options<T: Copy>(own: &[Known<T>]) -> Vec<Known<Meaning<T>>> {
    let common = [
        ("background", None, false, Meaning::Background),
        ("help", Some('h'), false, Meaning::Help),
        ("log-level", None, true, Meaning::LogLevel),
        ("verbose", Some('v'), false, Meaning::Verbose),
        ("version", None, false, Meaning::Version),
    ];
    let own = own.iter().map(|known| (known.long, known.short, known.takes_value, Meaning::Own(known.meaning)));
    let known = |(long, short, takes_value, meaning)| Known { long, short, takes_value, meaning };
    common.into_iter().chain(own).map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Eq)]
    struct Clock {
        zone: String,
        is_round: bool,
    }

    #[derive(Clone, Copy)]
    enum ClockOption {
        Zone,
        Round,
    }

    impl Program for Clock {
        const NAME: &'static str = "clock";
        const HELP: &'static str = "Usage: TZ=x clock [OPTIONS]\n\n--zone of the clock\n";
        type Meaning = ClockOption;
        const OPTIONS: &'static [Known<ClockOption>] = &[
            Known { long: "zone", short: None, takes_value: true, meaning: ClockOption::Zone },
            Known { long: "round", short: Some('r'), takes_value: false, meaning: ClockOption::Round },
        ];

        fn set(&mut self, option: ClockOption, value: String) -> Result<(), String> {
            match option {
                ClockOption::Zone if value.is_empty() => return Err("cannot use --zone: it is empty".to_owned()),
                ClockOption::Zone => self.zone = value,
                ClockOption::Round => self.is_round = true,
            }
            Ok(())
        }

        fn run(self, _: &Start<'_>) -> Result<ExitCode, String> {
            Ok(ExitCode::SUCCESS)
        }
    }

    fn parsed(args: &[&str]) -> Result<(Clock, Start<'static>), String> {
        parse(args.iter().map(OsString::from))
    }

    #[test]
    fn a_daemon_has_its_own_options_and_those_of_all() {
        let (clock, start) = parsed(&["-rv", "--zone=UTC", "--background"]).unwrap();
        assert_eq!(clock, Clock { zone: "UTC".into(), is_round: true });
        let verbosity = Verbosity(log::LevelFilter::Debug);
        assert_eq!(start, Start { command: "clock", verbosity, background: true });
        assert!(parsed(&["--version"]).unwrap_err().starts_with("Esatto v"));
        assert_eq!(parsed(&["--zone="]).unwrap_err(), "cannot use --zone: it is empty");
        assert!(parsed(&["--log-level", "x"]).unwrap_err().contains("--log-level"));
    }

    #[test]
    fn the_help_names_the_command_of_the_user() {
        assert_eq!(help::<Clock>("my clock"), "Usage: TZ=x my clock [OPTIONS]\n\n--zone of the clock\n");
    }

    #[test]
    fn nothing_goes_to_the_background_unasked() {
        let start = Start { command: "clock", verbosity: Verbosity::default(), background: false };
        assert_eq!(start.in_background(), Ok(None));
    }
}
