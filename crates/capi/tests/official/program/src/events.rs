//! Track events: categories, every kind of event, field, argument, track, flow and time.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use perfetto_sdk::protos::trace::interned_data::interned_data::{InternedData, InternedDataFieldNumber};
use perfetto_sdk::protos::trace::trace_packet::TracePacket;
use perfetto_sdk::protos::trace::track_event::track_event::{
    EventName, TrackEvent as TrackEventMessage, TrackEventType as Kind,
};
use perfetto_sdk::track_event::{
    CategoryCallback, EventContext, ScopeGuard, TraceContext, TrackEvent, TrackEventCategory, TrackEventCounter,
    TrackEventDebugArg, TrackEventError, TrackEventFlow, TrackEventNestedTrack, TrackEventNestedTracks,
    TrackEventProtoField, TrackEventProtoFields, TrackEventProtoTrack, TrackEventTimestamp, TrackEventTrack,
    TrackEventType,
};
use perfetto_sdk::{
    scoped_track_event, trace_for_category, track_event, track_event_begin, track_event_categories,
    track_event_category_enabled, track_event_counter, track_event_end, track_event_instant,
    track_event_set_category_callback,
};

use crate::session::{config, finish, flush, start, wait_until};

track_event_categories! {
    pub mod categories {
        ("on", "A category that is recorded", ["tag"]),
        ("off", "One that is not", ["tag", "another"]),
    }
}

use categories as perfetto_te_ns;

pub fn before_initialisation() {
    assert!(!track_event_category_enabled!("on"));
    track_event_instant!("on", "nobody records", |_: &mut EventContext| panic!("nobody asks"));
    assert_eq!(perfetto_te_ns::unregister(), Err(TrackEventError::CategoriesNotRegisteredError));
}

pub fn everything(folder: &Path) {
    TrackEvent::init();
    TrackEvent::init();
    assert_ne!(TrackEventTrack::process_track_uuid(), 0);
    let calls: Arc<Mutex<Vec<(bool, bool)>>> = Arc::default();
    let of_before = calls.clone();
    track_event_set_category_callback!("on", move |_: u32, on: bool, global: bool| of_before
        .lock()
        .unwrap()
        .push((on, global)));
    assert_eq!(perfetto_te_ns::register(), Ok(()));
    assert_eq!(perfetto_te_ns::register(), Err(TrackEventError::CategoriesAlreadyRegisteredError));
    TrackEvent::publish_categories();

    let mut session = start(&config("track_event", &["on", "own"], None), || track_event_category_enabled!("on"));
    assert!(!track_event_category_enabled!("off"));
    assert_eq!(*calls.lock().unwrap(), [(true, true)]);
    instants_and_slices();
    annotations();
    times();
    tracks();
    counters();
    flows();
    fields();
    by_hand();
    own_category();
    flush(&mut session);
    finish(session, &folder.join("track_events"));
    wait_until(|| !track_event_category_enabled!("on"));
    assert_eq!(*calls.lock().unwrap(), [(true, true), (false, true)]);
    assert_eq!(perfetto_te_ns::unregister(), Ok(()));
}

fn instants_and_slices() {
    track_event_instant!("on", "instant");
    track_event_instant!("off", "must not be there", |_: &mut EventContext| panic!("nobody asks"));
    track_event_instant!("on", "inline", |context: &mut EventContext| {
        context.set_no_intern().set_flush();
    });
    track_event_begin!("on", "slice");
    track_event_begin!("on", "inner", |context: &mut EventContext| {
        context.add_debug_arg("at begin", TrackEventDebugArg::Bool(true));
    });
    track_event_end!("on", |context: &mut EventContext| {
        context.add_debug_arg("at end", TrackEventDebugArg::Bool(false));
    });
    track_event_end!("on");
    {
        scoped_track_event!("on", "scoped");
        scoped_track_event!("on", "scoped with", |context: &mut EventContext| {
            context.add_debug_arg("first", TrackEventDebugArg::Int64(1));
        });
        scoped_track_event!("on", "scoped with both", |_| {}, |context: &mut EventContext| {
            context.add_debug_arg("second", TrackEventDebugArg::Int64(2));
        });
    }
    track_event!("on", TrackEventType::Instant(c"any".as_ptr()));
    track_event!("on", TrackEventType::SliceBegin(c"any slice".as_ptr()), |_: &mut EventContext| {});
    track_event!("on", TrackEventType::SliceEnd);
    let mut ran = false;
    drop(ScopeGuard::new(|| ran = true));
    assert!(ran);
}

fn annotations() {
    track_event_instant!("on", "annotated", |context: &mut EventContext| {
        context.add_debug_arg("bool", TrackEventDebugArg::Bool(true));
        context.add_debug_arg("uint", TrackEventDebugArg::Uint64(i64::MAX as u64));
        context.add_debug_arg("int", TrackEventDebugArg::Int64(i64::MIN));
        context.add_debug_arg("double", TrackEventDebugArg::Double(1.5));
        context.add_debug_arg("text", TrackEventDebugArg::String("täxt"));
        context.add_debug_arg("pointer", TrackEventDebugArg::Pointer(0x10));
    });
}

fn times() {
    let now = TrackEventTimestamp::now();
    let TrackEventTimestamp::Boot(time) = now else { panic!("{now:?}") };
    assert_eq!((now.clock_id(), u128::from(now.timestamp())), (6, time.as_nanos()));
    let second = Duration::from_secs(1);
    for (time, clock) in [
        (TrackEventTimestamp::Monotonic(second), 3),
        (TrackEventTimestamp::Incremental(second), 64),
        (TrackEventTimestamp::Absolute(second), 65),
        (TrackEventTimestamp::Custom { id: 99, value: second }, 99),
    ] {
        assert_eq!((time.clock_id(), time.timestamp()), (clock, 1_000_000_000));
    }
    // The length of a slice shows that both times arrived. `Absolute` is a clock that only
    // sequences with scaled times have.
    let (begin, end) = (time - Duration::from_micros(1000), time - Duration::from_micros(400));
    for clock in [TrackEventTimestamp::Boot, TrackEventTimestamp::Monotonic, TrackEventTimestamp::Incremental] {
        let at = |time: Duration| {
            move |context: &mut EventContext| {
                context.set_timestamp(clock(time));
                let name = format!("times of {}", clock(time).clock_id());
                context.set_named_track_with_dynamic_name(&name, 0, TrackEventTrack::process_track_uuid());
            }
        };
        track_event_begin!("on", "0.6 ms", at(begin));
        track_event_end!("on", at(end));
    }
}

fn tracks() {
    let process = TrackEventTrack::process_track_uuid();
    let of_event = |name: &'static std::ffi::CStr, change: &dyn Fn(&mut EventContext)| {
        track_event!("on", TrackEventType::Instant(name.as_ptr()), |context: &mut EventContext| change(context));
    };
    of_event(c"on a named track", &|context| {
        context.set_named_track("named", 1, process);
    });
    of_event(c"on a dynamic track", &|context| {
        context.set_named_track_with_dynamic_name(
            &format!("dynamic {}", 2),
            2,
            TrackEventTrack::named_track_uuid("named", 1, process),
        );
    });
    let registered = TrackEventTrack::register_named_track("registered", 3, process).expect("a track");
    assert_eq!(registered.uuid(), TrackEventTrack::named_track_uuid("registered", 3, process));
    let dynamic = TrackEventTrack::register_named_track_with_dynamic_name("registered dynamic", 4, registered.uuid());
    of_event(c"on a registered track", &|context| {
        context.set_track(&registered);
    });
    of_event(c"on a dynamic registered track", &|context| {
        context.set_track(dynamic.as_ref().expect("a track"));
    });
    let fields = [TrackEventProtoField::VarInt(5, process), TrackEventProtoField::Cstr(2, "described")];
    of_event(c"on a described track", &|context| {
        context.set_proto_track(&TrackEventProtoTrack { uuid: 77, fields: &fields });
    });
    let name = [TrackEventProtoField::Cstr(2, "described inside")];
    use TrackEventNestedTrack::{Named, Process, Proto, Registered, Thread};
    for (event, tracks) in [
        (c"nested in the process", &[Process, Named("outer", 0), Named("inner", 5)][..]),
        (c"nested in the thread", &[Thread, Named("of the thread", 6)]),
        (c"nested in a registered track", &[Registered(&registered), Proto(8, &name)]),
    ] {
        of_event(event, &|context| {
            context.set_nested_tracks(&TrackEventNestedTracks { tracks });
        });
    }
}

fn counters() {
    let process = TrackEventTrack::process_track_uuid();
    let counter = TrackEventTrack::register_counter_track("counter", process).expect("a track");
    assert_eq!(counter.uuid(), TrackEventTrack::counter_track_uuid("counter", process));
    let dynamic =
        TrackEventTrack::register_counter_track_with_dynamic_name("dynamic counter", process).expect("a track");
    track_event_counter!("on", |context: &mut EventContext| {
        context.set_track(&counter).set_counter(TrackEventCounter::Int64(-79));
    });
    track_event!("on", TrackEventType::Counter, |context: &mut EventContext| {
        context.set_track(&dynamic).set_counter(TrackEventCounter::Double(0.5));
    });
}

fn flows() {
    track_event_instant!("on", "flow begins", |context: &mut EventContext| {
        context.set_flow(&TrackEventFlow::process_scoped_flow(1));
        context.set_flow(&TrackEventFlow::global_flow(2));
    });
    for flow in [TrackEventFlow::process_scoped_flow(1), TrackEventFlow::global_flow(2)] {
        track_event_instant!("on", "flow ends", |context: &mut EventContext| {
            context.set_terminating_flow(&flow);
        });
    }
}

fn fields() {
    let place = [TrackEventProtoField::Cstr(2, "file.rs"), TrackEventProtoField::VarInt(4, 17)];
    let fields = [TrackEventProtoField::Nested(33, &place), TrackEventProtoField::Bytes(99_999, b"\0\x01")];
    track_event_instant!("on", "with fields", |context: &mut EventContext| {
        context.set_proto_fields(&TrackEventProtoFields { fields: &fields });
    });
}

/// Packets that the program encodes.
fn by_hand() {
    let mut turns = 0;
    for round in 0..2 {
        let time = TrackEventTimestamp::now();
        trace_for_category!("on", |context: &mut TraceContext| {
            turns += 1;
            let (iid, seen) = context.intern(InternedDataFieldNumber::EventNames, b"by hand");
            assert!(iid != 0 && seen == (round == 1));
            assert_eq!(context.track_seen(987_654), round == 1);
            assert_eq!(context.instance_index(), 0);
            context.add_packet(|packet: &mut TracePacket| {
                packet.set_timestamp(time.timestamp()).set_timestamp_clock_id(time.clock_id()).set_sequence_flags(2);
                packet.set_track_event(|event: &mut TrackEventMessage| {
                    event.set_type(Kind::TypeInstant).set_name_iid(iid).set_categories("by hand");
                });
                if !seen {
                    packet.set_interned_data(|data: &mut InternedData| {
                        data.set_event_names(|name: &mut EventName| {
                            name.set_iid(iid).set_name("by hand");
                        });
                    });
                }
            });
        });
    }
    assert_eq!(turns, 2);
}

/// A category without the macros.
fn own_category() {
    // SAFETY: there are no tags.
    let mut category = unsafe { TrackEventCategory::new(c"own", c"A category by hand", &[]) };
    assert!(!category.is_enabled());
    let category: &'static mut TrackEventCategory = {
        category.register();
        Box::leak(Box::new(category))
    };
    // The library keeps the address of the descriptor.
    category.unregister();
    category.register();
    TrackEvent::publish_categories();
    assert!(category.is_enabled());
    let calls: Arc<Mutex<Vec<(u32, bool, bool)>>> = Arc::default();
    let to = calls.clone();
    let boxed: CategoryCallback = Box::new(move |instance, on, global| to.lock().unwrap().push((instance, on, global)));
    // The crate passes the address of the box's content and uses it as a box. So the content has to
    // be a box, as with the macros.
    let callback: &'static mut CategoryCallback = Box::leak(Box::new(Box::new(boxed)));
    // SAFETY: it is never freed.
    unsafe { category.set_callback(callback) };
    assert_eq!(*calls.lock().unwrap(), [(0, true, true)]);
    category.emit(TrackEventType::Instant(c"of a category by hand".as_ptr()), &mut EventContext::default());
    let mut turns = 0;
    category.trace(|_: &mut TraceContext| turns += 1);
    assert_eq!(turns, 1);
    category.unregister();
    assert!(!category.is_enabled());
}
