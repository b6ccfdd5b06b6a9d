//! Addresses of `AF_VSOCK`, which rustix does not support.

use rustix::net::addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque};
use rustix::net::{AddressFamily, SocketAddrAny};

/// `struct sockaddr_vm` of the kernel (`linux/vm_sockets.h`).
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct SockAddrVm {
    family: u16,
    reserved: u16,
    port: u32,
    cid: u32,
    flags: u8,
    zero: [u8; 3],
}

const _: () = assert!(size_of::<SockAddrVm>() == 16);

impl SockAddrVm {
    pub(super) fn new(cid: u32, port: u32) -> Self {
        Self { family: AddressFamily::VSOCK.as_raw(), reserved: 0, port, cid, flags: 0, zero: [0; 3] }
    }
}

// SAFETY: `f` gets a pointer to `self`, which is a complete `sockaddr_vm` without padding, readable
// for its size and alive during the call.
unsafe impl SocketAddrArg for SockAddrVm {
    #[expect(clippy::cast_possible_truncation, reason = "sixteen bytes")]
    unsafe fn with_sockaddr<R>(&self, f: impl FnOnce(*const SocketAddrOpaque, SocketAddrLen) -> R) -> R {
        f(core::ptr::from_ref(self).cast(), size_of::<Self>() as SocketAddrLen)
    }
}

/// Returns context id and port of an address that the kernel returned.
pub(super) fn cid_and_port(any: &SocketAddrAny) -> Option<(u32, u32)> {
    if any.address_family() != AddressFamily::VSOCK || (any.addr_len() as usize) < size_of::<SockAddrVm>() {
        return None;
    }
    // SAFETY: the address has at least the size of a `SockAddrVm` and was written by the kernel;
    // every bit pattern is valid; nothing is assumed about alignment.
    let address = unsafe { any.as_ptr().cast::<SockAddrVm>().read_unaligned() };
    Some((address.cid, address.port))
}
