use esatto_protozero::HeapBuffer;
use esatto_schema::{TrackDescriptorReader, TrackDescriptorWriter, track_descriptor};

use super::*;
use crate::os::process_info::Pid;
use crate::track_uuid::{COUNTER_MAGIC, STATE_MAGIC};

const MYTRACK: u64 = 0x8182_0cb4_e204_bfb2;

fn described(track: &Track) -> Vec<u8> {
    let mut buffer = HeapBuffer::<TrackDescriptorWriter<'_>>::default();
    track.describe(&Pid::default(), &mut buffer.message());
    buffer.to_vec()
}

#[test]
fn identifiers_follow_the_spec() {
    let process = track_uuid::process_uuid();
    let tid = u64::from(process_info::tid());
    assert_eq!(Track::process(3).uuid(), 3 ^ process);
    assert_eq!(Track::global(3).uuid(), 3);
    assert_eq!(Track::pointer(&raw const STATIC).uuid(), (&raw const STATIC).addr() as u64 ^ process);
    assert_eq!(Track::of_process().uuid(), process);
    assert_eq!(Track::of_thread(1001).uuid(), process ^ 1001);
    assert_eq!(Track::of_this_thread().uuid(), process ^ tid);
    assert_eq!(Track::with_name("mytrack", 0).uuid(), MYTRACK ^ NAMED_TRACK_MAGIC ^ process);
    assert_eq!(Track::with_name("mytrack", 5).at_root().uuid(), 5 ^ MYTRACK ^ NAMED_TRACK_MAGIC);
    assert_eq!(
        Track::with_name("mytrack", 0).in_this_thread().uuid(),
        MYTRACK ^ NAMED_TRACK_MAGIC ^ crate::hash::mix(process ^ tid)
    );
    assert_eq!(Track::dynamic("mytrack", 5).uuid(), Track::with_name("mytrack", 5).uuid());
    assert_eq!(CounterTrack::new("mytrack").track().uuid(), MYTRACK ^ COUNTER_MAGIC ^ process);
    assert_eq!(CounterTrack::dynamic("mytrack").track().uuid(), CounterTrack::new("mytrack").track().uuid());
    assert_eq!(StateTrack::new("mytrack").track().uuid(), MYTRACK ^ STATE_MAGIC ^ process);
    assert_eq!(StateTrack::dynamic("mytrack", 2).track().uuid(), StateTrack::with_id("mytrack", 2).track().uuid());
    assert_ne!(Track::unique("mytrack").uuid(), Track::unique("mytrack").uuid());
}

static STATIC: Track = Track::with_name("static parent", 0);

#[test]
fn the_id_of_a_child_depends_on_its_parent() {
    let parent = Track::global(8);
    assert_eq!(Track::process(3).child_of(&parent).uuid(), 3 ^ crate::hash::mix(8));
    static CHILD: Track = Track::process(3).within(&STATIC);
    assert_eq!(CHILD.uuid(), 3 ^ crate::hash::mix(STATIC.uuid()));
    assert_eq!(Track::process(3).child_of(&Track::of_process()).uuid(), Track::process(3).uuid());
    assert_eq!(Track::process(3).child_of(&Track::of_this_thread()).uuid(), Track::process(3).in_this_thread().uuid());
    assert_eq!(CHILD.uuid(), Track::process(3).child_of(&STATIC).uuid());
    let moved = Track::process(3).child_of(&parent).at_root();
    assert_eq!((moved.uuid(), moved.parent_track().is_none()), (3, true), "the last one counts");
    assert_eq!(CHILD.parent_track().map(Track::uuid), Some(STATIC.uuid()));
    let worker = std::thread::spawn(|| Track::of_this_thread().uuid()).join().expect("ends");
    assert_ne!(worker, Track::of_this_thread().uuid());
}

/// All ids are exclusive ors, so equal parts of two levels would cancel each other.
#[test]
fn equal_ids_and_names_of_two_levels_are_different_tracks() {
    let mut all = vec![track_uuid::process_uuid(), Track::of_this_thread().uuid()];
    for id in 0..4 {
        let connection = Track::with_name("connection", id);
        all.extend([&connection, &Track::with_name("stream", id).child_of(&connection)].map(Track::uuid));
        all.push(Track::with_name("connection", id).child_of(&connection).uuid());
        all.push(Track::process(id + 1).child_of(&Track::process(id + 1)).uuid());
        all.push(CounterTrack::with_id("stream", id).child_of(&connection).track().uuid());
    }
    let swapped = [("a", "b"), ("b", "a")]
        .map(|(one, other)| Track::with_name(one, 0).child_of(&Track::with_name(other, 0)).uuid());
    all.extend(swapped);
    // Numbers of threads that are the ids of their tracks.
    all.extend([77, 78].map(|tid| Track::with_name("queue", tid.into()).child_of(&Track::of_thread(tid)).uuid()));
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "{all:x?}");
}

#[test]
fn the_descriptor_contains_everything_that_was_set() {
    use track_descriptor::{ChildTracksOrdering as Ordering, SiblingMergeBehavior as Behavior};
    static ALL: Track = Track::with_name("all", 0)
        .description("what it is")
        .child_ordering(ChildOrdering::Explicit)
        .sibling_rank(-3)
        .merge(Merge::ByKey("key"))
        .descriptor(|out| drop(out.chrome_process()));
    let bytes = described(&ALL);
    let all = TrackDescriptorReader::parse(&bytes).expect("is whole");
    assert_eq!(all.uuid(), Some(ALL.uuid()));
    assert_eq!(all.parent_uuid(), Some(track_uuid::process_uuid()));
    assert_eq!((all.static_name(), all.name()), (Some(&b"all"[..]), None));
    assert_eq!(all.description(), Some(&b"what it is"[..]));
    assert_eq!(all.child_ordering(), Some(Ordering::EXPLICIT));
    assert_eq!(all.sibling_order_rank(), Some(-3));
    assert_eq!(all.sibling_merge_behavior(), Some(Behavior::SIBLING_MERGE_BEHAVIOR_BY_SIBLING_MERGE_KEY));
    assert_eq!(all.sibling_merge_key(), Some(&b"key"[..]));
    assert!(all.chrome_process().is_some());

    let bytes = described(&Track::global(7).named(String::from("late")).merge(Merge::ByNumber(9)));
    let late = TrackDescriptorReader::parse(&bytes).expect("is whole");
    assert_eq!((late.static_name(), late.name()), (None, Some(&b"late"[..])));
    assert_eq!((late.parent_uuid(), late.sibling_merge_key_int()), (None, Some(9)));
}

#[test]
fn counters_describe_their_unit_and_scale() {
    static RAM: CounterTrack = CounterTrack::new("ram")
        .unit(Unit::Bytes)
        .multiplier(1024)
        .incremental()
        .share_y_axis("memory")
        .categories(&["a", "b"]);
    let bytes = described(RAM.track());
    let ram = TrackDescriptorReader::parse(&bytes).expect("is whole").counter().expect("is a counter");
    assert_eq!(ram.unit(), Some(esatto_schema::counter_descriptor::Unit::UNIT_SIZE_BYTES));
    assert_eq!((ram.unit_multiplier(), ram.is_incremental()), (Some(1024), Some(true)));
    assert_eq!(ram.y_axis_share_key(), Some(&b"memory"[..]));
    assert_eq!(ram.categories().collect::<Vec<_>>(), [b"a", b"b"]);

    let bytes = described(CounterTrack::new("rpm").unit(Unit::Named("rpm")).multiplier(-1).track());
    let rpm = TrackDescriptorReader::parse(&bytes).expect("is whole").counter().expect("is a counter");
    assert_eq!((rpm.unit(), rpm.unit_name()), (None, Some(&b"rpm"[..])));
    assert_eq!((rpm.unit_multiplier(), rpm.is_incremental()), (None, None));
}

#[test]
fn threads_and_processes_have_their_own_descriptors() {
    let bytes = described(&Track::of_this_thread().apart_from_system_tracks());
    let thread = TrackDescriptorReader::parse(&bytes).expect("is whole");
    assert_eq!(thread.parent_uuid(), Some(track_uuid::process_uuid()));
    assert_eq!(thread.disallow_merging_with_system_tracks(), Some(true));
    let thread = thread.thread().expect("is a thread");
    assert_eq!(thread.pid(), Some(std::process::id() as i32));
    assert_eq!(thread.tid(), Some(i64::from(process_info::tid())));

    let tid = process_info::tid();
    let (from_elsewhere, own) = std::thread::scope(|scope| {
        let other = scope.spawn(|| described(&Track::of_thread(tid)));
        (other.join().expect("ends"), described(&Track::of_this_thread()))
    });
    assert_eq!(from_elsewhere, own, "with the name of that thread");

    let bytes = described(&Track::of_process());
    let process = TrackDescriptorReader::parse(&bytes).expect("is whole");
    assert_eq!(process.parent_uuid(), None);
    assert!(process.process().expect("is a process").process_name().is_some());

    let bytes = described(StateTrack::new("s").track());
    assert!(TrackDescriptorReader::parse(&bytes).expect("is whole").state().is_some());
}
