//! `esatto config convert`: a config in another form.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use super::document::{self, Document, Form};
use super::json;
use super::options;
use crate::console::{self, say};
use crate::failure::{Attempt as _, Failure};
use crate::trace_config;

pub(crate) fn run(args: &options::Convert) -> Result<ExitCode, Failure> {
    let form = args.to.or_else(|| args.out.as_deref().and_then(Form::of_name)).unwrap_or(Form::Text);
    if form == Form::Binary && args.out.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::new("cannot print the config", "a binary config would disturb the terminal")
            .hint("name a file with `-o FILE`, or choose `--to json`"));
    }
    let document = document::read_good(&args.file, args.from)?;
    let output = converted(&document, form)?;
    match &args.out {
        None if form == Form::Binary => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(&output).and_then(|()| stdout.flush()).attempt(|| "cannot print the config".to_owned())?;
        }
        None => console::print(&String::from_utf8_lossy(&output)).attempt(|| "cannot print the config".to_owned())?,
        Some(path) => std::fs::write(path, output).attempt(|| format!("cannot write {}", path.display()))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn converted(document: &Document, form: Form) -> Result<Vec<u8>, Failure> {
    let message = trace_config::message()?;
    match form {
        Form::Binary => Ok(document.encoded.clone()),
        Form::Text => Ok(esatto_text_format::to_text(&message, &document.encoded).into_bytes()),
        Form::Json => {
            let what = || format!("cannot convert {} to JSON", document.name);
            let (text, unknown) = json::print(&message, &document.encoded).attempt(what)?;
            if unknown > 0 {
                let noun = if unknown == 1 { "field" } else { "fields" };
                say!(
                    "esatto: {unknown} {noun} of {} that this version does not know cannot be in JSON.",
                    document.name
                );
            }
            Ok(text.into_bytes())
        }
    }
}
