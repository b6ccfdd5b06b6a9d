//! A service that was built without something says so: a trace is not recorded otherwise than it
//! was asked for.

#[cfg(not(all(feature = "regex", feature = "deflate", feature = "zstd")))]
use {crate::world::World, esatto_schema::TraceConfig};

#[cfg(not(all(feature = "regex", feature = "deflate", feature = "zstd")))]
fn refusal(config: &TraceConfig) -> String {
    let mut world = World::new();
    let consumer = world.consumer();
    let call = world.enable(consumer, config);
    world.ended(call).expect("a refusal")
}

#[cfg(not(feature = "regex"))]
#[test]
fn a_filter_needs_regex() {
    let config = TraceConfig { trace_filter: Some(Box::default()), ..TraceConfig::default() };
    assert!(refusal(&config).contains("built without `regex`"), "{}", refusal(&config));
}

#[cfg(not(feature = "deflate"))]
#[test]
fn deflate_is_named() {
    use esatto_schema::trace_config::CompressionType;
    let deflate = Some(CompressionType::COMPRESSION_TYPE_DEFLATE);
    let config = TraceConfig { compression_type: deflate, ..TraceConfig::default() };
    assert!(refusal(&config).contains("built without `deflate`"), "{}", refusal(&config));
}

#[cfg(not(feature = "zstd"))]
#[test]
fn zstd_is_named() {
    use esatto_schema::trace_config::{CompressionConfig, compression_config::Zstd};
    let zstd = Some(CompressionConfig { zstd: Some(Zstd::default()), ..CompressionConfig::default() });
    let config = TraceConfig { compression: zstd, ..TraceConfig::default() };
    assert!(refusal(&config).contains("built without `zstd`"), "{}", refusal(&config));
}
