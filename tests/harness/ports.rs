//! Ports for servers of tests.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Result, bail};

/// A port nobody listens on, below those the kernel gives to outgoing connections; the next call gives another one.
pub(crate) fn free_port() -> Result<u16> {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id().wrapping_mul(31) % u32::from(COUNT)).expect("less than COUNT");
    for _ in 0..COUNT {
        let port = FIRST + (start + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("all ports from {FIRST} on are taken")
}
