//! Filters of traces, ours beside Perfetto's.

mod the_service_filters_like_our_interpreter;
