//! Filters of traces, ours beside Perfetto's.

mod the_service_keeps_what_our_interpreter_keeps;
