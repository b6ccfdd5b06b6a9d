use crate::build::run;

#[test]
fn do_nothing_and_write_to_the_heap() {
    run("plain.c", "plain", &[], &[]);
}

/// Where the program has copies of the library's data.
#[test]
fn may_be_linked_at_a_fixed_address() {
    run("plain.c", "plain_no_pie", &["-no-pie", "-fno-pie"], &[]);
}
