//! The command `perfetto`, row by row of `docs/spec/cli.md`: each test runs the same command line
//! with ours and with Perfetto's own, with our service and with Perfetto's, and compares exit
//! codes, files and the messages that scripts look for. The area `consumer` has the rest of the
//! rows: detached sessions (§11), clones (§13), `--background-wait` (§10).

mod bad_input;
mod config_input;
mod documentation;
mod exit_codes;
mod light_mode;
mod option_rules;
mod options;
mod output_file;
mod query;
mod rows;
mod signals;
mod text_errors;
mod tracebox;
mod triggers;
