//! Data sources (`docs/spec/c-abi.md` §5).

mod instance;
mod instance_lock;
mod iteration;
mod postpone;
mod setters;
mod settings;
mod source_type;

#[cfg(perfetto_v59)]
pub(crate) use instance::FlushArgs;
#[cfg(perfetto_v59)]
pub(crate) use source_type::DataSourceType;

/// Forgets all instances in the child of a fork.
pub(crate) fn forked() {
    instance_lock::forked();
    instance::forked();
}
