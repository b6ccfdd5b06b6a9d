//! Records spans and events of programs that use `tracing` in Perfetto traces.
//!
//! ```
//! use tracing_subscriber::EnvFilter;
//! use tracing_subscriber::prelude::*;
//!
//! // Connect, as any program with Esatto does: here to a service inside of this process.
//! let _tracing = esatto::Tracing::builder().in_process().start()?;
//! // Add the layer like other layers. Its filter keeps the noise of dependencies out.
//! let filter = EnvFilter::new("info,my_program=debug,hyper=warn");
//! let layer = esatto_tracing::layer().with_filter(filter);
//! let subscriber = tracing_subscriber::registry().with(layer);
//! # let _guard = tracing::subscriber::set_default(subscriber);
//! # #[cfg(any())]
//! tracing::subscriber::set_global_default(subscriber)?;
//!
//! let session = esatto::Session::start(esatto::Backend::InProcess, esatto::track_events(1024))?;
//! tracing::info_span!("request", path = "/index.html").in_scope(|| {
//!     tracing::info!(bytes = 512, "read");
//! });
//! let trace = session.stop()?;
//! # assert!(trace.windows(7).any(|bytes| bytes == b"request"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Mapping
//!
//! | in `tracing` | in the trace |
//! | --- | --- |
//! | span that is entered once | a slice on the track of its thread |
//! | span that is never entered | nothing |
//! | span of a future | a slice for its lifetime on its own lane, a slice on the thread's track for each time that it is entered, and a flow through them |
//! | parent of such a span | a flow from the slice in which the span was created, or from a mark on the lane of the parent |
//! | `follows_from` | a flow between marks on the two lanes |
//! | event | an instant named after its call site, such as `server:42` (see [`EventNames`]), with the annotation `message`, and a row of the log with level, file and line |
//! | fields, also those recorded later | debug annotations: integers, floats, `bool` and text; `Debug` and errors, with their causes, as text. Texts of more than 64 KiB are cut, and end in `… (cut)` |
//! | target | category: `my_crate*` in a session's configuration records a crate with all of its modules |
//! | levels `DEBUG` and `TRACE` | the category has the tag `debug`: a session records them only if it asks for the tag (see [levels](#levels)) |
//! | file and line | source location |
//! | message of `log`, by `tracing-log` | as an event; the target is `log`, the message's own target is the argument `log.target` |
//!
//! `tracing` does not tell which spans belong to futures, so the recorder learns it: see
//! [`Slices::Auto`]. [`options`] changes the mapping.
//!
//! # Levels
//!
//! Each target has up to two categories of the same name. One is for the levels `ERROR`, `WARN` and
//! `INFO`. The other one is for `DEBUG` and `TRACE`, and has the tag `debug`. Sessions leave out
//! this tag by default, because libraries write thousands of such events per second.
//!
//! | to record | write |
//! | --- | --- |
//! | `DEBUG` and `TRACE` of all targets | `enabled_tags: "debug"` in a config, [`SessionConfig::tags`](esatto::SessionConfig::tags) |
//! | those of one target | its full name without `*`: `enabled_categories: "my_program::server"` |
//! | those of your program, always | [`Options::debug_tag`] |
//!
//! A filter of `tracing_subscriber` acts before: an event that it leaves out is in no trace.
//!
//! # To switch recording on and off
//!
//! Sessions are the switch: without one, the layer records nothing, and costs little. If
//! `tracing_subscriber::reload` removes or replaces the layer, the slices of its open spans end
//! there. On other threads they end when the thread next enters or leaves a span of another layer.
//!
//! # Layer or subscriber
//!
//! [`layer()`] goes on top of `tracing_subscriber`'s `Registry`, beside other layers.
//! [`subscriber()`] works alone: it needs no registry and takes less than half of the time. While
//! no session records, it costs a few nanoseconds per span.
//!
//! # Cost
//!
//! While no session records the category, a span costs a look-up by the address of the call site,
//! and no memory. While one does, it costs two trace events (four for a future), and a copy of its
//! fields. Memory is reused, so that nothing is allocated in the long run. Call sites are kept for
//! ever, once per layer.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod callsite;
mod entered_spans;
mod event_name;
mod field_values;
#[cfg(feature = "layer")]
mod layer;
mod options;
mod recorder;
mod span_table;
mod subscriber;

#[cfg(feature = "layer")]
pub use layer::Layer;
pub use options::{EventNames, Options, Slices};
pub use subscriber::Subscriber;

/// Creates a layer with the default options.
#[cfg(feature = "layer")]
#[must_use]
pub fn layer() -> Layer {
    Layer::default()
}

/// Creates a subscriber with the default options.
///
/// ```
/// let subscriber = esatto_tracing::subscriber();
/// # let _guard = tracing::subscriber::set_default(subscriber);
/// # #[cfg(any())]
/// tracing::subscriber::set_global_default(subscriber)?;
/// tracing::info!("hello");
/// ```
#[must_use]
pub fn subscriber() -> Subscriber {
    Subscriber::default()
}

/// Creates options for a [`layer`](Options::layer) or a [`subscriber`](Options::subscriber).
#[must_use]
pub fn options() -> Options {
    Options::default()
}

impl Options {
    /// Creates a layer with these options.
    #[cfg(feature = "layer")]
    #[must_use]
    pub fn layer(self) -> Layer {
        Layer::new(self)
    }

    /// Creates a subscriber with these options.
    #[must_use]
    pub fn subscriber(self) -> Subscriber {
        Subscriber::new(self)
    }
}
