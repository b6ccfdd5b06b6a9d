//! The example in the documentation of the crate.

use esatto_protozero::{HeapBuffer, Owned};

use crate::generated::shop::{Order, OrderReader, OrderWriter, State, order};

#[test]
fn the_program_of_the_example_runs() -> Result<(), esatto_protozero::DecodeError> {
    let mut buffer = HeapBuffer::new();
    let mut order = OrderWriter::from(buffer.message());
    order.number(17).state(State::Paid).notes_entry("door", "left");
    order.items().name("shirt").sizes([38, 40]);
    order.card().token(b"\x01\x02");
    drop(order);

    let order = OrderReader::parse(buffer.as_slice())?;
    assert_eq!((order.number(), order.state()), (Some(17), Some(State::Paid)));
    assert_eq!(State::Paid, State::STATE_PAID);
    assert_eq!(order.items().next().unwrap().name(), Some(&b"shirt"[..]));
    assert_eq!(order.payment().map(|field| field.id), Some(order::field::CARD));

    let mut order = Order::decode(buffer.as_slice())?;
    order.payment = Some(order::Payment::Voucher("hello".into()));
    assert_eq!(Order::decode(&order.encode()), Ok(order));
    Ok(())
}

#[test]
fn the_schema_of_the_test_is_that_of_the_example() {
    let docs = include_str!("../../src/lib.rs").replace("//! ", "").replace("//!", "");
    assert!(docs.contains(&std::fs::read_to_string(crate::protos().join("shop.proto")).unwrap()));
}
