//! Who makes a request.

use super::access::User;
use std::net::IpAddr;

/// The address of a request's client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer(pub(super) IpAddr);

/// Who reads: the user, or the address that he comes from where no user is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reader {
    User(User),
    Address(Option<IpAddr>),
}

impl Reader {
    /// Returns who makes a request: this user, if one is known, from this address, if it came by a connection.
    pub(super) fn of(user: Option<User>, peer: Option<Peer>) -> Self {
        user.map_or_else(|| Self::Address(peer.map(|Peer(address)| address)), Self::User)
    }
}
