//! The layer for `tracing_subscriber`.

use core::fmt;

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Interest, Metadata, Subscriber};
use tracing_subscriber::layer::{self, Context};

use crate::options::Options;
use crate::recorder::Recorder;

/// A layer of a `tracing_subscriber` that records spans and events as trace events. Create it with
/// [`layer`](crate::layer).
///
/// It works with other layers, with filters (`EnvFilter`, and per-layer ones by `with_filter`), and
/// with any subscriber below it that numbers spans, such as `Registry`.
///
/// While no session records the category of a span, the layer keeps nothing for it, and sessions
/// that start later do not contain the span. The span then costs as much as the subscriber below.
/// [`subscriber`](crate::subscriber()) has no such cost.
pub struct Layer {
    recorder: Recorder,
}

impl Layer {
    pub(crate) fn new(options: Options) -> Self {
        Self { recorder: Recorder::new(options) }
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
        // Other layers may want spans and events that this one does not record.
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
