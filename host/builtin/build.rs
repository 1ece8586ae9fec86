//! Builds the built-in plugins and lists them for `src/lib.rs`.
//!
//! A separate cargo process with separate flags builds each plugin, so that the bytes, and the digest that jobs record,
//! depend on the sources only: not on the home directory, nor on how the host is built.

use std::{
    env,
    error::Error,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The built-in packages. A new framework needs a folder in `plugins/` and an entry here.
const BUILTIN: &[&str] = &["paddle", "mpi", "rhino", "kubeflow", "cron", "job"];

const TARGET: &str = "wasm32-wasip2";
const PROFILE: &str = "plugin";

/// Linker flag that sets the size of a guest's shadow stack.
const STACK: &str = "-Clink-arg=-zstack-size=262144";

/// Inlines less than the compiler does by default: the components are a twentieth smaller and no slower.
const INLINE: &str = "-Cllvm-args=-inline-threshold=75";

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    for input in ["plugins", "wit", "Cargo.lock", "Cargo.toml", "rust-toolchain.toml"] {
        println!("cargo::rerun-if-changed={}", root.join(input).display());
    }
    println!("cargo::rerun-if-changed=build.rs");

    have_target()?;
    let target_dir = shared(&out);
    let flags = flags(&root, &target_dir)?;
    let mut list = String::from("/// Name and component of each plugin that comes with the host.\n");
    list.push_str("pub static BUILTIN: &[(&str, &[u8])] = &[\n");
    for package in BUILTIN {
        build(package, &root, &target_dir, &flags)?;
        let name = format!("{}.wasm", package.replace('-', "_"));
        let wasm = out.join(&name);
        fs::copy(target_dir.join(TARGET).join(PROFILE).join(name), &wasm)?;
        writeln!(list, "    ({package:?}, include_bytes!({wasm:?})),")?;
    }
    list.push_str("];\n");
    fs::write(out.join("builtin.rs"), list)?;
    Ok(())
}

/// Returns the folder that plugins are built in: `plugins` of cargo's target folder, for all profiles and for lints, so that
/// they are built once.
fn shared(out: &Path) -> PathBuf {
    // <target>/<profile>/build/<package>/out; another machine's is <target>/<machine>/<profile>/...
    let target = out.ancestors().skip(4).take(2).find(|folder| folder.join("CACHEDIR.TAG").exists());
    target.unwrap_or(out).join("plugins")
}

/// Installs the target of `rust-toolchain.toml` if rustup has not installed it by itself.
fn have_target() -> Result<(), Box<dyn Error>> {
    let installed = Path::new(rustc(&["--print", "sysroot"])?.trim()).join("lib/rustlib").join(TARGET).is_dir();
    if installed {
        return Ok(());
    }
    let added = Command::new("rustup").args(["target", "add", TARGET]).status();
    match added {
        Ok(status) if status.success() => Ok(()),
        _ => {
            Err(format!("plugins are built for {TARGET}, which is not installed: run `rustup target add {TARGET}`")
                .into())
        }
    }
}

fn build(package: &str, root: &Path, target_dir: &Path, flags: &str) -> Result<(), Box<dyn Error>> {
    let mut cargo = Command::new(env::var("CARGO")?);
    for (name, _) in env::vars_os() {
        if !inherited(&name.to_string_lossy()) {
            cargo.env_remove(name);
        }
    }
    let status = cargo
        .current_dir(root)
        .env("CARGO_ENCODED_RUSTFLAGS", flags)
        .args(["build", "--locked", "--quiet", "--package", package, "--lib"])
        .args(["--target", TARGET, "--profile", PROFILE, "--target-dir"])
        .arg(target_dir)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("failed to build plugin {package} for {TARGET}: {status}").into())
    }
}

/// Returns whether cargo inherits this variable: locations are inherited, build settings of the outer cargo are not.
fn inherited(name: &str) -> bool {
    let how = ["CARGO", "RUST", "CLIPPY", "DEP_"].iter().any(|prefix| name.starts_with(prefix));
    let build_script = ["HOST", "TARGET", "PROFILE", "OPT_LEVEL", "DEBUG", "NUM_JOBS", "OUT_DIR"].contains(&name);
    let where_things_are =
        ["CARGO_HOME", "CARGO_MAKEFLAGS", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTR", "CARGO_SOURCE_", "RUSTUP_"];
    where_things_are.iter().any(|prefix| name.starts_with(prefix)) || !(how || build_script)
}

/// Returns the compiler flags, separated as `CARGO_ENCODED_RUSTFLAGS` requires. Later remappings win.
fn flags(root: &Path, target_dir: &Path) -> Result<String, Box<dyn Error>> {
    let cargo_home = match env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => env::home_dir().ok_or("no home directory")?.join(".cargo"),
    };
    let sysroot = PathBuf::from(rustc(&["--print", "sysroot"])?.trim());
    let version = rustc(&["--version", "--verbose"])?;
    let commit = version.lines().find_map(|line| line.strip_prefix("commit-hash: ")).unwrap_or("unknown");

    let mut remapped = vec![
        (cargo_home.clone(), "/cargo".to_owned()),
        (root.to_owned(), "/troupe".to_owned()),
        (target_dir.to_owned(), "/target".to_owned()),
        (sysroot.clone(), "/sysroot".to_owned()),
        (sysroot.join("lib/rustlib/src/rust"), format!("/rustc/{commit}")),
    ];
    // The directory of an index is named by a hash of the index's address, which differs with a mirror.
    if let Ok(indexes) = fs::read_dir(cargo_home.join("registry/src")) {
        remapped.extend(indexes.flatten().map(|index| (index.path(), "/crates".to_owned())));
    }
    let mut flags: Vec<String> =
        remapped.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).collect();
    flags.extend([STACK, INLINE].map(str::to_owned));
    Ok(flags.join("\u{1f}"))
}

fn rustc(args: &[&str]) -> Result<String, Box<dyn Error>> {
    let output = Command::new(env::var("RUSTC")?).args(args).output()?;
    Ok(String::from_utf8(output.stdout)?)
}
