//! Tests of the files that a distribution installs: `packaging/`, and the C library.

mod c_library;
mod debian_packages;
mod sandbox;
mod scratch_root;
mod unit;

mod examples_in_c_and_cxx_run_on_the_installed_library;
mod installing_the_c_library;
mod packages_are_in_good_order;
mod sanitizers_report_the_program_only;
mod systemd_accepts_the_units;
mod the_daemon_works_with_what_its_unit_allows;
mod the_debian_package_comes_and_goes;
mod the_probes_work_with_what_their_unit_allows;
mod the_relay_works_with_what_its_unit_allows;
mod the_units_run_in_a_booted_container;
