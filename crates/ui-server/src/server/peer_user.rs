//! The user at the other end of a connection over loopback.
//!
//! Sockets of TCP have no permissions: every user of the machine can connect. The kernel tells the
//! user of each end in `/proc/net/tcp` and `/proc/net/tcp6`.

use std::fs;
use std::net::{IpAddr, SocketAddr};

/// State of an open connection. Others may have lost their user.
const ESTABLISHED: &str = "01";

/// How often the list of the kernel is read for a connection that is not in it.
const LOOKS: usize = 3;

/// The users whose connections a server accepts.
#[derive(Debug)]
pub(super) struct TrustedUsers(Vec<u32>);

impl TrustedUsers {
    /// This process's user, root, and the user for whom root runs this process by `sudo`.
    pub(super) fn of_this_process() -> Self {
        let user = rustix::process::geteuid();
        let mut users = vec![user.as_raw(), 0];
        if user.is_root() {
            users.extend(std::env::var("SUDO_UID").ok().and_then(|id| id.parse::<u32>().ok()));
        }
        Self(users)
    }

    /// Returns whether the other end of a connection belongs to one of them.
    pub(super) fn owns(&self, peer: SocketAddr, here: SocketAddr) -> bool {
        let table = if peer.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
        let look = || user_of(&fs::read_to_string(table).ok()?, peer, here);
        // Other connections that end meanwhile can hide a line from a reader.
        let user = (0..LOOKS).find_map(|_| look());
        user.is_some_and(|user| self.0.contains(&user))
    }
}

/// Finds the user of the open connection from `local` to `remote`.
fn user_of(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let [local, remote] = [local, remote].map(written);
    table.lines().find_map(|line| {
        // sl local remote state queues timer retransmits user …
        let mut words = line.split_ascii_whitespace().skip(1);
        let is_it = words.next()? == local && words.next()? == remote && words.next()? == ESTABLISHED;
        if is_it { words.nth(3)?.parse().ok() } else { None }
    })
}

/// Returns an address as the kernel writes it: each four bytes as a number of this machine.
fn written(address: SocketAddr) -> String {
    let bytes = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    let words: String = words.map(|word| format!("{word:08X}")).collect();
    format!("{words}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    fn ends(address: &str) -> Option<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind(address).ok()?;
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        Some((client, listener.accept().unwrap().0))
    }

    #[test]
    fn our_own_connections_are_ours() {
        for address in ["127.0.0.1:0", "127.9.8.7:0", "[::1]:0"] {
            let Some((client, server)) = ends(address) else { continue };
            let (peer, here) = (client.local_addr().unwrap(), server.local_addr().unwrap());
            assert!(TrustedUsers::of_this_process().owns(peer, here), "{address}");
            assert!(!TrustedUsers(vec![4_000_000]).owns(peer, here), "{address}");
            drop(client);
            assert!(!TrustedUsers::of_this_process().owns(peer, here), "a closed end belongs to nobody");
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_line_of_the_kernel_is_understood() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1F65 0100007F:B0A6 01 00000000:00000000 00:00000000 00000000  1000        0 9 1 0 20\n   \
                     1: 0100007F:1F65 0100007F:B0A7 04 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20\n";
        let user = |port: u16| user_of(table, ([127, 0, 0, 1], 8037).into(), ([127, 0, 0, 1], port).into());
        assert_eq!(user(0xb0a6), Some(1000));
        assert_eq!(user(0xb0a7), None, "it is not open");
        assert_eq!(user(1), None);
    }
}
