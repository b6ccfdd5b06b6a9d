//! Cases of `conformance.gidl` with messages of real programs and of many members.

use esatto_fidl_tests::test_conformance::*;

use crate::support::{success, success_with_handles};

fn text(text: &str) -> String {
    text.to_owned()
}

fn maybe(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn messages_of_real_programs() {
    let config = InterfaceConfig::new(text("ethp0003"), Address::Dhcp(true));
    let value = AddDevice::new(text("/dev/sys/pci/00:03.0/e1000/ethernet"), config, u32::MAX);
    let bytes = "35:8 ff*8 8:8 ff*8 2:8 1:6 1:2 ff*4 00*4 \
        '/dev/sys/pci/00:03.0/e1000/ethernet' 00*5 'ethp0003'";
    success("AddEthernetDeviceRequest", &value, bytes);
    let value = Resolve::new(text("a"), vec![text("a")], Policy::new(true, true), u32::MAX);
    let bytes = "1:8 ff*8 1:8 ff*8 01 01 00*2 ff*4 'a' 00*7 1:8 ff*8 'a' 00*7";
    success("PackageResolverResolveRequest", &value, bytes);
    let (creation, modification) = (0x8877_6655_4433_2211, 0x00ff_eedd_ccbb_aa99);
    let attributes = Attributes::new(0x9623_81a4, 1, 231, 231, 1, creation, modification);
    let bytes = "af be ad 7e 00*4 a4 81 23 96 00*4 1:8 231:8 231:8 1:8 \
        11 22 33 44 55 66 77 88 99 aa bb cc dd ee ff 00";
    success("FileGetAttrResponse", &GetAttributes::new(0x7ead_beaf, attributes), bytes);
}

#[test]
fn what_is_optional_is_among_what_is_not() {
    let empty = Empty::new;
    let value = Optionals::new(
        empty(),
        Some(Box::new(empty())),
        EmptyTable { s: Some(empty()) },
        OpenEmpty::S(empty()),
        Some(Box::new(OpenEmpty::S(empty()))),
        StrictEmpty::S(empty()),
        Some(Box::new(StrictEmpty::S(empty()))),
    );
    let envelope = "0:6 1:2";
    let unions = format!("1:8 {envelope} ").repeat(4);
    success("Optionals", &value, &format!("00*8 ff*8 1:8 ff*8 {unions} 00*8 {envelope}"));
    let large = |number| Some(Box::new(Uint64Holder::new(number)));
    let value = Boxes8::new(Some(Box::new(Uint8Holder::new(1))), large(2));
    success("OutOfLinePaddingZeroed7", &value, "ff*16 01 00*7 2:8");
    let value = Boxes16::new(Some(Box::new(Uint16Holder::new(0x0201))), large(3));
    success("OutOfLinePaddingZeroed6", &value, "ff*16 01 02 00*6 3:8");
    let value = Boxes32::new(Some(Box::new(Uint32Holder::new(0x0403_0201))), large(5));
    success("OutOfLinePaddingZeroed4", &value, "ff*16 01 02 03 04 00*4 5:8");
}

#[test]
fn arrays_and_vectors_of_all_kinds() {
    let number = Int32Holder::new;
    let value = Arrays::new(
        [1, 2],
        [text("a"), text("b")],
        [maybe("c"), None],
        [number(1), number(2)],
        [None, Some(Box::new(number(0x0102_0304)))],
        [[1, 2, 3], [4, 5, 6]],
    );
    let bytes = "1:4 2:4 1:8 ff*8 1:8 ff*8 1:8 ff*8 00*16 1:4 2:4 00*8 ff*8 1:4 2:4 3:4 4:4 5:4 6:4 \
        'a' 00*7 'b' 00*7 'c' 00*7 04 03 02 01 00*4";
    success("Arrays", &value, bytes);
    let value = Vectors::new(
        Vec::new(),
        vec![1, 2],
        vec![text("a"), text("b")],
        vec![None, maybe("c"), None],
        vec![number(1)],
        vec![None, None, Some(Box::new(number(2)))],
        vec![vec![1, 2], vec![3]],
    );
    let bytes = "0:8 ff*8 2:8 ff*8 2:8 ff*8 3:8 ff*8 1:8 ff*8 3:8 ff*8 2:8 ff*8 \
        1:4 2:4 1:8 ff*8 1:8 ff*8 'a' 00*7 'b' 00*7 00*16 1:8 ff*8 00*16 'c' 00*7 1:8 \
        00*16 ff*8 2:8 2:8 ff*8 1:8 ff*8 1:4 2:4 3:8";
    success("Vectors", &value, bytes);
    let a33 = std::array::from_fn(|index| match index {
        0 => maybe("first"),
        32 => maybe("last"),
        _ => None,
    });
    let a100 = std::array::from_fn(|index| index as u8);
    let numbers: String = (0..100).map(|number| format!("{number}:1 ")).collect();
    let bytes = format!("5:8 ff*8 00*496 4:8 ff*8 {numbers} 00*4 0:8 ff*8 'first' 00*3 'last' 00*4");
    success("LargeArrays", &LargeArrays::new(a33, a100, Vec::new()), &bytes);
}

#[test]
fn all_kinds_of_members_together() {
    let value = |mut handles: Vec<_>| Zoo {
        f1: 0,
        f2: -1,
        f3: 2,
        f4: 3,
        f5: 4,
        f6: 0b1010,
        f7: 0xff,
        f8: 0o755,
        f9: 1.0,
        f10: 1.0e-8,
        f11: true,
        f12: false,
        f13: text("Hello 🌎!"),
        f14: None,
        f15: String::new(),
        f16: None,
        f17: handles.remove(0),
        f18: [12, 223, 0xff],
        f19: vec![1.0, 2.0, 0.3],
        f20: None,
        f21: Vec::new(),
        f22: ZooBits::A | ZooBits::B | ZooBits::C,
        f23: ZooEnum::A,
        f24: Empty::new(),
        f25: Uint64Holder::new(1),
        f26: None,
        f27: Some(Box::new(Uint64Holder::new(42))),
        f28: ZooTable::default(),
        f29: ZooTable { f1: Some(true), f3: Some(false) },
        f30: None,
        f31: ZooUnion::F7(text("hi")),
    };
    let bytes = "00 ff 02 00 03 00*3 4:8 0a ff ed 01 00 00 80 3f 3a 8c 30 e2 8e 79 45 3e 01 00*7 \
        11:8 ff*8 00*16 0:8 ff*8 00*4 ff*4 0c df ff 00*5 3:8 ff*8 00*16 0:8 ff*8 07 2a 00*6 1:8 00*8 ff*8 \
        0:8 ff*8 3:8 ff*8 00*16 7:8 24:8 \
        'Hello' 20 f0 9f 8c 8e 21 00*5 00*6 f0 3f 00*7 40 33 33 33 33 33 33 d3 3f 42:8 \
        1:6 1:2 0:8 0:6 1:2 2:8 ff*8 'hi' 00*6";
    success_with_handles("FidlvizDemo", &[0], value, bytes);
}
