//! Filters of traces, ours beside Perfetto's.

mod the_guides_filter_leaves_arguments_out;
mod the_service_filters_like_our_interpreter;
