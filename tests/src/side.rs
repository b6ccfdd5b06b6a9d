//! Whose program plays a part.

use crate::{Peer, Skip};
use std::fmt;

/// Whose program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Esatto's.
    Ours,
    /// Perfetto's own.
    Theirs,
}

impl Side {
    /// Whose programs the tests of a single service are about: ours, unless `ESATTO_UNDER_TEST` is
    /// `theirs`, to see what the reference does (of some nonsense it dies).
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

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ours => "ours",
            Self::Theirs => "theirs",
        })
    }
}

/// Who talks to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trio {
    /// The application.
    pub producer: Side,
    /// The tracing service.
    pub service: Side,
    /// The program that records.
    pub consumer: Side,
}

impl Trio {
    /// The peers that this conversation needs, the trace processor included.
    ///
    /// # Errors
    ///
    /// The first that is not installed.
    pub fn require(self) -> Result<(), Skip> {
        Peer::TraceProcessor.require()?;
        if self.producer == Side::Theirs {
            Peer::Producer.require()?;
        }
        if self.service == Side::Theirs || self.consumer == Side::Theirs {
            Peer::Official.require()?;
        }
        Ok(())
    }
}

/// Runs one scenario for every combination of our and their producer, service and consumer.
///
/// The scenario is a `fn(Trio) -> Result<(), Skip>`; the tests are named
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
            let trio = $crate::Trio {
                producer: $crate::Side::$producer,
                service: $crate::Side::$service,
                consumer: $crate::Side::$consumer,
            };
            $crate::skip(|| {
                trio.require()?;
                $scenario(trio)
            });
        }
    )*};
}

/// Runs one scenario with our and with their service.
///
/// The scenario is a `fn(Side) -> Result<(), Skip>`; the tests are called `ours` and `theirs`.
#[macro_export]
macro_rules! for_each_service {
    ($scenario:path) => {
        #[test]
        fn ours() {
            $crate::skip(|| $scenario($crate::Side::Ours));
        }

        #[test]
        fn theirs() {
            $crate::skip(|| {
                $crate::Peer::Official.require()?;
                $scenario($crate::Side::Theirs)
            });
        }
    };
}
