#!/bin/sh
# Makes the root file system of the openmpi image in the folder $1: Debian's Open MPI and sshd, and the program /usr/local/bin/pi from $2.
# sshd takes root's key from /root/.ssh, where the operator mounts its Secret with files of mode 0600 that are links.
set -eu
rootfs=$1
pi=$2

debootstrap --variant=minbase --include=openmpi-bin,openssh-server bookworm "$rootfs"

printf 'StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n' >"$rootfs/etc/ssh/ssh_config.d/test.conf"
printf 'StrictModes no\nPermitRootLogin prohibit-password\n' >"$rootfs/etc/ssh/sshd_config.d/test.conf"
mkdir -p "$rootfs/run/sshd" "$rootfs/root/.ssh"

# Only the headers of the -dev package are needed: the library is in the image, and the package's own dependencies are large.
chroot "$rootfs" sh -c 'cd /tmp && apt-get --quiet download libopenmpi-dev && mkdir dev && dpkg-deb --extract libopenmpi-dev_*.deb dev'
lib=$(echo "$rootfs"/usr/lib/*-linux-gnu)
include=$(echo "$rootfs"/tmp/dev/usr/lib/*-linux-gnu/openmpi/include)
gcc -O2 -o "$rootfs/usr/local/bin/pi" "$pi" "-I$include" "$lib/libmpi.so.40" -Wl,--unresolved-symbols=ignore-in-shared-libs

chroot "$rootfs" apt-get clean
rm -rf "$rootfs"/tmp/* "$rootfs"/var/lib/apt/lists/*
