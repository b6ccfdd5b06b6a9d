//! Writer of trace files.

use std::io::{self, Write};

/// Tag of `Trace.packet`: field 1, length delimited.
const PACKET_TAG: u8 = 0x0a;

/// Appends a packet to a trace file.
///
/// # Errors
///
/// Those of the file.
pub fn write_packet(file: &mut (impl Write + ?Sized), packet: &[u8]) -> io::Result<()> {
    // A tag and a length of 64 bits.
    let mut header = [PACKET_TAG; 11];
    let mut rest = packet.len() as u64;
    let mut length = 1;
    loop {
        let low = (rest & 0x7f).to_le_bytes()[0];
        rest >>= 7;
        header[length] = if rest > 0 { low | 0x80 } else { low };
        length += 1;
        if rest == 0 {
            break;
        }
    }
    file.write_all(&header[..length])?;
    file.write_all(packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_any_length_are_read_back() {
        let mut file = Vec::new();
        let lengths = [1, 127, 128, 20_000, 3_000_000];
        for length in lengths {
            write_packet(&mut file, &vec![0x08; length]).unwrap();
        }
        let read: Vec<_> = crate::packets(&file).map(|packet| packet.unwrap().bytes.len()).collect();
        assert_eq!(read, lengths);
    }
}
