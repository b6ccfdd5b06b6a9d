//! [`PageBuilder`]: pages made by hand.

use crate::ftrace::PageLayout;

/// A page of the ring buffer that is being made.
pub(crate) struct PageBuilder {
    timestamp: u64,
    payload: Vec<u8>,
    flags: u32,
    lost: Option<u64>,
}

impl PageBuilder {
    pub(crate) fn at(timestamp: u64) -> Self {
        Self { timestamp, payload: Vec::new(), flags: 0, lost: None }
    }

    /// Appends a word, such as the header of an event.
    pub(crate) fn word(mut self, word: u32) -> Self {
        self.payload.extend(word.to_le_bytes());
        self
    }

    /// Appends a header of the given type, `delta` nanoseconds after the event before.
    pub(crate) fn header(self, kind: u32, delta: u32) -> Self {
        self.word(kind | delta << 5)
    }

    /// Appends an event of at most 28 words.
    pub(crate) fn event(self, delta: u32, data: &[u8]) -> Self {
        self.header((data.len() / 4) as u32, delta).bytes(data)
    }

    /// Appends an event with a length field.
    pub(crate) fn long_event(self, delta: u32, data: &[u8]) -> Self {
        self.header(0, delta).word(data.len() as u32 + 4).bytes(data)
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.payload.extend(bytes);
        self
    }

    /// Marks that events were lost before the page.
    pub(crate) fn lost(mut self, number: Option<u64>) -> Self {
        self.flags = 1 << 31 | u32::from(number.is_some()) << 30;
        self.lost = number;
        self
    }

    pub(crate) fn build(self) -> Vec<u8> {
        self.build_with(PageLayout::FALLBACK.page_size())
    }

    /// Returns the page with another size than 4 KiB.
    pub(crate) fn build_with(self, size: usize) -> Vec<u8> {
        let commit = u64::from(self.payload.len() as u32 | self.flags);
        let mut page = [self.timestamp.to_le_bytes(), commit.to_le_bytes()].concat();
        page.extend(&self.payload);
        page.extend(self.lost.unwrap_or_default().to_le_bytes());
        page.resize(size, 0);
        page
    }
}

/// Data of an event of [`FORMAT`]: id 7 and two numbers.
pub(crate) fn data(pid: i32, value: u32) -> Vec<u8> {
    [&7_u16.to_le_bytes()[..], &[0, 0], &pid.to_le_bytes(), &value.to_le_bytes()].concat()
}

/// An event that the schema does not have.
pub(crate) const FORMAT: &[u8] = b"name: made\nID: 7\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:unsigned int value;\toffset:8;\tsize:4;\tsigned:0;\n\nprint fmt: \"\"\n";
