//! `SysStats.gpufreq_mhz`: frequency of the first GPU that tells it.

use core::time::Duration;
use std::path::{Path, PathBuf};

use esatto_schema::SysStatsWriter;
use rustix::io::Errno;

use super::group::Group;
use crate::data_source::Monotonic;
use crate::polled_file::{PolledFile, log_unreadable};
use crate::polled_folder::{list, numbered};
use crate::words::{Words, leading_number, lines, number_of_file};

/// How long a search for a GPU that found none is believed.
const SEARCH_PERIOD: Duration = Duration::from_secs(30);

/// Frequency of the first GPU that tells it: Adreno, or of the cards in their order the first one
/// from Intel or AMD. On many machines the first card is only the screen of the firmware.
#[derive(Debug)]
pub(super) struct GpuFrequency {
    sys: PathBuf,
    gpu: Option<(Format, PolledFile)>,
    text: Vec<u8>,
    value_mhz: u64,
    next_search: Monotonic,
    is_logged: bool,
}

/// Content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Adreno: the frequency in Hz.
    Hertz,
    /// Intel: the frequency in MHz.
    Megahertz,
    /// AMD: a list of frequencies, of which the present one has an asterisk.
    List,
}

impl Format {
    /// Returns the frequency in MHz.
    pub(crate) fn parse(self, text: &[u8]) -> Option<u64> {
        match self {
            Self::Hertz => number_of_file(text).map(|hertz| hertz / 1_000_000),
            Self::Megahertz => number_of_file(text),
            Self::List => lines(text).find_map(starred_frequency),
        }
    }
}

/// Parses a line such as `1: 600Mhz *`.
fn starred_frequency(line: &[u8]) -> Option<u64> {
    let mut words = Words::new(line.trim_ascii_end().strip_suffix(b"*")?);
    core::iter::from_fn(|| words.word()).find_map(|word| {
        let (number, len) = leading_number(word);
        (len > 0 && word[len..].eq_ignore_ascii_case(b"mhz")).then_some(number)
    })
}

impl GpuFrequency {
    pub(super) fn new(sys: &Path) -> Self {
        let next_search = Duration::ZERO;
        Self { sys: sys.into(), gpu: None, text: Vec::new(), value_mhz: 0, next_search, is_logged: false }
    }

    fn search(&mut self, now: Monotonic) -> Option<u64> {
        if now < self.next_search {
            return None;
        }
        self.next_search = now + SEARCH_PERIOD;
        let mut candidates = vec![(Format::Hertz, self.sys.join("class/kgsl/kgsl-3d0/devfreq/cur_freq"))];
        let cards = self.sys.join("class/drm");
        for card in list(&cards, |name| numbered(name, "card").is_some()).unwrap_or_default() {
            candidates.push((Format::Megahertz, cards.join(&card).join("gt_act_freq_mhz")));
            candidates.push((Format::List, cards.join(card).join("device/pp_dpm_sclk")));
        }
        for (format, path) in candidates {
            let mut file = PolledFile::optional(path);
            file.read(now, &mut self.text);
            if let Some(value) = format.parse(&self.text) {
                self.gpu = Some((format, file));
                return Some(value);
            }
        }
        if !self.is_logged {
            self.is_logged = true;
            log_unreadable(&cards.join("card*"), Errno::NOENT, "gpufreq_mhz");
        }
        None
    }
}

impl Group for GpuFrequency {
    fn read(&mut self, now: Monotonic) -> bool {
        let value = match &mut self.gpu {
            Some((format, file)) => {
                file.read(now, &mut self.text);
                format.parse(&self.text)
            }
            None => self.search(now),
        };
        match value {
            Some(value) => self.value_mhz = value,
            None => self.gpu = None,
        }
        value.is_some()
    }

    fn write(&mut self, stats: &mut SysStatsWriter<'_>) {
        stats.gpufreq_mhz(self.value_mhz);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_vendor_has_its_format() {
        assert_eq!(Format::Hertz.parse(b"585000000\n"), Some(585));
        assert_eq!(Format::Megahertz.parse(b"1100\n"), Some(1100));
        assert_eq!(Format::List.parse(b"0: 200Mhz \n1: 600Mhz *\n2: 900Mhz \n"), Some(600));
        assert_eq!(Format::List.parse(b"0: 200Mhz \n"), None, "none is marked");
        assert_eq!(Format::List.parse(b"0: x *\n*"), None);
    }
}
