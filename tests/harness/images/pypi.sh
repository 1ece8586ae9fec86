#!/bin/sh
# Makes the root file system of an image in the folder $1: Debian's Python, the program $2 as /srv/train.py, and the packages of PyPI that
# the arguments after the third name, from which the module $3 can be imported.
set -eu
rootfs=$1
program=$2
module=$3
shift 3

debootstrap --variant=minbase --include=python3,libgomp1 bookworm "$rootfs"

# By this machine's pip, which knows how to reach PyPI, for the image's Python, which is bookworm's 3.11.
packages=/usr/local/lib/python3.11/dist-packages
python3 -m pip --disable-pip-version-check install --quiet --root-user-action=ignore --no-cache-dir --no-compile \
    --only-binary=:all: --python-version=3.11 --target="$rootfs$packages" "$@"
chroot "$rootfs" python3 -m compileall -q -j 2 "$packages"
chroot "$rootfs" python3 -c "import $module"
cp "$program" "$rootfs/srv/train.py"

# For init containers that wait for names; the one of a static busybox knows no short names.
printf '#!/bin/sh\nexec getent hosts "$1"\n' >"$rootfs/usr/local/bin/nslookup"
chmod +x "$rootfs/usr/local/bin/nslookup"

chroot "$rootfs" apt-get clean
rm -rf "$rootfs"/tmp/* "$rootfs"/var/lib/apt/lists/*
