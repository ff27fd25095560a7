#!/usr/bin/env bash
# Boots kernels in an emulator, tries `tacit rre` there and loads `tacit thin`: bench/kernels.sh TACIT PACKAGE.deb...
#
# TACIT is the program, PACKAGE.deb a package of Debian's or Ubuntu's that has a kernel. Takes qemu-system-x86_64,
# busybox, iperf3 and a minute for each kernel. Prints the output of `tacit doctor` and `tacit rre status`, and exits with 1 if a
# kernel that tacit accepts does not use TCP-RRE, or one from 6.6 on does not load the thinner.
set -euo pipefail
tacit=$(realpath "${1:?usage: bench/kernels.sh TACIT PACKAGE.deb...}")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,dev,proc,sys,tmp,run}
cp "$(command -v busybox)" "$root/bin/busybox"
for program in "$tacit" "$(command -v iperf3)"; do
    cp "$program" "$root/bin/"
    ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
done
[[ -e $root/bin/tacit ]] || mv "$root/bin/$(basename "$tacit")" "$root/bin/tacit"
cat >"$root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /sys/fs/cgroup
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up
echo "RESULT kernel $(uname -r)"
tacit doctor | grep -E ' (rre|thin) ' | sed 's/^/RESULT /'
iperf3 -s -1 -D
sleep 2
tacit rre run -- sh -c 'iperf3 -c 127.0.0.1 -t 30 --json >/tmp/iperf3 & sleep 5; tacit rre status; wait' 2>&1 | sed 's/^/RESULT /'
grep sender_tcp_congestion /tmp/iperf3 | sed 's/^/RESULT /'
poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1 >"$work/initrd")
wrong=0
for package; do
    rm -rf "$work/kernel" && mkdir "$work/kernel"
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$work/kernel" --wildcards '*/vmlinuz*'
    timeout 300 qemu-system-x86_64 -accel tcg -cpu max -m 1024 -nographic -no-reboot \
        -kernel "$(find "$work/kernel" -name "vmlinuz*" -type f)" -initrd "$work/initrd" -append 'console=ttyS0 quiet rdinit=/init' \
        </dev/null >"$work/console" 2>&1 || true
    said=$(tr -d '\r' <"$work/console" | grep -o 'RESULT .*' | sed 's/^RESULT //')
    echo "$package:"
    echo "${said:-the kernel did not boot}"
    grep -q '^yes  rre' <<<"$said" && ! grep -q '"tacit_rre"' <<<"$said" && wrong=1
    version=$(sed -n 's/^kernel //p' <<<"$said")
    # The first kernel with tcx.
    [[ $(printf '%s\n' 6.6 "$version" | sort -V | head -n 1) != 6.6 ]] || grep -q '^yes  thin' <<<"$said" || wrong=1
    [[ -n $said ]] || wrong=1
done
exit "$wrong"
