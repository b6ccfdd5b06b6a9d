//! The layer.

use core::fmt;
use std::sync::Arc;

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Interest, Metadata, Subscriber};
use tracing_subscriber::layer::{self, Context, Filter};

use crate::options::Options;
use crate::recorder::Recorder;

/// A layer of a `tracing_subscriber` that records spans and events as trace events; made by [`layer`](crate::layer).
///
/// It gets along with other layers, filters (`EnvFilter`, and per-layer ones by `with_filter`) and any subscriber below that numbers spans, such as
/// `Registry`.
///
/// While no session records the category of a span, nothing is kept for it, and the span will not be in sessions that start later. What such
/// a span costs is then what the subscriber below costs; [`while_recording`](Self::while_recording) removes that, too, if no other layer wants the span.
#[derive(Clone)]
pub struct Layer {
    recorder: Arc<Recorder>,
}

impl Layer {
    pub(crate) fn new(options: Options) -> Self {
        Self { recorder: Arc::new(Recorder::new(options)) }
    }

    /// The layer with a filter, by which spans and events that no session records do not exist for it.
    ///
    /// ```
    /// use tracing_subscriber::prelude::*;
    ///
    /// let subscriber = tracing_subscriber::registry().with(esatto_tracing::layer().while_recording());
    /// # drop(subscriber);
    /// ```
    #[must_use]
    pub fn while_recording<S>(self) -> tracing_subscriber::filter::Filtered<Self, WhileRecording, S>
    where
        S: Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
    {
        let filter = WhileRecording { recorder: Arc::clone(&self.recorder) };
        layer::Layer::with_filter(self, filter)
    }
}

impl Default for Layer {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer").field("options", self.recorder.options()).finish_non_exhaustive()
    }
}

impl<S: Subscriber> layer::Layer<S> for Layer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.recorder.register(metadata);
        // Other layers may want what this one does not.
        Interest::always()
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        self.recorder.new_span(id.into_u64(), attributes);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.recorder.record(id.into_u64(), values);
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, _: Context<'_, S>) {
        self.recorder.follows_from(id.into_u64(), follows.into_u64());
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.recorder.event(event);
    }

    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        self.recorder.enter(id.into_u64());
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        self.recorder.exit(id.into_u64());
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.recorder.close(id.into_u64());
    }
}

/// The filter of [`Layer::while_recording`].
#[derive(Clone)]
pub struct WhileRecording {
    recorder: Arc<Recorder>,
}

impl fmt::Debug for WhileRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WhileRecording")
    }
}

impl<S> Filter<S> for WhileRecording {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.recorder.is_enabled(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.recorder.register(metadata) { Interest::sometimes() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<tracing_core::LevelFilter> {
        self.recorder.options().max_level
    }
}
