use crate::build::{Flavour, compile, file_in_tmp};

/// The layouts are asserted in the header.
#[test]
fn in_c() {
    compile("gcc", Flavour::V58, "header.c", &file_in_tmp("header_c.o"), &["-std=c11", "-pedantic", "-c"]);
}

#[test]
fn in_cxx() {
    compile("g++", Flavour::V58, "header.cc", &file_in_tmp("header_cc.o"), &["-std=c++17", "-pedantic", "-c"]);
}
