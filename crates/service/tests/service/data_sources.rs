//! Data sources: matching with the entries of configs.

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_ports::producer_port;
use esatto_protozero::Owned;
use esatto_schema::{ChangeTraceConfigRequest, DataSourceDescriptor, UnregisterDataSourceRequest};

use crate::world::{World, config};

#[test]
fn unknown_fields_of_a_data_source_config_are_forwarded() {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let mut config = config(&["ds"]);
    let ds = config.data_sources[0].config.as_mut().unwrap();
    ds.unknown_fields = vec![0xc2, 0xb8, 0x02, 2, b'h', b'i'];
    ds.trace_duration_ms = Some(99);
    ds.legacy_config = Some("text".into());
    world.enable(consumer, &config);
    let setup = world.commands(&producer).remove(1).setup_data_source.unwrap().config.unwrap();
    assert_eq!(setup.unknown_fields, [0xc2, 0xb8, 0x02, 2, b'h', b'i']);
    assert_eq!(setup.trace_duration_ms, Some(0));
    assert_eq!(setup.legacy_config, Some("text".into()));
}

#[test]
fn data_sources_registered_later_join_and_unregistered_ones_leave() {
    let mut world = World::new();
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds", "ds", "other"]));
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let commands = world.commands(&producer);
    assert_eq!(commands.len(), 5, "memory, and setup and start for each of two entries");
    assert!(commands[3].setup_data_source.is_some() && commands[4].start_data_source.is_some());
    let request = UnregisterDataSourceRequest { data_source_name: Some("ds".into()), ..Default::default() };
    world.producer_call(producer.client, producer_port::method::UnregisterDataSource::METHOD, &request.encode());
    let commands = world.commands(&producer);
    assert_eq!(commands.len(), 2);
    assert!(commands.iter().all(|command| command.stop_data_source.is_some()));
}

#[test]
fn producer_name_filters_select() {
    let mut world = World::new();
    let first = world.producer("first");
    let second = world.producer("second");
    world.register(&first, "ds");
    world.register(&second, "ds");
    let consumer = world.consumer();
    let mut config = config(&["ds"]);
    config.data_sources[0].producer_name_filter = vec!["second".into()];
    world.enable(consumer, &config);
    assert!(world.commands(&first).is_empty());
    assert_eq!(world.commands(&second).len(), 3);
    config.data_sources[0].producer_name_filter.push("first".into());
    let request = ChangeTraceConfigRequest { trace_config: Some(Box::new(config)), ..Default::default() };
    world.consumer_call(consumer, method::ChangeTraceConfig::METHOD, &request.encode());
    assert_eq!(world.commands(&first).len(), 3);
    assert!(world.commands(&second).is_empty());
}

#[test]
fn machine_name_filters_know_the_host() {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    for (filter, expected) in [("host", true), ("elsewhere", false)] {
        let consumer = world.consumer();
        let mut config = config(&["ds"]);
        config.data_sources[0].machine_name_filter = vec![filter.into()];
        world.enable(consumer, &config);
        assert_eq!(!world.commands(&producer).is_empty(), expected, "{filter}");
    }
}

#[test]
fn the_second_registration_of_an_id_is_ignored() {
    let mut world = World::new();
    let producer = world.producer("p");
    let descriptor = DataSourceDescriptor { name: Some("a".into()), id: Some(5), ..Default::default() };
    world.register_as(&producer, descriptor.clone());
    world.register_as(&producer, DataSourceDescriptor { name: Some("b".into()), ..descriptor });
    world.register_as(&producer, DataSourceDescriptor::default());
    let consumer = world.consumer();
    world.enable(consumer, &config(&["a", "b", ""]));
    assert_eq!(world.commands(&producer).len(), 3);
}

#[test]
fn regular_expressions_select_producers_or_are_refused() {
    let mut world = World::new();
    let chosen = world.producer("com.example.app");
    let other = world.producer("org.example.app");
    world.register(&chosen, "ds");
    world.register(&other, "ds");
    let consumer = world.consumer();
    let mut config = config(&["ds"]);
    config.data_sources[0].producer_name_regex_filter = vec!["com\\..*".into()];
    let call = world.enable(consumer, &config);
    if cfg!(feature = "regex") {
        assert_eq!(world.ended(call), None);
        assert_eq!(world.commands(&chosen).len(), 3);
        assert!(world.commands(&other).is_empty());
    } else {
        assert!(world.ended(call).unwrap().contains("regex"));
    }
}

#[test]
fn reserved_data_sources_belong_to_one_process() {
    // The pid of the producers of these tests is 42.
    for (process, commands) in [(42, 3), (7, 0)] {
        let mut world = World::new();
        world.service.reserve_data_sources(&["ds".to_owned()], process);
        let producer = world.producer("p");
        world.register(&producer, "ds");
        world.register(&producer, "other");
        let consumer = world.consumer();
        world.enable(consumer, &config(&["ds"]));
        assert_eq!(world.commands(&producer).len(), commands, "process {process}");
        let consumer = world.consumer();
        world.enable(consumer, &config(&["other"]));
        assert!(!world.commands(&producer).is_empty());
    }
}
