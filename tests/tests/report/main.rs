//! `esatto report`: the page, in a real browser without a network.

mod modules_pass_their_tests;
mod profiled;
mod stacks_and_kernel_events;
mod the_page_answers_to_people;
mod the_page_shows_what_is_in_the_trace;
