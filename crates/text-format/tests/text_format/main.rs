//! Texts that the parser accepts, and the errors and places that it reports.

mod common;

mod each_field_has_its_place;
mod every_mistake_is_reported_with_its_place;
mod garbage_never_panics;
mod lossy_parsing_drops_unknown_names;
mod printed_text_parses_again;
mod the_whole_text_format_is_accepted;
