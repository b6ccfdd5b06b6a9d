//! [`EventTable`]: the events of a tracefs.

use std::collections::HashMap;

use super::event_layout::EventLayout;
use super::format::EventFormat;
use super::generic_event::FIRST_GENERIC_NUMBER;
use super::page_layout::PageLayout;
use super::printk_formats::PrintkFormats;
use super::schema::SchemaEvent;

/// Groups of the events that this daemon makes for kernel probes.
const KPROBE_GROUPS: [&str; 2] = ["perfetto_kprobes", "perfetto_kretprobes"];

/// Events that one daemon looks at. A kernel has some thousand; ids have 16 bits.
const MAX_EVENTS: usize = 65536;

/// Format of `ftrace/print` where its file cannot be read. Its id has been the same in all kernels.
const PRINT_FORMAT: &[u8] = b"name: print\nID: 5\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n";

/// Events of a tracefs whose formats were read, with the layout of each.
#[derive(Debug)]
pub(crate) struct EventTable {
    page_layout: PageLayout,
    printk_formats: PrintkFormats,
    /// By the kernel's id.
    layouts: Vec<Option<Box<EventLayout>>>,
    /// Id by group and name, also of events that do not exist.
    ids: HashMap<String, Option<u16>>,
    next_generic_number: u32,
}

impl EventTable {
    pub(crate) fn new(page_layout: PageLayout, printk_formats: PrintkFormats) -> Self {
        Self {
            page_layout,
            printk_formats,
            layouts: Vec::new(),
            ids: HashMap::new(),
            next_generic_number: FIRST_GENERIC_NUMBER,
        }
    }

    /// Returns the kernel's id of an event. The first call for an event reads its format. Returns
    /// `None` if there is none, or it is no format.
    pub(crate) fn look_up(
        &mut self,
        group: &str,
        name: &str,
        read_format: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<u16> {
        let path = format!("{group}/{name}");
        if let Some(id) = self.ids.get(&path) {
            return *id;
        }
        let file = read_format();
        let file = match &file {
            None if path == "ftrace/print" => PRINT_FORMAT,
            file => file.as_deref().unwrap_or_default(),
        };
        let id = EventFormat::parse(file).map(|format| self.insert(group, name, &format));
        if self.ids.len() < MAX_EVENTS {
            self.ids.insert(path, id);
        }
        id
    }

    /// Forgets an event, because it was removed from the kernel. Its id may come back as another
    /// event.
    pub(crate) fn forget(&mut self, group: &str, name: &str) {
        let id = self.ids.remove(&format!("{group}/{name}")).flatten();
        if let Some(layout) = id.and_then(|id| self.layouts.get_mut(usize::from(id))) {
            *layout = None;
        }
    }

    /// True if the schema has a message for the event.
    pub(crate) fn is_in_schema(group: &str, name: &str) -> bool {
        SchemaEvent::find(group, name).is_some()
    }

    /// Iterates over the groups in which the schema has an event of this name.
    pub(crate) fn groups_of(name: &str) -> impl Iterator<Item = &'static str> {
        SchemaEvent::named(name).map(|event| event.group)
    }

    /// Returns group and name of an event that was looked up.
    pub(crate) fn name_of(&self, id: u16) -> Option<(&str, &str)> {
        self.layout(id).map(|layout| (&*layout.group, &*layout.name))
    }

    /// Returns true if an event that was looked up is written as generic event.
    pub(crate) fn is_generic(&self, id: u16) -> bool {
        self.layout(id).is_some_and(|layout| layout.generic.is_some())
    }

    pub(crate) const fn page_layout(&self) -> &PageLayout {
        &self.page_layout
    }

    /// Sets the size of the pages, which the kernel can change.
    pub(crate) fn set_page_size(&mut self, page_size: usize) {
        self.page_layout = self.page_layout.with_page_size(page_size);
    }

    pub(crate) const fn printk_formats(&self) -> &PrintkFormats {
        &self.printk_formats
    }

    /// Returns the layout of an event.
    #[inline]
    pub(crate) fn layout(&self, id: u16) -> Option<&EventLayout> {
        self.layouts.get(usize::from(id))?.as_deref()
    }

    fn insert(&mut self, group: &str, name: &str, format: &EventFormat<'_>) -> u16 {
        let layout = if KPROBE_GROUPS.contains(&group) {
            EventLayout::kprobe(group, name, format)
        } else if let Some(schema) = SchemaEvent::find(group, name) {
            EventLayout::from_schema(&schema, format)
        } else {
            let number = self.next_generic_number;
            self.next_generic_number += 1;
            EventLayout::generic(group, name, number, format)
        };
        let at = usize::from(format.id);
        if at >= self.layouts.len() {
            self.layouts.resize_with(at + 1, || None);
        }
        self.layouts[at] = Some(Box::new(layout));
        format.id
    }
}
