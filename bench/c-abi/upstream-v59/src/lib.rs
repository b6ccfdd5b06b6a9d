//! Empty: what counts is the C++ library that the dependency compiles.
