//! The shared memory buffer between a producer and the tracing service.
