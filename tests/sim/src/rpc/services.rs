//! Services and messages of the simulated programs, as generated code describes them.

use esatto_ipc::service::{Kind, Method, Rpc, Service, TraceSite};
use esatto_protozero::{DecodeError, DecodeFields, EncodeFields, Field, Message, Value};

/// Message of all methods, as request and as reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Packet {
    /// Number of the call, from 1; 0 in an empty message.
    pub(super) call: u64,
    /// Number of the reply within its call, from 1.
    pub(super) number: u64,
    /// Bytes that depend on both.
    pub(super) content: Vec<u8>,
    unknown: Vec<u8>,
}

impl Packet {
    /// Makes a message whose encoding has about `len` bytes; an empty one for 0.
    pub(super) fn new(call: u64, number: u64, len: usize) -> Self {
        if len == 0 {
            return Self::default();
        }
        let mut word = call.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number.wrapping_mul(0x94d0_49bb_1331_11eb);
        let content = (0..len).map(|_| {
            word = word.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            (word >> 56) as u8
        });
        Self { call, number, content: content.collect(), unknown: Vec::new() }
    }
}

impl DecodeFields for Packet {
    fn merge_field(&mut self, field: Field<'_>, _: u32) -> Result<bool, DecodeError> {
        match (field.id, field.value) {
            (1, Value::Varint(call)) => self.call = call,
            (2, Value::Varint(number)) => self.number = number,
            (3, Value::Bytes(content)) => self.content = content.to_vec(),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn unknown_fields_mut(&mut self) -> &mut Vec<u8> {
        &mut self.unknown
    }
}

impl EncodeFields for Packet {
    fn write_to(&self, message: &mut Message<'_>) {
        if *self != Self::default() {
            message.varint(1, self.call);
            message.varint(2, self.number);
            message.bytes(3, &self.content);
        }
    }
}

static SITE: TraceSite = TraceSite::new("simulated");

const fn method(name: &'static str, full_name: &'static str, kind: Kind) -> Method {
    Method { name, full_name, kind, trace: Some(&SITE) }
}

/// A service that all servers offer.
pub(super) static ALPHA: Service = Service {
    name: "Alpha",
    methods: &[
        method("Get", "Alpha.Get", Kind::Unary),
        method("Watch", "Alpha.Watch", Kind::ServerStream),
        method("Note", "Alpha.Note", Kind::OneWay),
    ],
};

/// A service with more methods than [`OLD_BRAVO`].
pub(super) static BRAVO: Service = Service {
    name: "Bravo",
    methods: &[
        method("Watch", "Bravo.Watch", Kind::ServerStream),
        method("Get", "Bravo.Get", Kind::Unary),
        method("Late", "Bravo.Late", Kind::Unary),
        method("Tell", "Bravo.Tell", Kind::OneWay),
    ],
};

/// An earlier version of [`BRAVO`].
pub(super) static OLD_BRAVO: Service = Service {
    name: "Bravo",
    methods: &[method("Watch", "Bravo.Watch", Kind::ServerStream), method("Get", "Bravo.Get", Kind::Unary)],
};

/// A service that no server offers.
pub(super) static GAMMA: Service = Service {
    name: "Gamma",
    methods: &[
        method("Get", "Gamma.Get", Kind::Unary),
        method("Watch", "Gamma.Watch", Kind::ServerStream),
        method("Note", "Gamma.Note", Kind::OneWay),
    ],
};

macro_rules! methods {
    ($($name:ident $service:ident $id:literal;)*) => { $(
        pub(super) struct $name;

        impl Rpc for $name {
            const SERVICE: &'static Service = &$service;
            const METHOD: u32 = $id;
            type Request = Packet;
            type Reply = Packet;
        }
    )* };
}

methods! {
    AlphaGet ALPHA 1;
    AlphaWatch ALPHA 2;
    AlphaNote ALPHA 3;
    BravoWatch BRAVO 1;
    BravoGet BRAVO 2;
    BravoLate BRAVO 3;
    BravoTell BRAVO 4;
    GammaGet GAMMA 1;
    GammaWatch GAMMA 2;
    GammaNote GAMMA 3;
}

/// The methods of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) service: &'static str,
    pub(super) id: u32,
    pub(super) kind: Kind,
}

/// Returns all methods that clients know.
pub(super) fn targets() -> Vec<Target> {
    [&ALPHA, &BRAVO, &GAMMA].into_iter().flat_map(targets_of).collect()
}

fn targets_of(service: &'static Service) -> impl Iterator<Item = Target> {
    (1..).zip(service.methods).map(|(id, method)| Target { service: service.name, id, kind: method.kind })
}

/// Returns the services that a server offers.
pub(super) fn offer(is_old: bool) -> &'static [&'static Service] {
    static OLD: [&Service; 2] = [&OLD_BRAVO, &ALPHA];
    static NEW: [&Service; 2] = [&ALPHA, &BRAVO];
    if is_old { &OLD } else { &NEW }
}
