//! The part of a session's config that a data source reads.

use esatto_protozero::{Fields, MAX_DECODE_DEPTH, Owned, Value};
use esatto_schema::DataSourceConfig;

/// A value that a data source reads from the encoded `DataSourceConfig` of a session.
///
/// Implemented for `()` (reads nothing), `Vec<u8>` (the bytes as they are),
/// [`DataSourceConfig`](crate::schema::DataSourceConfig) (the whole message), and [`Field`] (one
/// message in it).
pub trait SourceConfig: Sized + Send + Sync + 'static {
    /// Reads a config; `None` if it cannot be used, which refuses the instance.
    fn read(config: &[u8]) -> Option<Self>;
}

impl SourceConfig for () {
    fn read(_: &[u8]) -> Option<Self> {
        Some(())
    }
}

impl SourceConfig for Vec<u8> {
    fn read(config: &[u8]) -> Option<Self> {
        Some(config.to_vec())
    }
}

impl SourceConfig for DataSourceConfig {
    fn read(config: &[u8]) -> Option<Self> {
        Self::decode(config).ok()
    }
}

/// One field of `DataSourceConfig`: the message `M` in field `N`, which Perfetto's schema need not
/// know.
///
/// Services pass on fields that they do not know. Fields from 2000 on are free for programs. A
/// field that is absent reads as the message's default. A field that does not decode refuses the
/// instance.
///
/// ```
/// use esatto::schema::TestConfig;
///
/// struct Tester;
///
/// impl esatto::DataSource for Tester {
///     type Config = esatto::Field<TestConfig, 1001>;
///     type ThreadState = ();
///     type IncrementalState = ();
///
///     fn setup(setup: &esatto::Setup<'_, Self::Config>) -> Self {
///         assert_eq!(setup.config().message_count, Some(3));
///         Self
///     }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Field<M, const N: u32>(pub M);

impl<M: Owned + Send + Sync + 'static, const N: u32> SourceConfig for Field<M, N> {
    fn read(config: &[u8]) -> Option<Self> {
        let mut message = M::default();
        let mut fields = Fields::new(config);
        for field in fields.by_ref() {
            if let (true, Value::Bytes(bytes)) = (field.id == N, field.value) {
                message.merge(bytes, MAX_DECODE_DEPTH).ok()?;
            }
        }
        (!fields.is_malformed()).then_some(Self(message))
    }
}

impl<M, const N: u32> core::ops::Deref for Field<M, N> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_schema::TestConfig;

    fn config() -> DataSourceConfig {
        DataSourceConfig {
            name: Some("x".into()),
            for_testing: Some(TestConfig { message_count: Some(5), ..Default::default() }),
            ..Default::default()
        }
    }

    #[test]
    fn a_missing_field_reads_as_the_default() {
        let found = Field::<TestConfig, 1001>::read(&config().encode()).expect("reads");
        assert_eq!(found.message_count, Some(5));
        let absent = Field::<TestConfig, 1002>::read(&config().encode()).expect("reads");
        assert_eq!(absent.0, TestConfig::default());
    }

    #[test]
    fn a_config_that_does_not_decode_is_refused() {
        assert_eq!(
            Field::<TestConfig, 1001>::read(b"\xca\x3e\x02\x0a\x7f"),
            None,
            "a length that leads out of the message"
        );
        assert_eq!(Field::<TestConfig, 1001>::read(b"\x0a\x7f"), None, "elsewhere in the config");
        assert_eq!(DataSourceConfig::read(b"\x0a\x7f"), None);
    }
}
