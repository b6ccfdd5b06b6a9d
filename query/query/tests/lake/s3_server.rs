//! A small server with the parts of S3's interface that lakes use.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

/// The key of the user who may read and write.
pub(crate) const KEY: &str = "AKGOOD";

/// A server, and its objects.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) endpoint: String,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Vec<u8>>,
    uploads: BTreeMap<String, BTreeMap<u32, Vec<u8>>>,
    /// Writes that were done, and the number from which they hang.
    writes: usize,
    hangs_at: Option<usize>,
    is_hanging: bool,
}

/// Status, headers and body.
type Reply = (String, Vec<(&'static str, String)>, Vec<u8>);

#[derive(Debug)]
struct Request {
    method: String,
    /// The key of the object, without the bucket.
    key: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let endpoint = format!("http://{}", listener.local_addr().expect("it has an address"));
        let server = Self { endpoint, state: Arc::default() };
        let own = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = own.clone();
                std::thread::spawn(move || server.serve(&stream));
            }
        });
        server
    }

    /// Names of all objects.
    pub(crate) fn names(&self) -> Vec<String> {
        self.state.0.lock().expect("no test panicked").objects.keys().cloned().collect()
    }

    pub(crate) fn add(&self, name: &str, bytes: Vec<u8>) {
        self.state.0.lock().expect("no test panicked").objects.insert(name.to_owned(), bytes);
    }

    pub(crate) fn remove(&self, name: &str) {
        self.state.0.lock().expect("no test panicked").objects.remove(name);
    }

    pub(crate) fn writes(&self) -> usize {
        self.state.0.lock().expect("no test panicked").writes
    }

    /// Lets all writes hang from this one on.
    pub(crate) fn hang_at(&self, writes: Option<usize>) {
        let mut state = self.state.0.lock().expect("no test panicked");
        state.hangs_at = writes;
        state.is_hanging = false;
        self.state.1.notify_all();
    }

    /// Waits until a write hangs.
    pub(crate) fn wait_until_it_hangs(&self) {
        let state = self.state.0.lock().expect("no test panicked");
        drop(self.state.1.wait_while(state, |state| !state.is_hanging).expect("no test panicked"));
    }

    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().expect("a socket can be shared"));
        while let Some(request) = read_request(&mut reader) {
            let Some((status, headers, body)) = self.answer(&request) else { return };
            let mut head = format!("HTTP/1.1 {status}\r\n");
            let has_body = request.method != "HEAD";
            let length = if has_body { body.len() } else { headers_length(&headers).unwrap_or(body.len()) };
            for (name, value) in headers.iter().filter(|(name, _)| *name != "content-length") {
                let _infallible = write!(head, "{name}: {value}\r\n");
            }
            let _infallible = write!(head, "content-length: {length}\r\n\r\n");
            let mut writer = stream;
            let sent = writer
                .write_all(head.as_bytes())
                .and_then(|()| if has_body { writer.write_all(&body) } else { Ok(()) });
            if sent.is_err() {
                return;
            }
        }
    }

    fn answer(&self, request: &Request) -> Option<Reply> {
        let reply = |status: &str, body: String| Some((status.to_owned(), vec![], body.into_bytes()));
        let error = |status: &str, code: &str| {
            reply(status, format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message></Error>"))
        };
        let authorization = request.headers.get("authorization").cloned().unwrap_or_default();
        if !authorization.contains(&format!("Credential={KEY}/")) {
            return error("403 Forbidden", "InvalidAccessKeyId");
        }
        let (lock, changed) = &*self.state;
        let mut state = lock.lock().expect("no test panicked");
        let key = request.key.clone();
        let upload = request.query.get("uploadId").cloned();
        match request.method.as_str() {
            "PUT" => {
                if state.hangs_at.is_some_and(|at| state.writes >= at) {
                    state.is_hanging = true;
                    changed.notify_all();
                    // The write never happens.
                    drop(changed.wait_while(state, |state| state.hangs_at.is_some()).expect("no test panicked"));
                    return None;
                }
                state.writes += 1;
                if let Some(upload) = upload {
                    let part = request.query["partNumber"].parse().expect("a number");
                    state.uploads.get_mut(&upload)?.insert(part, request.body.clone());
                } else if request.headers.contains_key("if-none-match") && state.objects.contains_key(&key) {
                    return error("412 Precondition Failed", "PreconditionFailed");
                } else {
                    state.objects.insert(key, request.body.clone());
                }
                Some(("200 OK".to_owned(), vec![("etag", "\"x\"".to_owned())], vec![]))
            }
            "POST" if request.query.contains_key("uploads") => {
                state.uploads.insert(key.clone(), BTreeMap::new());
                reply(
                    "200 OK",
                    format!(
                        "<InitiateMultipartUploadResult><UploadId>{key}</UploadId></InitiateMultipartUploadResult>"
                    ),
                )
            }
            "POST" if request.query.contains_key("delete") => {
                let text = String::from_utf8_lossy(&request.body).into_owned();
                let mut result = "<DeleteResult>".to_owned();
                for name in text.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next()) {
                    state.objects.remove(name);
                    let _infallible = write!(result, "<Deleted><Key>{name}</Key></Deleted>");
                }
                reply("200 OK", result + "</DeleteResult>")
            }
            "POST" => {
                let parts = state.uploads.remove(&upload?)?;
                state.objects.insert(key, parts.into_values().flatten().collect());
                reply(
                    "200 OK",
                    "<CompleteMultipartUploadResult><ETag>\"x\"</ETag></CompleteMultipartUploadResult>".to_owned(),
                )
            }
            "DELETE" => {
                state.objects.remove(&key);
                reply("204 No Content", String::new())
            }
            "GET" if request.query.contains_key("list-type") => {
                let prefix = request.query.get("prefix").cloned().unwrap_or_default();
                let mut text = "<ListBucketResult><IsTruncated>false</IsTruncated>".to_owned();
                for (name, bytes) in state.objects.iter().filter(|(name, _)| name.starts_with(&prefix)) {
                    let _infallible = write!(
                        text,
                        "<Contents><Key>{name}</Key><Size>{}</Size><ETag>\"x\"</ETag>\
                         <LastModified>2026-11-28T00:00:00.000Z</LastModified></Contents>",
                        bytes.len()
                    );
                }
                reply("200 OK", text + "</ListBucketResult>")
            }
            "GET" | "HEAD" => {
                let Some(bytes) = state.objects.get(&key) else { return error("404 Not Found", "NoSuchKey") };
                let mut headers = vec![
                    ("etag", "\"x\"".to_owned()),
                    ("last-modified", "Sat, 28 Nov 2026 00:00:00 GMT".to_owned()),
                    ("content-length", bytes.len().to_string()),
                ];
                let Some(range) = request.headers.get("range") else {
                    return Some(("200 OK".to_owned(), headers, bytes.clone()));
                };
                let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
                let (start, end) = match (start.parse::<usize>().ok(), end.parse::<usize>().ok()) {
                    (Some(start), Some(end)) => (start, bytes.len().min(end + 1)),
                    (Some(start), None) => (start, bytes.len()),
                    (None, Some(count)) => (bytes.len().saturating_sub(count), bytes.len()),
                    (None, None) => return None,
                };
                headers.push(("content-range", format!("bytes {start}-{}/{}", end - 1, bytes.len())));
                Some(("206 Partial Content".to_owned(), headers, bytes[start..end].to_vec()))
            }
            _ => error("405 Method Not Allowed", "MethodNotAllowed"),
        }
    }
}

fn headers_length(headers: &[(&'static str, String)]) -> Option<usize> {
    headers.iter().find(|(name, _)| *name == "content-length")?.1.parse().ok()
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let path = decode(path);
    let key = path.trim_start_matches('/').split_once('/').map_or("", |(_, key)| key).to_owned();
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    };
    let query = query.split('&').filter(|text| !text.is_empty()).map(pair).collect();
    Some(Request { method, key, query, headers, body })
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'%', [high, low, after @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).expect("digits");
                bytes.push(u8::from_str_radix(digits, 16).expect("digits"));
                rest = after;
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).expect("names are UTF-8")
}
