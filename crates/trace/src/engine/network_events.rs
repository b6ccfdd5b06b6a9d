//! Kernel events of the network.

use super::context::Context;
use super::kernel_event::{self as event, Event, Place};
use super::kernel_slices::NAPI;
use super::kernel_state::Network;
use super::slices::PENDING;
use super::tracks::Dimension;
use crate::tables::{Arg, ArgValue, Row};

const TCP: u32 = 6;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const ETH_P_IP: u32 = 0x800;
const ETH_P_IPV6: u32 = 0x86dd;
/// States of TCP, by their numbers in the kernel.
const TCP_STATES: [&str; 13] = [
    "TCP_UNKNOWN",
    "TCP_ESTABLISHED",
    "TCP_SYN_SENT",
    "TCP_SYN_RECV",
    "TCP_FIN_WAIT1",
    "TCP_FIN_WAIT2",
    "TCP_TIME_WAIT",
    "TCP_CLOSE",
    "TCP_CLOSE_WAIT",
    "TCP_LAST_ACK",
    "TCP_LISTEN",
    "TCP_CLOSING",
    "TCP_NEW_SYN_RECV",
];
const ESTABLISHED: usize = 1;
const SYN_SENT: usize = 2;

impl Context {
    /// Imports an event of the network. Returns false if it is none.
    pub(super) fn import_network_event(&mut self, place: Place, id: u32, event: Event<'_>) -> bool {
        match id {
            event::NETIF_RECEIVE_SKB => self.network_bytes(place, event, true),
            // The driver took the packet.
            event::NET_DEV_XMIT if event.int(3) == 0 => self.network_bytes(place, event, false),
            event::NET_DEV_XMIT => {}
            event::INET_SOCK_SET_STATE => self.socket_state(place, event),
            event::TCP_RETRANSMIT_SKB => {
                let names = ("net_tcp_retransmit_skb", Some("TCP Retransmit Skb"));
                let track = self.kernel_track(place.machine, names, &[], false);
                let name = format!("sport={},dport={}", event.small(6), event.small(2));
                self.add_kernel_slice(place.ts, track, 0, Some("tcp_event"), &name, &mut Vec::new());
            }
            event::NAPI_GRO_RECEIVE_ENTRY => {
                let mut args = vec![self.arg("len", ArgValue::Int(i64::from(event.small(7))))];
                self.begin_on_cpu(place, NAPI, "napi_gro", &event.text(10), &mut args);
            }
            event::NAPI_GRO_RECEIVE_EXIT => {
                let arg = self.arg("ret", ArgValue::Int(event.int(1)));
                self.end_on_cpu(place, NAPI, Some("napi_gro"), &[arg]);
            }
            event::KFREE_SKB => {
                let protocol = match event.small(2) {
                    ETH_P_IP => "IP",
                    ETH_P_IPV6 => "IPV6",
                    _ => return true,
                };
                let freed = self.network.freed.entry(place.machine).or_default();
                *freed += 1;
                let value = *freed as f64;
                let row = self.kernel_counter(place, ("net_kfree_skb", "Kfree Skb IP Prot"), &[], value);
                let arg = self.text_arg("protocol", protocol);
                self.set_counter_args(row, vec![arg]);
            }
            _ => return false,
        }
        true
    }

    fn set_counter_args(&mut self, row: Row, mut args: Vec<Arg>) {
        if let Some(set) = self.tables.args.add(&mut args) {
            self.tables.counter.arg_set_id.set(row, set);
        }
    }

    fn network_bytes(&mut self, place: Place, event: Event<'_>, is_received: bool) {
        const BYTES_OF_KILOBYTE: u64 = 1024;
        let (length, interface) = (event.small(1), event.text(2));
        let sum = self.network.bytes.entry((place.machine, interface.to_string(), is_received)).or_default();
        *sum = sum.saturating_add(u64::from(length));
        let value = (*sum / BYTES_OF_KILOBYTE) as f64;
        let (kind, word) = if is_received { ("net_receive", "Received") } else { ("net_transmit", "Transmitted") };
        let dimensions = [Dimension::Text("network_interface", &interface)];
        let row = self.kernel_counter(place, (kind, &format!("{interface} {word} KB")), &dimensions, value);
        let args = vec![
            self.arg("cpu", ArgValue::Uint(u64::from(place.cpu))),
            self.arg("len", ArgValue::Uint(u64::from(length))),
        ];
        self.set_counter_args(row, args);
    }

    fn socket_state(&mut self, place: Place, event: Event<'_>) {
        let state = |id| usize::try_from(event.int(id)).ok().filter(|state| *state < TCP_STATES.len());
        let is_tcp = event.small(6) == TCP && matches!(event.small(3), AF_INET | AF_INET6);
        let (true, Some(new), Some(_)) = (is_tcp, state(4), state(5)) else { return };
        let Network { streams, stream_counts, .. } = &mut self.network;
        let stream = *streams.entry((place.machine, event.uint(8))).or_insert_with(|| {
            let count = stream_counts.entry(place.machine).or_default();
            *count += 1;
            *count
        });
        let name = match new {
            SYN_SENT => format!("{}(pid={})", TCP_STATES[new], place.tid),
            ESTABLISHED => format!("{}(sport={},dport={})", TCP_STATES[new], event.small(9), event.small(2)),
            _ => TCP_STATES[new].to_owned(),
        };
        let title = format!("TCP stream#{stream}");
        let dimensions = [Dimension::Number("tcp_stream_idx", i64::from(stream))];
        let track = self.kernel_track(place.machine, ("net_socket_set_state", Some(&title)), &dimensions, false);
        self.end_kernel_slice(place.ts, track, None, None, &[]);
        self.add_kernel_slice(place.ts, track, PENDING, Some("tcp_state"), &name, &mut Vec::new());
    }
}
