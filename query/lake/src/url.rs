//! Traces at URLs, which are read into temporary files.

use std::fs::File;
use std::io::{Seek as _, Write as _};

use futures::StreamExt as _;
use object_store::http::HttpBuilder;
use object_store::path::Path as ObjectPath;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt as _};

use crate::Error;
use crate::store::{Remote, retries};

/// Returns whether an argument is the URL of a server, rather than a file.
pub fn is_url(argument: &str) -> bool {
    ["http://", "https://", "s3://", "s3a://"].iter().any(|scheme| argument.starts_with(scheme))
}

/// Returns whether a URL names a file of a trace, by its ending.
pub(crate) fn names_trace(url: &str) -> bool {
    let name = url.rsplit('/').next().unwrap_or_default();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

const ENDINGS: [&str; 12] = [
    ".pftrace",
    ".perfetto-trace",
    ".perfetto",
    ".trace",
    ".pb",
    ".pbtrace",
    ".json",
    ".gz",
    ".zst",
    ".zip",
    ".tar",
    ".tgz",
];

/// Reads the trace at a URL into a temporary file. Waits for the server, also in asynchronous code.
///
/// # Errors
///
/// The server cannot be reached, does not have the file, or the file has more bytes than the limit.
pub fn fetch(url: &str, limit: u64) -> Result<File, Error> {
    let fetch = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::layout(format!("cannot start a thread for {url}: {error}")))?;
        runtime.block_on(read(url, limit))
    };
    // A thread that runs asynchronous code cannot wait in another runtime.
    std::thread::scope(|scope| scope.spawn(fetch).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

async fn read(url: &str, limit: u64) -> Result<File, Error> {
    let fail = |source| Error::Store { action: "read", path: url.to_owned(), source };
    let (store, path) = open(url)?;
    let found = store.get(&path).await.map_err(fail)?;
    let too_large = || Error::layout(format!("{url}: it has more than the {} MiB that a trace may have", limit >> 20));
    if found.meta.size > limit {
        return Err(too_large());
    }
    let temporary = std::env::temp_dir();
    let mut file = tempfile::tempfile().map_err(Error::io("make a file in", &temporary))?;
    let mut bytes = found.into_stream();
    let mut size = 0;
    while let Some(part) = bytes.next().await {
        let part = part.map_err(fail)?;
        size += part.len() as u64;
        // A server can send more than it says.
        if size > limit {
            return Err(too_large());
        }
        file.write_all(&part).map_err(Error::io("write a file in", &temporary))?;
    }
    file.rewind().map_err(Error::io("read a file in", &temporary))?;
    Ok(file)
}

/// Returns the store and the path of a URL.
fn open(url: &str) -> Result<(Box<dyn ObjectStore>, ObjectPath), Error> {
    let bad = |why: &str| Error::layout(format!("'{url}' is no URL of a trace: {why}"));
    let mut parts = url.splitn(4, '/');
    let (scheme, host) = (parts.next().unwrap_or_default(), parts.nth(1).unwrap_or_default());
    let path = parts.next().unwrap_or_default();
    if host.is_empty() || path.is_empty() {
        return Err(bad("write SCHEME://HOST/PATH"));
    }
    if path.contains(['?', '#']) {
        return Err(bad("a query ('?') or a fragment ('#') is not supported; download the file"));
    }
    if scheme.starts_with("s3") {
        let store =
            Remote::client(url).map_err(|source| Error::Store { action: "use", path: url.to_owned(), source })?;
        let path = ObjectPath::parse(path).map_err(|error| bad(&error.to_string()))?;
        return Ok((Box::new(store), path));
    }
    let store = HttpBuilder::new()
        .with_url(format!("{scheme}//{host}"))
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .with_retry(retries())
        .build()
        .map_err(|source| Error::Store { action: "use", path: url.to_owned(), source })?;
    let path = ObjectPath::from_url_path(path).map_err(|error| bad(&error.to_string()))?;
    Ok((Box::new(store), path))
}
