//! The format of Chrome's `about:tracing`, which many other viewers read.

mod arguments;
mod error;
mod event;
mod flows;
mod ids;
mod order;
mod owners;
mod packets;
mod reader;
mod stacks;
mod tokenizer;
mod writer;

pub use error::Error as JsonError;
pub use reader::{ChromeJson, JsonSummary};
pub use tokenizer::MAX_EVENT_BYTES;
pub use writer::{JsonLosses, write_chrome_json};
