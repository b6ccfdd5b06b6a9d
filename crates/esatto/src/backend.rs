//! The tracing services that a program can name.

/// The tracing service in which a session runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// The first of these that this process is connected to: the system's service, the one inside
    /// the process.
    Any,
    /// The system's service, over its consumer socket (`PERFETTO_CONSUMER_SOCK_NAME` or the
    /// standard one).
    System,
    /// The service with this consumer socket: a path, `@name` or `host:port`.
    Socket(String),
    /// A service inside this process (feature `in-process`).
    #[cfg(feature = "in-process")]
    InProcess,
}

impl Backend {
    /// Returns the service inside this process. Without the feature `in-process` there is none, and
    /// nothing calls this function.
    pub(crate) const fn in_process() -> Self {
        #[cfg(feature = "in-process")]
        let backend = Self::InProcess;
        #[cfg(not(feature = "in-process"))]
        let backend = Self::Any;
        backend
    }
}
