//! Clients and addresses survive any bytes. The targets `ipc_frames` and `ipc_host` of `fuzz/` test
//! the decoder and the host.

use esatto_ipc::{Address, Client, FrameDecoder};

use crate::captures;

/// Xorshift: the same sequence in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

#[test]
fn clients_survive_damaged_conversations() {
    let mut random = Random(2);
    for conversation in captures::all() {
        for stream in [Some(&conversation.to_service), conversation.to_client.as_ref()].into_iter().flatten() {
            let stream = &stream[..stream.len().min(4000)];
            for _ in 0..20 {
                let mut bytes = stream.to_vec();
                for _ in 0..=random.below(4) {
                    match random.below(3) {
                        0 => {
                            let at = random.below(bytes.len());
                            bytes[at] ^= 1 << random.below(8);
                        }
                        1 => bytes.truncate(1 + random.below(bytes.len())),
                        _ => {
                            let at = random.below(bytes.len());
                            bytes.insert(at, random.next() as u8);
                        }
                    }
                }
                feed_client(&bytes);
            }
        }
    }
}

/// Passes bytes to a client that waits for replies to all ids that a capture may contain.
fn feed_client(bytes: &[u8]) {
    let mut client = Client::new();
    client.bind("ProducerPort", &mut Vec::new()).unwrap();
    let mut decoder = FrameDecoder::new();
    let mut at = 0;
    while at < bytes.len() {
        at += decoder.push(&bytes[at..]);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => {
                    let _ = client.handle(&frame);
                    for method in ["GetAsyncCommand", "ReadBuffers", "CommitData"] {
                        client.invoke(method, b"", false, &mut Vec::new()).unwrap();
                    }
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

#[test]
fn random_addresses() {
    let mut random = Random(3);
    let alphabet = b"@:/[]0123456789-+.,vsock\xff\0ab";
    for _ in 0..20_000 {
        let text: Vec<u8> = (0..random.below(24)).map(|_| alphabet[random.below(alphabet.len())]).collect();
        let text = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&text);
        if let Ok(address) = Address::parse(text) {
            assert_eq!(Address::parse(address.to_os_string()).as_ref(), Ok(&address), "{text:?}");
        }
    }
}
