#!/bin/sh
# Makes the root file system of the mpich image in the folder $1: Debian's MPICH, and the program /usr/local/bin/pi from $2.
set -eu
rootfs=$1
pi=$2

debootstrap --variant=minbase --include=mpich bookworm "$rootfs"

# Only the headers of the -dev package are needed: the library is in the image, and the package's own dependencies are large.
chroot "$rootfs" sh -c 'cd /tmp && apt-get --quiet download libmpich-dev && mkdir dev && dpkg-deb --extract libmpich-dev_*.deb dev'
lib=$(echo "$rootfs"/usr/lib/*-linux-gnu)
include=$(echo "$rootfs"/tmp/dev/usr/include/*-linux-gnu/mpich)
gcc -O2 -o "$rootfs/usr/local/bin/pi" "$pi" "-I$include" "$lib/libmpich.so.12" -Wl,--unresolved-symbols=ignore-in-shared-libs

chroot "$rootfs" apt-get clean
rm -rf "$rootfs"/tmp/* "$rootfs"/var/lib/apt/lists/*
