//! A trace of processes and system statistics, recorded with Perfetto v56. Perfetto's own tools
//! have counted its content.

use esatto_protozero::Owned;
use esatto_schema::{ClockSnapshot, SystemInfo, TraceConfig, TracePacketReader, TraceReader, TraceStats};

use crate::{canonical, dynamic, unknown_fields};

const TRACE: &[u8] = include_bytes!("../data/official-v56-process-and-sys-stats.pftrace");

fn packets() -> Vec<TracePacketReader<'static>> {
    TraceReader::parse(TRACE).unwrap().packet().collect()
}

#[test]
fn every_field_of_the_trace_is_known() {
    assert_eq!(unknown_fields(&dynamic("Trace", TRACE)), [""; 0]);
}

#[test]
fn readers_find_the_content_of_its_readme() {
    let packets = packets();
    assert_eq!(packets.len(), 33);
    assert_eq!(packets.iter().filter(|p| p.sys_stats().is_some()).count(), 11);
    assert_eq!(packets.iter().filter(|p| p.process_stats().is_some()).count(), 6);
    assert_eq!(packets.iter().filter(|p| p.process_tree().is_some()).count(), 1);
    assert_eq!(packets.iter().filter(|p| p.trusted_packet_sequence_id() == Some(1)).count(), 15);
    assert!(packets.iter().all(|p| p.trusted_uid().is_some()));

    let clocks: Vec<_> = packets[0].clock_snapshot().unwrap().clocks().collect();
    assert!(clocks.iter().all(|clock| clock.timestamp() > Some(0)));
    let config = packets[4].trace_config().unwrap();
    assert_eq!(config.duration_ms(), Some(2500));
    let names: Vec<_> = config.data_sources().map(|source| source.config().unwrap().name().unwrap()).collect();
    assert_eq!(names, [&b"linux.process_stats"[..], b"linux.sys_stats"]);

    let meminfo = packets.iter().filter_map(TracePacketReader::sys_stats).flat_map(|stats| stats.meminfo()).count();
    assert_eq!(meminfo % 3, 0, "three counters at a time");
    assert!(meminfo > 0);
}

#[test]
fn readers_agree_with_prost_reflect_on_every_packet() {
    for packet in packets() {
        let other = dynamic("TracePacket", packet.as_bytes());
        let number =
            |name: &str| other.has_field_by_name(name).then(|| other.get_field_by_name(name).unwrap().into_owned());
        assert_eq!(packet.timestamp(), number("timestamp").map(|v| v.as_u64().unwrap()));
        assert_eq!(packet.trusted_uid(), number("trusted_uid").map(|v| v.as_i32().unwrap()));
        assert_eq!(packet.sequence_flags(), number("sequence_flags").map(|v| v.as_u32().unwrap()));
        assert_eq!(packet.first_packet_on_sequence(), number("first_packet_on_sequence").map(|v| v.as_bool().unwrap()));
        let data: Vec<_> = packet.fields().map(|field| field.id).collect();
        assert_eq!(data.len(), other.fields().count(), "{data:?}");
    }
}

#[test]
fn packets_of_the_service_survive_as_values() {
    fn survives<T: Owned>(name: &str, bytes: Option<&[u8]>) -> usize {
        let Some(bytes) = bytes else { return 0 };
        let value = T::decode(bytes).unwrap();
        assert_eq!(canonical(name, &value.encode()), canonical(name, bytes));
        1
    }
    let mut seen = 0;
    for packet in packets() {
        seen += survives::<TraceConfig>("TraceConfig", packet.trace_config().map(|m| m.as_bytes()));
        seen += survives::<TraceStats>("TraceStats", packet.trace_stats().map(|m| m.as_bytes()));
        seen += survives::<ClockSnapshot>("ClockSnapshot", packet.clock_snapshot().map(|m| m.as_bytes()));
        seen += survives::<SystemInfo>("SystemInfo", packet.system_info().map(|m| m.as_bytes()));
        seen += survives::<esatto_schema::TraceUuid>("TraceUuid", packet.trace_uuid().map(|m| m.as_bytes()));
        let event = packet.service_event().map(|m| m.as_bytes());
        seen += survives::<esatto_schema::TracingServiceEvent>("TracingServiceEvent", event);
        let provenance = packet.trace_provenance().map(|m| m.as_bytes());
        seen += survives::<esatto_schema::TraceProvenance>("TraceProvenance", provenance);
    }
    assert_eq!(seen, 14, "all packets of the service but the synchronization marker");
}
