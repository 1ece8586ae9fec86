//! The digest and compression of a component's bytes, and their keys in a ConfigMap.

use super::remedy::{Trouble, remedy};
use decide::Digest;
use sha2::{Digest as _, Sha256};
use std::io::Read;

/// The key of a component in a ConfigMap's `binaryData`.
pub const KEY: &str = "plugin.wasm";

/// The key of a component that is compressed with zstd.
pub const COMPRESSED_KEY: &str = "plugin.wasm.zst";

/// The annotation of a ConfigMap that holds the digest of its component.
pub const DIGEST_ANNOTATION: &str = decide::ownership::PLUGIN_DIGEST_ANNOTATION;

/// How strongly a component is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ratio {
    /// Fast, for data that somebody waits for.
    Quick,
    /// Strong, for data that has to be small: the better ratio costs a second for 400 KiB and saves a tenth.
    Small,
}

/// Maximum window of a frame, as a power of two: the window that the best compression uses.
const WINDOW: u32 = 25;

/// Bytes that are no component: what they are, and what to tell the tool that made them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{is}, not a WebAssembly component; {remedy}")]
pub struct NotAComponent {
    is: &'static str,
    remedy: &'static str,
}

/// Checks that the bytes begin like a component, not like a core module.
///
/// # Errors
/// Returns what they are instead.
pub fn component(wasm: &[u8]) -> Result<(), NotAComponent> {
    if matches!(wasm.get(..8), Some([0, b'a', b's', b'm', _, _, 1, 0])) {
        return Ok(());
    }
    Err(match wasm.starts_with(b"\0asm") {
        true => NotAComponent { is: "a core module", remedy: remedy(Trouble::Module, wasm) },
        false => NotAComponent { is: "no WebAssembly at all", remedy: "build the plugin for wasm32-wasip2" },
    })
}

/// Returns the SHA-256 of the bytes.
#[must_use]
pub fn digest(wasm: &[u8]) -> Digest {
    <[u8; 32]>::from(Sha256::digest(wasm)).into()
}

/// Compresses the bytes to a zstd frame.
///
/// # Errors
/// Returns an error if the library fails.
pub fn compress(bytes: &[u8], ratio: Ratio) -> std::io::Result<Vec<u8>> {
    let level = match ratio {
        Ratio::Quick => 3,
        Ratio::Small => 19,
    };
    zstd::encode_all(bytes, level)
}

/// The reason why compressed bytes are refused.
#[derive(Debug, thiserror::Error)]
pub enum DecompressError {
    /// The decompressed bytes exceed the limit.
    #[error("it has more than {0} bytes when decompressed")]
    TooLarge(usize),
    /// The bytes are not a zstd frame.
    #[error("it is no zstd frame")]
    Broken(#[source] std::io::Error),
}

/// Decompresses at most `limit` bytes, and stops as soon as there are more.
///
/// # Errors
/// Returns an error if the content is larger than `limit` or the bytes are not a zstd frame.
pub fn decompress(bytes: &[u8], limit: usize) -> Result<Vec<u8>, DecompressError> {
    let mut frame = zstd::Decoder::new(bytes).map_err(DecompressError::Broken)?;
    frame.window_log_max(WINDOW).map_err(DecompressError::Broken)?;
    let mut whole = Vec::new();
    frame.take(limit as u64 + 1).read_to_end(&mut whole).map_err(DecompressError::Broken)?;
    if whole.len() > limit { Err(DecompressError::TooLarge(limit)) } else { Ok(whole) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decompression_restores_the_bytes_unless_they_exceed_the_limit() {
        let zeros = vec![0; 1 << 20];
        let small = compress(&zeros, Ratio::Small).unwrap();
        assert!(small.len() < 1000);
        assert_eq!(decompress(&small, 1 << 20).unwrap(), zeros);
        assert!(matches!(decompress(&small, (1 << 20) - 1), Err(DecompressError::TooLarge(_))));
        assert!(matches!(decompress(b"no frame", 100), Err(DecompressError::Broken(_))));
    }
}
