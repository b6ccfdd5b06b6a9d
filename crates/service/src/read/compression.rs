//! Compression of packets: all packets of a read pass become one (`docs/spec/service.md §22`).

use esatto_schema::TraceConfig;
use esatto_schema::trace_config::CompressionType;

#[cfg(any(feature = "deflate", feature = "zstd"))]
use crate::encode::put_varint;

/// `TracePacket.compressed_packets`.
#[cfg(feature = "deflate")]
const COMPRESSED_PACKETS: u32 = 50;
/// `TracePacket.zstd_compressed_packets`.
#[cfg(feature = "zstd")]
const ZSTD_COMPRESSED_PACKETS: u32 = 133;

#[cfg(feature = "deflate")]
const DEFLATE_LEVEL: u32 = 6;

/// Nanoseconds that a slow processor may take to compress a batch.
///
/// Protects the event loop, because zstd's highest levels take half a second for 1 MiB. At the
/// bound batches become smaller, down to 64 KiB. A single packet that is larger than a batch is
/// compressed with the highest level that costs no more, or not at all.
#[cfg(any(feature = "deflate", feature = "zstd"))]
const MAX_COST_NS: usize = 64 << 20;

/// Nanoseconds per byte of deflate, by level, the better one first.
#[cfg(feature = "deflate")]
const DEFLATE_COSTS: [(u32, usize); 2] = [(DEFLATE_LEVEL, 32), (1, 8)];

/// Nanoseconds per byte of zstd up to a level, the highest first.
#[cfg(feature = "zstd")]
const ZSTD_COSTS: [(i32, usize); 4] = [(i32::MAX, 512), (15, 96), (9, 24), (3, 4)];

/// A compression format, and its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    /// A zlib stream.
    #[cfg(feature = "deflate")]
    Deflate,
    /// A zstd frame.
    #[cfg(feature = "zstd")]
    Zstd {
        /// The level that the encoder gets.
        level: i32,
    },
}

impl Codec {
    /// Returns the codec of a config: the one with the highest field number among those that are
    /// built in.
    ///
    /// # Errors
    ///
    /// A text for the consumer, if none of the codecs that the config names is built in.
    pub(crate) fn of(config: &TraceConfig) -> Result<Option<Self>, String> {
        let compression = config.compression.as_ref();
        let is_old = config.compression_type == Some(CompressionType::COMPRESSION_TYPE_DEFLATE);
        let deflate = is_old || compression.is_some_and(|codecs| codecs.deflate.is_some());
        let zstd = compression.and_then(|codecs| codecs.zstd.as_ref());

        #[cfg(feature = "zstd")]
        if let Some(zstd) = zstd {
            return Ok(Some(Self::Zstd { level: zstd_level(zstd.level.unwrap_or(0)) }));
        }
        #[cfg(feature = "deflate")]
        if deflate {
            return Ok(Some(Self::Deflate));
        }
        let missing = |codec: &str| {
            Err(format!("compression with {codec} is not supported by this service (it was built without `{codec}`)"))
        };
        match (zstd.is_some(), deflate) {
            (true, _) => missing("zstd"),
            (false, true) => missing("deflate"),
            (false, false) => Ok(None),
        }
    }

    /// Returns the bytes after which a batch ends. This is half of the bytes that can be compressed
    /// as the config asks, because the last packet may exceed it.
    #[cfg(any(feature = "deflate", feature = "zstd"))]
    pub(crate) fn batch_bytes(self) -> usize {
        match self {
            #[cfg(feature = "deflate")]
            Self::Deflate => MAX_COST_NS / DEFLATE_COSTS[0].1 / 2,
            #[cfg(feature = "zstd")]
            Self::Zstd { level } => MAX_COST_NS / zstd_cost(level) / 2,
        }
    }

    /// Unreachable, because no codec is built in.
    #[cfg(not(any(feature = "deflate", feature = "zstd")))]
    pub(crate) fn batch_bytes(self) -> usize {
        match self {}
    }

    /// Compresses a `Trace` into a packet. Returns `None` if there is not enough memory, or if it
    /// would take too long.
    #[cfg(any(feature = "deflate", feature = "zstd"))]
    pub(crate) fn packet(self, trace: &[u8]) -> Option<Vec<u8>> {
        let (field, compressed) = match self {
            #[cfg(feature = "deflate")]
            Self::Deflate => (COMPRESSED_PACKETS, deflate(trace, deflate_level(trace.len())?)?),
            #[cfg(feature = "zstd")]
            Self::Zstd { level } => {
                let level = affordable_level(level, trace.len())?;
                (ZSTD_COMPRESSED_PACKETS, zstd::bulk::compress(trace, level).ok()?)
            }
        };
        let mut packet = Vec::with_capacity(compressed.len() + 16);
        put_varint(&mut packet, u64::from(field) << 3 | 2);
        put_varint(&mut packet, compressed.len() as u64);
        packet.extend_from_slice(&compressed);
        Some(packet)
    }

    /// Unreachable, because no codec is built in.
    #[cfg(not(any(feature = "deflate", feature = "zstd")))]
    pub(crate) fn packet(self, _: &[u8]) -> Option<Vec<u8>> {
        match self {}
    }
}

/// A zlib stream.
#[cfg(feature = "deflate")]
fn deflate(bytes: &[u8], level: u32) -> Option<Vec<u8>> {
    use std::io::Write as _;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(level));
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

/// Returns the level for this many bytes: the format's usual one if it is affordable.
#[cfg(feature = "deflate")]
fn deflate_level(bytes: usize) -> Option<u32> {
    let affordable = DEFLATE_COSTS.iter().find(|(_, cost)| bytes.saturating_mul(*cost) <= MAX_COST_NS);
    affordable.map(|&(level, _)| level)
}

/// Returns the highest level up to `level` that is affordable for this many bytes.
#[cfg(feature = "zstd")]
fn affordable_level(level: i32, bytes: usize) -> Option<i32> {
    let affordable = ZSTD_COSTS.iter().map(|&(most, _)| most.min(level));
    affordable.into_iter().find(|&level| bytes.saturating_mul(zstd_cost(level)) <= MAX_COST_NS)
}

/// Returns the nanoseconds per byte.
#[cfg(feature = "zstd")]
fn zstd_cost(level: i32) -> usize {
    ZSTD_COSTS.iter().rev().find(|(most, _)| level <= *most).map_or(ZSTD_COSTS[0].1, |&(_, cost)| cost)
}

/// Converts the level of a config for the encoder: 0 means none, and a level above the highest
/// becomes the highest.
#[cfg(feature = "zstd")]
fn zstd_level(level: i32) -> i32 {
    let levels = zstd::compression_level_range();
    if level == 0 { zstd::DEFAULT_COMPRESSION_LEVEL } else { level.clamp(*levels.start(), *levels.end()) }
}

#[cfg(all(test, feature = "deflate", feature = "zstd"))]
mod tests {
    use esatto_schema::trace_config::compression_config::{Deflate, Zstd};
    use esatto_schema::trace_config::{CompressionConfig, CompressionType};

    use super::*;

    fn config(deflate: bool, level: Option<i32>) -> TraceConfig {
        let zstd = level.map(|level| Zstd { level: Some(level), ..Zstd::default() });
        let deflate = deflate.then(Deflate::default);
        TraceConfig {
            compression: Some(CompressionConfig { deflate, zstd, ..CompressionConfig::default() }),
            ..TraceConfig::default()
        }
    }

    #[test]
    fn the_codec_with_the_highest_number_wins() {
        assert_eq!(Codec::of(&TraceConfig::default()), Ok(None));
        assert_eq!(Codec::of(&config(false, None)), Ok(None));
        assert_eq!(Codec::of(&config(true, None)), Ok(Some(Codec::Deflate)));
        assert_eq!(Codec::of(&config(true, Some(1))), Ok(Some(Codec::Zstd { level: 1 })));
        let old = CompressionType::COMPRESSION_TYPE_DEFLATE;
        let old = |config| TraceConfig { compression_type: Some(old), ..config };
        assert_eq!(Codec::of(&old(TraceConfig::default())), Ok(Some(Codec::Deflate)));
        assert_eq!(Codec::of(&old(config(false, Some(1)))), Ok(Some(Codec::Zstd { level: 1 })));
        let unknown = TraceConfig { compression_type: Some(CompressionType(7)), ..TraceConfig::default() };
        assert_eq!(Codec::of(&unknown), Ok(None));
    }

    #[test]
    fn levels_of_zstd() {
        assert_eq!([0, 1, 22, 23, i32::MAX].map(zstd_level), [3, 1, 22, 22, 22]);
        assert_eq!([-5, i32::MIN].map(zstd_level), [-5, *zstd::compression_level_range().start()]);
    }

    #[test]
    fn no_batch_costs_more_than_the_bound() {
        for level in -7..=22 {
            let codec = Codec::Zstd { level };
            assert!(codec.batch_bytes() >= 64 << 10, "a batch of level {level} is too small to be compressed well");
            assert_eq!(
                affordable_level(level, 2 * codec.batch_bytes()),
                Some(level),
                "a batch has the level of the config"
            );
            for shift in 10..26 {
                let affordable = affordable_level(level, 1 << shift);
                let cost = affordable.map_or(0, |level| zstd_cost(level) << shift);
                assert!(cost <= MAX_COST_NS && affordable.is_none_or(|affordable| affordable <= level));
            }
        }
        assert_eq!(affordable_level(22, 1 << 20), Some(9));
        assert_eq!([1 << 20, 4 << 20, 16 << 20].map(deflate_level), [Some(6), Some(1), None]);
    }

    #[test]
    fn a_higher_level_makes_less_of_it() {
        let text: Vec<u8> = (0..60_000u32).map(|i| (i.wrapping_mul(i) >> 11) as u8 & 0x3f).collect();
        let sizes = [-50, 1, 19].map(|level| Codec::Zstd { level }.packet(&text).unwrap().len());
        assert!(sizes[0] > sizes[1] && sizes[1] > sizes[2], "{sizes:?}");
    }
}
