//! Files that are accepted, and their model.

use super::{find, libraries, offsets, size};
use crate::Config;
use crate::compile::compile;
use crate::model::{DeclarationKind, MethodKind, Name, Openness, Primitive, Response, Side, Type, Value};

const SHAPES: &str = "
library test.shapes;
using zx;

/// A point.
/// It has two coordinates.
type Point = struct {
    x int32;
    y int64;
    /// Says if it counts.
    valid bool;
};
type Empty = struct {};
type Nested = resource struct {
    a uint8;
    point Point;
    boxed box<Point>;
    name string:<10, optional>;
    words vector<array<uint16, 3>>:5;
    handle zx.Handle:<VMO, zx.Rights.READ | zx.Rights.WRITE, optional>;
    last bool;
};
type Color = strict enum : uint8 { RED = 1; BLUE = 0x10; };
type Mode = flexible bits { A = 0b1; B = 2; };
type Options = table {
    1: color Color;
    2: reserved;
    3: inner struct { mode Mode = Mode.A | Mode.B; };
};
type Choice = strict union { 2: text string; 1: number float32; };
alias Bytes = vector<uint8>;
alias Short = Bytes:8;
const MAX_LENGTH uint32 = 7;
const NAME string = \"a\\\"b\";
const FAVORITE Color = Color.BLUE;
const BOTH Mode = Mode.A | Mode.B;
const RATIO float64 = -1.5e3;
const TOP uint8 = MAX;
type Sized = struct { a array<uint32, MAX_LENGTH>; b string:MAX_LENGTH; c Short; };
type Wrapped = Point;
";

#[test]
fn sizes_and_offsets_are_those_of_the_wire_format() {
    let libraries = libraries(SHAPES);
    assert_eq!(size(&libraries, "test.shapes/Point"), (24, 8));
    assert_eq!(offsets(&libraries, "test.shapes/Point"), [0, 8, 16]);
    assert_eq!(size(&libraries, "test.shapes/Empty"), (1, 1));
    assert_eq!(offsets(&libraries, "test.shapes/Nested"), [0, 8, 32, 40, 56, 72, 76]);
    assert_eq!(size(&libraries, "test.shapes/Nested"), (80, 8));
    assert_eq!(size(&libraries, "test.shapes/Color"), (1, 1));
    assert_eq!(size(&libraries, "test.shapes/Options"), (16, 8));
    assert_eq!(size(&libraries, "test.shapes/Sized"), (64, 8), "28 + 4 padding + 16 + 16");
    assert_eq!(size(&libraries, "test.shapes/Wrapped"), (24, 8));
}

#[test]
fn types_keep_bounds_and_optionality() {
    let libraries = libraries(SHAPES);
    let DeclarationKind::Struct(nested) = &find(&libraries, "test.shapes/Nested").kind else { panic!() };
    assert!(nested.is_resource);
    let types: Vec<&Type> = nested.members.iter().map(|member| &member.type_).collect();
    assert_eq!(*types[2], Type::Box(Name::new("test.shapes", "Point")));
    assert_eq!(*types[3], Type::String { max: Some(10), is_optional: true });
    let element = Box::new(Type::Array { element: Box::new(Type::Primitive(Primitive::Uint16)), count: 3 });
    assert_eq!(*types[4], Type::Vector { element, max: Some(5), is_optional: false });
    assert_eq!(*types[5], Type::Handle { object: Some("vmo".into()), is_optional: true });
    let DeclarationKind::Struct(sized) = &find(&libraries, "test.shapes/Sized").kind else { panic!() };
    let element = Box::new(Type::Primitive(Primitive::Uint8));
    assert_eq!(sized.members[2].type_, Type::Vector { element, max: Some(8), is_optional: false });
}

#[test]
fn constants_have_their_values() {
    let libraries = libraries(SHAPES);
    let value = |name: &str| match &find(&libraries, &format!("test.shapes/{name}")).kind {
        DeclarationKind::Const { value, .. } => value.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(value("MAX_LENGTH"), Value::Int(7));
    assert_eq!(value("NAME"), Value::Text("a\"b".into()));
    assert_eq!(value("FAVORITE"), Value::Number { type_: Name::new("test.shapes", "Color"), value: 16 });
    assert_eq!(value("BOTH"), Value::Number { type_: Name::new("test.shapes", "Mode"), value: 3 });
    assert_eq!(value("RATIO"), Value::Float("-1.5e3".into()));
    assert_eq!(value("TOP"), Value::Int(255));
}

#[test]
fn inline_layouts_get_the_name_of_their_member() {
    let libraries = libraries(SHAPES);
    let DeclarationKind::Struct(inner) = &find(&libraries, "test.shapes/Inner").kind else { panic!() };
    let mode = Name::new("test.shapes", "Mode");
    assert_eq!(inner.members[0].default, Some(Value::Number { type_: mode, value: 3 }));
    let named = super::libraries("library t; type A = struct { b @generated_name(\"C\") table { 1: d bool; }; };");
    assert!(matches!(find(&named, "t/C").kind, DeclarationKind::Table(_)));
}

#[test]
fn members_of_unions_are_in_the_order_of_their_ordinals() {
    let libraries = libraries(SHAPES);
    let DeclarationKind::Union(choice) = &find(&libraries, "test.shapes/Choice").kind else { panic!() };
    assert!(choice.is_strict);
    let names: Vec<_> = choice.members.iter().map(|member| (member.ordinal, member.name.as_str())).collect();
    assert_eq!(names, [(1, "number"), (2, "text")]);
}

#[test]
fn doc_comments_are_kept() {
    let libraries = libraries(SHAPES);
    let point = find(&libraries, "test.shapes/Point");
    assert_eq!(point.notes.doc.as_deref(), Some(" A point.\n It has two coordinates.\n"));
    let DeclarationKind::Struct(layout) = &point.kind else { panic!() };
    assert_eq!(layout.members[2].notes.doc.as_deref(), Some(" Says if it counts.\n"));
}

const PROTOCOLS: &str = "
library test.protocols;

@trace(\"echo\")
@discoverable
closed protocol Base {
    strict Ping();
};
open protocol Echo {
    compose Base;
    @trace(\"calls\")
    strict Say(struct { text string; }) -> (struct { text string; });
    flexible Try(table { 1: a bool; }) -> () error int32;
    flexible Ask() -> (struct { answer uint8; });
    strict Divide() -> (struct { q int64; }) error strict enum { BY_ZERO = 1; };
    @selector(\"Old\")
    flexible Tell(Big);
    strict -> OnChange(struct { v uint8; });
};
type Big = union { 1: a bool; };
service Both { echo client_end:Echo; };
type Ends = resource struct { a client_end:Echo; b server_end:<Base, optional>; };
";

#[test]
fn methods_are_told_apart() {
    let libraries = libraries(PROTOCOLS);
    let DeclarationKind::Protocol(echo) = &find(&libraries, "test.protocols/Echo").kind else { panic!() };
    assert_eq!(echo.openness, Openness::Open);
    let method = |name: &str| echo.methods.iter().find(|method| method.name == name).unwrap();
    let local = |name: &str| Some(Name::new("test.protocols", name));

    let MethodKind::TwoWay { request, response: Response::Plain(response) } = &method("Say").kind else { panic!() };
    assert_eq!((request, response), (&local("EchoSayRequest"), &local("EchoSayResponse")));
    assert_eq!(method("Say").trace.as_deref(), Some("calls"));
    assert_eq!(method("Ask").trace, None);

    let MethodKind::TwoWay { response: Response::Result { success, error }, .. } = &method("Try").kind else {
        panic!()
    };
    assert_eq!((success, error), (&None, &Some(Type::Primitive(Primitive::Int32))));

    let MethodKind::TwoWay { response: Response::Result { success, error }, .. } = &method("Ask").kind else {
        panic!()
    };
    assert_eq!((success, error), (&local("Echo_Ask_Response"), &None));

    let MethodKind::TwoWay { response: Response::Result { error, .. }, .. } = &method("Divide").kind else { panic!() };
    assert_eq!(error, (&local("Echo_Divide_Error").map(Type::Declared)));

    assert!(matches!(&method("Tell").kind, MethodKind::OneWay { request } if *request == local("Big")));
    assert_eq!(method("Tell").ordinal, crate::ordinal::ordinal("test.protocols/Echo.Old"));
    assert!(
        matches!(&method("OnChange").kind, MethodKind::Event { payload } if *payload == local("EchoOnChangeRequest"))
    );

    // Composed methods keep the ordinal and the category of their own protocol.
    assert_eq!(method("Ping").ordinal, crate::ordinal::ordinal("test.protocols/Base.Ping"));
    assert_eq!(method("Ping").trace.as_deref(), Some("echo"));
    let DeclarationKind::Protocol(base) = &find(&libraries, "test.protocols/Base").kind else { panic!() };
    assert_eq!(base.discoverable.as_deref(), Some("test.protocols.Base"));
}

#[test]
fn endpoints_know_their_side_and_protocol() {
    let libraries = libraries(PROTOCOLS);
    let DeclarationKind::Struct(ends) = &find(&libraries, "test.protocols/Ends").kind else { panic!() };
    let protocol = Name::new("test.protocols", "Base");
    assert_eq!(ends.members[1].type_, Type::Endpoint { side: Side::Server, protocol, is_optional: true });
}

#[test]
fn the_newest_version_is_taken() {
    let libraries = libraries(
        "@available(added=1) library test;
        @available(replaced=2) type A = strict enum { X = 1; };
        @available(added=2) type A = flexible enum { X = 1; @available(added=HEAD) Y = 2; };
        @available(added=1, removed=3) type B = struct {};
        type C = struct { @available(removed=4, legacy=true) old bool; @available(added=4, deprecated=5, note=\"use D\") new bool; };
        type D = strict(removed=7) flexible(added=7) union { 1: a bool; };
        @available(removed=HEAD) const GONE bool = true;",
    );
    let DeclarationKind::Enum(a) = &find(&libraries, "test/A").kind else { panic!() };
    assert!(!a.is_strict);
    assert_eq!(a.members.len(), 2);
    let DeclarationKind::Struct(c) = &find(&libraries, "test/C").kind else { panic!() };
    assert_eq!(c.members.len(), 1);
    assert_eq!(c.members[0].notes.deprecated.as_deref(), Some("use D"));
    let DeclarationKind::Union(d) = &find(&libraries, "test/D").kind else { panic!() };
    assert!(!d.is_strict);
    let names: Vec<_> = libraries[0].declarations.iter().map(|declaration| declaration.name.name.as_str()).collect();
    assert_eq!(names, ["A", "C", "D"]);
}

#[test]
fn the_form_of_the_rfc_names_a_category() {
    let libraries =
        libraries("library test; closed protocol P { [Trace = \"io\"] strict M(); @trace(\"\") strict N(); };");
    let DeclarationKind::Protocol(protocol) = &find(&libraries, "test/P").kind else { panic!() };
    assert_eq!(protocol.methods[0].trace.as_deref(), Some("io"));
    assert_eq!(protocol.methods[1].trace, None, "the empty category switches off");
}

#[test]
fn libraries_use_each_other() {
    let libraries = compile([
        ("a.fidl", "library first.part; const SIZE uint32 = 4; type Shared = struct { a bool; };"),
        ("b.fidl", "library second; using first.part; type T = struct { a first.part.Shared; b array<bool, first.part.SIZE>; };"),
        ("c.fidl", "library second; using first.part as fp; type U = struct { a vector<fp.Shared>; t T; };"),
    ], &[])
    .unwrap();
    assert_eq!(size(&libraries, "second/T"), (5, 1));
    assert_eq!(size(&libraries, "second/U"), (24, 8));
}

#[test]
fn keywords_are_names_where_no_keyword_fits() {
    let libraries = libraries(
        "library test;
        type struct = struct { strict bool; flexible uint8; compose string; using bool; reserved bool; };
        protocol P { strict(); flexible(struct { a bool; }); library() -> (); compose(); };",
    );
    let DeclarationKind::Protocol(protocol) = &find(&libraries, "test/P").kind else { panic!() };
    let names: Vec<_> = protocol.methods.iter().map(|method| method.name.as_str()).collect();
    assert_eq!(names, ["compose", "flexible", "library", "strict"]);
}

#[test]
fn recursive_types_end_at_a_box() {
    let libraries =
        libraries("library test; type Tree = struct { left box<Tree>; right box<Tree>; more vector<Tree>; };");
    assert_eq!(size(&libraries, "test/Tree"), (32, 8));
}

#[test]
fn texts_need_no_files() {
    let config = Config::new().text("a.fidl", "library a; using b; type A = struct { b b.B; };");
    let code = config.clone().text("b.fidl", "library b; type B = struct {};").library("a").generate().unwrap();
    assert!(code.contains("pub struct A") && !code.contains("pub struct B"));
    let error = config.text("b.fidl", "library b; type B = struct {").generate().unwrap_err().to_string();
    assert!(error.starts_with("b.fidl:1:29: "), "{error}");
}
