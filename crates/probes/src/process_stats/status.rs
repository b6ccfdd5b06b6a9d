//! [`Status`]: a parsed `/proc/PID/status`.

use super::number::{id, unsigned};
use super::values::{Slot, Values};

/// Content of the file of a process or thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status<'a> {
    /// As the kernel escapes it: see [`name`](Self::name).
    name: &'a [u8],
    pub(crate) tgid: i32,
    pub(crate) pid: i32,
    pub(crate) ppid: i32,
    /// The real one.
    pub(crate) uid: u32,
    pub(crate) effective_uid: u32,
    /// Ids in the nested namespaces, as text.
    ns_pids: &'a [u8],
    /// Absent before kernel 6.4.
    pub(crate) is_kthread: Option<bool>,
    /// Number of threads of the process; 0 if the file does not tell it.
    pub(crate) threads: u64,
}

impl<'a> Status<'a> {
    /// Parses the file. Lines that are missing or not understood count as 0 or empty.
    pub(crate) fn parse(text: &'a [u8]) -> Self {
        let mut status = Self::default();
        for (key, value) in lines(text) {
            match key {
                b"Name" => status.name = value.strip_prefix(b"\t").unwrap_or(value),
                b"Tgid" => status.tgid = id(value).unwrap_or(0),
                b"Pid" => status.pid = id(value).unwrap_or(0),
                b"PPid" => status.ppid = id(value).unwrap_or(0),
                b"Uid" => {
                    let real = unsigned(value);
                    status.uid = real.map_or(0, |(uid, _)| uid as u32);
                    let effective = real.and_then(|(_, rest)| unsigned(rest));
                    status.effective_uid = effective.map_or(0, |(uid, _)| uid as u32);
                }
                b"NSpid" => status.ns_pids = value,
                b"Kthread" => status.is_kthread = kthread(value),
                b"Threads" => {
                    status.threads = unsigned(value).map_or(0, |(threads, _)| threads);
                    // Nothing of interest comes after it.
                    break;
                }
                _ => {}
            }
        }
        status
    }

    /// Returns the name. The kernel writes a newline as `\n` and a backslash as `\\`; `scratch`
    /// takes the name if it has one of these.
    pub(crate) fn name<'b>(&self, scratch: &'b mut Vec<u8>) -> &'b [u8]
    where
        'a: 'b,
    {
        if !self.name.contains(&b'\\') {
            return self.name;
        }
        scratch.clear();
        let mut rest = self.name;
        while let Some((&byte, after)) = rest.split_first() {
            let (original, after) = match (byte, after) {
                (b'\\', [b'n', after @ ..]) => (b'\n', after),
                (b'\\', [b'\\', after @ ..]) => (b'\\', after),
                _ => (byte, after),
            };
            scratch.push(original);
            rest = after;
        }
        scratch
    }

    /// Returns the ids in the nested pid namespaces, from the outer to the inner ones.
    pub(crate) fn nested_ids(&self) -> impl Iterator<Item = i32> + 'a {
        let ids = self.ns_pids.split(|&byte| byte == b'\t' || byte == b' ').filter(|id| !id.is_empty());
        ids.skip(1).filter_map(id)
    }
}

/// Reads the counters of the memory of a process into `values`. Returns the number of its threads,
/// or `None` if it has no memory, because it is a thread of the kernel or has ended.
pub(crate) fn parse_memory(text: &[u8], values: &mut Values) -> Option<u64> {
    // The name, which is before it, has no newline.
    let begin = memchr::memmem::find(text, b"\nVmSize:")?;
    let mut threads = 0;
    for (key, value) in lines(&text[begin + 1..]) {
        let slot = match key {
            b"VmSize" => Slot::VmSize,
            b"VmLck" => Slot::VmLocked,
            b"VmHWM" => Slot::VmHwm,
            b"VmRSS" => Slot::VmRss,
            b"RssAnon" => Slot::RssAnon,
            b"RssFile" => Slot::RssFile,
            b"RssShmem" => Slot::RssShmem,
            b"VmSwap" => Slot::VmSwap,
            b"Threads" => {
                threads = unsigned(value).map_or(0, |(threads, _)| threads);
                break;
            }
            _ => continue,
        };
        if let Some((kb, _)) = unsigned(value) {
            values.set(slot, kb);
        }
    }
    Some(threads)
}

/// Reads `/proc/PID/smaps_rollup` into `values`.
pub(crate) fn parse_smaps_rollup(text: &[u8], values: &mut Values) {
    for (key, value) in lines(text) {
        let slot = match key {
            b"Rss" => Slot::RollupRss,
            b"Pss" => Slot::RollupPss,
            b"Pss_Anon" => Slot::RollupPssAnon,
            b"Pss_File" => Slot::RollupPssFile,
            b"Pss_Shmem" => Slot::RollupPssShmem,
            b"SwapPss" => Slot::RollupSwapPss,
            _ => continue,
        };
        if let Some((kb, _)) = unsigned(value) {
            values.set(slot, kb);
        }
    }
}

/// Returns the lines that have a colon, as the text before and after it.
fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = text;
    core::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            // Keys are short, and the first byte that is a colon ends them.
            if let Some(colon) = line.iter().position(|&byte| byte == b':') {
                return Some((&line[..colon], &line[colon + 1..]));
            }
        }
        None
    })
}

fn kthread(value: &[u8]) -> Option<bool> {
    match unsigned(value)? {
        (0, _) => Some(false),
        (1, _) => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker of a container, as kernel 6.18 describes it.
    const STATUS: &[u8] = include_bytes!("testdata/status");
    const KTHREAD: &[u8] = include_bytes!("testdata/kthread_status");

    #[test]
    fn a_real_process_is_understood() {
        let status = Status::parse(STATUS);
        assert_eq!((status.tgid, status.pid, status.ppid), (2914, 2914, 2913));
        assert_eq!((status.uid, status.effective_uid), (65534, 65533));
        assert_eq!((status.is_kthread, status.threads), (Some(false), 1));
        assert_eq!(status.name(&mut Vec::new()), b"a (b) c:\nd");
        assert_eq!(status.nested_ids().collect::<Vec<_>>(), [17, 1]);
    }

    #[test]
    fn the_memory_of_a_real_process_is_understood() {
        let mut values = Values::default();
        assert_eq!(parse_memory(STATUS, &mut values), Some(1));
        let expected = [
            (Slot::VmSize, 14_168),
            (Slot::VmLocked, 8),
            (Slot::VmHwm, 7_480),
            (Slot::VmRss, 7_476),
            (Slot::RssAnon, 2_304),
            (Slot::RssFile, 5_152),
            (Slot::RssShmem, 20),
            (Slot::VmSwap, 3),
        ];
        for (slot, kb) in expected {
            assert_eq!(values.get(slot), Some(kb), "{slot:?}");
        }
        assert_eq!(values.get(Slot::RollupPss), None);
    }

    #[test]
    fn a_thread_of_the_kernel_has_no_memory() {
        assert_eq!(Status::parse(KTHREAD).is_kthread, Some(true));
        let mut values = Values::default();
        assert_eq!(parse_memory(KTHREAD, &mut values), None);
        assert_eq!(values, Values::default());
    }

    #[test]
    fn a_name_cannot_pretend_to_be_another_line() {
        let status = Status::parse(b"Name:\tx\\nTgid:\\t1\nTgid:\t7\nPid:\t7\n");
        assert_eq!((status.tgid, status.pid), (7, 7));
        assert_eq!(status.name(&mut Vec::new()), b"x\nTgid:\\t1");
    }

    #[test]
    fn invalid_utf8_and_backslashes_in_names_are_kept() {
        let name = |text| Status::parse(text).name(&mut Vec::new()).to_vec();
        assert_eq!(name(b"Name:\t\xff\xfe(\n"), b"\xff\xfe(");
        assert_eq!(name(b"Name:\ta\\\\n\\\n"), b"a\\n\\");
        assert_eq!(name(b"Name:\t\tx \n"), b"\tx ", "blanks are part of a name");
        assert_eq!(name(b"Name:"), b"");
    }

    #[test]
    fn the_rollup_of_a_real_process_is_understood() {
        let mut values = Values::default();
        parse_smaps_rollup(include_bytes!("testdata/smaps_rollup"), &mut values);
        let expected = [
            (Slot::RollupRss, 1_756),
            (Slot::RollupPss, 264),
            (Slot::RollupPssAnon, 100),
            (Slot::RollupPssFile, 164),
            (Slot::RollupPssShmem, 0),
            (Slot::RollupSwapPss, 0),
        ];
        for (slot, kb) in expected {
            assert_eq!(values.get(slot), Some(kb), "{slot:?}");
        }
    }
}
