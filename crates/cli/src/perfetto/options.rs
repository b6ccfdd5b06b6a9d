//! The command line of `perfetto` (`docs/spec/cli.md` §3).

use std::ffi::{OsStr, OsString};

use esatto_daemon_program::command_line::{self, Known};

use super::light_mode::LightMode;

/// The options that were given.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// File of the config; `-` is standard input.
    pub(crate) config: Option<OsString>,
    pub(crate) format: Format,
    /// Both `--txt` and `--txt-lossy` were given.
    pub(crate) has_two_formats: bool,
    /// Trace file; `-` is standard output.
    pub(crate) out: Option<OsString>,
    pub(crate) no_clobber: bool,
    pub(crate) light_mode: LightMode,
    pub(crate) background: Option<Background>,
    /// Descriptor that gets a byte once all data sources have started.
    pub(crate) notify_fd: Option<i32>,
    /// Key and value of each `--add-attribute`.
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) query: Option<Query>,
    pub(crate) is_long: bool,
    pub(crate) detach: Option<String>,
    pub(crate) attach: Option<String>,
    pub(crate) is_detached: Option<String>,
    pub(crate) stop: bool,
    pub(crate) clone_id: Option<u64>,
    pub(crate) clone_name: Option<String>,
    pub(crate) clone_for_bugreport: bool,
    pub(crate) save_for_bugreport: bool,
    pub(crate) save_all_for_bugreport: bool,
    pub(crate) statsd: StatsdIds,
}

/// Format of the config.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Encoded,
    Text,
    /// Text whose unknown fields and values are left out.
    LossyText,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Background {
    /// `-d`: the command ends at once.
    AtOnce,
    /// `-D`: it ends when all data sources have started.
    WhenStarted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    ForPeople,
    Encoded,
}

/// Ids that go into `statsd_metadata` of the config.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StatsdIds {
    pub(crate) alert: Option<i64>,
    pub(crate) config: Option<i64>,
    pub(crate) config_uid: Option<i32>,
    pub(crate) subscription: Option<i64>,
}

/// The wish of a command line.
#[derive(Debug)]
pub(crate) enum Request {
    Run(Box<Options>),
    Help,
    Version,
    /// An option without use on Linux was given; the text says so.
    Notice(&'static str),
}

/// A mistake in the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) text: String,
    /// The option is unknown or lacks its value, so the user may want to see all.
    pub(crate) wants_usage: bool,
}

impl Mistake {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), wants_usage: false }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opt {
    Help,
    Version,
    Config,
    Txt,
    TxtLossy,
    Out,
    NoClobber,
    Time,
    Buffer,
    Size,
    App,
    Background,
    BackgroundWait,
    NotifyFd,
    AddAttribute,
    Query,
    QueryRaw,
    Long,
    Detach,
    Attach,
    IsDetached,
    Stop,
    Clone,
    CloneByName,
    CloneForBugreport,
    SaveForBugreport,
    SaveAllForBugreport,
    AlertId,
    ConfigId,
    ConfigUid,
    SubscriptionId,
    Upload,
    Dropbox,
    NoGuardrails,
    ResetGuardrails,
}

const fn flag(long: &'static str, short: Option<char>, meaning: Opt) -> Known<Opt> {
    Known { long, short, takes_value: false, meaning }
}

const fn value(long: &'static str, short: Option<char>, meaning: Opt) -> Known<Opt> {
    Known { long, short, takes_value: true, meaning }
}

const KNOWN: &[Known<Opt>] = &[
    flag("help", Some('h'), Opt::Help),
    flag("version", None, Opt::Version),
    value("config", Some('c'), Opt::Config),
    flag("txt", None, Opt::Txt),
    flag("txt-lossy", None, Opt::TxtLossy),
    value("out", Some('o'), Opt::Out),
    flag("no-clobber", None, Opt::NoClobber),
    value("time", Some('t'), Opt::Time),
    value("buffer", Some('b'), Opt::Buffer),
    value("size", Some('s'), Opt::Size),
    value("app", Some('a'), Opt::App),
    flag("background", Some('d'), Opt::Background),
    flag("background-wait", Some('D'), Opt::BackgroundWait),
    value("notify-fd", None, Opt::NotifyFd),
    value("add-attribute", None, Opt::AddAttribute),
    // Its name in Perfetto v54 to v57.
    value("add-note", None, Opt::AddAttribute),
    flag("query", None, Opt::Query),
    flag("query-raw", None, Opt::QueryRaw),
    flag("long", None, Opt::Long),
    value("detach", None, Opt::Detach),
    value("attach", None, Opt::Attach),
    value("is_detached", None, Opt::IsDetached),
    value("is-detached", None, Opt::IsDetached),
    flag("stop", None, Opt::Stop),
    value("clone", None, Opt::Clone),
    value("clone-by-name", None, Opt::CloneByName),
    flag("clone-for-bugreport", None, Opt::CloneForBugreport),
    flag("save-for-bugreport", None, Opt::SaveForBugreport),
    flag("save-all-for-bugreport", None, Opt::SaveAllForBugreport),
    value("alert-id", None, Opt::AlertId),
    value("config-id", None, Opt::ConfigId),
    value("config-uid", None, Opt::ConfigUid),
    value("subscription-id", None, Opt::SubscriptionId),
    flag("upload", None, Opt::Upload),
    value("dropbox", None, Opt::Dropbox),
    flag("no-guardrails", None, Opt::NoGuardrails),
    flag("reset-guardrails", None, Opt::ResetGuardrails),
];

impl Options {
    /// Reads a command line, without the name of the program.
    pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Request, Mistake> {
        let line =
            command_line::split(args, KNOWN).map_err(|text| Mistake { wants_usage: true, ..Mistake::new(text) })?;
        let mut options = Self::default();
        for (opt, given) in line.options {
            let given = given.unwrap_or_default();
            match opt {
                Opt::Help => return Ok(Request::Help),
                Opt::Version => return Ok(Request::Version),
                Opt::ResetGuardrails => {
                    return Ok(Request::Notice(
                        "Guardrails no longer exist; the option is kept for scripts that use it.",
                    ));
                }
                Opt::Upload => return Err(Mistake::new("--upload is only supported on Android")),
                Opt::Dropbox => return Err(Mistake::new("--dropbox is only supported on Android")),
                Opt::NoGuardrails => {}
                _ => options.take(opt, given)?,
            }
        }
        options.light_mode.words = line.arguments.into_iter().map(text).collect::<Result<_, _>>()?;
        Ok(Request::Run(options.into()))
    }

    fn take(&mut self, opt: Opt, given: OsString) -> Result<(), Mistake> {
        match opt {
            Opt::Config => self.config = Some(given),
            Opt::Txt | Opt::TxtLossy => {
                let format = if opt == Opt::Txt { Format::Text } else { Format::LossyText };
                self.has_two_formats |= self.format != Format::Encoded && self.format != format;
                self.format = format;
            }
            Opt::Out => self.out = Some(given),
            Opt::NoClobber => self.no_clobber = true,
            Opt::Time => self.light_mode.time = Some(text(given)?),
            Opt::Buffer => self.light_mode.buffer = Some(text(given)?),
            Opt::Size => self.light_mode.size = Some(text(given)?),
            Opt::App => self.light_mode.apps.push(text(given)?),
            Opt::Background => self.background = Some(Background::AtOnce),
            Opt::BackgroundWait => self.background = Some(Background::WhenStarted),
            Opt::NotifyFd => self.notify_fd = Some(number("--notify-fd", &given)?),
            Opt::AddAttribute => {
                let given = text(given)?;
                let (key, value) = given.split_once('=').unwrap_or((&given, ""));
                if key.is_empty() {
                    return Err(Mistake::new("--add-attribute needs KEY or KEY=VALUE; the key is empty"));
                }
                self.attributes.push((key.to_owned(), value.to_owned()));
            }
            Opt::Query => self.query = Some(Query::ForPeople),
            Opt::QueryRaw => self.query = Some(Query::Encoded),
            Opt::Long => self.is_long = true,
            Opt::Detach => self.detach = Some(key("--detach", given)?),
            Opt::Attach => self.attach = Some(key("--attach", given)?),
            Opt::IsDetached => self.is_detached = Some(key("--is_detached", given)?),
            Opt::Stop => self.stop = true,
            Opt::Clone => self.clone_id = Some(number("--clone", &given)?),
            Opt::CloneByName => self.clone_name = Some(key("--clone-by-name", given)?),
            Opt::CloneForBugreport => self.clone_for_bugreport = true,
            Opt::SaveForBugreport => self.save_for_bugreport = true,
            Opt::SaveAllForBugreport => self.save_all_for_bugreport = true,
            Opt::AlertId => self.statsd.alert = Some(number("--alert-id", &given)?),
            Opt::ConfigId => self.statsd.config = Some(number("--config-id", &given)?),
            Opt::ConfigUid => self.statsd.config_uid = Some(number("--config-uid", &given)?),
            Opt::SubscriptionId => self.statsd.subscription = Some(number("--subscription-id", &given)?),
            Opt::Help | Opt::Version | Opt::Upload | Opt::Dropbox | Opt::NoGuardrails | Opt::ResetGuardrails => {}
        }
        Ok(())
    }

    /// Returns whether the command takes a copy of a session.
    pub(crate) const fn clones(&self) -> bool {
        self.clone_id.is_some() || self.clone_name.is_some()
    }
}

fn text(value: OsString) -> Result<String, Mistake> {
    value.into_string().map_err(|value| Mistake::new(format!("{value:?} is not text")))
}

fn key(option: &str, value: OsString) -> Result<String, Mistake> {
    let value = text(value)?;
    if value.is_empty() { Err(Mistake::new(format!("{option} needs a value that is not empty"))) } else { Ok(value) }
}

fn number<T: core::str::FromStr>(option: &str, value: &OsStr) -> Result<T, Mistake> {
    let parsed = value.to_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| Mistake::new(format!("{option} needs a whole number, not {}", value.to_string_lossy())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Request, Mistake> {
        Options::parse(args.iter().map(OsString::from))
    }

    fn options(args: &[&str]) -> Options {
        match parse(args) {
            Ok(Request::Run(options)) => *options,
            other => panic!("{args:?}: {other:?}"),
        }
    }

    #[test]
    fn options_and_words_may_be_mixed_and_shortened() {
        let found = options(&["sched", "-o", "t", "--tim=3s", "power/*", "-b4mb", "-a", "x", "-a", "y", "-d"]);
        assert_eq!(found.out.as_deref(), Some(OsStr::new("t")));
        assert_eq!(found.light_mode.time.as_deref(), Some("3s"));
        assert_eq!(found.light_mode.buffer.as_deref(), Some("4mb"));
        assert_eq!(found.light_mode.apps, ["x", "y"]);
        assert_eq!(found.light_mode.words, ["sched", "power/*"]);
        assert_eq!(found.background, Some(Background::AtOnce));
    }

    #[test]
    fn an_attribute_is_split_at_the_first_equals_sign() {
        let found = options(&["--add-attribute", "a=b=c", "--add-note", "d", "--add-attribute=e="]);
        let wanted = [("a", "b=c"), ("d", ""), ("e", "")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(found.attributes, wanted);
        assert!(parse(&["--add-attribute", "=x"]).is_err());
    }

    #[test]
    fn two_formats_are_noticed_and_one_twice_is_not() {
        assert!(options(&["--txt", "--txt-lossy"]).has_two_formats);
        assert!(!options(&["--txt", "--txt"]).has_two_formats);
    }

    #[test]
    fn mistakes_name_the_option() {
        assert!(parse(&["--bogus"]).unwrap_err().wants_usage);
        let said = |args| parse(args).unwrap_err().text;
        assert_eq!(said(&["--clone", "x"]), "--clone needs a whole number, not x");
        assert_eq!(said(&["--alert-id"]), "--alert-id needs a value");
        assert_eq!(said(&["--upload"]), "--upload is only supported on Android");
        assert_eq!(said(&["--detach="]), "--detach needs a value that is not empty");
    }
}
