//! Rows 52-55: one buffer, filled further and further; where V1 marks the first packet of every
//! sequence, this one marks losses.

use super::*;

/// The common part of the rows, up to the second read.
fn two_passes() -> (Bench, String, String) {
    let mut bench = Bench::ring();
    bench.put("w1.0[a b c>]");
    // Two packets, the second one with a size beyond the end, and one more.
    bench.raw_of(2, 1, 0, 3, &[3, b'u', b'u', b'u', 0x7f, b'v', 2, b'w', b'w']);
    let first = bench.read();
    bench.put("p2w1.1[x y] w1.1[<d e]");
    let second = bench.read();
    (bench, first, second)
}

#[test]
fn row_052_the_first_packets_are_not_marked() {
    let (_, first, _) = two_passes();
    assert_eq!(first, "a b u", "V1 marks a and u");
}

#[test]
fn row_053_the_packet_after_a_corrupt_one_is_marked() {
    let (_, _, second) = two_passes();
    assert_eq!(second, "cd e x=5 y");
}

#[test]
fn row_054_the_packet_after_an_overwritten_one_is_marked() {
    let (mut bench, ..) = two_passes();
    bench.put("w1.2[f2500] w1.3[g2500]");
    assert_eq!(bench.read(), "g=65", "V1 marks it 1");
}

#[test]
fn row_055_overwriting_read_packets_leaves_no_mark() {
    let (mut bench, ..) = two_passes();
    bench.put("w1.2[f2500] w1.3[g2500]");
    bench.read();
    assert_eq!(bench.put("p2w1.2[z]").read(), "z", "V1 marks it");
}
