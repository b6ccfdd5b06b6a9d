//! `esatto config presets` and `esatto config show`: the presets of the machine.

use std::process::ExitCode;

use esatto_probes::presets::{ALL, find};
use serde_json::json;

use super::options;
use crate::console;
use crate::failure::{Attempt as _, Failure};
use crate::terminal::Terminal;

pub(crate) fn run(args: &options::Presets) -> Result<ExitCode, Failure> {
    let text = if args.json {
        let presets: Vec<_> = ALL.iter().map(|preset| json!({ "name": preset.name, "about": preset.about })).collect();
        format!("{:#}\n", json!({ "presets": presets }))
    } else {
        list(Terminal::of_stdout())
    };
    console::print(&text).attempt(|| "cannot list the presets".to_owned())?;
    Ok(ExitCode::SUCCESS)
}

fn list(terminal: Terminal) -> String {
    let width = ALL.iter().map(|preset| preset.name.len()).max().unwrap_or(0) + 2;
    let mut text = String::new();
    for preset in ALL {
        let name = format!("{:<width$}", preset.name);
        text += &terminal.wrap(&(name + preset.about), width);
        text.push('\n');
    }
    text
}

pub(crate) fn show(args: &options::Show) -> Result<ExitCode, Failure> {
    let preset = find(&args.preset).ok_or_else(|| Failure::new("cannot show the preset", &args.preset))?;
    console::print(preset.text).attempt(|| "cannot show the preset".to_owned())?;
    Ok(ExitCode::SUCCESS)
}
