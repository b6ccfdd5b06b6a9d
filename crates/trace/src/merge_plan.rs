//! Rules by which several traces become one.

/// Rules by which several traces become one: machines, clocks, and the clock of the result.
///
/// Without rules, all traces are of one machine and share its clocks
/// (`docs/how-to/merge-traces.md`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergePlan {
    /// The clock of all times of the result. By default it is the trace clock of the first trace.
    pub trace_time: Option<TraceTime>,
    /// Rules for single traces.
    pub files: Vec<FileRules>,
    /// Facts about all traces together.
    pub attributes: Vec<(String, AttributeValue)>,
}

/// Value of a fact about all traces together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

/// The clock of all times of a merged trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceTime {
    /// The id of the clock.
    pub clock: u32,
    /// The file whose machine has it. By default it is the machine without a name.
    pub file: Option<String>,
    /// The machine, if the file has several.
    pub machine: Option<String>,
}

/// Rules for a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileRules {
    /// The name of the trace.
    pub path: String,
    /// The name of its machine. Traces with the same name are of one machine.
    pub machine: Option<String>,
    /// Names of its machines, by their ids in packets.
    pub machines: Vec<(u32, String)>,
    /// The relation of its clocks to those of another trace.
    pub clocks: Option<ClockRule>,
}

impl FileRules {
    /// Creates rules for the trace of this name. It has none at first.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), ..Self::default() }
    }

    /// Returns whether the trace has a machine of this name.
    pub fn declares(&self, machine: &str) -> bool {
        self.machine.as_deref() == Some(machine) || self.machines.iter().any(|(_, name)| name == machine)
    }
}

/// Relation of a clock of a trace to a clock of another trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockRule {
    /// The machine of the clock, if the trace has several.
    pub machine: Option<String>,
    /// The id of the clock. Without it, the trace has no clocks, and the rule places its times.
    pub clock: Option<u32>,
    /// The name of the other trace.
    pub to_file: String,
    /// The machine of the other clock, if the other trace has several.
    pub to_machine: Option<String>,
    /// The id of the other clock. Without it, the other trace has no clocks.
    pub to_clock: Option<u32>,
    /// When the clock has the value T, the other clock has the value T + `offset_ns`.
    pub offset_ns: i64,
}

impl MergePlan {
    /// Returns the rules for the trace of this name.
    pub fn rules(&self, path: &str) -> Option<&FileRules> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Returns the names of the machines, in the order in which the rules name them first.
    pub(crate) fn machine_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for file in &self.files {
            let own = file.machine.iter().chain(file.machines.iter().map(|(_, name)| name));
            names.extend(own.map(String::as_str).filter(|name| seen.insert(*name)));
        }
        names
    }
}

/// Returns the id of a built-in clock that rules may name.
pub fn clock_id(name: &str) -> Option<u32> {
    let id = crate::clock_conversion::CLOCKS_OF_RULES.iter().find(|(_, known)| *known == name);
    id.map(|(id, _)| *id)
}
