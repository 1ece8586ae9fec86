#!/bin/sh
# Runs the command $3 as the user $2 in the clone on the machine whose files are in the folder $1. Started in mount and process
# namespaces of its own: all that the command starts ends with it, and no mount outlives it.
set -eu
root=$1
user=$2
command=$3

mount --make-rprivate /
# What runs containers changes its root, which only the root of a mount can be.
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs run
mkdir -p before
pivot_root . before
cd /
umount --lazy before
home=$(getent passwd "$user" | cut -d: -f6)
export HOME="$home" USER="$user" PATH="$home/.cargo/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
cd "$home/troupe"
if [ "$user" = root ]; then
  exec sh -c "$command"
fi
exec setpriv --reuid="$user" --regid="$user" --init-groups -- sh -c "$command"
