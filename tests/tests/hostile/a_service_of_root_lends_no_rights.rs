//! A service that runs as root creates files for root only. Else a member of the group of the
//! consumer socket could create files that root trusts.

use esatto_tests::wire::{Peer, Proto};
use esatto_tests::{Harness, Implementation, raw, skip};

use crate::users::{ALICE, as_user, open_to_all, require_root};

/// Returns the error with which a session of this config ends, for a consumer of this user.
fn end_of_session(harness: &Harness, uid: u32, path: &str) -> Option<String> {
    as_user(uid, || {
        let mut consumer = Peer::consumer(harness);
        // write_into_file and output_path.
        let config = raw::config(64, &[]).int(8, 1).bytes(29, path).int(3, 50);
        let reply = consumer.call("EnableTracing", &Proto::new().message(1, &config));
        esatto_tests::wire::last(&reply.body, 3).map(|error| String::from_utf8_lossy(error).into_owned())
    })
}

#[test]
fn to_other_users_by_output_path() {
    skip(|| {
        require_root()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        open_to_all(&harness, &[&harness.producer_socket(), &harness.consumer_socket()]);
        let (foreign, own) = (harness.path("of-alice"), harness.path("of-root"));
        let error = end_of_session(&harness, ALICE, &foreign.to_string_lossy()).expect("a refusal");
        assert!(error.contains("runs as root") && error.contains("4242001") && error.contains("-o"), "{error}");
        assert!(!foreign.exists(), "a file of root for another user");
        assert_eq!(end_of_session(&harness, 0, &own.to_string_lossy()), None);
        assert!(own.exists());
        Ok(())
    });
}
