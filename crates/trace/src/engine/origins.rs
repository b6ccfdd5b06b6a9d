//! Machines of files, if several traces are read as one.
//!
//! The engine numbers the machines of each file. Tracks, sequences and scheduling belong to such a
//! number, because two traces of one machine may overlap. Processes, threads and processors belong
//! to the machine itself: to its *home*, the first number that it has. In the first file without
//! rules, a number is the id in packets.

use std::collections::HashSet;

use hashbrown::HashMap;

use crate::machines::HOST;
use crate::merge_plan::{FileRules, MergePlan};

/// First id of a machine that rules name. Ids in packets are below it.
const FIRST_NAMED: i64 = 1 << 32;

/// A machine of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The file, by its position.
    pub(crate) file: usize,
    /// The id in packets of the file; 0 is the machine of its service.
    pub(crate) id: u32,
    /// The number of the machine itself.
    pub(crate) home: u32,
}

/// A machine, whatever file tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Identity {
    Id(u32),
    Named(String),
}

/// Reason for which a packet of a file is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Rules name the machines of the file, but not this one.
    Undeclared(u32),
    /// Rules say that the file is of one machine.
    Several(u32),
}

/// Numbers of the machines of all files.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    file: usize,
    /// True if numbers are the ids in packets.
    is_plain: bool,
    numbers: HashMap<(usize, u32), u32>,
    origins: HashMap<u32, Origin>,
    homes: HashMap<Identity, u32>,
    used: HashSet<u32>,
    next: u32,
    /// Names of machines that rules name, in order.
    names: Vec<String>,
    /// Positions of the names, by the machines' own numbers.
    named: HashMap<u32, usize>,
    machine: Option<String>,
    machines: HashMap<u32, String>,
}

impl Origins {
    pub(crate) fn new(plan: &MergePlan) -> Self {
        let names = plan.machine_names().into_iter().map(str::to_owned).collect();
        let mut origins = Self { names, is_plain: true, next: 1, ..Self::default() };
        origins.used.insert(HOST);
        origins.homes.insert(Identity::Id(HOST), HOST);
        // Rules may refer to a machine of which no trace tells.
        for (position, name) in origins.names.clone().into_iter().enumerate() {
            let home = origins.free_number(None);
            origins.homes.insert(Identity::Named(name), home);
            origins.named.insert(home, position);
        }
        origins
    }

    /// Begins with a file, by its position.
    pub(crate) fn begin_file(&mut self, file: usize, rules: Option<&FileRules>) {
        self.file = file;
        self.machine = rules.and_then(|rules| rules.machine.clone());
        self.machines = rules.map_or_else(HashMap::new, |rules| rules.machines.iter().cloned().collect());
        self.is_plain = file == 0 && self.names.is_empty();
    }

    /// Returns the number of a machine of the current file.
    pub(crate) fn number(&mut self, id: u32) -> Result<u32, Refusal> {
        if self.is_plain {
            return Ok(id);
        }
        if let Some(&number) = self.numbers.get(&(self.file, id)) {
            return Ok(number);
        }
        let named = if self.machines.is_empty() {
            if self.machine.is_some() && id != HOST {
                return Err(Refusal::Several(id));
            }
            self.machine.clone()
        } else if id == HOST && !self.machines.contains_key(&HOST) {
            None
        } else {
            Some(self.machines.get(&id).cloned().ok_or(Refusal::Undeclared(id))?)
        };
        let identity = named.map_or(Identity::Id(id), Identity::Named);
        let number = match (&identity, self.file) {
            // Its first number is that of the machine itself.
            (Identity::Id(HOST), 0) => HOST,
            (Identity::Named(_), _) => match self.homes.get(&identity) {
                Some(&home) if !self.origins.contains_key(&home) => home,
                _ => self.free_number(None),
            },
            (Identity::Id(_), _) => self.free_number(Some(id)),
        };
        let home = *self.homes.entry(identity).or_insert(number);
        self.numbers.insert((self.file, id), number);
        self.origins.insert(number, Origin { file: self.file, id, home });
        Ok(number)
    }

    /// Notes that the first file has a machine of this id.
    pub(crate) fn note_plain(&mut self, id: u32) {
        if self.is_plain {
            self.used.insert(id);
            self.homes.insert(Identity::Id(id), id);
        }
    }

    fn free_number(&mut self, wanted: Option<u32>) -> u32 {
        if let Some(wanted) = wanted.filter(|&wanted| self.used.insert(wanted)) {
            return wanted;
        }
        while !self.used.insert(self.next) {
            self.next = self.next.wrapping_add(1);
        }
        self.next
    }

    /// Returns the origin of a number.
    pub(crate) fn origin(&self, number: u32) -> Origin {
        self.origins.get(&number).copied().unwrap_or(Origin { file: 0, id: number, home: number })
    }

    /// Returns whether a file has given a machine this number. The host has a number in any case.
    pub(crate) fn is_of_file(&self, number: u32) -> bool {
        self.names.is_empty() || self.origins.contains_key(&number)
    }

    /// Returns the number of the machine itself.
    pub(crate) fn home(&self, number: u32) -> u32 {
        self.origin(number).home
    }

    /// Returns whether a number is that of the machine of a file's service.
    pub(crate) fn is_base(&self, number: u32) -> bool {
        self.origin(number).id == HOST
    }

    /// Returns the number of a machine that rules name; that of the host for none.
    pub(crate) fn home_of(&self, name: Option<&str>) -> u32 {
        let identity = name.map_or(Identity::Id(HOST), |name| Identity::Named(name.to_owned()));
        self.homes.get(&identity).copied().unwrap_or(HOST)
    }

    /// Returns the id and the name of a machine for its row, by its own number.
    pub(crate) fn identity(&self, home: u32) -> (i64, Option<&str>) {
        match self.named.get(&home) {
            Some(&position) => {
                let id = i64::try_from(position).unwrap_or(0) + FIRST_NAMED;
                (id, self.names.get(position).map(String::as_str))
            }
            None => (i64::from(self.origin(home).id), None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, machine: &str) -> FileRules {
        FileRules { machine: Some(machine.to_owned()), ..FileRules::new(path) }
    }

    #[test]
    fn ids_of_one_file_are_its_numbers() {
        let mut origins = Origins::new(&MergePlan::default());
        origins.begin_file(0, None);
        for id in [0, 7, u32::MAX] {
            assert_eq!(origins.number(id), Ok(id));
            assert_eq!(origins.origin(id), Origin { file: 0, id, home: id });
        }
    }

    #[test]
    fn files_without_rules_are_of_one_machine() {
        let mut origins = Origins::new(&MergePlan::default());
        origins.begin_file(0, None);
        origins.note_plain(5);
        origins.begin_file(1, None);
        let [host, guest, other] = [0, 5, 9].map(|id| origins.number(id).unwrap());
        assert!(![0, 5].contains(&host) && ![0, 5].contains(&guest));
        assert_eq!([host, guest, other].map(|number| origins.home(number)), [0, 5, 9]);
        assert!(origins.is_base(host) && !origins.is_base(guest));
    }

    #[test]
    fn a_name_is_one_machine_in_all_files() {
        let files = vec![rules("a", "phone"), rules("b", "watch"), rules("c", "phone")];
        let plan = MergePlan { files, ..MergePlan::default() };
        let mut origins = Origins::new(&plan);
        let mut homes = Vec::new();
        for (file, rules) in plan.files.iter().enumerate() {
            origins.begin_file(file, Some(rules));
            let number = origins.number(0).unwrap();
            homes.push(origins.home(number));
            assert_eq!(origins.number(3), Err(Refusal::Several(3)));
        }
        assert!(homes[0] == homes[2] && homes[0] != homes[1] && !homes.contains(&HOST), "{homes:?}");
        assert_eq!(origins.identity(homes[0]), (1 << 32, Some("phone")));
        assert_eq!(origins.identity(homes[1]), ((1 << 32) + 1, Some("watch")));
    }

    #[test]
    fn machines_that_rules_do_not_name_are_refused() {
        let machines = vec![(0, "host".to_owned()), (7, "vm".to_owned())];
        let plan = MergePlan { files: vec![FileRules { machines, ..FileRules::new("a") }], ..MergePlan::default() };
        let mut origins = Origins::new(&plan);
        origins.begin_file(0, plan.files.first());
        assert!(origins.number(0).is_ok() && origins.number(7).is_ok());
        assert_eq!(origins.number(8), Err(Refusal::Undeclared(8)));
    }
}
