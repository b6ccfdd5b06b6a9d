//! The descriptions of the services have the names and the ids of the schema.

use esatto_ports::{consumer_port, producer_port, relay_port};
use esatto_schema as schema;

macro_rules! agree {
    ($($port:ident)*) => {$(
        assert_eq!($port::SERVICE.name, schema::$port::SERVICE);
        let described = (1..).zip($port::SERVICE.methods).map(|(id, method)| (id, method.name));
        assert!(described.eq(schema::$port::Method::ALL.iter().map(|method| (method.id(), method.name()))));
        assert!($port::SERVICE.methods.iter().all(|method| method.trace.is_none()), "tracing traces itself");
    )*};
}

#[test]
fn names_and_ids_agree() {
    agree!(consumer_port producer_port relay_port);
}
