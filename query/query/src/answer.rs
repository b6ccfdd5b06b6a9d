//! Statements are run, and their rows are written.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::{Format, Output, OutputError, Prepared, Session, SqlError};
use futures::StreamExt as _;

/// The reason why statements did not run to their end.
pub(crate) enum Stop {
    Sql(SqlError),
    Output(OutputError),
    Usage(String),
}

impl From<OutputError> for Stop {
    fn from(error: OutputError) -> Self {
        Self::Output(error)
    }
}

/// Numbers of the results and rows of statements.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) results: usize,
    pub(crate) rows: usize,
}

/// Runs all statements of a text, the last ones of a session, and writes their rows.
pub(crate) async fn last_answer(
    session: &Session,
    sql: &str,
    format: Format,
    path: Option<&Path>,
) -> Result<Counts, Stop> {
    let statements = session.prepare(sql).map_err(Stop::Sql)?;
    session.end_after(statements.len());
    run(session, &statements, format, path).await
}

/// Runs all statements of a text, and writes their rows.
pub(crate) async fn answer(session: &Session, sql: &str, format: Format, path: Option<&Path>) -> Result<Counts, Stop> {
    let statements = session.prepare(sql).map_err(Stop::Sql)?;
    run(session, &statements, format, path).await
}

async fn run(session: &Session, statements: &[Prepared], format: Format, path: Option<&Path>) -> Result<Counts, Stop> {
    if statements.is_empty() {
        return Err(Stop::Usage("the SQL has no statement".to_owned()));
    }
    session.expect(statements);
    let mut target = Target::open(path)?;
    let mut counts = Counts::default();
    for statement in statements {
        let Some(mut answer) = session.run(statement).await.map_err(Stop::Sql)? else { continue };
        counts.results += 1;
        if counts.results > 1 && !format.can_repeat() {
            return Err(Stop::Usage("several statements return rows, but this format can have one result".to_owned()));
        }
        if counts.results > 1 && matches!(format, Format::Table | Format::Csv) {
            target.writer.write_all(b"\n").map_err(OutputError::from)?;
        }
        let mut output = Output::new(&mut target.writer, format, &answer.schema)?;
        while let Some(batch) = answer.rows.next().await {
            let batch = batch.map_err(|error| Stop::Sql(session.sql_error(&error)))?;
            counts.rows += batch.num_rows();
            output.write(&batch)?;
        }
        output.finish()?;
    }
    target.finish().map_err(|error| Stop::Output(error.into()))?;
    Ok(counts)
}

/// The place of the rows. A file gets its name when it is whole.
pub(crate) struct Target {
    writer: Box<dyn Write + Send>,
    file: Option<(tempfile::TempPath, PathBuf)>,
}

impl Target {
    fn open(path: Option<&Path>) -> Result<Self, OutputError> {
        let Some(path) = path else {
            return Ok(Self { writer: Box::new(BufWriter::new(io::stdout())), file: None });
        };
        // A device or a pipe cannot be replaced.
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Ok(Self { writer: Box::new(BufWriter::new(File::create(path)?)), file: None });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".esatto-query-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let (file, temporary) = builder.tempfile_in(folder)?.into_parts();
        Ok(Self { writer: Box::new(BufWriter::new(file)), file: Some((temporary, path.to_owned())) })
    }

    fn finish(mut self) -> io::Result<()> {
        self.writer.flush()?;
        match self.file {
            Some((temporary, path)) => temporary.persist(path).map_err(|error| error.error),
            None => Ok(()),
        }
    }
}
