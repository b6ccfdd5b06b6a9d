//! The implementation that a program belongs to: ours or Perfetto's.

use crate::{Peer, Skip};
use std::fmt;

/// Implementation of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implementation {
    /// Esatto's.
    Ours,
    /// Perfetto's own.
    Theirs,
}

impl Implementation {
    /// Implementation that tests of a single service run: ours, or Perfetto's if
    /// `ESATTO_UNDER_TEST` is `theirs`. That shows the behaviour of the reference; some nonsense
    /// kills it.
    ///
    /// # Panics
    ///
    /// The variable holds something else.
    #[must_use]
    pub fn under_test() -> Self {
        match std::env::var("ESATTO_UNDER_TEST").as_deref() {
            Err(_) | Ok("ours") => Self::Ours,
            Ok("theirs") => Self::Theirs,
            Ok(other) => panic!("ESATTO_UNDER_TEST={other}"),
        }
    }
}

impl fmt::Display for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ours => "ours",
            Self::Theirs => "theirs",
        })
    }
}

/// Implementations of the three programs of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// The application.
    pub producer: Implementation,
    /// The tracing service.
    pub service: Implementation,
    /// The program that records.
    pub consumer: Implementation,
}

impl Conversation {
    /// The peers that this conversation needs, the trace processor included.
    ///
    /// # Errors
    ///
    /// The first that is not installed.
    pub fn require(self) -> Result<(), Skip> {
        Peer::TraceProcessor.require()?;
        if self.producer == Implementation::Theirs {
            Peer::Producer.require()?;
        }
        if self.service == Implementation::Theirs || self.consumer == Implementation::Theirs {
            Peer::Official.require()?;
        }
        Ok(())
    }
}

/// Runs one scenario for every combination of our and their producer, service and consumer.
///
/// The scenario is a `fn(Conversation) -> Result<(), Skip>`; the tests are named
/// `producer_service_consumer`.
#[macro_export]
macro_rules! matrix {
    ($scenario:path) => {
        $crate::matrix!(@ $scenario,
            ours_ours_ours Ours Ours Ours, ours_ours_theirs Ours Ours Theirs,
            ours_theirs_ours Ours Theirs Ours, ours_theirs_theirs Ours Theirs Theirs,
            theirs_ours_ours Theirs Ours Ours, theirs_ours_theirs Theirs Ours Theirs,
            theirs_theirs_ours Theirs Theirs Ours, theirs_theirs_theirs Theirs Theirs Theirs);
    };
    (@ $scenario:path, $($name:ident $producer:ident $service:ident $consumer:ident),*) => {$(
        #[test]
        fn $name() {
            let conversation = $crate::Conversation {
                producer: $crate::Implementation::$producer,
                service: $crate::Implementation::$service,
                consumer: $crate::Implementation::$consumer,
            };
            $crate::skip(|| {
                conversation.require()?;
                $scenario(conversation)
            });
        }
    )*};
}

/// Runs one scenario with our and with their service.
///
/// The scenario is a `fn(Implementation) -> Result<(), Skip>`; the tests are called `ours` and
/// `theirs`.
#[macro_export]
macro_rules! for_each_service {
    ($scenario:path) => {
        #[test]
        fn ours() {
            $crate::skip(|| $scenario($crate::Implementation::Ours));
        }

        #[test]
        fn theirs() {
            $crate::skip(|| {
                $crate::Peer::Official.require()?;
                $scenario($crate::Implementation::Theirs)
            });
        }
    };
}

/// Runs one scenario with our and with their service, and our and their `perfetto` command.
///
/// The scenario is a `fn(Implementation, Implementation) -> Result<(), Skip>`, which takes the
/// service and the command. The tests are called `perfetto_ours_traced_theirs` and so on.
#[macro_export]
macro_rules! for_each_client {
    ($scenario:path) => {
        $crate::for_each_client!($scenario, perfetto_ours_traced_ours, Ours, Ours);
        $crate::for_each_client!($scenario, perfetto_ours_traced_theirs, Theirs, Ours);
        $crate::for_each_client!($scenario, perfetto_theirs_traced_ours, Ours, Theirs);
        $crate::for_each_client!($scenario, perfetto_theirs_traced_theirs, Theirs, Theirs);
    };
    ($scenario:path, $name:ident, $service:ident, $client:ident) => {
        #[test]
        fn $name() {
            let (service, client) = ($crate::Implementation::$service, $crate::Implementation::$client);
            $crate::skip(|| {
                if [service, client].contains(&$crate::Implementation::Theirs) {
                    $crate::Peer::Official.require()?;
                }
                $scenario(service, client)
            });
        }
    };
}
