//! What a distribution installs: `packaging/`.

mod sandbox;
mod unit;

mod systemd_accepts_the_units;
mod the_daemon_works_with_what_its_unit_allows;
