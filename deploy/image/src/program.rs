//! What an executable file says of itself: for which architecture it is, and whether it needs shared libraries.

use anyhow::{Context, Result, bail, ensure};
use std::{fs, path::Path};

/// The machines of ELF whose programs go into images, and what Go and Rust call them.
const MACHINES: [(u16, &str, &str); 2] = [(62, "amd64", "x86_64"), (183, "arm64", "aarch64")];

/// The type of the program header that names a dynamic loader.
const INTERPRETER: u32 = 3;

/// Returns Go's name of this machine's architecture.
#[must_use]
pub fn architecture() -> &'static str {
    let known = MACHINES.iter().find(|(_, _, rust)| *rust == std::env::consts::ARCH);
    known.map_or(std::env::consts::ARCH, |(_, go, _)| go)
}

/// Returns Rust's target with musl for an architecture that Go calls so.
///
/// # Errors
/// Nothing is built for it.
pub fn target(architecture: &str) -> Result<String> {
    let known = MACHINES.iter().find(|(_, go, _)| *go == architecture);
    let (_, _, rust) = known.with_context(|| format!("{architecture:?} is no architecture: amd64 and arm64 are"))?;
    Ok(format!("{rust}-unknown-linux-musl"))
}

/// Returns Go's name of the architecture for which a program was built.
///
/// # Errors
/// It is no program for Linux, is for another architecture, or needs shared libraries, which the image does not have.
pub fn architecture_of(file: &Path) -> Result<&'static str> {
    let bytes = fs::read(file).with_context(|| format!("failed to read {}", file.display()))?;
    read(&bytes).with_context(|| format!("{} cannot be the program of an image", file.display()))
}

fn read(bytes: &[u8]) -> Result<&'static str> {
    // ELF, 64 bits, little-endian.
    ensure!(bytes.starts_with(b"\x7fELF\x02\x01"), "it is no 64-bit program for Linux");
    let machine = number(bytes, 18, 2)?;
    let known = MACHINES.iter().find(|(elf, _, _)| u64::from(*elf) == machine);
    let Some((_, architecture, _)) = known else { bail!("it is for machine {machine} of ELF, not for amd64 or arm64") };
    let (first, size, count) = (number(bytes, 32, 8)?, number(bytes, 54, 2)?, number(bytes, 56, 2)?);
    for header in 0..count {
        let place = usize::try_from(first.saturating_add(header * size))?;
        ensure!(
            number(bytes, place, 4)? != u64::from(INTERPRETER),
            "it needs shared libraries: build it for a target with musl"
        );
    }
    Ok(architecture)
}

/// Returns the little-endian number of `size` bytes at `place`.
fn number(bytes: &[u8], place: usize, size: usize) -> Result<u64> {
    let field = place.checked_add(size).and_then(|end| bytes.get(place..end)).context("it is cut off")?;
    Ok(field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A program of this machine of ELF, with a program header of this type.
    pub(crate) fn elf(machine: u8, header: u8) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[18], bytes[32], bytes[54], bytes[56]) = (machine, 64, 56, 1);
        bytes[64] = header;
        bytes
    }

    #[test]
    fn a_static_program_says_its_architecture() {
        assert_eq!(read(&elf(62, 1)).unwrap(), "amd64");
        assert_eq!(read(&elf(183, 1)).unwrap(), "arm64");
        assert_eq!(target("arm64").unwrap(), "aarch64-unknown-linux-musl");
        assert!(target("aarch64").unwrap_err().to_string().contains("amd64 and arm64 are"));
    }

    #[test]
    fn what_could_not_run_in_the_image_is_refused_with_the_reason() {
        let told = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert!(told(b"#!/bin/sh\n").contains("no 64-bit program"));
        assert!(told(&elf(62, 3)).contains("needs shared libraries"));
        assert!(told(&elf(40, 1)).contains("machine 40"));
        assert!(told(&elf(62, 1)[..60]).contains("cut off"));
        let me = std::env::current_exe().unwrap();
        assert!(format!("{:#}", architecture_of(&me).unwrap_err()).contains("needs shared libraries"));
    }
}
