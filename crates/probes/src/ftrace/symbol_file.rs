//! Reads the names of the kernel's functions from `/proc/kallsyms` (`docs/spec/probes.md` §9).

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use super::changes::Changes;
use super::journal::JournalFolder;
use super::kernel_symbols::{KernelSymbols, KernelSymbolsParser};
use super::tracefs::Tracefs;

/// Bytes of the file that are read; kernels have about 10 MiB.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// Bytes that are parsed at a time.
const PIECE_BYTES: usize = 64 * 1024;

const KPTR_RESTRICT: &str = "sys/kernel/kptr_restrict";

/// Reads the symbols below `proc`. If the kernel hides the addresses, the restriction is lifted for
/// the time of the read, as far as this user may.
pub(crate) fn read_symbols(proc: &Path, journals: &JournalFolder) -> KernelSymbols {
    let file = proc.join("kallsyms");
    let symbols = parse(&file);
    if !symbols.as_ref().is_ok_and(KernelSymbols::is_empty) {
        return symbols.unwrap_or_else(|why| {
            log::warn!("no names of the kernel's functions: cannot read {}: {why}", file.display());
            KernelSymbols::default()
        });
    }
    let settings = Tracefs::at(proc.to_owned());
    let mut changes = Changes::new(settings.clone(), journals.clone());
    let original = settings.read_line(KPTR_RESTRICT);
    let original = original.as_deref().ok().filter(|original| *original != "0");
    if original.is_some_and(|original| changes.set(KPTR_RESTRICT, "0", original).is_ok()) {
        if let Some(symbols) = parse(&file).ok().filter(|symbols| !symbols.is_empty()) {
            return symbols;
        }
    }
    log::warn!(
        "no names of the kernel's functions: {} has no addresses for this user; run as root, or set \
         kernel.kptr_restrict to 0",
        file.display()
    );
    KernelSymbols::default()
}

fn parse(file: &Path) -> io::Result<KernelSymbols> {
    let mut file = File::open(file)?.take(MAX_FILE_BYTES);
    let mut parser = KernelSymbolsParser::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(parser.finish()),
            Ok(len) => parser.push(&piece[..len]),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}
