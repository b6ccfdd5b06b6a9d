use esatto::Flow;
use esatto_tests::sdk::{Recorder, Trace};

use super::sequences;

esatto::categories! { static APP = "app"; }
esatto_tests::scenario!(record, check);

/// The C++ library's for scope "ipc" and id 5.
const SCOPED: u64 = 0x2bc2_1219_2bf1_cee8;

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(esatto::track_events(1024));
    let object = String::from("an object");
    let (global, process, pointer) = (Flow::global(9), Flow::process(9), Flow::pointer(&raw const object));
    esatto::instant!(APP, "a", flow: global, flow: process);
    {
        let _b = esatto::slice!(APP, "b", flow: global, flow: pointer);
        esatto::instant!(APP, "c", end_flow: global);
    }
    esatto::instant!(APP, "d", flow: global);
    std::thread::spawn(move || {
        esatto::instant!(APP, "e", |event| {
            event.flow(process);
            event.flow(pointer);
            event.flow(Flow::scoped("ipc", 5));
        })
    })
    .join()
    .unwrap();
    let unique = Flow::unique();
    esatto::begin!(APP, "f");
    esatto::end!(APP, flow: Flow::scoped("ipc", 5), flow: unique);
    esatto::instant!(APP, "g", end_flow: unique);
    recorder.note("process", process.id());
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [arrows] = trace.query(["select a.name || b.name as arrow from flow
        join slice a on slice_out = a.id join slice b on slice_in = b.id order by arrow"]);
    let arrows: Vec<_> = arrows.iter().map(|row| row.text("arrow")).collect();
    // Nothing leads from c to d: the flow had ended.
    assert_eq!(arrows, ["ab", "ae", "bc", "be", "ef", "fg"]);

    let packets = trace.packets();
    let ids: Vec<u64> = sequences(&packets)
        .into_iter()
        .flatten()
        .filter_map(|packet| packet.track_event())
        .flat_map(|event| event.flow_ids().collect::<Vec<_>>())
        .collect();
    let process: u64 = trace.fact("process").parse().expect("a number");
    assert!(ids.contains(&9) && ids.contains(&process));
    assert_eq!(ids.iter().filter(|&&id| id == SCOPED).count(), 2);
}
