//! Ordinals, sizes and names of the test libraries of Fuchsia's own compiler.
//!
//! The facts are those of `tools/fidl/fidlc/goldens/*.json.golden` (2022 and 2023).

use super::{find, offsets, size};
use crate::compile::compile;
use crate::model::{DeclarationKind, Library};

const UNION: &str = "library test.union;
type Empty = struct {};
type Pasta = struct { sauce string:16; };
type Pizza = struct { toppings vector<string:16>; };
type Union = strict union {
    1: Primitive int32;
    2: StringNeedsConstructor string;
    3: VectorStringAlsoNeedsConstructor vector<string>;
};
type OlderSimpleUnion = flexible union { 1: i int64; 2: f float32; };
type ExplicitFlexibleUnion = flexible union { 1: i int64; 2: reserved; 3: reserved; 4: f float32; };
type EmptyFlexibleUnion = flexible union {};
type StrictBoundedUnion = strict union { 1: v vector<uint8>:10; };
type NullableUnionStruct = struct { the_union Union:optional; };
type StructWithNullableUnion = struct { x1 OlderSimpleUnion:optional; };
type UnionSandwich = struct { a uint32; u ExplicitFlexibleUnion; b uint32; };
closed protocol TestProtocol {
    strict StrictUnionHenceResponseMayBeStackAllocated() -> (struct { xu StrictBoundedUnion; });
    strict FlexibleUnionHenceResponseMustBeHeapAllocated() -> (struct { xu OlderSimpleUnion; });
};";

const PADDING: &str = "library test.padding;
type Padding1ByteEnd = struct { a uint16; b uint8; };
type Padding1ByteMiddle = struct { a uint8; b uint16; };
type Padding2ByteAlignmentLength6 = struct { a uint8; b uint16; c uint8; };
type Padding2ByteEnd = struct { a uint32; b uint16; };
type Padding2ByteMiddle = struct { a uint16; b uint32; };
type Padding3ByteEnd = struct { a uint32; b uint8; };
type Padding3ByteMiddle = struct { a uint8; b uint32; };";

const SENSITIVE: &str = "library test.sensitive;
@sensitive type SensitiveStruct = struct { field string; };
@sensitive type SensitiveTable = table { 1: field string; };
@sensitive type SensitiveUnion = strict union { 1: field string; };
type ContainerWithPropagation = struct {
    unannotated_field string;
    sensitive_struct_field SensitiveStruct;
    sensitive_table_field SensitiveTable;
    sensitive_union_field SensitiveUnion;
};
type NonSensitiveStruct = struct { @sensitive sensitive_field string; sensitive_struct_field SensitiveStruct; };";

const NULLABLE: &str = "library test.nullable; using zx;
type Int32Wrapper = struct { val int32; };
type StructWithNullableHandle = resource struct { val zx.Handle:<VMO, optional>; };
type StructWithNullableProtocol = resource struct { val client_end:<SimpleProtocol, optional>; };
closed protocol SimpleProtocol {
    strict Add(struct { a int32; b int32; }) -> (struct { sum int32; });
};";

const HANDLES: &str = "library test.handles; using zx;
type Handles = resource struct {
    plain_handle zx.Handle;
    bti_handle zx.Handle:BTI;
    channel_handle zx.Handle:CHANNEL;
    clock_handle zx.Handle:CLOCK;
    debuglog_handle zx.Handle:DEBUGLOG;
};";

const PROTOCOLS: &str = "library test.inheritance;
closed protocol super { strict foo(struct { s string; }) -> (struct { y int64; }); };
closed protocol sub { compose super; };";

const ERRORS: &str = "library test.errorsyntax; using test.errorsyntax.parent;
closed protocol ExampleUseOfErrorSyntax {
    compose test.errorsyntax.parent.ParentUsesErrorSyntax;
    strict CallWhichMayFail(struct { s string; }) -> (struct { value int64; }) error uint32;
};";

const ERRORS_PARENT: &str = "library test.errorsyntax.parent;
closed protocol ParentUsesErrorSyntax {
    strict ComposedCallWhichMayFail(struct { s string; }) -> (struct { value int64; }) error uint32;
};";

/// Size and alignment.
const SHAPES: [(&str, (u64, u64)); 32] = [
    ("test.union/Empty", (1, 1)),
    ("test.union/Pasta", (16, 8)),
    ("test.union/Pizza", (16, 8)),
    ("test.union/Union", (16, 8)),
    ("test.union/OlderSimpleUnion", (16, 8)),
    ("test.union/EmptyFlexibleUnion", (16, 8)),
    ("test.union/StrictBoundedUnion", (16, 8)),
    ("test.union/NullableUnionStruct", (16, 8)),
    ("test.union/StructWithNullableUnion", (16, 8)),
    ("test.union/UnionSandwich", (32, 8)),
    ("test.union/TestProtocolStrictUnionHenceResponseMayBeStackAllocatedResponse", (16, 8)),
    ("test.union/TestProtocolFlexibleUnionHenceResponseMustBeHeapAllocatedResponse", (16, 8)),
    ("test.padding/Padding1ByteEnd", (4, 2)),
    ("test.padding/Padding1ByteMiddle", (4, 2)),
    ("test.padding/Padding2ByteAlignmentLength6", (6, 2)),
    ("test.padding/Padding2ByteEnd", (8, 4)),
    ("test.padding/Padding2ByteMiddle", (8, 4)),
    ("test.padding/Padding3ByteEnd", (8, 4)),
    ("test.padding/Padding3ByteMiddle", (8, 4)),
    ("test.sensitive/SensitiveStruct", (16, 8)),
    ("test.sensitive/SensitiveTable", (16, 8)),
    ("test.sensitive/ContainerWithPropagation", (64, 8)),
    ("test.sensitive/NonSensitiveStruct", (32, 8)),
    ("test.nullable/Int32Wrapper", (4, 4)),
    ("test.nullable/StructWithNullableHandle", (4, 4)),
    ("test.nullable/StructWithNullableProtocol", (4, 4)),
    ("test.nullable/SimpleProtocolAddRequest", (8, 4)),
    ("test.nullable/SimpleProtocolAddResponse", (4, 4)),
    ("test.inheritance/SuperFooRequest", (16, 8)),
    ("test.inheritance/SuperFooResponse", (8, 8)),
    ("test.errorsyntax/ExampleUseOfErrorSyntaxCallWhichMayFailRequest", (16, 8)),
    ("test.errorsyntax/ExampleUseOfErrorSyntax_CallWhichMayFail_Response", (8, 8)),
];

const OFFSETS: [(&str, &[u64]); 7] = [
    ("test.union/UnionSandwich", &[0, 8, 24]),
    ("test.padding/Padding1ByteEnd", &[0, 2]),
    ("test.padding/Padding2ByteAlignmentLength6", &[0, 2, 4]),
    ("test.padding/Padding3ByteMiddle", &[0, 4]),
    ("test.sensitive/ContainerWithPropagation", &[0, 16, 32, 48]),
    ("test.nullable/SimpleProtocolAddRequest", &[0, 4]),
    ("test.handles/Handles", &[0, 4, 8, 12, 16]),
];

const ORDINALS: [(&str, &str, u64); 7] = [
    ("test.union/TestProtocol", "StrictUnionHenceResponseMayBeStackAllocated", 6_628_358_876_445_129_155),
    ("test.union/TestProtocol", "FlexibleUnionHenceResponseMustBeHeapAllocated", 7_588_545_459_451_501_794),
    ("test.nullable/SimpleProtocol", "Add", 9_142_761_280_038_437_494),
    ("test.inheritance/super", "foo", 7_540_745_593_380_780_216),
    ("test.inheritance/sub", "foo", 7_540_745_593_380_780_216),
    ("test.errorsyntax/ExampleUseOfErrorSyntax", "CallWhichMayFail", 3_757_408_930_698_888_354),
    ("test.errorsyntax/ExampleUseOfErrorSyntax", "ComposedCallWhichMayFail", 3_565_108_794_310_607_393),
];

fn libraries() -> Vec<Library> {
    let texts = [UNION, PADDING, SENSITIVE, NULLABLE, HANDLES, PROTOCOLS, ERRORS, ERRORS_PARENT];
    compile(texts.map(|text| ("facts.fidl", text)), &[]).unwrap()
}

#[test]
fn sizes_and_offsets_are_those_of_fuchsias_compiler() {
    let libraries = libraries();
    for (name, shape) in SHAPES {
        assert_eq!(size(&libraries, name), shape, "{name}");
    }
    for (name, expected) in OFFSETS {
        assert_eq!(offsets(&libraries, name), expected, "{name}");
    }
}

#[test]
fn ordinals_of_methods_are_those_of_fuchsias_compiler() {
    let libraries = libraries();
    for (protocol, method, ordinal) in ORDINALS {
        let DeclarationKind::Protocol(found) = &find(&libraries, protocol).kind else { panic!("{protocol}") };
        let found = found.methods.iter().find(|found| found.name == method);
        assert_eq!(found.map(|found| found.ordinal), Some(ordinal), "{protocol}.{method}");
    }
}
