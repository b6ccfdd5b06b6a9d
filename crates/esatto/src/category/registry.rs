//! The categories of the process and the configurations that switch them.

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use esatto_schema::TrackEventConfig;

use esatto_map::Set;

use esatto_instances::{MAX_INSTANCES, ThreadGate as _};

use super::{Category, Foreign, selection};
use crate::control_thread;
use crate::os::fork::Generation;
use crate::trace_point_gate::{Closed, Gate};

type Configs = [Option<Arc<TrackEventConfig>>; MAX_INSTANCES];

#[derive(Debug)]
struct Registry {
    categories: Vec<&'static Category>,
    /// Their addresses.
    known: Set<usize>,
    /// The configuration of each instance that records.
    configs: Configs,
    /// The configurations that recorded the parent when it forked this process, until this process
    /// starts the control thread.
    of_parent: Configs,
    /// Counts additions, so that services can be told of them.
    version: u64,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    categories: Vec::new(),
    known: Set::new(),
    configs: [const { None }; MAX_INSTANCES],
    of_parent: [const { None }; MAX_INSTANCES],
    version: 0,
});

/// The number of the forked process that has reached a trace point that its parent recorded; 0 if
/// there is none.
static MISSED: AtomicU32 = AtomicU32::new(0);

/// Notified when categories were switched.
static CHANGED: Condvar = Condvar::new();

/// The registry, locked by a thread that is closed to trace points meanwhile, because they may
/// register their category.
struct Locked {
    registry: MutexGuard<'static, Registry>,
    _closed: Closed,
}

fn lock() -> Locked {
    let closed = Gate::close();
    Locked { registry: REGISTRY.lock().unwrap_or_else(PoisonError::into_inner), _closed: closed }
}

impl Deref for Locked {
    type Target = Registry;

    fn deref(&self) -> &Registry {
        &self.registry
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Registry {
        &mut self.registry
    }
}

impl Registry {
    /// Returns the instances that record a category.
    fn instances(&self, category: &'static Category) -> u32 {
        let mut mask = 0;
        for (i, config) in self.configs.iter().enumerate() {
            if let Some(config) = config {
                mask |= u32::from(selection::enables(config, category)) << i;
            }
        }
        mask
    }

    fn add(&mut self, category: &'static Category) {
        if self.known.insert(core::ptr::from_ref(category).addr()) {
            self.categories.push(category);
            self.version += u64::from(category.is_listed());
        }
        category.set_instances(self.instances(category));
    }

    /// Returns whether this process was recorded before its fork, and not since.
    fn has_parent(&self) -> bool {
        self.of_parent.iter().any(Option::is_some)
    }

    /// Notes, in a forked process, that a trace point is reached that the parent recorded.
    fn note_missed(&self, category: &'static Category) {
        if self.of_parent.iter().flatten().any(|config| selection::enables(config, category)) {
            MISSED.store(Generation::current().number(), Ordering::Relaxed);
        }
    }

    /// Switches all categories, and returns the libraries to be told.
    fn evaluate(&self) -> Vec<&'static dyn Foreign> {
        for category in &self.categories {
            category.set_instances(self.instances(category));
        }
        CHANGED.notify_all();
        self.categories.iter().filter_map(|category| category.foreign_side()).collect()
    }
}

/// The categories, locked while the process forks.
pub(crate) struct Held(Locked);

pub(crate) fn hold_for_fork() -> Held {
    Held(lock())
}

impl Held {
    /// Forgets the instances, in the child. The first trace point of a category that was on takes
    /// the slow path, as that of a category that is not registered, and is noted there.
    pub(crate) fn forget_instances(&mut self) {
        let configs = core::mem::take(&mut self.0.configs);
        // A child that did not trace can fork a further one.
        let past = match configs.iter().any(Option::is_some) {
            true => core::mem::replace(&mut self.0.of_parent, configs),
            false => configs,
        };
        // Threads that do not exist here share the configurations.
        core::mem::forget(past);
        for category in &self.0.categories {
            category.forget_instances();
            if let Some(foreign) = category.foreign_side() {
                foreign.forked();
            }
        }
    }
}

/// Adds categories and switches them by the active configurations. Known ones stay as they are.
pub(crate) fn register(categories: &[&'static Category]) {
    if register_quietly(categories) {
        publish();
    }
}

/// As [`register`], for a category whose trace point is reached.
pub(crate) fn register_reached(category: &'static Category) {
    if Generation::current() != Generation::FIRST {
        lock().note_missed(category);
    }
    register(&[category]);
}

/// As [`register_reached`], for a category of another language, which is registered already and is
/// off now. Such a category seems to be on in a child until its first trace point.
pub(crate) fn reached_foreign(category: &'static Category) {
    if Generation::current() != Generation::FIRST && Gate::is_open() {
        let registry = lock();
        // Otherwise this process may be recorded, and its sessions switch the category.
        if registry.has_parent() {
            registry.note_missed(category);
            if let Some(foreign) = category.foreign_side() {
                foreign.switch_off();
            }
        }
    }
}

/// Forgets what the parent recorded, because this process may be recorded now.
pub(crate) fn forget_parent() {
    if Generation::current() != Generation::FIRST {
        let mut registry = lock();
        if registry.has_parent() {
            registry.categories.iter().filter_map(|category| category.foreign_side()).for_each(Foreign::switch_off);
        }
        // Threads that do not exist here share the configurations.
        core::mem::forget(core::mem::take(&mut registry.of_parent));
        MISSED.store(0, Ordering::Relaxed);
    }
}

/// Returns whether this process is a forked one that has reached trace points that only its parent
/// recorded; once. Takes no lock.
pub(crate) fn take_missed() -> bool {
    let generation = Generation::current();
    generation != Generation::FIRST && MISSED.swap(0, Ordering::Relaxed) == generation.number()
}

/// As [`register`]. If this returns true, the caller has to [`publish`].
pub(crate) fn register_quietly(categories: &[&'static Category]) -> bool {
    let mut registry = lock();
    let before = registry.version;
    for &category in categories {
        registry.add(category);
        for member in category.members() {
            registry.add(member);
        }
    }
    let changed = registry.version != before;
    drop(registry);
    tell(categories.iter().filter_map(|category| category.foreign_side()));
    changed
}

/// Tells services the list of categories, if it has changed since the last time.
pub(crate) fn publish() {
    control_thread::wake();
}

/// Removes a category, in which no thread traces any more, from the list and switches it off.
pub(crate) fn remove(category: &'static Category) {
    let mut registry = lock();
    if registry.known.remove(&core::ptr::from_ref(category).addr()) {
        registry.categories.retain(|known| !core::ptr::eq(*known, category));
        registry.version += u64::from(category.is_listed());
    }
    category.set_instances(0);
    drop(registry);
    tell(category.foreign_side());
}

/// Reports that categories were switched. The registry must not be locked.
fn tell(foreign: impl IntoIterator<Item = &'static dyn Foreign>) {
    foreign.into_iter().for_each(Foreign::switched);
}

/// Lets an instance record what its configuration enables.
pub(crate) fn enable(instance: usize, config: Arc<TrackEventConfig>) {
    let mut registry = lock();
    registry.configs[instance] = Some(config);
    let foreign = registry.evaluate();
    drop(registry);
    tell(foreign);
}

/// Ends the recording of an instance.
pub(crate) fn disable(instance: usize) {
    let mut registry = lock();
    if registry.configs[instance].take().is_some() {
        let foreign = registry.evaluate();
        drop(registry);
        tell(foreign);
    }
}

/// Returns how often the list of categories has changed.
pub(crate) fn version() -> u64 {
    lock().version
}

/// Returns all categories.
#[cfg(feature = "in-process")]
pub(crate) fn all() -> Vec<&'static Category> {
    lock().categories.clone()
}

/// Calls `f` for each category that services list, in the order of registration. If several have
/// one name, the first one without tags stands for all, because most sessions record it.
pub(crate) fn for_each(f: impl FnMut(&'static Category)) {
    let mut categories = lock().categories.clone();
    categories.retain(|category| category.is_listed());
    let mut untagged = Set::new();
    for category in categories.iter().filter(|category| category.tags().is_empty()) {
        untagged.insert(category.name());
    }
    let mut names = Set::new();
    let stands_for_all = |category: &&Category| category.tags().is_empty() || !untagged.contains(&category.name());
    categories.into_iter().filter(stands_for_all).filter(|category| names.insert(category.name())).for_each(f);
}

/// Waits until a session records track events, or `other` holds, which depends on the data sources
/// that are on. Returns false if the time is over first.
pub(crate) fn wait_for_session(timeout: Duration, other: impl Fn() -> bool) -> bool {
    let Locked { registry, _closed } = lock();
    let is_off = |registry: &mut Registry| registry.configs.iter().all(Option::is_none) && !other();
    let waited = CHANGED.wait_timeout_while(registry, timeout, is_off);
    !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
}

/// Wakes the threads that wait for a data source, which has started.
pub(crate) fn source_started() {
    let _locked = lock();
    CHANGED.notify_all();
}

/// Waits until `condition`, which depends on the data sources that are on, holds. Returns false if
/// the time is over first.
pub(crate) fn wait_for_source(timeout: Duration, condition: impl Fn() -> bool) -> bool {
    let Locked { registry, _closed } = lock();
    let waited = CHANGED.wait_timeout_while(registry, timeout, |_| !condition());
    !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
}

/// Waits until `condition`, which depends on the categories that are on, holds. Returns false if
/// the time is over first.
pub(crate) fn wait_until(timeout: Duration, condition: impl Fn() -> bool, category: &'static Category) -> bool {
    register(&[category]);
    let Locked { registry, _closed } = lock();
    let waited = CHANGED.wait_timeout_while(registry, timeout, |_| !condition());
    !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_category_without_tags_is_listed() {
        const NAME: &str = "registry::tests::twice";
        static DEBUG: Category = Category::new(NAME).with_tags(&["debug"]);
        static PLAIN: Category = Category::new(NAME);
        let listed = || {
            let mut tags = Vec::new();
            for_each(|category| tags.extend((category.name() == NAME).then(|| category.tags())));
            tags
        };
        register(&[&DEBUG]);
        assert_eq!(listed(), [["debug"]]);
        register(&[&PLAIN]);
        assert_eq!(listed(), [[""; 0]], "one stands for both");
    }
}
