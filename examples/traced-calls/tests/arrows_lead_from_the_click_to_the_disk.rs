//! The example's trace, as Perfetto's trace processor reads it.

use std::process::Command;

use esatto_tests::{Harness, Peer, skip, tp};

/// Slices, each with its process, its side of a call, and the slice around it.
const SLICES: &str = "
    create table seen as
    select slice.id as id, slice.name as name, slice.ts as ts, dur, slice.parent_id as parent_id,
        coalesce(extract_arg(slice.arg_set_id, 'debug.role'), '') as role,
        coalesce(one.name, other.name) as process
    from slice join track on slice.track_id = track.id
        left join thread_track on thread_track.id = track.id left join thread using (utid)
        left join process as one on one.upid = thread.upid
        left join process_track on process_track.id = track.id
        left join process as other on other.upid = process_track.upid;
    create table arrows as
    select one.name as name, one.process as from_process, other.process as to_process,
        one.id as from_id, other.id as to_id
    from flow join seen as one on slice_out = one.id join seen as other on slice_in = other.id
        where one.role = 'client' and other.role = 'server' and one.name = other.name;";

#[test]
fn arrows_lead_from_the_click_to_the_disk() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let trace = harness.path("trace");
        let mut example = Command::new(env!("CARGO_BIN_EXE_traced-calls"));
        harness.start("example", example.arg("-o").arg(&trace)).wait_ok();
        tp::assert_clean(&trace);
        let rows = |sql: &str| tp::rows(&trace, &[SLICES, sql].concat());

        assert!(rows("select * from seen where dur < 0").is_empty(), "all slices end");
        let arrows = rows(
            "select name || ': ' || from_process || ' to ' || to_process || ' ' || count(*) as arrow
                from arrows group by name, from_process, to_process order by 1",
        );
        let arrows: Vec<_> = arrows.iter().map(|row| row.text("arrow")).collect();
        let expected = [
            "Index.Find: front to index 3",
            "Store.Count: index to store 3",
            "Store.Read: index to store 3",
            "Store.Scan: index to store 3",
            "shop.Orders/Place: front to store 3",
        ];
        assert_eq!(arrows, expected);
        assert!(rows("select to_id from arrows group by to_id having count(*) != 1").is_empty(), "one arrow each");

        // From a click down through slices and along arrows.
        let reached = rows(
            "with recursive reached(click, id) as (
                select id, id from seen where name = 'click'
                union select click, seen.id from reached join seen on seen.parent_id = reached.id
                union select click, to_id from reached join arrows on from_id = reached.id
            )
            select click, count(*) as files from reached join seen using (id)
                where seen.name = 'read file' and process = 'store' group by click",
        );
        assert_eq!(reached.iter().map(|row| row.int("files")).collect::<Vec<_>>(), [5, 5, 5]);
        Ok(())
    });
}
