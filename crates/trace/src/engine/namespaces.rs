//! Ids of processes and threads in pid namespaces, as programs in containers know them.

use hashbrown::HashMap;

/// A process in a namespace.
#[derive(Debug)]
struct Process {
    /// Its pid in its own namespace.
    pid: i64,
    /// Number of namespaces around its own one.
    level: usize,
    /// Threads by their tid in that namespace.
    threads: HashMap<i64, i64>,
}

/// Processes in namespaces, by machine and by the pid outside all namespaces.
#[derive(Debug, Default)]
pub(crate) struct Namespaces(HashMap<(u32, i64), Process>);

impl Namespaces {
    /// Adds a process with its pid in its own namespace. Its threads have to be told again.
    pub(super) fn add_process(&mut self, process: (u32, i64), pid: i64, level: usize) {
        self.0.insert(process, Process { pid, level, threads: HashMap::new() });
    }

    /// Adds a thread with its ids, from the outermost namespace to its own. Returns false if its
    /// process is in no namespace.
    pub(super) fn add_thread(&mut self, process: (u32, i64), tid: i64, ids: &[i64]) -> bool {
        let Some(process) = self.0.get_mut(&process) else { return false };
        if let Some(&own) = ids.get(process.level) {
            process.threads.insert(own, tid);
        }
        true
    }

    /// Returns the id outside all namespaces of a process or thread of a program, if the program
    /// runs in a namespace.
    pub(super) fn resolve(&self, machine: u32, program: i64, id: i64) -> Option<i64> {
        let process = self.0.get(&(machine, program))?;
        if process.pid == id { Some(program) } else { process.threads.get(&id).copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_the_innermost_namespace() {
        let mut namespaces = Namespaces::default();
        namespaces.add_process((0, 1001), 1, 2);
        assert!(namespaces.add_thread((0, 1001), 1002, &[1002, 192, 2]));
        assert_eq!(namespaces.resolve(0, 1001, 1), Some(1001));
        assert_eq!(namespaces.resolve(0, 1001, 2), Some(1002));
        assert_eq!(namespaces.resolve(0, 1001, 192), None);
        assert_eq!(namespaces.resolve(1, 1001, 1), None);
    }

    #[test]
    fn a_thread_with_too_few_ids_has_none() {
        let mut namespaces = Namespaces::default();
        assert!(!namespaces.add_thread((0, 7), 8, &[8, 2]));
        namespaces.add_process((0, 7), 1, 2);
        assert!(namespaces.add_thread((0, 7), 8, &[8, 2]));
        assert_eq!(namespaces.resolve(0, 7, 2), None);
    }
}
