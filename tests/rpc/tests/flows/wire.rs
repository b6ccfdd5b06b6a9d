//! Bytes on the wire with and without the attribute, between our own programs and with Perfetto's.

use esatto_rpc_tests::flows::{Recorded, Stage};
use esatto_rpc_tests::ports::VERSION;
use esatto_rpc_tests::wiretap::{Conversation, Mode, Wiretap, frames};
use esatto_tests::{Harness, Implementation, Peer, skip, wire};

use crate::{APP, played};

#[test]
fn the_attribute_changes_no_byte_but_the_seed() {
    skip(|| {
        let played = played(Implementation::Ours)?;
        // Client and server with (t) or without (p) the category, while it is recorded.
        let [tt, tp, pt, pp] = ["tt", "tp", "pt", "pp"].map(|name| {
            let [conversation] = &played.conversations[name][..] else { panic!("one connection") };
            assert_ne!(conversation.seed(), 0);
            conversation.without_seed()
        });
        assert!(tt.sent.len() > 100 && tt.received.len() > 100, "{tt:?}");
        assert_eq!(tt, tp);
        assert_eq!(tt, pt);
        assert_eq!(tt, pp);
        let sides = |name| {
            let scenario = played.recorded.unchecked(name);
            let has = |side: &str| scenario.all(&format!("{side} Shop.Note")).len();
            [has("client"), has("server")]
        };
        assert_eq!(["tt", "tp", "pt", "pp"].map(sides), [[1, 1], [1, 0], [0, 1], [0, 0]]);
        Ok(())
    });
}

/// Plays something with and without the category, and returns the bytes of both and the trace.
fn with_and_without(
    stage: Stage,
    mut play: impl FnMut(&Stage, &str, &dyn Fn(&mut std::process::Command)) -> Vec<Conversation>,
) -> (Vec<Conversation>, Vec<Conversation>, Recorded) {
    let with = play(&stage, "with", &|_| ());
    let without = play(&stage, "without", &|command| {
        command.env("WITHOUT_CATEGORY", "1");
    });
    (with, without, stage.finish())
}

/// An old host: the client's fields are skipped, and its calls work.
#[test]
fn perfettos_service_does_not_notice_the_attribute() {
    skip(|| {
        Peer::Official.require()?;
        let host = Harness::new();
        let _service = host.service(Implementation::Theirs);
        let stage = Stage::new(APP, Implementation::Ours)?.recording(&["app", "bindings"]);
        let (with, without, recorded) = with_and_without(stage, |stage, name, change| {
            let [consumer, producer] =
                [("c", host.consumer_socket()), ("p", host.producer_socket())].map(|(kind, target)| {
                    let socket = format!("{name}-{kind}.sock");
                    (Wiretap::start(&stage.harness.path(&socket), &target, Mode::Pass), socket)
                });
            let arguments = ["ports", &consumer.1, &producer.1];
            stage.start_with(&format!("{name}.client"), &arguments, change).wait_ok();
            [consumer.0.conversations(), producer.0.conversations()].concat()
        });
        assert_eq!((with.len(), without.len()), (2, 2));
        for (with, without) in with.iter().zip(&without) {
            assert_ne!(with.seed(), 0);
            assert_eq!(frames(&with.without_seed().sent), frames(&without.without_seed().sent));
            let reply = wire::fields(&frames(&with.received)[0]).into_iter().map(|(field, _)| field).max();
            assert!(reply < Some(4001), "Perfetto repeats no extension");
        }
        let scenario = recorded.scenario("with");
        for title in [
            "client ConsumerPort.QueryServiceState (rpc)",
            "client ConsumerPort.GetTraceStats",
            "client ProducerPort.InitializeConnection",
            "client ProducerPort.Sync",
        ] {
            assert!(!scenario.all(title).is_empty(), "{title}: {scenario:?}");
        }
        let failed = scenario.only("client ConsumerPort.GetTraceStats reply");
        assert_eq!(failed.arg("status"), "error");
        assert_eq!(scenario.only("client ProducerPort.Sync reply").arg("status"), "ok");
        assert!(recorded.unchecked("without").events.is_empty());
        Ok(())
    });
}

/// An old client: it tells no seed, so the server's slices have no flow.
#[test]
fn perfettos_command_does_not_notice_the_attribute() {
    skip(|| {
        Peer::Official.require()?;
        let stage = Stage::new(APP, Implementation::Ours)?.recording(&["app", "bindings"]);
        let (with, without, recorded) = with_and_without(stage, |stage, name, change| {
            let path = |kind: &str| stage.harness.path(format!("{name}-{kind}"));
            let arguments = ["consumer_port", &format!("{name}-server")];
            let mut server = stage.start_with(&format!("{name}.server"), &arguments, change);
            let tap = Wiretap::start(&path("tap"), &path("server"), Mode::Pass);
            let mut perfetto = stage.harness.perfetto(&["--query"]);
            let mut perfetto =
                stage.harness.start("perfetto", perfetto.env("PERFETTO_CONSUMER_SOCK_NAME", path("tap")));
            perfetto.wait_ok();
            assert!(perfetto.log().contains(VERSION), "{}", perfetto.log());
            server.wait_ok();
            tap.conversations()
        });
        assert_eq!((with.len(), &with), (1, &without), "the same bytes in both directions");
        assert_eq!(with[0].seed(), 0);
        let scenario = recorded.scenario("with");
        assert_eq!(scenario.all("server ConsumerPort.QueryServiceState").len(), 1);
        scenario.assert_arrows(&[]);
        assert!(scenario.events.iter().all(|event| event.process == "with.server"), "{scenario:?}");
        assert!(recorded.unchecked("without").events.is_empty());
        Ok(())
    });
}
