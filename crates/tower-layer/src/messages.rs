//! Messages of gRPC in a body: each has a prefix of five bytes, a flag and its length. A body
//! arrives in pieces that may begin and end anywhere.

/// Bytes before each message.
const PREFIX: usize = 5;

/// Finds the ends of messages in a body. Holds no byte of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MessageFinder {
    prefix: [u8; PREFIX],
    /// The number of bytes of the prefix so far.
    have: u8,
    /// The number of bytes that the message still lacks, when the prefix is complete.
    rest: u32,
    /// This is no body of gRPC, or a part of it was not seen.
    is_lost: bool,
}

impl MessageFinder {
    /// Reads the next piece. Calls `found` with the length of each message that ends in it.
    pub(crate) fn read(&mut self, mut piece: &[u8], mut found: impl FnMut(u32)) {
        while !self.is_lost && !piece.is_empty() {
            if usize::from(self.have) < PREFIX {
                let missing = &mut self.prefix[usize::from(self.have)..];
                let taken = missing.len().min(piece.len());
                missing[..taken].copy_from_slice(&piece[..taken]);
                self.have += taken as u8;
                piece = &piece[taken..];
                if usize::from(self.have) < PREFIX {
                    return;
                }
                let [flag, length @ ..] = self.prefix;
                // 1: compressed.
                self.is_lost = flag > 1;
                self.rest = u32::from_be_bytes(length);
            } else {
                let taken = u32::try_from(piece.len()).unwrap_or(u32::MAX).min(self.rest);
                self.rest -= taken;
                piece = &piece[taken as usize..];
            }
            if self.rest == 0 && usize::from(self.have) == PREFIX && !self.is_lost {
                let [_, length @ ..] = self.prefix;
                self.have = 0;
                found(u32::from_be_bytes(length));
            }
        }
    }

    /// Stops, because a piece cannot be read.
    pub(crate) const fn lose(&mut self) {
        self.is_lost = true;
    }

    /// Returns whether messages can be counted no longer.
    pub(crate) const fn is_lost(&self) -> bool {
        self.is_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(flag: u8, length: u32) -> Vec<u8> {
        let mut bytes = vec![flag];
        bytes.extend(length.to_be_bytes());
        bytes.resize(PREFIX + length as usize, 0xaa);
        bytes
    }

    fn lengths(pieces: &[&[u8]]) -> Vec<u32> {
        let (mut finder, mut lengths) = (MessageFinder::default(), Vec::new());
        for piece in pieces {
            finder.read(piece, |length| lengths.push(length));
        }
        lengths
    }

    #[test]
    fn messages_are_found_however_the_body_is_cut() {
        let body = [message(0, 3), message(1, 0), message(0, 300), message(0, 0)].concat();
        let expected = [3, 0, 300, 0];
        assert_eq!(lengths(&[&body]), expected);
        assert_eq!(lengths(&body.iter().map(core::slice::from_ref).collect::<Vec<_>>()), expected);
        for cut in 0..body.len() {
            assert_eq!(lengths(&[&body[..cut], &body[cut..]]), expected, "cut at {cut}");
        }
    }

    #[test]
    fn an_unfinished_message_does_not_count() {
        let body = [message(0, 3), message(0, 9)].concat();
        assert_eq!(lengths(&[&body[..body.len() - 1]]), [3]);
    }

    #[test]
    fn other_bodies_are_not_counted() {
        let body = [message(0, 3), b"<html>".to_vec(), message(0, 1)].concat();
        assert_eq!(lengths(&[&body]), [3]);
        let longest = [0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3];
        assert_eq!(lengths(&[&longest, &longest]), [0; 0]);
    }
}
