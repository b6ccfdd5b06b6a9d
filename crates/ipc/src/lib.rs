//! The socket protocol between the tracing service and its clients.
