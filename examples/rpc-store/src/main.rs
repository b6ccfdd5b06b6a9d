//! A store of texts: a service of its own, served and called over a UNIX socket.
//!
//! ```sh
//! cargo run -p esatto-example-rpc-store
//! ```
//!
//! Both sides run in this process, on threads. Two programs look the same: one calls `serve`, the
//! other `call`.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use esatto_ipc::server::{Context, Replies, Server};
use esatto_ipc::{Address, Channel, Code, Listener, Status};

/// Code that `build.rs` generated: one module per package.
mod protos {
    include!(concat!(env!("OUT_DIR"), "/protos.rs"));
}

use protos::shelf::{Done, Entry, Key, store};

const PATIENCE: Duration = Duration::from_secs(5);

/// The service: texts by their keys.
#[derive(Default)]
struct Texts(Mutex<BTreeMap<String, String>>);

impl store::Server for Texts {
    async fn put(&self, _: &Context, entry: Entry) -> Result<Done, Status> {
        let (key, text) = (text_of(entry.key), text_of(entry.text));
        if key.is_empty() {
            return Err(Status::new(Code::InvalidArgument, "an entry needs a key"));
        }
        self.texts().insert(key, text);
        Ok(Done::default())
    }

    async fn get(&self, _: &Context, request: Key) -> Result<Entry, Status> {
        let key = text_of(request.key);
        let text = self.texts().get(&key).cloned();
        text.map(|text| entry(&key, &text)).ok_or_else(|| Status::new(Code::NotFound, format!("no text for {key:?}")))
    }

    async fn list(&self, _: &Context, request: Key, mut replies: Replies<Entry>) -> Result<(), Status> {
        let prefix = text_of(request.key);
        let found: Vec<_> = self.texts().iter().map(|(key, text)| entry(key, text)).collect();
        for entry in found {
            if entry.key.as_ref().is_some_and(|key| key.starts_with(prefix.as_bytes())) {
                // A client that does not read stops the loop here until it does.
                replies.send(&entry).await?;
            }
        }
        Ok(())
    }

    async fn clear(&self, _: &Context, _: Done) {
        self.texts().clear();
    }
}

impl Texts {
    fn texts(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // An abstract socket, which leaves no file behind.
    let address = Address::parse(format!("@esatto-rpc-store-{}", std::process::id()))?;
    let listener = Listener::bind(&address)?;
    thread::spawn(move || serve(&listener));
    call(&address)
}

/// Serves each connection on a thread of its own, until the process ends.
fn serve(listener: &Listener) {
    let server = Server::new(store::ServeAsync::new(Texts::default()));
    if let Err(error) = server.serve_blocking(listener) {
        eprintln!("cannot accept connections: {error}");
    }
}

/// Calls every method, and prints the results.
fn call(address: &Address) -> Result<(), Box<dyn Error>> {
    let channel = Channel::connect(address, PATIENCE)?;
    let client = store::Client::new(&channel);
    for (key, text) in [("tea", "green"), ("tee", "shirt"), ("coffee", "black")] {
        client.put(&entry(key, text)).timeout(PATIENCE).wait()?;
    }
    let found = client.get(&key("tea")).timeout(PATIENCE).wait()?;
    println!("tea: {}", text_of(found.text));
    for found in client.list(&key("te")) {
        println!("listed: {}", text_of(found?.key));
    }
    client.clear(&Done::default()).send()?;
    if let Err(error) = client.get(&key("tea")).timeout(PATIENCE).wait() {
        println!("{error}");
    }
    Ok(())
}

fn key(key: &str) -> Key {
    Key { key: Some(key.into()), ..Key::default() }
}

fn entry(key: &str, text: &str) -> Entry {
    Entry { key: Some(key.into()), text: Some(text.into()), ..Entry::default() }
}

fn text_of(text: Option<esatto_protozero::ProtoString>) -> String {
    text.unwrap_or_default().to_str_lossy().into_owned()
}
