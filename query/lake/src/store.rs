//! The place of a lake: a folder, or a part of an object store.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::aws::AmazonS3Builder;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutPayload, RetryConfig, WriteMultipart};
use tokio::runtime::Runtime;

use crate::Error;

/// The place of a lake.
#[derive(Debug)]
pub(crate) enum Store {
    Folder(PathBuf),
    Remote(Remote),
}

/// A part of an object store.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// The URL, without a slash at the end.
    pub(crate) url: String,
    pub(crate) prefix: ObjectPath,
    runtime: Runtime,
}

/// A file of a lake.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    /// The path in the lake.
    pub(crate) path: String,
    pub(crate) size: u64,
}

/// Bytes from which a file is uploaded in parts.
const PART_BYTES: usize = 8 << 20;

/// Requests at a time.
const CONCURRENT_REQUESTS: usize = 32;

/// Bytes of a file that is read into memory as a whole: rows of the catalogue, `lake.json`.
pub(crate) const MAX_SMALL_FILE: u64 = 16 << 20;

impl Store {
    /// Opens the place that an argument names. Nothing is read.
    pub(crate) fn new(place: &str) -> Result<Self, Error> {
        let Some((scheme, rest)) = place.split_once("://") else { return Ok(Self::Folder(PathBuf::from(place))) };
        match scheme {
            "file" => {
                let path = rest.strip_prefix("localhost").unwrap_or(rest);
                let bad = || Error::layout(format!("'{place}' names no folder of this machine; write file:///PATH"));
                let path = path.starts_with('/').then(|| decode(path)).flatten().ok_or_else(bad)?;
                Ok(Self::Folder(PathBuf::from(path)))
            }
            "s3" | "s3a" => Ok(Self::Remote(Remote::s3(place)?)),
            "http" | "https" => Err(Error::layout(format!(
                "'{place}': a lake needs lists of files, which a server of HTTP does not have; use a folder or s3:. \
                 Single traces can be read from there"
            ))),
            other => Err(Error::layout(format!("'{place}': there is no '{other}:'; use a folder, file: or s3:"))),
        }
    }

    /// Returns the name of a file for messages.
    pub(crate) fn show(&self, path: &str) -> String {
        match self {
            Self::Folder(root) => root.join(path).display().to_string(),
            Self::Remote(remote) if path.is_empty() => remote.url.clone(),
            Self::Remote(remote) => format!("{}/{path}", remote.url),
        }
    }

    /// Reads a file; `None` if there is none.
    pub(crate) fn read(&self, path: &str) -> Result<Option<Bytes>, Error> {
        match self {
            Self::Folder(root) => {
                let path = root.join(path);
                match fs::read(&path) {
                    Ok(bytes) => Ok(Some(bytes.into())),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(Error::io("read", &path)(error)),
                }
            }
            Self::Remote(remote) => remote.block_on(remote.read(path, u64::MAX)),
        }
    }

    /// Reads a small file, such as `lake.json`. A foreign lake can have one of any size.
    pub(crate) fn read_small(&self, path: &str) -> Result<Option<Bytes>, Error> {
        match self {
            Self::Folder(root) => match fs::metadata(root.join(path)) {
                Ok(file) if file.len() > MAX_SMALL_FILE => Err(too_large(&self.show(path), file.len())),
                // Reading tells why there is none.
                _ => self.read(path),
            },
            Self::Remote(remote) => remote.block_on(remote.read(path, MAX_SMALL_FILE)),
        }
    }

    /// Reads several small files.
    pub(crate) fn read_all(&self, paths: &[String]) -> Result<Vec<Option<Bytes>>, Error> {
        match self {
            Self::Folder(_) => paths.iter().map(|path| self.read(path)).collect(),
            Self::Remote(remote) => {
                let reads = futures::stream::iter(paths.iter().map(|path| remote.read(path, MAX_SMALL_FILE)));
                remote.block_on(reads.buffered(CONCURRENT_REQUESTS).try_collect())
            }
        }
    }

    /// Lists all files below a folder, or of the whole lake, in order.
    pub(crate) fn list(&self, folder: &str) -> Result<Vec<Listed>, Error> {
        let mut files = Vec::new();
        match self {
            Self::Folder(root) => list_folder(&root.join(folder), folder, &mut files)?,
            Self::Remote(remote) => {
                let prefix = remote.path(folder);
                let found: Vec<_> = remote
                    .block_on(remote.store.list(Some(&prefix)).try_collect())
                    .map_err(remote.error("list", folder))?;
                let start = remote.prefix.as_ref().len() + usize::from(!remote.prefix.as_ref().is_empty());
                for meta in found {
                    let path = meta.location.as_ref().get(start..).unwrap_or_default().to_owned();
                    files.push(Listed { path, size: meta.size });
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &str) -> Result<(), Error> {
        match self {
            Self::Folder(root) => {
                let path = root.join(path);
                fs::remove_file(&path).map_err(Error::io("remove", &path))
            }
            Self::Remote(remote) => {
                remote.block_on(remote.store.delete(&remote.path(path))).map_err(remote.error("remove", path))
            }
        }
    }
}

fn too_large(name: &str, size: u64) -> Error {
    Error::layout(format!("{name} has {size} bytes, but a file of its kind has at most {MAX_SMALL_FILE}"))
}

fn list_folder(folder: &Path, path: &str, files: &mut Vec<Listed>) -> Result<(), Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("list", folder)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(Error::io("list", folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if path.is_empty() { name } else { format!("{path}/{name}") };
        let kind = match entry.metadata() {
            Ok(kind) => kind,
            // An export that runs has moved it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::io("read", &entry.path())(error)),
        };
        if kind.is_dir() {
            list_folder(&entry.path(), &path, files)?;
        } else {
            files.push(Listed { path, size: kind.len() });
        }
    }
    Ok(())
}

impl Remote {
    fn s3(place: &str) -> Result<Self, Error> {
        let url = place.trim_end_matches('/').to_owned();
        let fail = |source| Error::Store { action: "use", path: url.clone(), source };
        let key = url.splitn(4, '/').nth(3).unwrap_or_default();
        let prefix = ObjectPath::parse(key)
            .map_err(|error| Error::layout(format!("'{url}': its path cannot be used: {error}")))?;
        let store = Self::client(&url).map_err(fail)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| Error::layout(format!("cannot start threads for {url}: {error}")))?;
        Ok(Self { store, url, prefix, runtime })
    }

    pub(crate) fn client(url: &str) -> Result<Arc<dyn ObjectStore>, object_store::Error> {
        Ok(Arc::new(AmazonS3Builder::from_env().with_url(url).with_retry(retries()).build()?))
    }

    /// Returns another client of the same store, for another runtime: connections belong to the
    /// runtime that made them.
    pub(crate) fn another_client(&self) -> Result<Arc<dyn ObjectStore>, Error> {
        Self::client(&self.url).map_err(self.error("use", ""))
    }

    pub(crate) fn path(&self, path: &str) -> ObjectPath {
        let parts = path.split('/').filter(|part| !part.is_empty());
        let own: ObjectPath = self.prefix.parts().collect();
        // `parse` keeps percent signs, which the names of partition folders have.
        let text = own.as_ref().split('/').filter(|part| !part.is_empty()).chain(parts).collect::<Vec<_>>().join("/");
        ObjectPath::parse(text).expect("paths of a lake are plain")
    }

    pub(crate) fn error(&self, action: &'static str, path: &str) -> impl FnOnce(object_store::Error) -> Error {
        let path = format!("{}/{path}", self.url);
        move |source| Error::Store { action, path, source }
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    async fn read(&self, path: &str, limit: u64) -> Result<Option<Bytes>, Error> {
        let get = async {
            let found = self.store.get(&self.path(path)).await?;
            let size = found.meta.size;
            if size > limit { Ok(Err(size)) } else { found.bytes().await.map(Ok) }
        };
        match get.await {
            Ok(Ok(bytes)) => Ok(Some(bytes)),
            Ok(Err(size)) => Err(too_large(&format!("{}/{path}", self.url), size)),
            // A bucket that does not exist is an error of its own.
            Err(error @ object_store::Error::NotFound { .. }) if error.to_string().contains("NoSuchBucket") => {
                Err(self.error("read", path)(error))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.error("read", path)(error)),
        }
    }

    /// Makes a file unless there is one. Returns whether there was none.
    pub(crate) fn create(&self, path: &str, bytes: Vec<u8>) -> Result<bool, Error> {
        let to = self.path(path);
        let put = self.store.put_opts(&to, PutPayload::from(bytes), PutMode::Create.into());
        match self.block_on(put) {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(self.error("create", path)(error)),
        }
    }

    /// Uploads a file of this machine.
    pub(crate) fn upload(&self, file: &Path, path: &str) -> Result<(), Error> {
        let bytes = Bytes::from(fs::read(file).map_err(Error::io("read", file))?);
        let to = self.path(path);
        let done = self.block_on(async {
            if bytes.len() <= PART_BYTES {
                return self.store.put(&to, bytes.into()).await.map(drop);
            }
            let mut parts = WriteMultipart::new_with_chunk_size(self.store.put_multipart(&to).await?, PART_BYTES);
            parts.put(bytes);
            parts.finish().await.map(drop)
        });
        done.map_err(self.error("write", path))
    }
}

/// Attempts of a request after the first, and the time for all.
const RETRIES: usize = 4;
const RETRY_TIME: Duration = Duration::from_secs(30);

/// Returns the limits for repeated requests.
pub(crate) fn retries() -> RetryConfig {
    RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_TIME, ..RetryConfig::default() }
}

/// Decodes the percent signs of a URL.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = tail;
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_name_places() {
        let folder = |place: &str| match Store::new(place).expect("it is a place") {
            Store::Folder(path) => path,
            Store::Remote(remote) => panic!("{remote:?}"),
        };
        assert_eq!(folder("a/b"), Path::new("a/b"));
        assert_eq!(folder("file:///a%20b/c"), Path::new("/a b/c"));
        for (place, part) in [
            ("file://a/b", "names no folder of this machine"),
            ("http://a/b", "use a folder or s3:"),
            ("ftp://a/b", "there is no 'ftp:'"),
        ] {
            let error = Store::new(place).expect_err("it is no place").to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn objects_are_below_the_prefix() {
        let Store::Remote(remote) = Store::new("s3://bucket/a/b%20c/").expect("it is a place") else {
            panic!("it is an object store")
        };
        assert_eq!(
            remote.path("slice/trace_host=a%2Fb/x.parquet").as_ref(),
            "a/b%20c/slice/trace_host=a%2Fb/x.parquet"
        );
    }
}
