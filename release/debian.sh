# What is the same in every test in a fresh Debian. release/try-deb and release/try-wheel read this file.

here=$(dirname "$0")

# The Debian of a folder, made by debootstrap if it is not there, for this machine or another architecture.
make_debian() {
    local suite=$1 root=$2 arch=$3 foreign=''
    if [ "$arch" != "$(dpkg --print-architecture)" ]; then foreign=--foreign; fi
    if [ ! -e "$root/usr/bin/python3" ]; then
        debootstrap --variant=minbase --arch="$arch" $foreign \
            --include=python3,python3-venv,systemd-sysv,dbus,debconf,ca-certificates,curl,util-linux "$suite" "$root" >/dev/null
    fi
    if [ -e "$root/debootstrap/debootstrap" ]; then chroot "$root" /debootstrap/debootstrap --second-stage >/dev/null; fi
}

draw_screenshot() {
    PYTHONPATH=$here/.. "$here/../.venv/bin/python" >"$1" -c '
import sys
from tests.support.drawing import draw
sys.stdout.buffer.write(draw("Dentist appointment\nFriday 14:30", size=(480, 854)))'
}

# Run a command in the Debian of a folder, without network. What is mounted and started ends with it.
in_debian() {
    unshare --mount --net --pid --fork --kill-child sh -eu -c '
        root=$1
        shift
        ip link set lo up
        mount -t proc proc "$root/proc"
        for device in null urandom random zero; do
            touch "$root/dev/$device"
            mount --bind "/dev/$device" "$root/dev/$device"
        done
        mkdir -p "$root/dev/shm"
        mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
        chroot "$root" /usr/bin/env -i "$@"' - "$@"
}
