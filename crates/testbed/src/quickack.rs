//! Receivers that acknowledge every packet at once: a property of the route back to the sender.
//!
//! `TCP_QUICKACK` lasts for some packets only. The metric `quickack` of a route holds for all connections over it;
//! ioctl cannot set it, so this speaks rtnetlink.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

use nix::libc;
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket};

/// `RTAX_QUICKACK` of linux/rtnetlink.h, which the crate `libc` does not have.
const RTAX_QUICKACK: u16 = 15;

/// Builds a netlink message field by field, in the machine's byte order.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        let length = (value.len() + 4) as u16;
        self.bytes(&[length.to_ne_bytes(), kind.to_ne_bytes()].concat());
        self.bytes(value);
    }
}

/// The request for a route to `to` alone, over the device of index `device`, with the metric set.
fn request(to: Ipv4Addr, device: u32) -> Vec<u8> {
    let mut quickack = Message::default();
    quickack.attribute(RTAX_QUICKACK, &1u32.to_ne_bytes());

    let mut body = Message::default();
    // struct rtmsg: family, lengths of the destination and the source, type of service, table, protocol, scope, type.
    let family = libc::AF_INET as u8;
    body.bytes(&[family, 32, 0, 0, libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, libc::RT_SCOPE_LINK, libc::RTN_UNICAST]);
    body.bytes(&0u32.to_ne_bytes());
    body.attribute(libc::RTA_DST, &to.octets());
    body.attribute(libc::RTA_OIF, &device.to_ne_bytes());
    body.attribute(libc::RTA_METRICS, &quickack.0);

    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
    let mut message = Message::default();
    // struct nlmsghdr: length, type, flags, sequence number, port.
    message.bytes(&(body.0.len() as u32 + 16).to_ne_bytes());
    message.bytes(&[libc::RTM_NEWROUTE.to_ne_bytes(), flags.to_ne_bytes()].concat());
    message.bytes(&1u32.to_ne_bytes());
    message.bytes(&0u32.to_ne_bytes());
    message.bytes(&body.0);
    message.0
}

/// Makes receivers in this thread's network namespace acknowledge every packet from these senders, which are behind the
/// device called `device`.
///
/// # Errors
/// If the rights are missing, or there is no such device.
pub(crate) fn towards(senders: impl Iterator<Item = Ipv4Addr>, device: &str) -> io::Result<()> {
    let index = nix::net::if_::if_nametoindex(device)?;
    let channel = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
    let mut answer = [0; 4096];
    for sender in senders {
        sendto(channel.as_raw_fd(), &request(sender, index), &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        let length = recv(channel.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        // struct nlmsgerr follows the header; its first field is the negative error, 0 for none.
        let code = answer[..length].get(16..20).and_then(|bytes| bytes.try_into().ok()).map_or(0, i32::from_ne_bytes);
        if code != 0 {
            return Err(io::Error::from_raw_os_error(-code));
        }
    }
    Ok(())
}
