//! A service whose calls last as long as a test needs.

use std::time::Duration;

use esatto::TraceConfig;
use esatto_ipc::Status;
use esatto_ipc::server::{Context, Replies};

/// Category of the calls.
pub const CATEGORY: &str = "yard";

/// Bytes of a large message.
pub const LARGE: usize = 120_000;

/// The service. Its messages are configs, of which it uses a number and a text.
#[esatto::trace_rpc(category = "yard")]
pub trait Yard {
    /// Returns the request.
    async fn get(&self, context: &Context, request: TraceConfig) -> Result<TraceConfig, Status>;
    /// Never answers, and keeps the descriptor.
    async fn hold(&self, context: &Context, request: TraceConfig) -> Result<TraceConfig, Status>;
    /// Returns a large reply as soon as the file of this name is there.
    async fn large(&self, context: &Context, request: TraceConfig) -> Result<TraceConfig, Status>;
    /// Sends so many replies of this text, and never ends.
    async fn watch(&self, context: &Context, request: TraceConfig, replies: Replies<TraceConfig>)
    -> Result<(), Status>;
    /// Does nothing.
    async fn note(&self, context: &Context, request: TraceConfig);
}

/// A message.
#[must_use]
pub fn message(number: u32, text_len: usize) -> TraceConfig {
    let text = "x".repeat(text_len);
    TraceConfig { duration_ms: Some(number), unique_session_name: Some(text.into()), ..TraceConfig::default() }
}

/// The implementation, which prints the calls that last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place;

impl Yard for Place {
    async fn get(&self, _: &Context, request: TraceConfig) -> Result<TraceConfig, Status> {
        Ok(request)
    }

    async fn hold(&self, _: &Context, _: TraceConfig) -> Result<TraceConfig, Status> {
        eprintln!("hold");
        std::future::pending().await
    }

    async fn large(&self, _: &Context, request: TraceConfig) -> Result<TraceConfig, Status> {
        let file = request.unique_session_name.unwrap_or_default();
        while !std::path::Path::new(&file.to_string()).exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(message(0, LARGE))
    }

    async fn watch(&self, _: &Context, request: TraceConfig, mut replies: Replies<TraceConfig>) -> Result<(), Status> {
        for number in 0..request.duration_ms.unwrap_or(0) {
            replies.send(&TraceConfig { duration_ms: Some(number), ..request.clone() }).await?;
        }
        std::future::pending().await
    }

    async fn note(&self, _: &Context, _: TraceConfig) {}
}
