#!/bin/sh
# Makes in the folder $1 the files of a machine that has nothing of ours: Debian with the packages $2, the Rust toolchain $3 and
# Go, as a user brings them, for the user $4; what this machine needs for its network; and a clone of the commit that is
# checked out in the folder $5.
set -eu
root=$1
packages=$2
toolchain=$3
user=$4
checkout=$5

debootstrap --variant=minbase --include="$packages" bookworm "$root"
# Of this machine's network: names, and the authorities that it trusts.
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"

home=$root/root
if [ "$user" != root ]; then
  home=$root/home/$user
  chroot "$root" useradd --create-home --shell /bin/sh "$user"
fi
mkdir -p "$home/.cargo/bin" "$home/.rustup/toolchains"
cp -a "$(command -v rustup)" "$home/.cargo/bin/rustup"
for name in cargo cargo-clippy cargo-fmt clippy-driver rustc rustdoc rustfmt; do
  ln -f "$home/.cargo/bin/rustup" "$home/.cargo/bin/$name"
done
rustup=${RUSTUP_HOME:-$HOME/.rustup}
cp -a "$rustup/settings.toml" "$home/.rustup/"
cp -aL "$rustup/toolchains/$toolchain" "$home/.rustup/toolchains/$toolchain"
go=$(go env GOROOT)
mkdir -p "$root/usr/local"
cp -aL "$go" "$root/usr/local/go"
git clone --quiet --no-local "$checkout" "$home/troupe"
chroot "$root" chown -R "$user:" "${home#"$root"}"
