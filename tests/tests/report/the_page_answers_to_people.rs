//! People use the page by mouse, keyboard, fingers, on paper, and in the dark. A browser plays
//! them with real input. The page makes no request, and the browser has nothing to complain of.

use crate::the_page_shows_what_is_in_the_trace::{page_of, play, torn, trace};
use esatto_tests::wire::Proto;
use esatto_tests::{Harness, Peer, Skip, skip};

fn scenario(name: &str, trace: &[u8], title: &str) -> Result<(), Skip> {
    Peer::Browser.require()?;
    let harness = Harness::new();
    let page = page_of(&harness, trace, title);
    play(&harness, &page, name);
    Ok(())
}

#[test]
fn at_a_desk() {
    skip(|| scenario("desk", &trace("track-events"), "t.pftrace"));
}

#[test]
fn on_a_phone() {
    skip(|| scenario("phone", &trace("track-events"), "t.pftrace"));
}

#[test]
fn without_a_pointer() {
    skip(|| scenario("keyboard", &trace("track-events"), "t.pftrace"));
}

#[test]
fn on_paper() {
    skip(|| scenario("print", &trace("track-events"), "t.pftrace"));
}

#[test]
fn with_a_machine_instead_of_programs() {
    skip(|| scenario("machine", &trace("process-and-sys-stats"), "t.pftrace"));
}

#[test]
fn although_names_are_markup() {
    let event = |kind: u64, name: &str, ts: u64| {
        let event = Proto::new().int(9, kind).bytes(23, name);
        Proto::new().message(1, &Proto::new().int(8, ts).int(10, 1).message(11, &event))
    };
    let names = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>"];
    let trace = [event(1, names[0], 1000), event(3, names[1], 2000)].map(|packet| packet.0).concat();
    skip(|| scenario("hostile", &trace, "<b>t</b> & \"x\""));
}

#[test]
fn losses_first() {
    skip(|| scenario("losses", &torn(), "t.pftrace"));
}
