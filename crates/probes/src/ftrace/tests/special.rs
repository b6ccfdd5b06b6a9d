//! Events with rules of their own.

use crate::ftrace::parse_status::ParseStatuses;
use esatto_schema::TracePacketReader;

use super::page_builder::{FORMAT, PageBuilder, data};
use super::session::{Session, recorded};
use crate::data_source::Observed;
use crate::ftrace::kprobe::{Kprobe, KprobeKind};
use crate::ftrace::print_filter::{PrintFilter, PrintPattern, PrintRule};
use crate::ftrace::syscalls::SyscallSet;
use crate::ftrace::{KernelSymbols, SourceEncoder, Surroundings};
use crate::test_writer::TestWriter;

#[test]
fn recorded_sub_buffers_of_16_kib_have_system_calls() {
    let mut session = Session::new().with("raw_syscalls", "sys_enter");
    session.table.set_page_size(16384);
    let outcome = session.encode(&recorded("sys_enter_16k.bin"));
    assert_eq!(outcome.encoder.errors(), ParseStatuses::default());
    let events: Vec<_> = outcome.bundles().flat_map(|bundle| bundle.event()).collect();
    assert!(events.len() > 60, "{}", events.len());
    for event in &events {
        let call = event.sys_enter().expect("a system call");
        assert!((0..500).contains(&call.id().unwrap()) && call.args().count() == 6);
    }
    let is_ordered = events.windows(2).all(|pair| pair[0].timestamp() <= pair[1].timestamp());
    assert!(is_ordered);
}

#[test]
fn only_the_system_calls_that_are_wanted_are_written() {
    let ids = |syscalls| {
        let mut session = Session::new().with("raw_syscalls", "sys_enter");
        session.table.set_page_size(16384);
        session.options.syscalls = syscalls;
        let outcome = session.encode(&recorded("sys_enter_16k.bin"));
        let events = outcome.bundles().flat_map(|bundle| bundle.event());
        events.filter_map(|event| event.sys_enter()?.id()).collect::<Vec<_>>()
    };
    let all = ids(SyscallSet::All);
    let wanted = all[0];
    let some = ids(SyscallSet::of([wanted as u16]));
    assert_eq!(some, all.into_iter().filter(|id| *id == wanted).collect::<Vec<_>>());
    assert!(ids(SyscallSet::of([])).is_empty());
}

#[test]
fn a_kernel_probe_is_written_by_its_name() {
    let mut session = Session::new().with_format("perfetto_kprobes", "do_it", FORMAT);
    session.options.kprobes = vec![Kprobe { id: 7, name: "do_it".into(), kind: KprobeKind::Begin }];
    let outcome = session.encode(&PageBuilder::at(5).event(1, &data(3, 4)).build());
    let event = outcome.bundles().flat_map(|bundle| bundle.event()).next().unwrap();
    let probe = event.kprobe_event().unwrap();
    assert_eq!((event.pid(), probe.name(), probe.r#type().map(|kind| kind.0)), (Some(3), Some(&b"do_it"[..]), Some(1)));
}

#[test]
fn texts_that_the_filter_denies_begin_no_bundle() {
    let print = |text: &[u8]| {
        let mut data = [&5_u32.to_le_bytes()[..], &9_i32.to_le_bytes(), &[0; 8], text, b"\0"].concat();
        data.resize(data.len().next_multiple_of(4), 0);
        data
    };
    let encode = |texts: [&[u8]; 2]| {
        let mut session = Session::new().with("ftrace", "print");
        let pattern = PrintPattern::Prefix(b"no".into());
        session.options.print_filter = PrintFilter { rules: vec![PrintRule { pattern, allow: false }] };
        let page = PageBuilder::at(5).event(1, &print(texts[0])).event(1, &print(texts[1]));
        session.encode(&page.build())
    };
    assert!(encode([b"no", b"not"]).packets.is_empty());
    let outcome = encode([b"no", b"a\x1b[31m\xff"]);
    let event = outcome.bundles().flat_map(|bundle| bundle.event()).next().unwrap();
    assert_eq!(event.print().unwrap().buf(), Some(&b"a\x1b[31m\xff"[..]));
}

#[test]
fn names_of_addresses_come_once_per_read() {
    let format = String::from_utf8(FORMAT.to_vec()).unwrap().replace("unsigned int value", "void * value");
    let session = Session::new().with_format("my", "event", format.as_bytes());
    let symbols = KernelSymbols::parse(b"0000000000001000 T one\n0000000000002000 T two\n");
    let mut encoder = SourceEncoder::new(session.options, &session.table);
    let mut test = TestWriter::new();
    let mut writer = test.writer();
    let mut observed = Observed::default();
    let mut encode = |addresses: &[u32], is_new_read: bool| {
        if is_new_read {
            encoder.begin_read();
        }
        let page = addresses.iter().fold(PageBuilder::at(5), |page, address| page.event(1, &data(3, *address)));
        let mut around = Surroundings {
            table: &session.table,
            symbols: Some(&symbols),
            clock: None,
            writer: &mut writer,
            observed: &mut observed,
        };
        encoder.encode(0, &page.build(), &mut around);
    };
    encode(&[0x1004, 0x1004, 5], true);
    encode(&[0x1004, 0x2000], false);
    encode(&[0x2000], true);
    drop(writer);
    let packets = test.packets();
    let symbols = packets.iter().map(|packet| {
        let packet = TracePacketReader::new(packet);
        let interned = packet.interned_data().into_iter().flat_map(|interned| interned.kernel_symbols());
        let names = interned.map(|symbol| (symbol.iid().unwrap(), symbol.str().unwrap().to_vec()));
        (packet.sequence_flags(), names.collect::<Vec<_>>())
    });
    let expected = [
        (Some(1), vec![(1, b"one".to_vec())]),
        (None, vec![(3, b"two".to_vec())]),
        (Some(1), vec![(1, b"two".to_vec())]),
    ];
    assert_eq!(symbols.collect::<Vec<_>>(), expected);
}

#[test]
fn more_names_of_threads_than_fit_begin_further_bundles() {
    let switch = |number: u32| {
        let mut data = [&372_u32.to_le_bytes()[..], &[0; 60]].concat();
        data[40..44].copy_from_slice(format!("{number:04}").as_bytes());
        data[45] = b'x';
        data[56..60].copy_from_slice(&number.to_le_bytes());
        data
    };
    let pages: Vec<u8> = (0..4)
        .flat_map(|page| {
            let events = (0..50)
                .fold(PageBuilder::at(100 * u64::from(page)), |builder, at| builder.event(1, &switch(page * 50 + at)));
            events.build()
        })
        .collect();
    let outcome = Session::new().with("sched", "sched_switch").compact().encode(&pages);
    let mut comms = Vec::new();
    for bundle in outcome.bundles() {
        let sched = bundle.compact_sched().unwrap();
        let names: Vec<_> = sched.intern_table().collect();
        assert!(names.len() <= 64);
        comms.extend(sched.switch_next_comm_index().map(|index| names[index as usize].to_vec()));
    }
    assert_eq!(comms, (0..200).map(|number| format!("{number:04}").into_bytes()).collect::<Vec<_>>());
    assert_eq!(outcome.observed.tids, (1..200).collect::<Vec<_>>());
    let ends: Vec<_> = outcome.bundles().filter_map(|bundle| bundle.previous_bundle_end_timestamp()).collect();
    assert!(ends.windows(2).all(|pair| pair[0] < pair[1]) && ends[0] == 0);
}
