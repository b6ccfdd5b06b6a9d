//! Every setter of every generated message (`protos`). The test generates the calls from the
//! crate's source, because there are hundreds.

use perfetto_sdk::pb_decoder::{PbDecoder, PbDecoderField};
use perfetto_sdk::pb_msg::PbMsg;
use perfetto_sdk::protos as P;

use crate::session::encode;

/// Returns the number of a field from the crate's enum.
macro_rules! number {
    (P::$($module:ident)::+, $message:ident, $field:ident, $number:literal) => {
        paste::paste! {
            assert_eq!(P::$($module)::+::[<$message:camel FieldNumber>]::[<$field:camel>] as u32, $number);
        }
    };
}

include!(env!("OFFICIAL_MESSAGES"));

fn check(name: &str, expected: &[(u32, PbDecoderField<'_>)], write: impl Fn(&mut PbMsg<'_>)) {
    let bytes = encode(write);
    let fields: Vec<_> = PbDecoder::new(&bytes).map(|field| field.expect("it is well formed")).collect();
    assert_eq!(fields, expected, "{name}");
}
