#!/bin/sh
# Makes the root file system of the pytorch image in the folder $1: Debian's PyTorch, which is built for CPUs, and the program $2 as
# /srv/train.py.
set -eu
rootfs=$1
program=$2

debootstrap --variant=minbase --include=python3 bookworm "$rootfs"
chroot "$rootfs" env DEBIAN_FRONTEND=noninteractive apt-get --quiet --yes --no-install-recommends install python3-torch
cp "$program" "$rootfs/srv/train.py"

# For init containers that wait for names; the one of a static busybox knows no short names.
printf '#!/bin/sh\nexec getent hosts "$1"\n' >"$rootfs/usr/local/bin/nslookup"
chmod +x "$rootfs/usr/local/bin/nslookup"

chroot "$rootfs" apt-get clean
rm -rf "$rootfs"/tmp/* "$rootfs"/var/lib/apt/lists/*
