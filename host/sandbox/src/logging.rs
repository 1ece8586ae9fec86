//! The host's implementation of the contract's `log` interface.

use super::{
    guest::{Guest, charge},
    log::{LONGEST_LINE, Level, clean},
};
use wasmtime::{StoreContextMut, bail, component::Val};

/// Fuel that a call of the `log` interface costs beyond the guest's own instructions, so that fuel also bounds a flood.
const COST: u64 = 2_000;

/// Implements `log.write`, the only function of the `log` interface.
pub(super) fn write(mut store: StoreContextMut<'_, Guest>, args: &[Val]) -> wasmtime::Result<Option<Val>> {
    let [Val::Enum(level), Val::String(message), Val::List(fields)] = args else {
        bail!("log.write has other parameters in this component than in the contract");
    };
    let level = match level.as_str() {
        "error" => Level::Error,
        "warn" => Level::Warn,
        "info" => Level::Info,
        _ => Level::Debug,
    };
    let bytes = fields.iter().fold(message.len(), |bytes, field| match field {
        Val::Tuple(pair) => pair.iter().fold(bytes, |bytes, part| match part {
            Val::String(part) => bytes + part.len(),
            _ => bytes,
        }),
        _ => bytes,
    });
    charge(&mut store, COST + bytes as u64)?;
    let log = &mut store.data_mut().log;
    let more = if fields.is_empty() || log.lines_left == 0 { String::new() } else { pairs(fields) };
    log.line(level, message, &more);
    Ok(None)
}

fn pairs(fields: &[Val]) -> String {
    let mut out = String::new();
    for field in fields {
        let Val::Tuple(pair) = field else { continue };
        let [Val::String(name), Val::String(value)] = pair.as_slice() else { continue };
        if out.len() > LONGEST_LINE {
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&clean(name, 64));
        out.push('=');
        out.push_str(&clean(value, LONGEST_LINE));
    }
    out
}
