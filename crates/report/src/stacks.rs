//! Call stacks of samples and heap profiles, as one tree of functions.

use std::collections::HashMap;

use crate::columns::Columns;
use crate::texts::Text;

/// Number of a call stack: that of its innermost function in the tree; 0 is the empty stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Stack(pub(crate) u32);

/// Functions below their callers that a page holds. Stacks that need more end at a caller.
pub(crate) const MAX_STACK_NODES: usize = 1 << 20;

/// A function below its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    caller: Stack,
    function: Text,
    file: Text,
}

/// Functions below their callers. A caller comes before the functions that it calls.
#[derive(Debug, Default)]
pub(crate) struct StackTree {
    nodes: Vec<Node>,
    known: HashMap<Node, Stack>,
    /// True if there was no room for a function.
    pub(crate) is_full: bool,
}

impl StackTree {
    /// Returns the stack of a caller with a further function; that of the caller if there is no
    /// room.
    pub(crate) fn add(&mut self, caller: Stack, function: Text, file: Text) -> Stack {
        let node = Node { caller, function, file };
        if let Some(&stack) = self.known.get(&node) {
            return stack;
        }
        if self.nodes.len() >= MAX_STACK_NODES {
            self.is_full = true;
            return caller;
        }
        self.nodes.push(node);
        let stack = Stack(u32::try_from(self.nodes.len()).expect("there are few nodes"));
        self.known.insert(node, stack);
        stack
    }

    /// Returns the innermost function of a stack.
    pub(crate) fn function(&self, stack: Stack) -> Option<Text> {
        let index = usize::try_from(stack.0).ok()?.checked_sub(1)?;
        self.nodes.get(index).map(|node| node.function)
    }

    pub(crate) fn write(&self, columns: &mut Columns) {
        columns.unsigned("stack.caller", self.nodes.iter().map(|node| node.caller.0));
        columns.unsigned("stack.function", self.nodes.iter().map(|node| node.function.0));
        columns.unsigned("stack.file", self.nodes.iter().map(|node| node.file.0));
    }
}

/// The heap of a process, with all its dumps.
#[derive(Debug)]
pub(crate) struct Heap {
    /// The number of the process.
    pub(crate) process: usize,
    pub(crate) name: String,
    pub(crate) track: u32,
    /// Dumps in the order of time: the time, and the number of changes since the dump before.
    pub(crate) dumps: Vec<(i64, u32)>,
    /// Stacks with the changes of their number of allocations and bytes.
    pub(crate) changes: Vec<(Stack, i64, i64)>,
}

/// Adds the columns of all heaps.
pub(crate) fn write_heaps(heaps: &[Heap], columns: &mut Columns) {
    let dumps: Vec<(i64, u32)> = heaps.iter().flat_map(|heap| heap.dumps.iter().copied()).collect();
    columns.deltas("dump.time", dumps.iter().map(|dump| dump.0));
    columns.unsigned("dump.changes", dumps.iter().map(|dump| dump.1));
    let changes: Vec<(Stack, i64, i64)> = heaps.iter().flat_map(|heap| heap.changes.iter().copied()).collect();
    columns.unsigned("heap.stack", changes.iter().map(|change| change.0.0));
    columns.integers("heap.count", changes.iter().map(|change| change.1));
    columns.integers("heap.size", changes.iter().map(|change| change.2));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_one() {
        let mut tree = StackTree::default();
        let main = tree.add(Stack(0), Text(1), Text(2));
        let work = tree.add(main, Text(3), Text(2));
        assert_eq!(tree.add(Stack(0), Text(1), Text(2)), main);
        assert_eq!(tree.add(main, Text(3), Text(2)), work);
        assert_ne!(tree.add(work, Text(3), Text(2)), work);
        assert_eq!(tree.function(work), Some(Text(3)));
        assert_eq!(tree.function(Stack(0)), None);
    }
}
