//! Streams that need a seek, in a temporary file without a name.

use std::fs::File;
use std::io::{self, Read};

use esatto_trace::MAX_INFLATED_BYTES;

/// Copies a stream to a temporary file.
pub(crate) fn copy(stream: impl Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    let mut stream = stream.take(MAX_INFLATED_BYTES + 1);
    if io::copy(&mut stream, &mut file)? > MAX_INFLATED_BYTES {
        let why = format!("it has more than {MAX_INFLATED_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(file)
}
