//! `esatto view` and `esatto ui-bridge`: real programs, a real browser, hostile clients.

mod a_browser_shows_the_trace;
mod hostile_clients_get_nothing;
mod private_network;
mod the_bridge_is_for_pages_of_perfetto;
mod the_command_says_what_it_does;
