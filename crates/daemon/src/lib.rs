//! The tracing service as a daemon: sockets, files, timers and signals around esatto-service.
