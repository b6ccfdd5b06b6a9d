//! Files of Fuchsia's own compiler, made here in the form of its public schema.

use serde_json::{Value, json};

use crate::Config;

/// The library as a `.fidl` file.
const FIDL: &str = "
/// A library.
library test.ir;

using test.base;

const SIZE uint8 = 3;
const WORD string = \"a b\";
const FIRST Color = Color.RED;

/// Of light.
type Color = strict enum : uint8 { RED = 1; @unknown BLUE = 2; };
type Mode = flexible bits : uint16 { A = 1; };
type Point = struct { x int32; y int64 = -1; };
type Line = resource struct {
    from Point;
    to box<Point>;
    name string:<9, optional>;
    parts array<vector<Shape>:4, 2>;
    memory client_end:<Echo, optional>;
    base test.base.Base;
};
type Options = table { 1: color Color; 3: mode Mode; };
type Shape = flexible union { 1: point Point; 2: text string; };
type Meters = uint32;

@discoverable
@trace(\"echo\")
open protocol Echo {
    compose test.base.Ping;
    strict Say(Point) -> (Point);
    flexible Ask() -> (Options) error int32;
    strict Check() -> () error Color;
    flexible -> OnChange(Shape);
    @selector(\"Old\")
    strict Tell();
};

service Both { main client_end:Echo; };
";

const BASE: &str = "library test.base; type Base = struct { a bool; };
closed protocol Ping { @trace(\"ping\") strict Ping(); };";

fn shape(mut type_: Value, size: u64, align: u64) -> Value {
    type_["type_shape_v2"] = json!({"inline_size": size, "alignment": align});
    type_
}

fn primitive(name: &str, size: u64) -> Value {
    shape(json!({"kind_v2": "primitive", "subtype": name}), size, size)
}

fn named(full: &str, is_optional: bool, size: u64, align: u64) -> Value {
    shape(json!({"kind_v2": "identifier", "identifier": full, "nullable": is_optional}), size, align)
}

fn value(value: &str) -> Value {
    json!({"kind": "literal", "value": value, "expression": value})
}

fn attribute(name: &str, argument: &str, text: &str) -> Value {
    json!([{"name": name, "arguments": [{"name": argument, "type": "string", "value": value(text)}]}])
}

fn member(name: &str, type_: Value, offset: u64) -> Value {
    json!({"name": name, "type": type_, "field_shape_v2": {"offset": offset, "padding": 0}})
}

/// The library as Fuchsia's compiler writes it.
fn document() -> Value {
    let point = || named("test.ir/Point", false, 16, 8);
    let ordinal = |name: &str| crate::ordinal::ordinal(&format!("test.ir/Echo.{name}"));
    let string = json!({"kind": "string", "maybe_element_count": 9, "nullable": true});
    let shapes = json!({
        "kind": "vector", "maybe_element_count": 4, "nullable": false,
        "element_type": named("test.ir/Shape", false, 16, 8),
    });
    let array = shape(json!({"kind": "array", "element_count": 2, "element_type": shapes}), 32, 8);
    let echo = json!({
        "kind_v2": "endpoint", "role": "client", "protocol": "test.ir/Echo", "nullable": true,
        "protocol_transport": "Channel",
    });
    json!({
        "name": "test.ir",
        "maybe_attributes": attribute("doc", "value", " A library.\n"),
        "const_declarations": [
            {"name": "test.ir/SIZE", "type": primitive("uint8", 1), "value": value("3")},
            {"name": "test.ir/WORD", "type": {"kind": "string", "nullable": false}, "value": value("a b")},
            {"name": "test.ir/FIRST", "type": named("test.ir/Color", false, 1, 1), "value": value("1")},
        ],
        "enum_declarations": [{
            "name": "test.ir/Color", "type": "uint8", "strict": true,
            "maybe_attributes": attribute("doc", "value", " Of light.\n"),
            "members": [
                {"name": "RED", "value": value("1")},
                {"name": "BLUE", "value": value("2"), "maybe_attributes": [{"name": "unknown", "arguments": []}]},
            ],
        }],
        "bits_declarations": [{
            "name": "test.ir/Mode", "type": primitive("uint16", 2), "mask": "1", "strict": false,
            "members": [{"name": "A", "value": value("1")}],
        }],
        "struct_declarations": [
            shape(json!({
                "name": "test.ir/Point", "resource": false, "is_empty_success_struct": false,
                "members": [
                    member("x", primitive("int32", 4), 0),
                    {
                        "name": "y", "type": primitive("int64", 8), "maybe_default_value": value("-1"),
                        "field_shape_v2": {"offset": 8, "padding": 0},
                    },
                ],
            }), 16, 8),
            shape(json!({
                "name": "test.ir/Line", "resource": true,
                "members": [
                    member("from", point(), 0),
                    member("to", named("test.ir/Point", true, 8, 8), 16),
                    member("name", shape(string, 16, 8), 24),
                    member("parts", array, 40),
                    member("memory", shape(echo, 4, 4), 72),
                    member("base", named("test.base/Base", false, 1, 1), 76),
                ],
            }), 80, 8),
            {
                "name": "test.ir/Echo_Check_Response", "resource": false, "is_empty_success_struct": true,
                "members": [],
            },
        ],
        "table_declarations": [shape(json!({
            "name": "test.ir/Options", "resource": false, "strict": false,
            "members": [
                {"ordinal": 1, "name": "color", "type": named("test.ir/Color", false, 1, 1)},
                {"ordinal": 2, "reserved": true},
                {"ordinal": 3, "name": "mode", "type": named("test.ir/Mode", false, 2, 2)},
            ],
        }), 16, 8)],
        "union_declarations": [
            shape(json!({
                "name": "test.ir/Shape", "resource": false, "strict": false,
                "members": [
                    {"ordinal": 2, "name": "text", "type": {"kind": "string", "nullable": false}},
                    {"ordinal": 1, "name": "point", "type": point()},
                ],
            }), 16, 8),
            {
                "name": "test.ir/Echo_Ask_Result", "resource": false, "strict": true,
                "members": [{"ordinal": 3, "name": "framework_err", "type": {"kind": "internal"}}],
            },
        ],
        "new_type_declarations": [{"name": "test.ir/Meters", "type": primitive("uint32", 4)}],
        "protocol_declarations": [{
            "name": "test.ir/Echo", "openness": "open",
            "maybe_attributes": [
                {"name": "discoverable", "arguments": []},
                {"name": "trace", "arguments": [{"name": "value", "value": value("echo")}]},
            ],
            "composed_protocols": [{"name": "test.base/Ping"}],
            "methods": [
                {
                    "ordinal": crate::ordinal::ordinal("test.base/Ping.Ping"), "name": "Ping", "strict": true,
                    "has_request": true, "has_response": false, "is_composed": true,
                },
                {
                    "ordinal": ordinal("Say"), "name": "Say", "strict": true, "has_request": true,
                    "maybe_request_payload": point(), "has_response": true, "maybe_response_payload": point(),
                },
                {
                    "ordinal": ordinal("Ask"), "name": "Ask", "strict": false, "has_request": true,
                    "has_response": true, "has_error": true,
                    "maybe_response_payload": named("test.ir/Echo_Ask_Result", false, 16, 8),
                    "maybe_response_success_type": named("test.ir/Options", false, 16, 8),
                    "maybe_response_err_type": primitive("int32", 4),
                },
                {
                    "ordinal": ordinal("Check"), "name": "Check", "strict": true, "has_request": true,
                    "has_response": true, "has_error": true,
                    "maybe_response_success_type": named("test.ir/Echo_Check_Response", false, 1, 1),
                    "maybe_response_err_type": named("test.ir/Color", false, 1, 1),
                },
                {
                    "ordinal": ordinal("OnChange"), "name": "OnChange", "strict": false, "has_request": false,
                    "has_response": true, "maybe_response_payload": named("test.ir/Shape", false, 16, 8),
                },
                {
                    "ordinal": ordinal("Old"), "name": "Tell", "strict": true, "has_request": true,
                    "has_response": false, "maybe_attributes": attribute("selector", "value", "Old"),
                },
            ],
        }],
        "service_declarations": [{
            "name": "test.ir/Both",
            "members": [{"name": "main", "type": {
                "kind": "identifier", "identifier": "test.ir/Echo", "nullable": false, "protocol_transport": "Channel",
            }}],
        }],
    })
}

fn config(document: &Value) -> Config {
    Config::new().text("base.fidl", BASE).ir_text("test.json", document.to_string())
}

/// Returns the error of a document in which `change` changed something.
fn refused(change: impl FnOnce(&mut Value)) -> String {
    let mut document = document();
    change(&mut document);
    config(&document).generate().unwrap_err().to_string()
}

#[test]
fn a_compiled_library_gives_the_code_of_its_source() {
    let source = Config::new().text("test.fidl", FIDL).text("base.fidl", BASE);
    assert_eq!(config(&document()).generate().unwrap(), source.generate().unwrap());
}

#[test]
fn a_difference_to_our_numbers_is_an_error() {
    let methods = "/protocol_declarations/0/methods";
    let error = refused(|document| document.pointer_mut(methods).unwrap()[1]["ordinal"] = json!(5));
    let own = crate::ordinal::ordinal("test.ir/Echo.Say");
    assert_eq!(
        error,
        format!("test.json: test.ir/Echo.Say: the ordinal is 5, but that of `test.ir/Echo.Say` is {own}")
    );
    let error = refused(|document| document.pointer_mut(methods).unwrap()[0]["ordinal"] = json!(5));
    let own = crate::ordinal::ordinal("test.base/Ping.Ping");
    assert_eq!(error, format!("test.json: test.ir/Echo.Ping: the ordinal is 5, but ours is {own}"));
    let structs = "/struct_declarations";
    let error = refused(|document| {
        document.pointer_mut(structs).unwrap()[0]["type_shape_v2"]["inline_size"] = json!(24);
    });
    let expected = "test.json: test.ir/Point: the size is 24 bytes, aligned to 8, but ours 16 bytes, aligned to 8";
    assert_eq!(error, expected);
    let error = refused(|document| {
        document.pointer_mut(structs).unwrap()[1]["members"][3]["field_shape_v2"]["offset"] = json!(44);
    });
    assert_eq!(error, "test.json: test.ir/Line.parts: the offset is 44, but ours 40");
    let error = refused(|document| {
        document.pointer_mut(structs).unwrap()[1]["members"][4]["type"]["type_shape_v2"]["alignment"] = json!(8);
    });
    let expected = "test.json: test.ir/Line.memory: the size is 4 bytes, aligned to 8, but ours 4 bytes, aligned to 4";
    assert_eq!(error, expected);
}

/// Properties of types as the rules of Fuchsia's compiler give them: depth, handles, bytes out of
/// line, padding, and flexible envelopes.
#[test]
fn depth_handles_and_bytes_out_of_line_are_compared() {
    let extents = [
        ("/struct_declarations/0", [0, 0, 0, 1, 0]),
        // Point in a box: 16; the name: 16; two vectors of 4 shapes: 2 * (64 + 4 * LIMIT).
        ("/struct_declarations/1", [3, 1, u32::MAX.into(), 1, 1]),
        ("/struct_declarations/1/members/1/type", [1, 0, 16, 1, 0]),
        ("/struct_declarations/1/members/2/type", [1, 0, 16, 1, 0]),
        ("/struct_declarations/1/members/4/type", [0, 1, 0, 0, 0]),
        // Both members are in their envelopes, of which the second is empty.
        ("/table_declarations/0", [2, 0, 24, 1, 1]),
        ("/union_declarations/0", [2, 0, u32::MAX.into(), 1, 1]),
    ];
    let set = |document: &mut Value, place: &str, [depth, handles, bytes, padding, flexible]: [u64; 5]| {
        let shape = &mut document.pointer_mut(place).unwrap()["type_shape_v2"];
        shape["depth"] = json!(depth);
        shape["max_handles"] = json!(handles);
        shape["max_out_of_line"] = json!(bytes);
        shape["has_padding"] = json!(padding == 1);
        shape["has_flexible_envelope"] = json!(flexible == 1);
    };
    let mut document = document();
    for (place, extent) in extents {
        set(&mut document, place, extent);
    }
    config(&document).generate().unwrap();
    let names = ["depth", "max_handles", "max_out_of_line", "has_padding", "has_flexible_envelope"];
    for (place, extent) in extents {
        for (index, name) in names.into_iter().enumerate() {
            let mut wrong = extent;
            wrong[index] ^= 1;
            let mut document = document.clone();
            set(&mut document, place, wrong);
            let error = config(&document).generate().unwrap_err().to_string();
            let expected = format!("`{name}` is {}, but ours {}", wrong[index], extent[index]);
            assert!(error.ends_with(&expected), "{place}: {error}, expected {expected}");
        }
    }
}

type Change = fn(&mut Value);

#[test]
fn mistakes_name_the_file_and_the_member() {
    let of = |text: &str| Config::new().ir_text("t.json", text).generate().unwrap_err().to_string();
    assert_eq!(of("{\n  \"name\": 1\n}"), "t.json:2:11: invalid type: integer `1`, expected a string");
    assert_eq!(of("{"), "t.json:1:1: EOF while parsing an object");
    assert!(of("{}").contains("missing field `name`"), "{}", of("{}"));
    assert_eq!(of("{\"name\": \"A\"}"), "t.json: expected the name of a library, found \"A\"");

    let cases: [(&str, Change); 7] = [
        ("test.ir/Point.x: the type `uchar` is not supported", |document| {
            document["struct_declarations"][0]["members"][0]["type"]["subtype"] = json!("uchar");
        }),
        ("test.ir/Line.from: nothing is called `other/B`: add the file of its library", |document| {
            document["struct_declarations"][1]["members"][0]["type"]["identifier"] = json!("other/B");
        }),
        ("test.ir/Line.memory: it can hold handles, so the type must be a resource", |document| {
            document["struct_declarations"][1]["resource"] = json!(false);
        }),
        ("test.ir/Line: `test.ir/Point` contains itself", |document| {
            document["struct_declarations"][0]["members"][0]["type"] =
                json!({"kind": "identifier", "identifier": "test.ir/Point"});
        }),
        ("expected `library/Name`, found \"test.ir/a b\"", |document| {
            document["struct_declarations"][0]["name"] = json!("test.ir/a b");
        }),
        ("test.ir/Line.memory: the transport `Driver` is not supported; known is `Channel`", |document| {
            document["struct_declarations"][1]["members"][4]["type"]["protocol_transport"] = json!("Driver");
        }),
        ("test.ir/Color.RED: `256` is no uint8", |document| {
            document["enum_declarations"][0]["members"][0]["value"]["value"] = json!("256");
        }),
    ];
    for (expected, change) in cases {
        assert_eq!(refused(change), format!("test.json: {expected}"));
    }
    let twice = config(&document()).text("t.fidl", FIDL).generate().unwrap_err().to_string();
    assert_eq!(twice, "test.json: the library `test.ir` is in .fidl files already");
}

#[test]
fn a_compiled_zx_replaces_the_built_in_one() {
    let zx = json!({
        "name": "zx",
        "const_declarations": [{"name": "zx/OWN", "type": primitive("uint8", 1), "value": value("3")}],
    });
    let code = Config::new().ir_text("zx.json", zx.to_string()).generate().unwrap();
    assert!(code.contains("pub const OWN: u8 = 3;") && !code.contains("Rights"), "{code}");
}
