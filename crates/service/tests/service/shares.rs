//! Shared resources: instances, descriptors, writers, sequence ids. A newcomer always gets a share.

use esatto_ports::Rpc as _;
use esatto_ports::producer_port;
use esatto_protozero::{Fields, Owned};
use esatto_schema::{
    DataSourceDescriptor, INSTANCES_REFUSED_FIELD, REFUSED_DATA_SOURCES_FIELD, SEQUENCES_RENAMED_FIELD, TraceConfig,
    TracePacketReader, UnregisterTraceWriterRequest,
};
use esatto_service::{ChunkHeader, ClientId, Input};

use crate::bounds::{producer_of, register_request, trace_stats};
use crate::world::{FakeProducer, World, buffer, chunk_payload, config, packet};

#[test]
fn a_newcomer_always_gets_an_instance() {
    let mut world = World::new();
    let consumer = world.consumer();
    world.enable(consumer, &config(&["wanted"]));
    let started = |world: &mut World, producer: &FakeProducer| {
        world.commands(producer).iter().filter(|command| command.start_data_source.is_some()).count()
    };
    let greedy: Vec<FakeProducer> = (0..17).map(|number| world.producer(&format!("greedy {number}"))).collect();
    let mut taken = 0;
    for producer in &greedy {
        for id in 1..=1024 {
            let request = register_request("wanted", id);
            world.producer_call(producer.client, producer_port::method::RegisterDataSource::METHOD, &request);
        }
        taken += started(&mut world, producer);
    }
    assert!(taken > 6000, "{taken}");
    let newcomer = world.producer("newcomer");
    world.register(&newcomer, "wanted");
    assert_eq!(started(&mut world, &newcomer), 1, "of the same user");
    let other = producer_of(&mut world, 4, 0, "other");
    for id in 1..=1024 {
        world.producer_call(
            other.client,
            producer_port::method::RegisterDataSource::METHOD,
            &register_request("wanted", id),
        );
    }
    assert_eq!(started(&mut world, &other), 1024, "of another user");
    let remote: usize = (1..=200)
        .map(|machine_id| {
            let remote = producer_of(&mut world, 4, machine_id, "remote");
            for id in 1..=100 {
                let request = register_request("wanted", id);
                world.producer_call(remote.client, producer_port::method::RegisterDataSource::METHOD, &request);
            }
            // Only those of the host are wanted.
            started(&mut world, &remote)
        })
        .sum();
    assert_eq!(remote, 0);

    assert!(
        world.warnings.iter().any(|line| line.contains("greedy") && line.contains("refused")),
        "the log names them"
    );
    let stats = trace_stats(&mut world, consumer);
    let refused = Fields::new(&stats).find(|field| field.id == INSTANCES_REFUSED_FIELD).map(|field| field.as_u64());
    assert_eq!(refused, Some(17 * 1024 - taken as u64));
    let events = world.read(consumer);
    let named = events.iter().filter_map(|packet| TracePacketReader::new(packet).service_event());
    let named: Vec<&[u8]> = named
        .flat_map(|event| Fields::new(event.as_bytes()).filter(|field| field.id == REFUSED_DATA_SOURCES_FIELD))
        .flat_map(|field| Fields::new(field.as_bytes()).map(|source| source.as_bytes()))
        .collect();
    assert_eq!(named.len(), 32, "the trace names the first of them");
    assert!(named[0].windows(6).any(|text| text == b"greedy") && named[0].ends_with(b"wanted"));

    for producer in &greedy {
        world.feed(Input::ProducerDisconnected(producer.client));
    }
    world.service.assert_consistent();
    let after = world.producer("after");
    for id in 1..=1024 {
        world.producer_call(
            after.client,
            producer_port::method::RegisterDataSource::METHOD,
            &register_request("wanted", id),
        );
    }
    assert_eq!(started(&mut world, &after), 1024, "what was given back can be had again");
}

#[test]
fn descriptors_are_shared_among_users() {
    let mut world = World::new();
    let register = |world: &mut World, producer: &FakeProducer| {
        let before = world.service.holdings().registrations;
        let descriptor = DataSourceDescriptor {
            name: Some("large".into()),
            unknown_fields: [&[0xfa, 1, 0xb0, 0xff, 0x07][..], &[0; 130_992]].concat(),
            ..Default::default()
        };
        world.register_as(producer, descriptor);
        world.service.holdings().registrations > before
    };
    let mut taken = 0;
    for _ in 0..40 {
        let producer = world.producer("greedy");
        taken += (0..1024).take_while(|_| register(&mut world, &producer)).count();
    }
    let bytes = taken * 131_072;
    assert!((20 << 20..=36 << 20).contains(&bytes), "one user has {bytes} bytes");
    let newcomer = world.producer("newcomer");
    for id in 1..=50 {
        let before = world.service.holdings().registrations;
        world.producer_call(
            newcomer.client,
            producer_port::method::RegisterDataSource::METHOD,
            &register_request("small", id),
        );
        assert_eq!(world.service.holdings().registrations, before + 1, "of the same user");
    }
    let other = producer_of(&mut world, 4, 0, "other");
    assert_eq!((0..40).take_while(|_| register(&mut world, &other)).count(), 40, "of another user");
}

fn unregister_writer(world: &mut World, producer: &FakeProducer, writer: u32) {
    let request = UnregisterTraceWriterRequest { trace_writer_id: Some(writer), ..Default::default() }.encode();
    world.producer_call(producer.client, producer_port::method::UnregisterTraceWriter::METHOD, &request);
}

/// A world in which producers of user 1000 have so many writers that a producer of this user gets
/// 512, and a session (buffer 1).
fn full_of_writers() -> (World, ClientId) {
    let mut world = World::new();
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    for number in 0..30 {
        let greedy = world.producer(&format!("greedy {number}"));
        for writer in 1..=u32::from(u16::MAX) {
            world.register_writer(&greedy, writer, 1);
        }
    }
    (world, consumer)
}

/// Leaves an uncommitted chunk of a writer, and disconnects its producer. Tells whether the
/// consumer reads exactly this chunk.
fn is_scraped(world: &mut World, producer: &FakeProducer, writer_id: u16, consumer: ClientId) -> bool {
    let header = ChunkHeader { writer_id, chunk_id: 0, count: 1, flags: 0 };
    world.memories[&producer.client].put(0, header, true, &chunk_payload(&[&packet("scraped")]));
    world.feed(Input::ProducerDisconnected(producer.client));
    world.read_texts(consumer) == ["scraped"]
}

#[test]
fn a_writer_without_room_is_registered_when_there_is_room() {
    let (mut world, consumer) = full_of_writers();
    let producer = world.scraped_producer("late");
    world.register(&producer, "ds");
    let most = (1..).find(|&writer| {
        world.register_writer(&producer, writer, 1);
        world.warnings.last().is_some_and(|line| line.contains("late"))
    });
    let most = most.expect("a share has an end");
    let late = most + 1;
    world.register_writer(&producer, late, 1);
    // Unregisters the first of the two that wait, and a registered one.
    unregister_writer(&mut world, &producer, most);
    unregister_writer(&mut world, &producer, 1);
    assert!(is_scraped(&mut world, &producer, late as u16, consumer));
    world.service.assert_consistent();
}

#[test]
fn an_id_without_room_is_given_to_a_new_writer() {
    let (mut world, consumer) = full_of_writers();
    let mut producer = world.producer("late");
    world.register(&producer, "ds");
    let late = 2000;
    for writer in 1..=late {
        world.register_writer(&producer, writer, 1);
    }
    for round in ["first", "second", "third"] {
        world.commit(&mut producer, 1, late as u16, 0, &[&packet(round)]);
        assert_eq!(world.read_texts(consumer), [round], "its first chunk is no duplicate");
        unregister_writer(&mut world, &producer, late);
        world.register_writer(&producer, late, 1);
    }
    world.service.assert_consistent();
}

#[test]
fn a_newcomer_always_gets_writers() {
    let mut world = World::new();
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    for number in 0..30 {
        let greedy = world.producer(&format!("greedy {number}"));
        for writer in 1..=u32::from(u16::MAX) {
            world.register_writer(&greedy, writer, 1);
            if writer % 3 == 0 {
                unregister_writer(&mut world, &greedy, writer);
            }
        }
    }
    world.service.assert_consistent();
    let refused = |world: &World| world.warnings.iter().filter(|line| line.contains("share of writers")).count();
    assert!(refused(&world) >= 15, "the log names who has its share: {}", refused(&world));

    let newcomer = world.scraped_producer("newcomer");
    world.register(&newcomer, "ds");
    for writer in 1..=512 {
        world.register_writer(&newcomer, writer, 1);
    }
    assert!(is_scraped(&mut world, &newcomer, 512, consumer));
    world.service.assert_consistent();
}

#[test]
fn sequences_beyond_a_share_are_renamed_and_counted() {
    let mut world = World::new();
    let consumer = world.consumer();
    world.enable(consumer, &TraceConfig { buffers: vec![buffer(8192)], ..config(&["ds"]) });
    let mut greedy = world.producer("greedy");
    world.register(&greedy, "ds");
    let renamed = |world: &mut World| {
        let stats = trace_stats(world, consumer);
        Fields::new(&stats).find(|field| field.id == SEQUENCES_RENAMED_FIELD).map_or(0, |field| field.as_u64())
    };
    for writer in 1..=u16::MAX {
        world.commit(&mut greedy, 1, writer, 0, &[&packet("x")]);
        if writer % 1024 == 0 {
            world.read(consumer);
        }
        if writer == 32767 {
            assert_eq!(renamed(&mut world), 0, "a program alone has all that it can use");
        }
    }
    assert!(renamed(&mut world) > 10_000);
    world.service.assert_consistent();
}

#[test]
fn a_clone_pays_for_the_sequences_that_it_copies() {
    const WRITERS: u16 = 20_000;
    let mut world = World::new();
    let consumer = world.consumer();
    world.enable(consumer, &TraceConfig { buffers: vec![buffer(4096)], ..config(&["ds"]) });
    let mut producer = world.producer("p");
    let no_flush = DataSourceDescriptor { name: Some("ds".into()), no_flush: Some(true), ..Default::default() };
    world.register_as(&producer, no_flush);
    for writer in 1..=WRITERS {
        world.commit(&mut producer, 1, writer, 0, &[&packet("x")]);
    }
    world.read(consumer);
    let clone = |world: &mut World| {
        let cloner = world.consumer();
        let call = crate::clones::ask(world, cloner, &crate::clones::by_id(1));
        crate::clones::answer(world, call).expect("an answer")
    };
    // Twice the buffer is room for the session and a clone, if nothing else is charged.
    world.service.limit_buffers(2 * 2 * 4096 * 1024);
    let error = clone(&mut world).error.expect("the sequences have no room").to_string();
    assert!(error.contains("4096 KiB are left for uid 1000"), "{error}");
    world.service.limit_buffers(2 * (2 * 4096 * 1024 + 100 * u64::from(WRITERS)));
    let before = world.service.work();
    assert_eq!(clone(&mut world).success, Some(true));
    let work = world.service.work() - before;
    assert!(work > u64::from(WRITERS) * 20 / 64, "the copy counts as work: {work}");
}
