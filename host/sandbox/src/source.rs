//! The bytes of a component, as they travel: their digest, their compression, and where they lie in a ConfigMap.

use sha2::{Digest, Sha256};
use std::io::Read;

/// Where a component lies in a ConfigMap's `binaryData`.
pub const KEY: &str = "plugin.wasm";

/// Where one lies that is compressed with zstd.
pub const COMPRESSED_KEY: &str = "plugin.wasm.zst";

/// The annotation of a ConfigMap that tells the digest of the component within.
pub const DIGEST_ANNOTATION: &str = decide::ownership::MADE_BY;

/// How much a component is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ratio {
    /// At once, for what somebody waits for.
    Quick,
    /// As much as is worth it, for what has to be small: a better ratio costs a second for 400 KiB and saves a tenth.
    Small,
}

/// A frame may ask for so much memory while it is read, as a power of two: what the best compression makes use of.
const WINDOW: u32 = 25;

/// It begins as a component does, not as a core module.
#[must_use]
pub fn is_component(wasm: &[u8]) -> bool {
    matches!(wasm.get(..8), Some([0, b'a', b's', b'm', _, _, 1, 0]))
}

/// SHA-256 of the bytes, in hex.
#[must_use]
pub fn digest(wasm: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(wasm).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The bytes as a zstd frame.
///
/// # Errors
/// When the library fails.
pub fn compress(bytes: &[u8], ratio: Ratio) -> std::io::Result<Vec<u8>> {
    let level = match ratio {
        Ratio::Quick => 3,
        Ratio::Small => 19,
    };
    zstd::encode_all(bytes, level)
}

/// Why compressed bytes are refused.
#[derive(Debug, thiserror::Error)]
pub enum Inflated {
    /// They are more than allowed once they are decompressed, however few they are before.
    #[error("it has more than {0} bytes when decompressed")]
    TooLarge(usize),
    /// They are no zstd.
    #[error("it is no zstd frame")]
    Broken(#[source] std::io::Error),
}

/// What was compressed, if it has no more bytes than `limit`; no more than that is ever made of it.
///
/// # Errors
/// It is larger, or no zstd.
pub fn decompress(bytes: &[u8], limit: usize) -> Result<Vec<u8>, Inflated> {
    let mut frame = zstd::Decoder::new(bytes).map_err(Inflated::Broken)?;
    frame.window_log_max(WINDOW).map_err(Inflated::Broken)?;
    let mut whole = Vec::new();
    frame.take(limit as u64 + 1).read_to_end(&mut whole).map_err(Inflated::Broken)?;
    if whole.len() > limit { Err(Inflated::TooLarge(limit)) } else { Ok(whole) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_compressed_comes_back_unless_it_is_too_large() {
        let zeros = vec![0; 1 << 20];
        let small = compress(&zeros, Ratio::Small).unwrap();
        assert!(small.len() < 1000);
        assert_eq!(decompress(&small, 1 << 20).unwrap(), zeros);
        assert!(matches!(decompress(&small, (1 << 20) - 1), Err(Inflated::TooLarge(_))));
        assert!(matches!(decompress(b"no frame", 100), Err(Inflated::Broken(_))));
    }
}
