//! The bindings have the methods of the schema, and nothing else.

use esatto_ports::{Rpc, consumer_port, producer_port, relay_port};
use esatto_protozero::service::Service;

const PRODUCER: &str = "InitializeConnection RegisterDataSource UnregisterDataSource CommitData GetAsyncCommand \
    RegisterTraceWriter UnregisterTraceWriter NotifyDataSourceStarted NotifyDataSourceStopped ActivateTriggers Sync \
    UpdateDataSource";
const CONSUMER: &str = "EnableTracing DisableTracing ReadBuffers FreeBuffers Flush StartTracing ChangeTraceConfig \
    Detach Attach GetTraceStats ObserveEvents QueryServiceState QueryCapabilities SaveTraceForBugreport CloneSession";
const RELAY: &str = "InitRelay SyncClock";

/// Other programs know the numbers of methods, so these never change.
#[test]
fn names_and_ids_are_those_of_the_protocol() {
    let ports: [(&Service, _, _); 3] = [
        (&producer_port::SERVICE, "ProducerPort", PRODUCER),
        (&consumer_port::SERVICE, "ConsumerPort", CONSUMER),
        (&relay_port::SERVICE, "RelayPort", RELAY),
    ];
    for (port, name, methods) in ports {
        assert_eq!(port.name, name);
        assert!(port.methods.iter().map(|method| method.name).eq(methods.split(' ').filter(|name| !name.is_empty())));
        assert!((1..).zip(port.methods).all(|(id, method)| port.id_of(method.name) == Some(id)));
        assert_eq!(port.id_of("Missing"), None);
    }
    assert_eq!(producer_port::method::UpdateDataSource::METHOD, 12);
}

#[test]
fn the_tracing_protocol_is_not_traced() {
    for port in [&producer_port::SERVICE, &consumer_port::SERVICE, &relay_port::SERVICE] {
        assert!(port.methods.iter().all(|method| method.trace.is_none()), "{} traces itself", port.name);
    }
}

#[test]
fn requests_are_read_by_the_id_of_their_method() {
    use consumer_port::Request;
    for (id, method) in (1..).zip(consumer_port::SERVICE.methods) {
        let request = Request::read(id, &[]).expect("an empty message");
        assert!(format!("{request:?}").starts_with(method.name), "{request:?}");
        assert!(Request::read(id, b"\x0a\x05").is_none(), "{}: cut off", method.name);
    }
    // key: "k"
    let Some(Request::Attach(request)) = Request::read(9, b"\x0a\x01k") else { panic!() };
    assert_eq!(request.key(), Some(&b"k"[..]));
    assert!([0, 16, u32::MAX].into_iter().all(|id| Request::read(id, &[]).is_none()));
}
