use crate::build::{compile, file};

/// The layouts are asserted in the header.
#[test]
fn in_c() {
    compile("gcc", "header.c", &file("header_c.o"), &["-std=c11", "-pedantic", "-c"]);
}

#[test]
fn in_cxx() {
    compile("g++", "header.cc", &file("header_cc.o"), &["-std=c++17", "-pedantic", "-c"]);
}
